"""Score calibration: known maps are found again, errors are told from noise, and the file is what decoding takes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from gumiho_simulator import calibrate as calibrate_log
from gumiho_simulator.calibrating.error import Scored, bin_by_mass, calibration_error, reliability
from gumiho_simulator.calibrating.fitted import Candidates
from gumiho_simulator.calibrating.maps import fit_isotonic, fit_temperature
from gumiho_simulator.commands import register
from gumiho_simulator.figures.reliability import plot_reliability, write_reliability
from gumiho_theory import EveryPositionLog, InputError, IsotonicMap, ScoreCalibration, TemperatureMap

VOCABULARY = 300
BETAS = (2.0, 1.3, 0.7)
FACTS = {"drafter": "tiny:gumiho", "drafter_fingerprint": "a" * 64, "target": "tiny", "temperature": 0.0}


def drafts(rng: np.random.Generator, count: int, vocabulary: int = VOCABULARY) -> np.ndarray:
    """Distributions of falling probability over a vocabulary, flat ones and peaked ones, float [count, V]."""
    logits = -np.log(np.arange(1, vocabulary + 1)) * rng.uniform(0.8, 2.5, size=(count, 1))
    logits += rng.normal(0, 0.3, size=logits.shape)
    q = np.sort(np.exp(logits), axis=1)[:, ::-1]
    return q / q.sum(axis=1, keepdims=True)


def make_log(seed: int = 0, prompts: int = 24, rows: int = 40, k: int = 8) -> EveryPositionLog:
    """The true token of each depth is drawn from softmax(beta log q): token r is the drafter's (r + 1)-th candidate."""
    rng = np.random.default_rng(seed)
    n, depth = prompts * rows, len(BETAS)
    true, top_q = np.empty((n, depth), dtype=np.int64), np.empty((n, depth, k))
    for d, beta in enumerate(BETAS):
        q = drafts(rng, n)
        p = np.cumsum(q**beta / (q**beta).sum(axis=1, keepdims=True), axis=1)
        true[:, d] = (rng.random((n, 1)) > p).sum(axis=1).clip(max=VOCABULARY - 1)
        top_q[:, d] = q[:, :k]
    index = np.arange(n)
    names = np.array([f"p{i:02d}" for i in range(prompts)], dtype=object)
    return EveryPositionLog(
        prompt_id=names[index // rows],
        task=np.full(n, None, dtype=object),
        turn=np.zeros(n, dtype=np.int64),
        position=index % rows,
        drafted=np.full(n, depth),
        stop_reason=np.full(n, None, dtype=object),
        true_token=true,
        rank=true + 1,
        q_draft=np.full((n, depth), np.nan),
        p_target=np.full((n, depth), np.nan),
        top_ids=np.broadcast_to(np.arange(k), top_q.shape).copy(),
        top_q=top_q,
        accepted=np.zeros((n, 0), dtype=np.int64),
        censored=np.zeros((n, 0), dtype=np.int64),
        provenance=FACTS | {"top_k": k},
    )


@pytest.fixture(scope="module")
def log() -> EveryPositionLog:
    return make_log(prompts=60)


def all_rows(log: EveryPositionLog, depth: int) -> Candidates:
    return Candidates.of(log, depth, np.ones(log.n_rows, dtype=bool), np.arange(log.n_rows) % 7)


def test_the_temperature_that_made_the_text_is_found_from_the_first_candidates_alone(log: EveryPositionLog) -> None:
    for depth, beta in enumerate(BETAS, start=1):
        assert fit_temperature(all_rows(log, depth)).beta == pytest.approx(beta, rel=0.1)


@pytest.mark.parametrize("beta", [0.7, 1.0, 1.7, 3.0])
def test_candidates_get_what_the_whole_vocabulary_would_give_them(beta: float) -> None:
    """The slow twin knows the tail that the log leaves out."""
    q = drafts(np.random.default_rng(1), 500)
    k = 10
    candidates = Candidates(q[:, :k], np.zeros((500, k), dtype=bool), np.zeros(500, dtype=np.int64), VOCABULARY)
    log_p, log_rest = candidates.log_softmax(beta)
    whole = TemperatureMap(beta)(np.log(q))
    assert np.mean(log_p - np.log(whole[:, :k])) == pytest.approx(0, abs=0.03)
    np.testing.assert_allclose(np.exp(log_p), whole[:, :k], atol=0.04)
    np.testing.assert_allclose(np.exp(log_p).sum(axis=1) + np.exp(log_rest), 1.0)
    if beta == 1.0:  # then the tail is known exactly
        np.testing.assert_allclose(np.exp(log_p), q[:, :k], rtol=1e-3)


def test_where_all_tokens_are_candidates_nothing_is_left_to_assume() -> None:
    q = drafts(np.random.default_rng(2), 50, vocabulary=6)
    candidates = Candidates(q, np.zeros(q.shape, dtype=bool), np.zeros(50, dtype=np.int64), 6)
    log_p, log_rest = candidates.log_softmax(2.3)
    np.testing.assert_allclose(np.exp(log_p), TemperatureMap(2.3)(np.log(q)), rtol=1e-9)
    assert (log_rest == -np.inf).all()


def test_places_with_few_candidates_or_none_are_taken_as_they_are() -> None:
    """A drafter such as prompt lookup gives one candidate, of probability 1, or none."""
    q = np.array([[1.0, np.nan], [1.0, np.nan], [0.75, 0.25]])
    right = np.array([[True, False], [False, False], [True, False]])
    candidates = Candidates(q, right, np.arange(3), 50)
    scored = candidates.scored(fit_temperature(candidates))
    assert scored.probability[:2].tolist() == [1.0, 1.0] and len(scored.right) == 4
    fitted = fit_isotonic(candidates)
    assert fitted.draft[0] == fitted.acceptance[0] == 0.0
    assert 0 < fitted(1.0) < 1


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 5), st.booleans())
def test_isotonic_maps_never_fall_and_keep_the_number_of_hits(seed: int, n: int, k: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    q = np.sort(rng.integers(1, 4, (n, k)) / 16 if ties else rng.uniform(0, 1 / k, (n, k)), axis=1)[:, ::-1]
    right = np.zeros((n, k), dtype=bool)
    right[np.arange(n), rng.integers(0, k, n)] = rng.random(n) < 0.6
    candidates = Candidates(q, right, np.zeros(n, dtype=np.int64), 99)
    fitted = fit_isotonic(candidates)
    assert (np.diff(fitted(np.linspace(0, 1, 500))) >= 0).all()
    assert fitted(0.0) == 0.0 and 0 < fitted(1.0) < 1
    assert len(fitted.draft) <= 2 + np.sqrt(right.sum())


def test_an_isotonic_map_finds_the_function_that_made_the_outcomes() -> None:
    rng = np.random.default_rng(4)
    q = rng.uniform(0, 1, (30_000, 1))
    right = rng.random(q.shape) < q**2
    fitted = fit_isotonic(Candidates(q, right, np.zeros(len(q), dtype=np.int64), 9))
    grid = np.linspace(0.05, 0.95, 30)
    assert np.abs(fitted(grid) - grid**2).mean() < 0.02


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.integers(1, 9))
def test_bins_rise_with_probability_and_hold_equal_sums(values: list[float], bins: int) -> None:
    probability = np.array(values)
    where = bin_by_mass(probability, bins)
    assert ((where >= 0) & (where < bins)).all()
    assert (np.diff(where[np.argsort(probability, kind="stable")]) >= 0).all()
    sums = np.bincount(where, weights=probability, minlength=bins)
    assert (np.abs(sums - probability.sum() / bins) <= probability.max() + 1e-9).all()


def scored(rng: np.random.Generator, gap: float, prompts: int = 40, each: int = 200) -> Scored:
    """Outcomes whose probability lies `gap` above the forecast, and differs from prompt to prompt."""
    p = rng.uniform(0.1, 0.7, prompts * each)
    shift = np.repeat(rng.normal(0, 0.05, prompts), each)
    return Scored(p, rng.random(p.shape) < p + gap + shift, np.repeat(np.arange(prompts), each))


def test_the_error_is_the_gap_and_without_one_it_is_the_noise() -> None:
    rng = np.random.default_rng(5)
    found = [calibration_error(scored(rng, 0.15), rng) for _ in range(5)]
    assert np.mean([one.error for one in found]) == pytest.approx(0.15, abs=0.02)
    found = [calibration_error(scored(rng, 0.0), rng) for _ in range(30)]
    errors, noises = [one.error for one in found], [one.noise for one in found]
    assert np.mean(errors) == pytest.approx(np.mean(noises), rel=0.25)


def test_limits_hold_the_true_error_and_leave_out_what_chance_adds() -> None:
    rng = np.random.default_rng(8)
    prompt = np.repeat(np.arange(60), 100)
    probability = rng.uniform(0.2, 0.8, prompt.size)
    for gap in (0.0, 0.1):
        scored = Scored(probability, rng.random(prompt.size) < probability + gap, prompt)
        found = calibration_error(scored, rng)
        assert found.lo <= gap + 0.005 <= found.hi + 0.01  # type: ignore[operator]
        assert found.hi - found.lo < 0.06  # type: ignore[operator]
        assert (found.lo > 0.05) == (gap > 0)  # type: ignore[operator]
    one = calibration_error(Scored(probability[:100], probability[:100] > 0.5, prompt[:100]), rng)
    assert (one.lo, one.hi) == (None, None)


def test_the_error_is_the_mean_gap_over_bins_by_a_plain_loop() -> None:
    data = scored(np.random.default_rng(6), 0.1, prompts=5, each=30)
    where = bin_by_mass(data.probability, 15)
    gaps = [abs(float((data.right[where == b] - data.probability[where == b]).sum())) for b in range(15)]
    assert calibration_error(data, np.random.default_rng(0)).error == pytest.approx(sum(gaps) / 150)


def test_reliability_points_are_means_and_their_limits_are_by_prompt() -> None:
    data = scored(np.random.default_rng(7), 0.1)
    found = reliability(data, np.random.default_rng(0), bins=6, n_resamples=300)
    where = bin_by_mass(data.probability, 6)
    assert found.forecast.tolist() == pytest.approx([data.probability[where == b].mean() for b in range(6)])
    assert found.observed.estimate.tolist() == pytest.approx([data.right[where == b].mean() for b in range(6)])
    assert (found.observed.low < found.observed.estimate).all() and (
        found.observed.estimate < found.observed.high
    ).all()
    alone = reliability(replace(data, prompt=np.zeros_like(data.prompt)), np.random.default_rng(0))
    assert np.isnan(alone.observed.low).all()


@pytest.mark.parametrize("kind", ["temperature", "isotonic"])
def test_held_out_errors_fall_to_the_noise_and_under_the_bar(kind: str, log: EveryPositionLog) -> None:
    made = calibrate_log(log, kind)
    assert (made.fit_prompts, made.holdout_prompts) == (30, 30)
    assert [one.depth for one in made.depths] == [1, 2, 3]
    assert [one.n for one in made.depths] == [30 * 40] * 3
    for one in made.depths:
        assert one.after.error < 0.03 and one.after.error < one.before.error
    if kind == "temperature":  # an isotonic map is blind to the other candidates
        assert all(one.first_after.error < 2 * one.first_after.noise + 0.01 for one in made.depths)


def test_the_file_s_maps_are_fitted_to_all_prompts_and_belong_to_the_drafter(log: EveryPositionLog) -> None:
    made = calibrate_log(log)
    assert made.calibration.maps == tuple(fit_temperature(all_rows(log, depth)) for depth in (1, 2, 3))
    assert (made.calibration.drafter, made.calibration.fingerprint) == ("tiny:gumiho", "a" * 64)
    assert made.calibration.provenance["prompts"] == 60
    assert calibrate_log(log, seed=1).depths[0].after != made.depths[0].after


def test_depths_end_where_nothing_is_known(log: EveryPositionLog) -> None:
    true = log.true_token.copy()
    true[:, 2] = -1
    assert len(calibrate_log(replace(log, true_token=true)).calibration.maps) == 2


@pytest.mark.parametrize(
    ("facts", "message"),
    [({"drafter": None}, "drafter, name"), ({"drafter_fingerprint": "x"}, "drafter, fingerprint")],
)
def test_a_log_that_does_not_name_its_drafter_is_refused(facts: dict[str, str], message: str) -> None:
    small = make_log(prompts=4, rows=10)
    with pytest.raises(InputError, match=f"log, provenance: {message}"):
        calibrate_log(replace(small, provenance=small.provenance | facts))


def test_what_cannot_be_calibrated_is_refused() -> None:
    small = make_log(prompts=3, rows=10)
    with pytest.raises(InputError, match=r"prompts: found 1 to fit and 2|prompts: found 2 to fit and 1"):
        calibrate_log(small)
    with pytest.raises(InputError, match="map: found 'platt', wanted temperature or isotonic"):
        calibrate_log(small, "platt")
    with pytest.raises(InputError, match="holdout"):
        calibrate_log(small, holdout=1.0)
    none = replace(
        small,
        top_ids=np.full((30, 3, 0), -1),
        top_q=np.full((30, 3, 0), np.nan),
        provenance=small.provenance | {"top_k": 0},
    )
    with pytest.raises(InputError, match="column true_token: found none logged|column top_ids: found none logged"):
        calibrate_log(none)
    unknown = np.full(small.true_token.shape, -1)
    with pytest.raises(InputError, match="log, depth 1"):
        calibrate_log(replace(make_log(prompts=4, rows=10), true_token=np.full((40, 3), unknown[0, 0])))


def test_the_command_writes_what_decoding_reads_and_prints_the_contract_s_keys(tmp_path: Path) -> None:
    small = make_log(prompts=6, rows=30)
    small.write(tmp_path / "log.parquet")
    app = typer.Typer()
    register(app)
    for kind, one in (("temperature", TemperatureMap), ("isotonic", IsotonicMap)):
        arguments = ["calibrate", str(tmp_path / "log.parquet"), "-o", str(tmp_path / "c.json"), "--map", kind]
        result = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
        values = json.loads(result.stdout)
        assert [len(values[name]) for name in ("error_before", "error_after", "n")] == [3, 3, 3]
        assert all(isinstance(m, one) for m in ScoreCalibration.read(tmp_path / "c.json").maps)
        assert (values["beta"] is None) == (kind == "isotonic")
    figure = tmp_path / "r.svg"
    shown = CliRunner().invoke(app, [*arguments, "--figure", str(figure)], catch_exceptions=False).stdout
    assert "held-out" in shown
    text = figure.read_text()
    assert "<svg" in text and text.count("draft position") >= 3


def test_figures_show_the_points_and_other_suffixes_are_refused(tmp_path: Path) -> None:
    made = calibrate_log(make_log(prompts=6, rows=30))
    one = made.depths[0]
    ax = plot_reliability({"draft": one.reliability_before, "temperature": one.reliability_after})
    np.testing.assert_allclose(ax.containers[1][0].get_xdata(), one.reliability_after.forecast)
    np.testing.assert_allclose(ax.containers[1][0].get_ydata(), one.reliability_after.observed.estimate)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["draft", "temperature"]
    with pytest.raises(InputError, match=r"r.doc, wanted a name that ends in .svg, .png or .pdf"):
        write_reliability(made, tmp_path / "r.doc")
    with pytest.raises(InputError, match="a file that can be written in an existing folder"):
        write_reliability(made, tmp_path / "none" / "r.svg")


def test_the_command_gives_limits_and_a_verdict_and_fits_into_80_columns(tmp_path: Path) -> None:
    app = typer.Typer()
    register(app)
    make_log().write(tmp_path / "log.parquet")
    arguments = ["calibrate", str(tmp_path / "log.parquet"), "-o", str(tmp_path / "c.json")]
    shown = CliRunner().invoke(app, arguments, catch_exceptions=False).stdout
    assert "error of the mapped at most 0.03 at every depth: yes" in shown
    assert all(word in shown for word in ("places", "draft", "mapped", "95 %", "noise", "beta"))
    assert max(map(len, shown.splitlines())) <= 80
    result = json.loads(CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False).stdout)
    assert result["good"] is True
    for error, (lo, hi) in zip(result["error_after"], result["error_after_ci"], strict=True):
        assert lo <= error and lo <= hi
