"""The same exactness on an accelerator; skipped without one."""

from __future__ import annotations

import pytest
import torch

from fakes import random_drafter, random_target
from gumiho_decoder.loop import GenerationConfig, generate, plain
from gumiho_decoder.lossless import compare
from gumiho_decoder.recorder import Recorder
from gumiho_theory import Structure

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("structure", ["chain:7", "tree:total=40,top_k=5,depth=7,mlp_topk=8"])
def test_greedy_decoding_on_cuda_equals_plain_decoding_there(structure, dtype, prompt):
    target = random_target()
    target.model.to("cuda", dtype)
    recorder = Recorder()
    config = GenerationConfig(60, Structure.parse(structure))
    out = generate(target, random_drafter(target), prompt, config, recorder.prompt("a", None, 0))
    expected = plain(target, prompt, 60)
    assert compare(target, prompt, expected.token_ids, out.token_ids).verdict in {"equal", "tie"}
    assert recorder.trace({}).committed.sum() == 59
