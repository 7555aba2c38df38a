"""vLLM's four formats: counters, log lines, responses, benchmark results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gumiho_simulator.importers import Reading
from gumiho_theory import AcceptanceCounts, InputError, Trace


def counts(reading: Reading) -> AcceptanceCounts:
    assert isinstance(reading.log, AcceptanceCounts)
    return reading.log


def samples(engine: int, drafts: int, drafted: int, accepted: int, positions: list[int]) -> list[str]:
    prefix, label = "vllm:spec_decode_num_", f'engine="{engine}"'
    return [
        f"# HELP {prefix}drafts_total Number of drafts.",
        f"{prefix}drafts_total{{{label}}} {drafts}.0",
        f"{prefix}drafts_created{{{label}}} 1.7e+09",
        f"{prefix}draft_tokens_total{{{label}}} {drafted}.0",
        f"{prefix}accepted_tokens_total{{{label}}} {accepted}.0",
        *(f'{prefix}accepted_tokens_per_pos_total{{{label},position="{i}"}} {n}.0' for i, n in enumerate(positions)),
        f'{prefix}accepted_tokens_per_pos_created{{{label},position="0"}} 1.7e+09',
    ]


def test_two_engines_are_summed_and_stay_groups(read_text) -> None:
    """vllm-project/speculators issue 1095: 8 of 10 and 18 of 20 are 26 of 30, not the last engine's."""
    log = counts(read_text(*samples(0, 10, 10, 8, [8]), *samples(1, 20, 20, 18, [18])))
    assert log.groups == ("engine 0", "engine 1")
    assert log.survival() == pytest.approx([26 / 30])
    assert log.tau() == pytest.approx(1 + 26 / 30)


def test_engines_with_unequal_numbers_of_positions_are_missing_there_not_refused(read_text) -> None:
    """vLLM pull request 26504: a position that an engine never drafts has no denominator from it."""
    log = counts(read_text(*samples(0, 10, 30, 18, [9, 6, 3]), *samples(1, 10, 10, 5, [5])))
    assert log.at_risk is not None and log.at_risk.tolist() == [[10, 9, 6], [10, 0, 0]]
    assert log.conditional() == pytest.approx([14 / 20, 6 / 9, 3 / 6])
    assert log.tau() == pytest.approx(1 + 23 / 20)


def test_an_engine_without_a_draft_is_no_data_and_not_an_acceptance_of_zero(read_text) -> None:
    """vLLM pull request 24322: zero drafts divide by zero."""
    reading = read_text(*samples(0, 0, 0, 0, [0, 0]))
    assert counts(reading).tau() is None
    assert any("no data" in note for note in reading.warnings)


def test_series_whose_names_only_begin_alike_are_not_mixed_up(read_text) -> None:
    log = counts(read_text(*samples(0, 10, 30, 18, [9, 6, 3])))
    assert log.total_accepted.tolist() == [18] and log.survival() == pytest.approx([0.9, 0.6, 0.3])


def test_counters_without_positions_give_tau_alone(read_text) -> None:
    log = counts(read_text(*samples(0, 10, 30, 18, [])))
    assert not log.has_positions and log.tau() == pytest.approx(2.8)


def test_positions_outrank_a_total_that_they_contradict(read_text) -> None:
    """The identity tau = 1 + the sum of survival rates holds in what is returned."""
    reading = read_text(*samples(0, 10, 30, 20, [9, 6, 3]))
    log = counts(reading)
    assert log.tau() == pytest.approx(1 + log.survival().sum()) == pytest.approx(2.8)
    assert any("outrank" in note for note in reading.warnings)


def test_impossible_positions_are_left_out(read_text) -> None:
    reading = read_text(*samples(0, 10, 30, 18, [3, 6, 9]))
    assert not counts(reading).has_positions and "left out" in reading.warnings[0]


def test_shorter_drafts_are_said_to_lower_the_conditional_rates(read_text) -> None:
    assert any("shorter" in note for note in read_text(*samples(0, 10, 25, 18, [9, 6, 3])).warnings)
    assert not read_text(*samples(0, 10, 30, 18, [9, 6, 3])).warnings


def test_of_several_scrapes_the_last_counts(read_text) -> None:
    reading = read_text(*samples(0, 5, 15, 9, [4, 3, 2]), *samples(0, 10, 30, 18, [9, 6, 3]))
    assert counts(reading).cycles.tolist() == [10] and "several scrapes" in reading.warnings[0]


@pytest.mark.parametrize("position", ["512", "000001999999", "-1", "x"])
def test_positions_beyond_the_deepest_draft_are_unusable(read_text, position: str) -> None:
    lines = samples(0, 10, 30, 18, [])
    series = f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="0",position="{position}"}} 3'
    reading = read_text(*lines, series)
    assert not counts(reading).has_positions and "1 unusable" in reading.warnings[-1]


def test_llama_cpp_s_counters_are_read_too(read_text) -> None:
    lines = [line.replace("vllm:", "llamacpp:").replace('{engine="0"}', "") for line in samples(0, 10, 30, 18, [])]
    log = counts(read_text(*lines))
    assert log.groups == ("server",) and log.tau() == pytest.approx(2.8)


HEAD = "(APIServer pid=1) INFO 05-18 11:19:54 [metrics.py:101] SpecDecoding metrics: "
RATES = "Per-position acceptance rate: {}"


def interval(accepted: int, drafted: int, mean: str, rates: str) -> str:
    return (
        f"{HEAD}Mean acceptance length: {mean}, Accepted throughput: 1.80 tokens/s, Drafted throughput: 3.00 "
        f"tokens/s, Accepted: {accepted} tokens, Drafted: {drafted} tokens, {RATES.format(rates)}, Avg Draft "
        "acceptance rate: 60.0%"
    )


def test_intervals_give_back_their_cycles_and_counts(read_text) -> None:
    log = counts(
        read_text(
            "starting",
            interval(18, 30, "2.80", "0.900, 0.600, 0.300"),
            interval(676, 837, "3.42", "0.921, 0.828, 0.674"),
        )
    )
    assert log.cycles.tolist() == [10, 279]
    assert log.accepted is not None and log.accepted.sum(axis=1).tolist() == [18, 676]
    assert log.accepted[0].tolist() == [9, 6, 3]
    assert log.groups == ("interval 2", "interval 3")


def test_every_log_line_that_a_run_can_print_is_read_back(read_text) -> None:
    """The slow twin: lines printed from known counts, with vLLM's own rounding."""
    generator = np.random.default_rng(5)
    lines, truth = [], []
    for _ in range(300):
        depth, cycles = int(generator.integers(1, 8)), int(generator.integers(1, 900))
        accepted = np.sort(generator.integers(0, cycles + 1, depth))[::-1]
        rates = ", ".join(f"{n / cycles:.3f}" for n in accepted)
        total = int(accepted.sum())
        lines.append(interval(total, cycles * depth, f"{1 + total / cycles:.2f}", rates))
        truth.append((cycles, [*accepted.tolist(), *[0] * (7 - depth)]))
    log = counts(read_text(*lines))
    assert log.accepted is not None
    assert list(zip(log.cycles.tolist(), log.accepted.tolist(), strict=True)) == truth


def test_fields_may_stand_in_another_order_and_others_between_them(read_text) -> None:
    older = (
        f"{HEAD}Draft acceptance rate: 60.0%, Mean acceptance length: 2.80, Current speculative depth: 3, "
        f"{RATES.format('0.900, 0.600, 0.300')}, Drafted: 30 tokens, Accepted: 18 tokens"
    )
    assert counts(read_text(older)).survival() == pytest.approx([0.9, 0.6, 0.3])


def test_lines_without_a_mean_cannot_give_cycles(read_text) -> None:
    oldest = f"{HEAD}Draft acceptance rate: 60.0%, Accepted: 18 tokens, Drafted: 30 tokens"
    with pytest.raises(InputError, match="18 of 30 drafted tokens accepted, but not of how many cycles"):
        read_text(oldest)


def test_an_interval_without_drafts_prints_nan_and_is_no_data(read_text) -> None:
    nothing = interval(0, 0, "nan", "nan, nan")
    reading = read_text(nothing, interval(18, 30, "2.80", "0.900, 0.600, 0.300"))
    assert counts(reading).cycles.tolist() == [10] and "no data (line 1)" in reading.warnings[0]
    assert counts(read_text(nothing)).tau() is None


def test_drafts_of_several_lengths_are_found_by_their_mean(read_text) -> None:
    """44 cycles of up to 8 tokens: 308 drafted tokens are fewer than 44 x 8."""
    rates = ", ".join(f"{n / 44:.3f}" for n in (44, 44, 44, 44, 35, 27, 18, 0))
    reading = read_text(interval(256, 308, "6.82", rates))
    assert counts(reading).cycles.tolist() == [44]
    assert any("shorter" in note for note in reading.warnings)


@pytest.mark.parametrize(
    "line", [interval(31, 30, "2.80", "0.900"), interval(18, 30, "3.80", "0.900, 0.600, 0.300"), f"{HEAD}Accepted: x"]
)
def test_lines_that_contradict_themselves_are_named(read_text, line: str) -> None:
    reading = read_text(interval(18, 30, "2.80", "0.900, 0.600, 0.300"), line)
    assert counts(reading).cycles.tolist() == [10]
    assert "1 unusable: line 2" in reading.warnings[0]


def response(**statistics: Any) -> dict[str, Any]:
    full = {
        "mean_acceptance_length": 1 + 10 / 43,
        "acceptance_histogram": [39, 1, 0, 3],
        "num_spec_steps": 43,
        "num_accepted_draft_tokens": 10,
        "num_draft_tokens": 129,
        "num_spec_tokens": 3,
    } | statistics
    return {"id": "a", "choices": [], "metrics": {"speculative_decoding": full}}


def test_a_response_s_histogram_keeps_its_empty_bucket(read_text) -> None:
    """The example of vLLM's documentation: survival 4/43, 3/43, 3/43 and tau 1.2326."""
    reading = read_text(response())
    assert counts(reading).survival() == pytest.approx([4 / 43, 3 / 43, 3 / 43])
    assert counts(reading).tau() == pytest.approx(1.2326, abs=1e-4)
    assert reading.format == "vllm-request" and not reading.warnings
    sparse = {"choices": [{"speculative_decoding_stats": response(acceptance_histogram={"0": 39, "1": 1, "3": 3})}]}
    assert counts(read_text(sparse)).survival() == pytest.approx([4 / 43, 3 / 43, 3 / 43])


def test_a_histogram_outranks_the_mean_beside_it(read_text) -> None:
    for wrong in ({"mean_acceptance_length": 2.5}, {"num_spec_steps": 40}, {"num_accepted_draft_tokens": 11}):
        reading = read_text(response(**wrong))
        assert counts(reading).tau() == pytest.approx(1 + 10 / 43)
        assert any("outrank" in note for note in reading.warnings)


def test_requests_without_statistics_are_passed_over(read_text) -> None:
    """They are null where several choices were asked for."""
    reading = read_text(response(), {"id": "b", "metrics": {"speculative_decoding": None}})
    assert counts(reading).groups == ("a",) and "passed over (line 2)" in reading.warnings[0]


def test_histograms_by_draft_length_give_the_true_denominators(read_text) -> None:
    by_length = {"1": [4, 6], "3": [1, 1, 1, 1]}
    reading = read_text(
        response(
            acceptance_histogram=[5, 7, 1, 1],
            acceptance_histogram_by_draft_length=by_length,
            num_spec_steps=14,
            num_draft_tokens=22,
            num_accepted_draft_tokens=12,
            mean_acceptance_length=1 + 12 / 14,
        )
    )
    assert counts(reading).conditional() == pytest.approx([9 / 14, 2 / 3, 1 / 2])
    assert not reading.warnings
    torn = read_text(response(acceptance_histogram_by_draft_length={"3": [1]}, num_draft_tokens=100))
    assert counts(torn).tau() == pytest.approx(1 + 10 / 43) and "shorter" in torn.warnings[0]


def detailed(accepted: list[int], drafted: list[int], name: str = "a") -> dict[str, Any]:
    steps = {"per_step_accepted": accepted, "per_step_drafted": drafted, "num_spec_steps": len(accepted)}
    return {"id": name, "metrics": {"speculative_decoding": steps}}


def test_detailed_statistics_become_cycles(read_text) -> None:
    """vLLM pull request 50518: a step whose draft was all padding is no cycle."""
    reading = read_text(detailed([2, 0, 0, 1], [3, 0, 2, 1]), detailed([3], [3], "b"))
    trace = reading.log
    assert isinstance(trace, Trace) and trace.prompts == ("a", "b")
    assert trace.drafted.tolist() == [3, 2, 1, 3] and trace.accepted.tolist() == [2, 0, 1, 3]
    assert trace.position.tolist() == [0, 3, 4, 0] and trace.cycle.tolist() == [0, 1, 2, 0]
    assert trace.counts_by_prompt().conditional() == pytest.approx([3 / 4, 1, 1 / 2])
    assert "no cycles: left out" in reading.warnings[0]


def test_detailed_requests_among_others_are_counted_with_them(read_text) -> None:
    log = counts(read_text(detailed([2, 0], [3, 3], "b"), response()))
    assert log.groups == ("b", "a") and log.cycles.tolist() == [2, 43]


def test_steps_that_accept_more_than_they_drafted_are_unusable(read_text) -> None:
    reading = read_text(detailed([4], [3]), response())
    assert counts(reading).groups == ("a",) and "1 unusable: line 1" in reading.warnings[-1]


BENCH = {
    "spec_decode_acceptance_rate": 60.0,
    "spec_decode_acceptance_length": 2.8,
    "spec_decode_num_drafts": 10,
    "spec_decode_draft_tokens": 30,
    "spec_decode_accepted_tokens": 18,
    "spec_decode_per_position_acceptance_rates": [0.9, 0.6, 0.3],
}


def test_a_benchmark_s_result_gives_its_window(read_text) -> None:
    log = counts(read_text(BENCH))
    assert log.cycles.tolist() == [10] and log.survival() == pytest.approx([0.9, 0.6, 0.3])


def test_a_benchmark_s_result_without_counts_is_refused_with_its_tau(read_text) -> None:
    with pytest.raises(InputError, match=r"tau 2\.8, bonus included, but not of how many cycles"):
        read_text({key: BENCH[key] for key in BENCH if "num" not in key})


def test_rates_in_percent_do_not_pass_for_rates(read_text) -> None:
    reading = read_text(BENCH | {"spec_decode_per_position_acceptance_rates": [90.0, 60.0, 30.0]})
    assert not counts(reading).has_positions and counts(reading).tau() == pytest.approx(2.8)
