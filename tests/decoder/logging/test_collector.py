"""An output read in one forward gives the every-position log that decoding it with the drafter would have given."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fakes import random_drafter, random_target
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.logging.collector import Collector, GivenText
from gumiho_decoder.logging.every_position import Log
from gumiho_decoder.loop import generate, plain
from gumiho_theory import ChainStructure, InputError, Structure

PROMPT = [5, 9, 2, 7, 11]
STRUCTURES = [ChainStructure(4), Structure.parse("tree:total=8,top_k=3,depth=4,mlp_topk=3")]


def logged(target, drafter, config, given):
    """The log of the output, decoded with the drafter or made plainly before and only read."""
    log = Log(drafter, config, STRUCTURES, 3)
    if given:
        made = plain(target, PROMPT, config)
        collector = GivenText(target, PROMPT, made.token_ids)
    else:
        collector = Collector()
        made = generate(target, drafter, PROMPT, config, collector)
    log.add(target, drafter, PROMPT, made, collector, "a", None, 0)
    return made, log.made({})


@pytest.mark.parametrize("limit", [2, 3, 17])
@pytest.mark.parametrize("eos", [None, 12])
def test_the_log_of_a_given_output_is_that_of_decoding_it(limit, eos):
    target = random_target(3)
    if eos is not None:
        token = plain(target, PROMPT, GenerationConfig(40)).token_ids[eos]
        target = random_target(3, eos=token)
    drafter, config = random_drafter(target), GenerationConfig(limit, ChainStructure(4))
    (decoded, expected), (made, found) = (logged(target, drafter, config, given) for given in (False, True))
    assert made.token_ids == decoded.token_ids
    for name in ("position", "drafted", "true_token", "rank", "accepted", "censored", "stop_reason"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    for name in ("q_draft", "p_target", "top_q"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-5, err_msg=name)


def test_the_target_s_cache_is_left_as_decoding_leaves_it():
    target = random_target(3)
    made = plain(target, PROMPT, GenerationConfig(9))
    GivenText(target, PROMPT, made.token_ids)
    assert target.length == len(PROMPT) + 9 - 1
    following = plain(target, PROMPT, GenerationConfig(10)).token_ids[-1]
    GivenText(target, PROMPT, made.token_ids)
    with torch.inference_mode():
        assert int(target.step(made.token_ids[-1]).argmax()) == following


def test_no_output_is_refused():
    with pytest.raises(InputError, match="no token"):
        GivenText(random_target(3), PROMPT, [])
