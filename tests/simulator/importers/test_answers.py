"""Answer files of EAGLE, Medusa, Hydra, Spec-Bench and HASS, and Gumiho's log: where conventions differ."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gumiho_simulator.importers import Reading
from gumiho_theory import AcceptanceCounts, Trace

TURNS = st.lists(st.lists(st.integers(0, 7), min_size=1, max_size=6), min_size=1, max_size=3)
HYPOTHESIS = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def counts(reading: Reading) -> AcceptanceCounts:
    assert isinstance(reading.log, AcceptanceCounts)
    return reading.log


def trace(reading: Reading) -> Trace:
    assert isinstance(reading.log, Trace)
    return reading.log


def answer(question: Any, category: str | None = None, texts: list[str] | None = None, **choice: Any) -> dict[str, Any]:
    turns = texts or [""] * max(len(value) for value in choice.values())
    made = {"question_id": question, "answer_id": "x", "choices": [{"index": 0, "turns": turns, **choice}]}
    return made if category is None else made | {"category": category}


def test_idxs_hold_the_last_cycle_s_index_counted_from_0(read_text) -> None:
    """Nine tokens with the last index 2 are three cycles: tau 3, not 4.5."""
    reading = read_text(answer(1, idxs=[2, 4], new_tokens=[9, 11]), answer(2, idxs=[0], new_tokens=[1]))
    log = counts(reading)
    assert reading.format == "eagle"
    assert log.groups == ("1", "2") and log.cycles.tolist() == [8, 1]
    assert log.tau() == pytest.approx(21 / 9) and not log.has_positions


@given(cycles=TURNS)
@HYPOTHESIS
def test_formats_that_count_the_same_cycles_differently_agree(read_text, cycles: list[list[int]]) -> None:
    """EAGLE sums with the bonus, Spec-Bench lists with it, HASS without: one tau."""
    tokens = [sum(turn) + len(turn) for turn in cycles]
    last = [len(turn) - 1 for turn in cycles]
    flat = [length for turn in cycles for length in turn]
    expected = 1 + sum(flat) / len(flat)
    steps = {"decoding_steps": [len(turn) for turn in cycles], "new_tokens": tokens}
    eagle = read_text(answer(1, idxs=last, new_tokens=tokens))
    bench = read_text(answer(1, "qa", **steps, accept_lengths=[length + 1 for length in flat]))
    hass = read_text(answer(1, idxs=last, new_tokens=tokens, accept_length=flat))
    sums = read_text(answer(1, "qa", **steps))
    assert (eagle.format, bench.format, hass.format, sums.format) == ("eagle", "spec-bench", "hass", "spec-bench")
    for reading in (eagle, bench, hass, sums):
        assert reading.log.tau() == pytest.approx(expected)
    for reading in (bench, hass):
        assert trace(reading).accepted.tolist() == flat
        assert trace(reading).turn.tolist() == [i for i, turn in enumerate(cycles) for _ in turn]


def test_listed_lengths_become_cycles_with_their_task(read_text) -> None:
    reading = read_text(
        answer(1, "qa", decoding_steps=[2, 1], new_tokens=[6, 2], accept_lengths=[4, 2, 2]),
        answer(2, "math", decoding_steps=[1], new_tokens=[1], accept_lengths=[1]),
    )
    log = trace(reading)
    assert log.task.tolist() == ["qa", "qa", "qa", "math"] and log.drafted.tolist() == [3, 3, 3, 3]
    assert log.counts_by_prompt().conditional() == pytest.approx([3 / 4, 1 / 3, 1])
    assert "draft depths are not logged" in reading.warnings[0]


def test_plain_decoding_lists_ones_and_has_tau_1(read_text) -> None:
    log = trace(read_text(answer(1, "qa", decoding_steps=[3], new_tokens=[3], accept_lengths=[1, 1, 1])))
    assert log.tau() == 1 and log.depth == 0


def test_token_recycling_s_steps_are_one_short(read_text) -> None:
    log = trace(read_text(answer(1, "qa", decoding_steps=[1, 0], new_tokens=[6, 2], accept_lengths=[4, 2, 2])))
    assert log.turn.tolist() == [0, 0, 1] and log.tau() == pytest.approx(8 / 3)


def test_a_turn_that_failed_repeats_the_one_before_and_is_left_out(read_text) -> None:
    texts = ["fine", "ERROR"]
    bench = read_text(answer(1, "qa", texts, decoding_steps=[2, 2], new_tokens=[6, 6], accept_lengths=[4, 2, 4, 2]))
    assert trace(bench).n_cycles == 2 and "failed" in bench.warnings[0]
    eagle = read_text(answer(1, None, texts, idxs=[1, 1], new_tokens=[6, 6]))
    assert counts(eagle).cycles.tolist() == [2]
    blurred = answer(2, "qa", texts, decoding_steps=[2, 2], new_tokens=[6, 6], accept_lengths=[4, 2, 4])
    reading = read_text(answer(1, "qa", decoding_steps=[1], new_tokens=[2], accept_lengths=[2]), blurred)
    assert trace(reading).prompts == ("1",) and "cannot be told" in reading.warnings[-1]


def test_eagle_s_alpha_of_the_last_turn_does_not_pass_for_positions_of_all(read_text) -> None:
    reading = read_text(answer(1, idxs=[2], new_tokens=[9], alpha=[2, 1], alpha_num=[3, 2]))
    assert not counts(reading).has_positions and "alpha" in reading.warnings[0]


def test_impossible_answers_are_named_and_the_others_used(read_text) -> None:
    good = answer(1, idxs=[2], new_tokens=[9])
    reading = read_text(
        good,
        answer(2, idxs=[5], new_tokens=[3]),
        answer(3, idxs=[2, 1], new_tokens=[9]),
        answer(4, idxs=[-1], new_tokens=[9]),
        answer(5, idxs=[2.5], new_tokens=[9]),
        {"question_id": 6},
        '{"question_id": 7, "choi',
    )
    assert counts(reading).cycles.tolist() == [3]
    assert reading.warnings == (
        "6 unusable: line 2: 3 tokens in 6 cycles; line 3: idxs and new_tokens of different length; "
        "line 4: idxs is -1, not a count; and 3 more",
    )


def test_a_length_with_the_bonus_of_0_is_none(read_text) -> None:
    bad = answer(2, "qa", decoding_steps=[2], new_tokens=[3], accept_lengths=[3, 0])
    reading = read_text(answer(1, "qa", decoding_steps=[1], new_tokens=[2], accept_lengths=[2]), bad)
    assert trace(reading).n_cycles == 1 and "1 unusable: line 2" in reading.warnings[-1]


def gumiho(tokens: int, cycles: int) -> list[str]:
    """Two lines as the official evaluation prints them."""
    length = tokens / max(1, cycles - 1)
    return [f"accept_length (Current/Mean): {length:.3f}/{length:.3f}", f"total_token:{tokens}, total_time:0.4"]


def test_gumiho_s_inflated_length_is_undone(read_text) -> None:
    """Nine tokens in three cycles print 4.500; tau is 3."""
    reading = read_text(*gumiho(9, 3), "speed: 20.0", *gumiho(180, 61))
    assert reading.format == "gumiho-log"
    assert counts(reading).cycles.tolist() == [3, 61] and not reading.warnings
    assert counts(reading).tau() == pytest.approx(189 / 64)


@given(cycles=st.integers(3, 800), extra=st.integers(0, 5000))
@HYPOTHESIS
def test_gumiho_s_cycles_come_back_whatever_they_are(read_text, cycles: int, extra: int) -> None:
    tokens = cycles + extra % (7 * cycles + 1)
    assert counts(read_text(*gumiho(tokens, cycles))).cycles.tolist() == [cycles]


def test_one_cycle_and_two_print_the_same_length(read_text) -> None:
    reading = read_text(*gumiho(5, 1))
    assert counts(reading).cycles.tolist() == [2] and "one cycle or two" in reading.warnings[0]
    single = read_text(*gumiho(1, 1))
    assert counts(single).cycles.tolist() == [1] and not single.warnings


def test_gumiho_s_lines_without_their_partner_are_named(read_text) -> None:
    lines = gumiho(9, 3)
    reading = read_text(lines[0], *lines, lines[1], lines[0])
    assert counts(reading).cycles.tolist() == [3] and "3 unusable" in reading.warnings[0]
