"""Equality, near-ties and bugs are told apart."""

from __future__ import annotations

import torch

from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.loop import plain
from gumiho_decoder.measuring.lossless import TIE_GAP, compare


def test_equal_outputs_are_equal(target, prompt):
    out = plain(target, prompt, GenerationConfig(20)).token_ids
    assert compare(target, prompt, out, out).verdict == "equal"


def test_a_wrong_token_is_reported_with_its_place_and_gap(target, prompt):
    out = list(plain(target, prompt, GenerationConfig(20)).token_ids)
    wrong = [*out[:7], (out[7] + 1) % 61, *out[8:]]
    result = compare(target, prompt, out, wrong)
    assert (result.verdict, result.position) == ("different", 7)
    logits = target.model(torch.tensor([[*prompt, *out[:7]]])).logits[0, -1]
    torch.testing.assert_close(result.gap, float(logits[out[7]] - logits[wrong[7]]), atol=1e-4, rtol=1e-4)
    assert result.gap > TIE_GAP[torch.float32]


def test_two_tokens_of_equal_logit_are_a_tie(target, prompt):
    """Two vocabulary rows made the same: whichever is chosen, the other is as good."""
    out = list(plain(target, prompt, GenerationConfig(12)).token_ids)
    twin = next(t for t in range(61) if t not in out)
    weight = target.model.get_output_embeddings().weight
    before = weight[twin].clone()
    try:
        with torch.no_grad():
            weight[twin] = weight[out[5]]
        result = compare(target, prompt, out, [*out[:5], twin, *out[6:]])
    finally:
        with torch.no_grad():
            weight[twin] = before
    assert (result.verdict, result.position) == ("tie", 5)
    assert abs(result.gap) <= TIE_GAP[torch.float32]


def test_an_output_that_stops_elsewhere_is_a_bug_never_a_tie(target, prompt):
    out = plain(target, prompt, GenerationConfig(20)).token_ids
    result = compare(target, prompt, out, out[:15])
    assert (result.verdict, result.position, result.gap) == ("different", 15, None)
