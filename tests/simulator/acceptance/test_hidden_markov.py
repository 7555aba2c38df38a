"""The hidden Markov model: other draft lengths from one log, on texts whose difficulty is known."""

from __future__ import annotations

import numpy as np
import pytest

from drafted_text import draft_texts, draw_texts, trace_of
from gumiho_simulator import FitResult, fit, forecast
from gumiho_simulator.acceptance import HazardModel, HiddenMarkovModel, Observations
from gumiho_theory import InputError, Trace, tau

LENGTHS = (1, 2, 3, 5, 7)


@pytest.fixture(scope="module")
def drafted() -> dict[int, Trace]:
    texts = draw_texts(np.random.default_rng(0), 90, 150)
    return {length: draft_texts(texts, length) for length in LENGTHS}


@pytest.fixture(scope="module")
def model(drafted: dict[int, Trace]) -> HiddenMarkovModel:
    fitted = fit(drafted[3], "hmm").model
    assert isinstance(fitted, HiddenMarkovModel)
    return fitted


def test_at_the_logged_length_the_rates_are_the_measured_ones(
    drafted: dict[int, Trace], model: HiddenMarkovModel
) -> None:
    hazard = HazardModel(Observations(drafted[3].counts_by_prompt()))
    np.testing.assert_allclose(model.conditional(3), hazard.conditional(3), rtol=1e-12)


def test_other_lengths_on_the_same_texts_are_forecast_within_one_percent_and_better_than_by_rates_alone(
    drafted: dict[int, Trace], model: HiddenMarkovModel
) -> None:
    hazard = HazardModel(Observations(drafted[3].counts_by_prompt()))
    for length in (1, 2, 5, 7):
        measured = drafted[length].tau()
        assert float(tau(model.conditional(length))) == pytest.approx(measured, rel=0.015)
        kept = np.append(hazard.conditional(3), np.repeat(hazard.conditional(3)[-1:], 4))[:length]
        assert abs(float(tau(model.conditional(length))) - measured) < abs(float(tau(kept)) - measured)


def test_a_log_of_long_drafts_forecasts_short_ones(drafted: dict[int, Trace]) -> None:
    """Freely fitted chains became nearly periodic here: one that was fitted at length 5 lost 13 % at length 2."""
    model = fit(drafted[5], "hmm").model
    for length in (1, 2, 3, 7):
        assert float(tau(model.conditional(length))) == pytest.approx(drafted[length].tau(), rel=0.02)


def test_a_text_that_alternates_does_not_drive_the_fit_astray() -> None:
    """Easy and hard tokens in turn are beyond the model; its forecasts stay near rates that know no order."""
    rng = np.random.default_rng(3)
    outputs = []
    for _ in range(60):
        at, lengths = 0, []
        while at < 120:
            won = [rng.random() < (0.9 if (at + i) % 2 else 0.4) for i in range(5)]
            accepted = 5 if all(won) else won.index(False)
            lengths.append(accepted)
            at += accepted + 1
        outputs.append(lengths)
    trace = trace_of(outputs, 5)
    hazard = HazardModel(Observations(trace.counts_by_prompt()))
    model = fit(trace, "hmm").model
    for length in (1, 2, 4, 8):
        plain = np.append(hazard.conditional(5), np.repeat(hazard.conditional(5)[-1:], 3))[:length]
        assert float(tau(model.conditional(length))) == pytest.approx(float(tau(plain)), rel=0.05)


def test_one_newton_step_is_close_to_a_full_refit(drafted: dict[int, Trace], model: HiddenMarkovModel) -> None:
    rng = np.random.default_rng(1)
    for _ in range(2):
        weights = rng.multinomial(90, np.full(90, 1 / 90)).astype(np.float64)
        # Prompts drawn twice are two outputs of one prompt for the likelihood, and twice the counts for the rates.
        rows = np.repeat(np.arange(90), weights.astype(int))
        observed = Observations.of(_repeated(drafted[3], rows))
        again = HiddenMarkovModel.fit(observed, begin=model.theta)
        for length in (1, 6):
            step = model.refitted(weights[None], length)[0]
            assert float(tau(step)) == pytest.approx(float(tau(again.conditional(length))), rel=0.004)


def _repeated(trace: Trace, rows: np.ndarray) -> Trace:
    outputs = [trace.accepted[trace.prompt_id == f"p{row}"].tolist() for row in rows]
    return trace_of(outputs, 3)


def test_the_interval_beyond_the_log_is_flagged_and_wider(drafted: dict[int, Trace]) -> None:
    made = forecast(fit(drafted[3], "hmm"), ["chain:1", "chain:3", "chain:5", "chain:9"])
    assert [one.supported for one in made] == [True, True, False, False]
    widths = [(one.hi - one.lo) / one.tau for one in made]  # type: ignore[operator]
    assert widths[1] < widths[2] < widths[3]
    assert "random walk" in made[3].note
    assert "2-7 %" not in made[0].note
    for one, length in zip(made[:3], (1, 3, 5), strict=True):
        assert one.lo < drafted[length].tau() < one.hi  # type: ignore[operator]


def test_three_difficulties_do_as_well(drafted: dict[int, Trace], model: HiddenMarkovModel) -> None:
    three = HiddenMarkovModel.fit(Observations.of(drafted[3]), states=3)
    observed = three.observed
    assert three.log_likelihood(observed) > model.log_likelihood(observed) - 2
    for length in (1, 5):
        assert float(tau(three.conditional(length))) == pytest.approx(drafted[length].tau(), rel=0.02)


def test_a_model_file_holds_the_order_of_cycles_and_gives_the_fit_back(
    drafted: dict[int, Trace], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("model") / "hmm.json"
    part = drafted[3].select([f"p{i}" for i in range(12)])
    fitted = fit(part, "hmm")
    fitted.write(path)
    again = FitResult.read(path)
    assert again.summary() == fitted.summary()
    assert forecast(again, ["chain:2", "chain:5"]) == forecast(fitted, ["chain:2", "chain:5"])


def test_counts_have_no_order_and_are_refused_with_the_reason(drafted: dict[int, Trace]) -> None:
    with pytest.raises(InputError, match="the order of the cycles is not in counts"):
        fit(drafted[3].counts_by_prompt(), "hmm")


def test_auto_chooses_the_hidden_difficulty_where_it_lasts_and_is_comparable(drafted: dict[int, Trace]) -> None:
    part = drafted[3].select([f"p{i}" for i in range(60)])
    assert fit(part).model.name == "hmm"
    assert fit(part.counts_by_prompt()).model.name != "hmm"


def test_every_cycle_accepted_or_none_still_gives_numbers() -> None:
    for accepted in (0, 3):
        trace = trace_of([[accepted] * 8 for _ in range(4)], 3)
        for one in forecast(fit(trace, "hmm"), ["chain:1", "chain:3", "chain:5"]):
            assert one.tau is not None
            assert 1 <= one.lo <= one.tau <= one.hi  # type: ignore[operator]
