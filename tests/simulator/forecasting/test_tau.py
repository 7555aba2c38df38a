"""Forecasts: exact where they must be, refused where nothing is known, and intervals that cover."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gumiho_simulator import Forecast, fit, forecast
from gumiho_simulator.forecasting.tau import ROUND_START_BIAS
from gumiho_theory import AcceptanceCounts, ChainStructure, DynamicTree, InputError, Trace

MakeTrace = Callable[..., Trace]


def one(trace: Trace | AcceptanceCounts, structure: str, model: str = "hazard", **options: int) -> Forecast:
    return forecast(fit(trace, model), [structure], **options)[0]


def test_without_censoring_the_hazard_forecast_of_the_logged_chain_is_the_measured_tau(
    traces: MakeTrace,
) -> None:
    trace = traces(np.random.default_rng(1), prompts=12)
    made = one(trace, "chain:7")
    assert made.tau == pytest.approx(trace.tau(), rel=1e-12)
    lengths = np.bincount(trace.accepted, minlength=8) / trace.n_cycles
    np.testing.assert_allclose(made.pmf, lengths, atol=1e-12)
    np.testing.assert_allclose(made.survival, 1 - np.cumsum(lengths)[:-1], atol=1e-12)
    assert made.supported
    assert made.note == ""
    assert made.lo is not None
    assert made.hi is not None
    assert made.lo < trace.tau() < made.hi


def test_a_shorter_chain_truncates_the_distribution_raises_the_upper_limit_and_says_why(
    trace: Trace,
) -> None:
    fitted = fit(trace, "hazard")
    short, full = forecast(fitted, ["chain:3", "chain:7"])
    assert short.tau == pytest.approx(1 + sum(full.survival[:3]))  # type: ignore[index]
    assert short.supported
    assert "2-7 %" in short.note
    assert "raised by 7%" in short.note
    assert short.hi - short.tau > ROUND_START_BIAS * short.tau  # type: ignore[operator]
    assert short.hi <= 4  # type: ignore[operator]


def test_a_hazard_fit_refuses_what_it_never_saw_and_a_geometric_fit_flags_it(trace: Trace) -> None:
    refused = one(trace, "chain:9")
    assert (refused.tau, refused.lo, refused.hi, refused.pmf, refused.survival) == (None,) * 5
    assert not refused.supported
    assert "deepest observed" in refused.note
    flagged = one(trace, "chain:9", "geometric")
    assert not flagged.supported
    assert "extrapolated" in flagged.note
    rate = fit(trace, "geometric").model.parameters["rate"]
    assert flagged.tau == pytest.approx((1 - rate**10) / (1 - rate))
    assert flagged.lo < flagged.tau < flagged.hi  # type: ignore[operator]


def test_structures_other_than_the_logged_one_or_chains_are_refused(traces: MakeTrace, trace: Trace) -> None:
    assert "refused" in one(trace, "tree:total=16").note
    text = str(DynamicTree(total=32, depth=7))
    tree = traces(np.random.default_rng(2), prompts=10, structure=text)
    same, chain, other = forecast(fit(tree, "hazard"), [text, "chain:7", "tree:total=16"])
    assert same.supported
    assert same.tau == pytest.approx(tree.tau(), rel=1e-12)
    assert chain.tau is None
    assert "logged with tree" in chain.note
    assert other.tau is None


def test_a_static_tree_is_forecast_without_its_file(traces: MakeTrace) -> None:
    trace = traces(np.random.default_rng(3), prompts=6, structure="static:gone.json")
    assert one(trace, "static:gone.json").tau == pytest.approx(trace.tau(), rel=1e-12)


def test_a_draft_of_length_zero_yields_exactly_one_token_a_cycle(trace: Trace) -> None:
    made = one(trace, "chain:0")
    assert (made.tau, made.lo, made.hi, made.pmf, made.survival) == (1.0, 1.0, 1.0, (1.0,), ())


def test_the_interval_narrows_with_more_new_prompts_but_not_below_the_fit_s_own_noise(trace: Trace) -> None:
    widths = []
    for new_prompts in (4, 64, 100_000):
        made = one(trace, "chain:7", new_prompts=new_prompts)
        widths.append(made.hi - made.lo)  # type: ignore[operator]
        assert made.new_prompts == new_prompts
    assert widths[0] > 1.5 * widths[1]
    # With endless new prompts only the fit's uncertainty is left: 1 / sqrt(2) of the width at equal sizes.
    assert widths[2] / widths[1] == pytest.approx(np.sqrt(0.5), rel=0.1)


def test_cycles_that_end_in_a_stop_lower_the_lower_limit(traces: MakeTrace) -> None:
    trace = traces(np.random.default_rng(5), prompts=40, eos_share=1.0, mean_cycles=8)
    made = one(trace, "chain:7")
    # Stops censor long cycles more often, so complete cycles are shorter than the rates say.
    assert trace.tau() < made.tau  # type: ignore[operator]
    assert made.lo < trace.tau()  # type: ignore[operator]
    assert "ended by a stop" in made.note


def test_one_prompt_gives_a_forecast_without_limits(traces: MakeTrace) -> None:
    made = one(traces(np.random.default_rng(6), prompts=1), "chain:7")
    assert made.tau is not None
    assert made.lo is None
    assert made.hi is None
    assert "fewer than two prompts" in made.note


def test_equal_seeds_give_equal_forecasts(trace: Trace) -> None:
    assert one(trace, "chain:5", seed=3) == one(trace, "chain:5", seed=3)
    assert one(trace, "chain:5", seed=3).lo != one(trace, "chain:5", seed=4).lo


def test_structures_may_be_objects_and_bad_text_is_refused(trace: Trace) -> None:
    fitted = fit(trace, "hazard")
    assert forecast(fitted, [ChainStructure(4)]) == forecast(fitted, ["chain:4"])
    with pytest.raises(InputError, match="found 'x'"):
        forecast(fitted, ["chain:x"])
    with pytest.raises(InputError, match="new prompts: found 0"):
        forecast(fitted, ["chain:4"], new_prompts=0)


def test_counts_without_a_structure_are_taken_for_a_chain(trace: Trace) -> None:
    counts = trace.counts_by_prompt()
    assert one(counts, "chain:7").tau == one(trace, "chain:7").tau


@pytest.mark.slow
@pytest.mark.parametrize(("prompts", "spread", "eos_share"), [(32, 0.35, 0.0), (32, 0.35, 1.0), (10, 0.6, 0.0)])
def test_forecast_intervals_cover_new_prompts_about_95_percent_of_the_time(
    traces: MakeTrace, prompts: int, spread: float, eos_share: float
) -> None:
    rng = np.random.default_rng(21)
    repetitions, inside = 120, 0
    for repetition in range(repetitions):
        old = traces(rng, prompts=prompts, spread=spread, eos_share=eos_share)
        new = traces(rng, prompts=32, spread=spread, eos_share=eos_share)
        made = forecast(fit(old, "hazard"), ["chain:7"], 32, repetition, n_resamples=1000)[0]
        inside += made.lo <= new.tau() <= made.hi  # type: ignore[operator]
    # 95 % of 120 is 114; fewer than 105 happens by chance about once in a thousand times.
    assert inside >= 105
