"""The same exactness on an accelerator; skipped without one."""

from __future__ import annotations

import warnings

import pytest
import torch

from fakes import random_drafter, random_target
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.logging.recorder import Recorder
from gumiho_decoder.loop import generate, plain
from gumiho_decoder.measuring.lossless import compare
from gumiho_theory import Structure

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


@pytest.mark.parametrize("structure", ["chain:7", "tree:total=40,top_k=5,depth=7,mlp_topk=8"])
def test_the_host_waits_for_the_device_once_a_cycle(structure, prompt):
    target = random_target()
    target.model.to("cuda")
    config = GenerationConfig(60, Structure.parse(structure))
    drafter, cycles = random_drafter(target), []
    generate(target, drafter, prompt, config, lambda _: cycles.append(1))
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            generate(target, drafter, prompt, config)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    waits = [w for w in seen if "synchroniz" in str(w.message)]
    assert len(waits) <= len(cycles) + 6  # prefill: the prompt goes up, its token comes down


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("structure", ["chain:7", "tree:total=40,top_k=5,depth=7,mlp_topk=8"])
def test_greedy_decoding_on_cuda_equals_plain_decoding_there(structure, dtype, prompt):
    target = random_target()
    target.model.to("cuda", dtype)
    recorder = Recorder()
    config = GenerationConfig(60, Structure.parse(structure))
    out = generate(target, random_drafter(target), prompt, config, recorder.prompt("a", None, 0))
    expected = plain(target, prompt, GenerationConfig(60))
    assert compare(target, prompt, expected.token_ids, out.token_ids).verdict in {"equal", "tie"}
    assert recorder.trace({}).committed.sum() == 59
