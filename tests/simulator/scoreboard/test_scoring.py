"""The scoreboard over a folder: fitted on some prompts, judged on the others; what cannot be scored is named."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from drafted_text import draft_texts, draw_texts, log_texts
from gumiho_simulator.commands import register
from gumiho_simulator.figures.scoreboard import plot_errors, plot_forecasts, shown_rows
from gumiho_simulator.forecasting.holdout import hold_out
from gumiho_simulator.forecasting.published import published_sweeps
from gumiho_simulator.replaying.as_trace import replay_trace
from gumiho_simulator.scoreboard import sources as module
from gumiho_simulator.scoreboard.files import read_logs, write_scoreboard
from gumiho_simulator.scoreboard.rows import ADVISED, ScoreRow, summarise
from gumiho_simulator.scoreboard.scoring import Scoreboard, scoreboard
from gumiho_simulator.scoreboard.sources import score_log, score_published
from gumiho_theory import EveryPositionLog, InputError, StaticTree, Structure, Trace, rank_rates

TREE = "tree:total=9,top_k=2,depth=3,mlp_topk=4"


@pytest.fixture(scope="module")
def log() -> EveryPositionLog:
    texts = draw_texts(np.random.default_rng(3), 40, 60, spread=0.3)
    return log_texts(texts, 5, structures=[TREE, "tree:total=9,top_k=2,depth=7,mlp_topk=4"])


@pytest.fixture(scope="module")
def scored(log: EveryPositionLog) -> tuple[list[ScoreRow], list[str]]:
    return score_log("one", log, 0)


@pytest.fixture(scope="module")
def traces() -> dict[str, Trace]:
    texts = draw_texts(np.random.default_rng(5), 40, 80, spread=0.3)
    return {f"chain{length}.parquet": draft_texts(texts, length) for length in (2, 3)}


def test_what_is_measured_is_a_replay_of_prompts_that_no_model_was_fitted_to(
    log: EveryPositionLog, scored: tuple[list[ScoreRow], list[str]]
) -> None:
    rows, _ = scored
    held = hold_out(log, 0.5, 0).held
    assert len(held) == rows[0].holdout_prompts == rows[0].fit_prompts == 20
    for row in rows:
        assert row.measured == replay_trace(log, row.structure).select(held).tau()
        assert row.fitted_on == ("every position, the structure replayed" if row.model == "replay" else "chain:3")


def test_every_model_is_asked_for_other_chains_two_static_trees_and_the_dynamic_tree_of_the_log(
    log: EveryPositionLog, scored: tuple[list[ScoreRow], list[str]]
) -> None:
    rows, notes = scored
    models = ["hazard", "geometric", "mixture", "hmm", "rank", "replay"]
    assert list(dict.fromkeys(row.model for row in rows)) == models
    train = [prompt for prompt in log.prompts if prompt not in hold_out(log, 0.5, 0).held]
    rates = rank_rates(replay_trace(log, "chain:3").select(train)).rates
    trees = [str(StaticTree.best(rates, nodes)) for nodes in (8, 20)]
    for model in models:
        own = [row for row in rows if row.model == model]
        assert [row.structure for row in own] == ["chain:1", "chain:2", "chain:3", "chain:5", *trees, TREE]
        assert [row.kind for row in own] == [
            *("chain", "chain", "chain" if model == "replay" else "same", "chain"),
            *("static tree", "static tree", "dynamic tree"),
        ]
    assert len(notes) == 1 and "depth=7" in notes[0] and "as deep as the log" in notes[0]


def test_what_a_model_cannot_forecast_has_a_reason_and_no_number(scored: tuple[list[ScoreRow], list[str]]) -> None:
    rows, _ = scored
    refused = [row for row in rows if row.forecast is None]
    assert {row.structure for row in refused if row.model == "hmm"} == {
        row.structure for row in rows if row.kind in ("static tree", "dynamic tree")
    }
    for row in refused:
        assert row.note.startswith("refused: ") and not row.supported
        assert (row.lo, row.hi, row.relative_error, row.inside, row.interval_score, row.total_variation) == (None,) * 6
    for kind, model in ADVISED.items():
        assert all(row.forecast is not None for row in rows if row.kind == kind and row.model == model)


def test_the_models_advised_are_near_the_truth_and_the_hidden_difficulty_beats_one_rate(
    scored: tuple[list[ScoreRow], list[str]],
) -> None:
    summaries = {(one.model, one.kind): one for one in summarise(scored[0])}
    advised = summaries["advised", "all"]
    assert advised.forecasts == 6 and advised.refused == 0
    assert advised.worst_abs_error < 2 * advised.sampling_floor_95  # type: ignore[operator]
    assert advised.coverage == 1.0
    geometric, hmm = summaries["geometric", "chain"], summaries["hmm", "chain"]
    assert hmm.interval_score_to_hazard < 1  # type: ignore[operator]
    assert hmm.total_variation < geometric.total_variation  # type: ignore[operator]


def test_a_published_curve_s_own_later_points_teach_its_forecast_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = score_published()
    assert len({row.log for row in before}) == 8
    name = before[0].log
    sweeps = dict(published_sweeps())
    sweeps[name] = {length: tau if length <= 3 else tau + 0.3 for length, tau in sweeps[name].items()}
    monkeypatch.setattr(module, "published_sweeps", lambda: sweeps)
    after = score_published()
    for old, new in zip(before, after, strict=True):
        assert (old.log, old.structure, old.model) == (new.log, new.structure, new.model)
        if old.log == name:
            assert (new.forecast, new.lo, new.hi) == (old.forecast, old.lo, old.hi)
            assert new.measured == pytest.approx(old.measured + 0.3)
        elif old.model == "points":
            assert (new.lo, new.hi) != (old.lo, old.hi)  # the other curves do learn from it


def test_published_curves_meet_their_bars() -> None:
    rows = [row for row in score_published() if row.model == "points"]
    at = {n: [abs(row.relative_error or 0) for row in rows if row.structure == f"chain:{n}"] for n in (5, 8)}
    assert np.median(at[8]) <= 0.05 and np.median(at[5]) <= 0.02
    assert np.mean([row.inside for row in rows]) >= 0.8
    assert np.mean([row.relative_width for row in rows]) < 0.35  # type: ignore[arg-type]


@st.composite
def score_rows(draw: st.DrawFn) -> list[ScoreRow]:
    rows = []
    for number in range(draw(st.integers(1, 12))):
        model, kind = draw(st.sampled_from(["hazard", "hmm", "rank", "replay"])), draw(st.sampled_from(list(ADVISED)))
        error = draw(st.none() | st.floats(-0.2, 0.2))
        made = None if error is None else 2 * (1 + error)
        width = None if made is None else draw(st.none() | st.floats(0.01, 1))
        row = ScoreRow(
            source="replay",
            log=f"log {number % 2}",
            seed=number,
            model=model,
            fitted_on="chain:3",
            structure=f"s{number % 3}",
            kind=kind,
            measured=2.0,
            predicted=made,
            lo=None if made is None or width is None else made - width,
            hi=None if made is None or width is None else made + width,
            sampling_floor=0.01,
            sampling_floor_95=0.03,
            total_variation=None,
            rank_correlation=0.5,
            regret=0.1,
            supported=True,
            note="",
            fit_prompts=4,
            holdout_prompts=4,
        )
        rows.append(row)
    return rows


@given(score_rows())
@settings(max_examples=60, deadline=None)
def test_summaries_are_what_a_plain_count_gives(rows: list[ScoreRow]) -> None:
    for one in summarise(rows):
        if one.model == "advised":
            own = [row for row in rows if ADVISED[row.kind] == row.model]
        else:
            own = [row for row in rows if row.model == one.model]
        own = [row for row in own if one.kind in ("all", row.kind)]
        errors = [abs(row.relative_error) for row in own if row.relative_error is not None]
        assert (one.forecasts, one.forecasts + one.refused) == (len(errors), len(own))
        assert one.worst_abs_error == (max(errors) if errors else None)
        assert one.median_abs_error == (pytest.approx(np.median(errors)) if errors else None)
        known = [row.inside for row in own if row.inside is not None]
        assert one.coverage == (pytest.approx(np.mean(known)) if known else None)
        if one.model == "hazard" and one.interval_score is not None:
            assert one.interval_score_to_hazard == pytest.approx(1.0)


def test_traces_of_one_drafter_are_forecast_from_chain_3_and_a_lone_one_from_itself(traces: dict[str, Trace]) -> None:
    both = scoreboard({}, traces, (0,), published=False)
    assert {(row.log, row.fitted_on) for row in both.rows} == {("chain3.parquet", "chain:3")}
    assert {row.structure: row.kind for row in both.rows} == {"chain:3": "same", "chain:2": "chain"}
    lone = scoreboard({}, {"a": traces["chain2.parquet"]}, (0,), published=False)
    assert {(row.structure, row.kind) for row in lone.rows} == {("chain:2", "same")}
    twice = scoreboard({}, traces | {"z": traces["chain3.parquet"]}, (0,), published=False)
    assert twice.skipped == ("z: chain:3 on these prompts is in chain3.parquet already",)
    assert len(twice.rows) == len(both.rows)


def test_promises_of_calibrated_scores_are_judged_on_the_held_out_prompts(traces: dict[str, Trace]) -> None:
    plain = traces["chain3.parquet"]
    facts = plain.provenance | {"structure": TREE, "calibrated": True}
    fair = np.full(plain.n_cycles, plain.accepted.mean())
    missing = tuple(name for name in plain.missing if name != "expected_accepted")
    tree = replace(plain, expected_accepted=fair, provenance=facts, missing=missing)
    board = scoreboard({}, {"tree": tree}, (0,), published=False)
    (row,) = (row for row in board.rows if row.model == "scores")
    assert row.forecast == pytest.approx(1 + plain.accepted.mean())
    assert row.measured == tree.select(hold_out(tree, 0.5, 0).held).tau()
    assert row.inside and row.supported and row.fitted_on == f"scores of {TREE}"
    raw = replace(tree, provenance=facts | {"calibrated": False})
    (row,) = (row for row in scoreboard({}, {"tree": raw}, (0,), published=False).rows if row.model == "scores")
    assert not row.supported and "not calibrated" in row.note


@pytest.fixture
def folder(tmp_path: Path, log: EveryPositionLog, traces: dict[str, Trace]) -> Path:
    place = tmp_path / "logs"
    (place / "deeper").mkdir(parents=True)
    some = log.prompts[:8]
    keep = np.isin(log.prompt_id.astype(str), some)
    names = [name for name in log.__dataclass_fields__ if name not in ("provenance", "missing")]
    few = replace(log, **{name: getattr(log, name)[keep] for name in names})
    few.write(place / "deeper" / "every.parquet")
    traces["chain3.parquet"].select(traces["chain3.parquet"].prompts[:2]).write(place / "few.parquet")
    drawn = replace(few, provenance=few.provenance | {"temperature": 1.0, "candidates": "sampled"})
    drawn.write(place / "drawn.parquet")
    (place / "other.parquet").write_bytes(b"PAR1 nothing of the kind")
    (place / "notes.txt").write_text("no log")
    return place


def invoke(*arguments: str) -> tuple[int, str, BaseException | None]:
    app = typer.Typer()
    register(app)
    result = CliRunner().invoke(app, ["validate", *arguments])
    return result.exit_code, result.stdout, result.exception


def test_the_command_scores_a_folder_and_says_what_it_left_out(folder: Path, tmp_path: Path) -> None:
    output, figure = tmp_path / "board.csv", tmp_path / "board.svg"
    arguments = ["--scoreboard", str(folder), "-o", str(output), "--splits", "1", "--figure", str(figure)]
    code, stdout, error = invoke(*arguments, "--json")
    assert code == 0, error
    result = json.loads(stdout)
    assert {row["log"] for row in result["rows"] if row["source"] == "replay"} == {"deeper/every.parquet"}
    left_out = "\n".join(result["skipped"])
    for words in ("other.parquet", "drawn.parquet: log, provenance, candidates", "few.parquet: prompts", "two of each"):
        assert words in left_out
    assert "notes.txt" not in left_out
    with output.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["row"] for line in lines].count("forecast") == len(result["rows"])
    assert [line["row"] for line in lines].count("summary") == len(result["summaries"])
    assert [line["row"] for line in lines].count("skipped") == len(result["skipped"])
    for line, row in zip(lines, result["rows"], strict=False):
        assert line["forecast"] == ("" if row["forecast"] is None else str(row["forecast"]))
        assert "bonus included, micro" in line["convention"]
    written = json.loads(output.with_suffix(".json").read_text(encoding="utf-8"))
    assert written["schema"] == "gumiho.scoreboard/1" and written["rows"] == result["rows"]
    assert "bonus included, micro" in figure.read_text(encoding="utf-8") or figure.stat().st_size > 1000


def test_tables_for_people_name_the_floor_and_the_convention(folder: Path, tmp_path: Path) -> None:
    code, stdout, error = invoke("--scoreboard", str(folder), "-o", str(tmp_path / "board.json"), "--splits", "1")
    assert code == 0, error
    for words in ("advised", "floor", "inside", "bonus included, micro", "left out: ", "published curves"):
        assert words in stdout
    assert max(map(len, stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "either a trace or --scoreboard"),
        (["trace.parquet", "--scoreboard", "logs", "-o", "b.csv"], "either a trace or --scoreboard"),
        (["trace.parquet", "-o", "b.csv"], "--scoreboard FOLDER with it"),
        (["--scoreboard", "logs"], "a file for the scoreboard"),
        (["--scoreboard", "logs", "-o", "b.txt"], r"\.csv or \.json"),
        (["--scoreboard", "logs", "-o", "b.csv", "--holdout", "0.3"], "half of the prompts"),
        (["--scoreboard", "logs", "-o", "b.csv", "--figure", "b.gif"], r"\.svg, \.png or \.pdf"),
        (["--scoreboard", "nowhere", "-o", "b.csv"], "a folder of logs"),
    ],
)
def test_a_command_that_cannot_be_meant_is_refused(arguments: list[str], message: str) -> None:
    code, stdout, error = invoke(*arguments)
    assert code != 0 and stdout == "" and isinstance(error, InputError)
    with pytest.raises(InputError, match=message):
        raise error


def test_a_folder_without_anything_to_score_is_refused_unless_the_published_curves_are(tmp_path: Path) -> None:
    assert read_logs(tmp_path) == ({}, {}, ())
    with pytest.raises(InputError, match="no log"):
        scoreboard({}, {}, published=False)
    board = scoreboard({}, {})
    assert {row.source for row in board.rows} == {"published"}
    assert write_scoreboard(board, tmp_path / "bare") == (tmp_path / "bare.csv", tmp_path / "bare.json")
    table, whole = write_scoreboard(board, tmp_path / "only.json")
    assert table.is_file() and whole.is_file()


def test_figures_show_each_advised_forecast_once_with_units_and_convention(
    scored: tuple[list[ScoreRow], list[str]],
) -> None:
    import matplotlib.pyplot as plt

    rows = [*scored[0], *score_published()]
    shown = shown_rows(rows)
    assert {row.model for row in shown} == {"hmm", "rank", "replay", "points"}
    ax = plot_forecasts(shown)
    assert sum(len(line.lines[0].get_xdata()) for line in ax.containers) == len(shown)  # type: ignore[attr-defined]
    assert "tokens a cycle, bonus included, micro" in ax.get_xlabel()
    below = plot_errors(shown)
    assert "%" in below.get_xlabel()
    assert sum(len(points.get_offsets()) for points in below.collections) == len(shown)  # type: ignore[arg-type]
    assert "static tree, 8 nodes" in [label.get_text() for label in below.get_yticklabels()]
    plt.close("all")


def test_the_same_seeds_give_the_same_board(log: EveryPositionLog) -> None:
    few = replace_structures(log)
    boards = [scoreboard({"a": few}, {}, (3,), published=False) for _ in range(2)]
    assert isinstance(boards[0], Scoreboard) and boards[0].to_json() == boards[1].to_json()
    assert Structure.parse(boards[0].rows[0].structure).depth == 1


def replace_structures(log: EveryPositionLog) -> EveryPositionLog:
    nothing = np.zeros((log.n_rows, 0), dtype=np.int64)
    return replace(log, accepted=nothing, censored=nothing, provenance=log.provenance | {"structures": []})
