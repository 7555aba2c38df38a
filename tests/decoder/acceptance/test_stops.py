"""Where an output ends: stop ids, stop strings, the most tokens; inside an accepted path too."""

from __future__ import annotations

import pytest

from fakes import VOCAB
from gumiho_decoder.acceptance.stops import Stops
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.logging.recorder import Recorder
from gumiho_decoder.loop import generate, plain
from gumiho_theory import ChainStructure
from scripted import ScriptedDrafter


def text(ids):
    return "".join("abcdefgh"[i] for i in ids)


def cut(new, *, ids=(), strings=(), tokens=99):
    output: list[int] = []
    stops = Stops(frozenset(ids), tuple(strings), tokens, "length", text)
    reason = stops.cut(output, new)
    return output, reason


def test_a_stop_id_inside_an_accepted_block_cuts_there_even_where_the_length_would_cut_later():
    """Six tokens accepted together, a stop id third, a cap of five: three tokens, and the reason is the stop."""
    assert cut([0, 1, 2, 3, 4, 5], ids={2}, tokens=5) == ([0, 1, 2], "eos")
    assert cut([0, 1, 2, 3, 4, 5], ids={5}, tokens=5) == ([0, 1, 2, 3, 4], "length")
    assert cut([0, 1, 2], ids={7}, tokens=5) == ([0, 1, 2], None)


def test_a_stop_id_is_an_eos_even_as_the_last_token_there_is_room_for():
    assert cut([0, 1, 2], ids={2}, tokens=3) == ([0, 1, 2], "eos")


def test_a_stop_string_ends_with_the_token_that_completes_it():
    assert cut([0, 1, 2, 3, 4], strings=["cd"]) == ([0, 1, 2, 3], "stop_string")
    assert cut([0, 1, 2, 3, 4], strings=["xx", "b"]) == ([0, 1], "stop_string")
    assert cut([0, 1, 2, 3, 4], strings=["da"]) == ([0, 1, 2, 3, 4], None)


def test_a_stop_string_is_found_across_cycles_and_in_long_texts():
    output: list[int] = []
    stops = Stops(frozenset(), ("abcabc",), 10**6, "length", text)
    assert stops.cut(output, [3] * 1000) is None
    assert stops.cut(output, [0, 1, 2, 0]) is None
    assert stops.cut(output, [1, 2, 7]) == "stop_string"
    assert len(output) == 1006


def test_a_character_of_several_tokens_completes_a_stop_string_with_its_last():
    def decode(ids):
        return bytes(ids).decode(errors="replace")

    word = "né!".encode()
    stops = Stops(frozenset(), ("é",), 99, "length", decode)
    output: list[int] = []
    assert stops.cut(output, list(word)) == "stop_string"
    assert bytes(output) == "né".encode()


@pytest.mark.parametrize("length", range(1, 5))
@pytest.mark.parametrize("chain", [1, 3, 7])
def test_speculative_decoding_stops_at_strings_and_ids_where_plain_decoding_does(length, chain, target, prompt):
    free = plain(target, prompt, GenerationConfig(60)).token_ids
    said = target.decode(free[20 : 20 + length])
    for settings in ({"stop_strings": (said,)}, {"stop_token_ids": (free[20], 3)}):
        config = GenerationConfig(50, ChainStructure(chain), **settings)
        expected = plain(target, prompt, config)
        assert expected.stop_reason in {"stop_string", "eos"}
        recorder = Recorder()
        drafter = ScriptedDrafter([*prompt, *free], VOCAB, lambda place: place % 5)
        out = generate(target, drafter, prompt, config, recorder.prompt("a", None, 0))
        assert (out.token_ids, out.stop_reason) == (expected.token_ids, expected.stop_reason)
        trace = recorder.trace({})
        assert trace.committed.sum() == len(out.token_ids) - 1
        # A stop string cuts the output as the length does: the accepted length is known in full.
        if out.stop_reason == "stop_string":
            assert (trace.censored_at == -1).all()


def test_several_end_tokens_of_the_target_all_end_an_output(target, prompt):
    free = plain(target, prompt, GenerationConfig(40)).token_ids
    target.model.generation_config.eos_token_id = [free[9], free[15]]
    try:
        out = plain(target, prompt, GenerationConfig(40))
        assert out.stop_reason == "eos"
        assert out.token_ids[-1] in {free[9], free[15]}
    finally:
        target.model.generation_config.eos_token_id = None
