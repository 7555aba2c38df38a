"""`gumiho bench`: each row is what `decode` measures, interleaved, resumable, with honest intervals."""

from __future__ import annotations

import csv
import json
from collections import Counter

import numpy as np
import pytest

from fakes import random_drafter, random_target
from gumiho_decoder.commands.main import main
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.logging.recorder import Recorder
from gumiho_decoder.measuring.bench import contenders as bench_module
from gumiho_decoder.measuring.bench import run as bench_run
from gumiho_decoder.measuring.bench.contenders import Contender, Turn, measure_prompt, rotated
from gumiho_decoder.measuring.bench.log import RowLog, file_name, joined
from gumiho_decoder.measuring.bench.rows import lossless, speedup_over, summed_up, tau_of
from gumiho_decoder.measuring.lossless import Comparison
from gumiho_decoder.measuring.prompts import Prompt
from gumiho_decoder.measuring.runs import RunConfig, run
from gumiho_simulator.forecasting.intervals import ratio_interval, tau_interval
from gumiho_theory import ChainStructure, InputError, ScoreCalibration, Structure, TemperatureMap, Trace

TEXTS = ("hello", "speculate", "draft!", "verify")
PROMPTS = [Prompt(f"p{i}", "t", (text,), False) for i, text in enumerate(TEXTS)]
TREE = "tree:total=8,top_k=2,depth=5,mlp_topk=2"
TIMES = ("draft_seconds", "verify_seconds", "other_seconds")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with prompt files, whose `gumiho bench` decodes with a small random pair."""
    rows = [{"prompt_id": p.prompt_id, "task": p.task, "prompt": p.turns[0]} for p in PROMPTS]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "chat.jsonl").write_text('{"turns": ["hi", "more"]}\n')
    (tmp_path / "long.jsonl").write_text(json.dumps({"prompt": "x" * 300}) + "\n")

    def drafter(name, target):
        seeds = {"a": 0, "b": 1, "short": 2}
        made = random_drafter(target, seeds[name])
        made.name, made.fingerprint = name, f"{seeds[name]:064x}"
        if name == "short":
            made.positions = 4
        return made

    monkeypatch.setattr(bench_run, "load_target", lambda *_: random_target())
    monkeypatch.setattr(bench_run, "load_drafter", drafter)
    monkeypatch.setattr(bench_run, "busy", lambda: None)
    monkeypatch.setattr(bench_module, "WARM_UP_TOKENS", 2)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(folder, monkeypatch, capsys):
    """Run `gumiho bench` there; returns exit status, stdout, stderr."""

    def command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["gumiho", "bench", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return command


SHORT = ("--drafters", "a", "--prompts", "p.jsonl", "--max-new-tokens", "8")


def same_cycles(one: Trace, other: Trace) -> bool:
    names = ("prompt_id", "turn", "cycle", "position", "drafted", "nodes", "accepted", "committed", "rank", "q_draft")
    return all(np.array_equal(getattr(one, n), getattr(other, n), equal_nan=n == "q_draft") for n in names)


def contenders_of(target, *structures, temperatures=(0.0,)):
    drafter = random_drafter(target)
    return [Contender(drafter, GenerationConfig(12, Structure.parse(s), t)) for t in temperatures for s in structures]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_cycles_are_those_of_decode(temperature, target):
    """Interleaving changes nothing: each trace is what `run` records alone, drawn outputs included."""
    contenders = contenders_of(target, "chain:4", TREE, temperatures=(temperature,))
    prompts = PROMPTS[:2]
    measured = [measure_prompt(target, prompt, i, contenders, 1) for i, prompt in enumerate(prompts)]
    for contender in contenders:
        recorder = Recorder()
        outputs = run(
            target, contender.drafter, prompts, contender.generation, RunConfig(plain=True), recorder, lambda _: None
        )
        trace = joined([part[contender][0] for part in measured], {})
        assert same_cycles(trace, recorder.trace({}))
        turns = [turn for part in measured for turn in part[contender][1]]
        assert [t.tokens for t in turns] == [len(o.speculative.token_ids) for o in outputs]
        assert [t.plain_tokens for t in turns] == [len(o.plain.token_ids) for o in outputs]
        assert all(t.verdict == ("equal" if temperature == 0 else None) for t in turns)


def test_every_job_comes_first_once_in_as_many_rounds():
    """The machine's drift hits all alike: each place in the order falls to each job equally often."""
    jobs = list("abcde")
    orders = [rotated(jobs, by) for by in range(5)]
    assert all(sorted(order) == jobs for order in orders)
    assert all(len(set(place)) == 5 for place in zip(*orders, strict=True))


def test_baselines_are_made_once_for_all_rows_and_in_turn(target, monkeypatch):
    """Of each prompt, temperature and repeat: one plain output, one by `generate`, one a row; none of them batched."""
    made: list[str] = []

    def counted(name):
        original = getattr(bench_module, name)

        def wrapper(*arguments):
            made.append(name)
            return original(*arguments)

        return wrapper

    for name in ("plain", "library", "generate"):
        monkeypatch.setattr(bench_module, name, counted(name))
    contenders = contenders_of(target, "chain:2", "chain:4", temperatures=(0.0, 1.0))
    measure_prompt(target, PROMPTS[0], 0, contenders, 2)
    assert Counter(made) == {"plain": 4, "library": 4, "generate": 8}
    assert made[:8] != made[8:]


def test_the_time_is_the_median_of_the_repeats_and_one_repeat_is_recorded(target, monkeypatch):
    seconds = iter([5.0, 1.0, 3.0])
    original = bench_module.generate

    def timed(*arguments):
        made = original(*arguments)
        return type(made)(made.token_ids, made.stop_reason, next(seconds))

    monkeypatch.setattr(bench_module, "generate", timed)
    (contender,) = contenders_of(target, "chain:3")
    trace, turns = measure_prompt(target, PROMPTS[0], 0, [contender], 3)[contender]
    assert [turn.seconds for turn in turns] == [3.0]
    assert trace.committed.sum() == turns[0].tokens - 1


def test_generate_samples_at_the_temperature_and_leaves_the_global_generator_alone(target):
    import torch

    asked = GenerationConfig(8, temperature=1.0, seed=3)
    torch.manual_seed(11)
    expected = torch.rand(1)
    torch.manual_seed(11)
    one, same = (bench_module.library(target, [5, 17, 3], asked) for _ in range(2))
    other = bench_module.library(target, [5, 17, 3], GenerationConfig(8, temperature=1.0, seed=4))
    assert torch.rand(1) == expected
    assert one.token_ids == same.token_ids != other.token_ids


def test_later_turns_go_on_from_the_plain_reply(target):
    """All rows of a temperature answer the same text, and a conversation that no longer fits ends for all of them."""
    (contender,) = contenders_of(target, "chain:3")
    chat = Prompt("c", None, ("hi", "more"), True)
    trace, turns = measure_prompt(target, chat, 0, [contender], 1)[contender]
    recorder = Recorder()
    run(target, contender.drafter, [chat], contender.generation, RunConfig(), recorder, lambda _: None)
    assert same_cycles(trace, recorder.trace({}))
    assert [turn.turn for turn in turns] == [0, 1]


def test_a_conversation_that_no_longer_fits_ends_there(capsys):
    target = random_target(positions=20)
    (contender,) = contenders_of(target, "chain:3")
    trace, turns = measure_prompt(target, Prompt("c", None, ("hi", "more"), True), 0, [contender], 1)[contender]
    assert [turn.turn for turn in turns] == [0]
    assert set(trace.turn.tolist()) == {0}
    assert "ends here" in capsys.readouterr().err


def test_traces_of_prompts_join_to_the_trace_of_all(target):
    """Prompt by prompt and in one go give the same rows, though drafts differ in depth."""
    drafter, recorder, parts = random_drafter(target), Recorder(), []
    for prompt, depth in zip(PROMPTS, (2, 5, 1, 3), strict=True):
        for one in (recorder, alone := Recorder()):
            record = one.prompt(prompt.prompt_id, prompt.task, 0)
            tokens = target.encode(prompt.turns[0])
            bench_module.generate(target, drafter, tokens, GenerationConfig(12, ChainStructure(depth)), record)
        parts.append(alone.trace({}))
    assert same_cycles(joined([Trace.from_rows([]), *parts], {}), recorder.trace({}))
    assert joined([Trace.from_rows([])], {"a": 1}).provenance["a"] == 1


def synthetic(rng, prompts=12):
    rows = []
    for prompt in range(prompts):
        position = 10
        for cycle in range(int(rng.integers(2, 30))):
            accepted = int(rng.binomial(4, rng.uniform(0.2, 0.9)))
            row = {"prompt_id": f"p{prompt}", "turn": 0, "cycle": cycle, "position": position, "drafted": 4, "nodes": 5}
            rows.append(row | {"accepted": accepted, "committed": accepted + 1})
            position += accepted + 1
    return Trace.from_rows(rows)


def test_the_limits_of_tau_are_those_of_traces_show():
    """The decoder may not import the simulator's intervals; its own must be the same."""
    trace = synthetic(np.random.default_rng(5))
    mine = tau_of(trace, trace.complete, "tau")
    low, high = tau_interval(trace.counts_by_prompt(), np.random.default_rng(0))
    assert mine["tau"] == pytest.approx(trace.tau(), abs=1e-12)
    assert (mine["tau_lo"], mine["tau_hi"]) == pytest.approx((low, high), abs=1e-9)


def test_the_standard_error_is_that_of_resampled_prompts():
    trace = synthetic(np.random.default_rng(6), prompts=200)
    counts, rng = trace.counts_by_prompt(), np.random.default_rng(1)
    index = rng.integers(200, size=(4000, 200))
    draws = counts.total_accepted[index].sum(1) / counts.complete_cycles[index].sum(1)
    assert tau_of(trace, trace.complete, "tau")["tau_se"] == pytest.approx(draws.std(), rel=0.1)


def turns_of(rng, prompts=10):
    def one(i):
        tokens = int(rng.integers(20, 60))
        return Turn(f"p{i}", 0, tokens, float(rng.uniform(1, 2)), 50, float(rng.uniform(2, 3)), 40, 4.0, "equal")

    return [one(i) for i in range(prompts)]


def test_speedups_are_ratios_of_tokens_a_second_whose_limits_resample_prompts():
    turns = turns_of(np.random.default_rng(2))
    made = speedup_over(turns, "plain", "speedup")
    ours = sum(t.tokens for t in turns) / sum(t.seconds for t in turns)
    assert made["speedup"] == pytest.approx(ours / (500 / sum(t.plain_seconds for t in turns)))
    assert made["speedup_lo"] < made["speedup"] < made["speedup_hi"]
    # With baselines all alike it is a ratio of two sums, for which the simulator has the same interval.
    expected = ratio_interval(
        np.array([t.tokens for t in turns]), np.array([t.seconds for t in turns]), np.random.default_rng(0)
    )
    over = speedup_over(turns, "library", "x")
    assert (over["x_lo"], over["x_hi"]) == pytest.approx(tuple(value / 10 for value in expected))
    single = speedup_over(turns[:1], "plain", "speedup")
    assert single["speedup"] is not None
    assert single["speedup_lo"] is None


def test_tau_first_counts_the_cycles_that_start_early():
    trace = synthetic(np.random.default_rng(3))
    starts = trace.position - 10
    row = summed_up(trace, turns_of(np.random.default_rng(0), 12), 8)
    assert row["tau_first"] == pytest.approx(1 + trace.accepted[starts < 8].mean())
    assert row["first"] == 8
    assert row["tau_first"] != row["tau"]


def test_without_cycles_a_row_is_null_not_a_number():
    row = summed_up(Trace.from_rows([]), [], 32)
    assert all(row[key] is None for key in ("tau", "tau_se", "tau_first", "speedup", "draft_ms", "lossless"))


def test_a_prompt_is_as_good_as_its_worst_turn():
    def turn(prompt, verdict):
        return Turn(prompt, 0, 1, 1.0, 1, 1.0, 1, 1.0, verdict)

    turns = [turn("a", "equal"), turn("a", "tie"), turn("b", "different"), turn("b", "equal")]
    assert lossless(turns) == {"checked": 2, "equal": 0, "ties": 1, "different": 1}
    assert lossless([turn("a", None)]) is None


def test_file_names_are_safe_and_tell_requests_apart():
    words = ("../../x y:é" * 30, "tree:total=8,top_k=2")
    one, other = (file_name(words, key * 64) for key in "ab")
    assert one != other
    assert len(one) < 140
    assert not set(one) - set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.=_-")
    assert one[0] not in ".-"


def test_rows_hold_the_contracts_keys_and_agree_with_their_traces(call, folder):
    code, out, _ = call(
        *(*SHORT, "--structures", "chain:2", TREE, "chain:8", "--temperatures", "0,1"),
        *("--first", "4", "-o", "made", "--report", "report", "--json"),
    )
    assert code == 0
    rows = json.loads(out)["rows"]
    assert len(rows) == 6
    keys = {"target", "drafter", "method", "structure", "prompts", "temperature", "tau", "tau_se", "speedup"}
    keys |= {"draft_ms", "verify_ms", "lossless", "tau_lo", "tau_hi", "tau_convention", "tau_first", "calibrated"}
    keys |= {"speedup_lo", "speedup_hi", "speedup_generate", "error"}
    assert all(keys <= row.keys() for row in rows)
    for row in rows:
        if row["structure"] == "chain:8":  # deeper than the drafter's seven heads
            assert "at most 7" in row["error"]
            assert row["tau"] is None
            continue
        trace = Trace.read(folder / "made" / row["trace"])
        assert row["error"] is None
        assert row["tau"] == trace.tau()
        assert row["draft_ms"] == pytest.approx(1000 * trace.draft_seconds.mean())
        assert trace.provenance["structure"] == row["structure"]
        assert trace.provenance["complete"] is True
        checked = {"checked": 4, "equal": 4, "ties": 0, "different": 0}
        assert row["lossless"] == (checked if row["temperature"] == 0 else None)
    index = json.loads((folder / "made" / "index.json").read_text())
    assert index["complete"] is True
    assert index["rows"] == rows
    with (folder / "report" / "rows.csv").open() as file:
        written = list(csv.DictReader(file))
    assert [row["structure"] for row in written] == [row["structure"] for row in rows]
    assert all((folder / "report" / name).stat().st_size for name in ("tau.svg", "speedup.svg"))


def test_people_get_tables(call):
    code, out, _ = call(*SHORT, "--structures", "chain:2", "chain:8")
    assert code == 0
    assert "chain:2" in out
    assert "not measured" in out


def test_an_output_that_differs_is_the_answer_no(call, monkeypatch):
    monkeypatch.setattr(bench_module, "compare", lambda *_: Comparison("different", 0))
    code, out, _ = call(*SHORT, "--structures", "chain:2", "--json")
    assert code == 1
    assert json.loads(out)["rows"][0]["lossless"]["different"] == 4


def test_a_drafter_too_short_for_a_prompt_makes_a_row_that_says_so(call):
    code, out, _ = call(*SHORT, "--drafters", "a,short", "--structures", "chain:2", "--json")
    fine, refused = json.loads(out)["rows"]
    assert code == 0
    assert fine["error"] is None
    assert "4 positions" in refused["error"]


def counting(monkeypatch, stop_after=None):
    """Count the speculative outputs; interrupt after some."""
    calls = [0]
    original = bench_module.generate

    def wrapper(*arguments):
        calls[0] += 1
        if calls[0] == stop_after:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(bench_module, "generate", wrapper)
    return calls


def test_finished_rows_are_not_decoded_again_and_new_ones_are(call, folder, monkeypatch):
    asked = (*SHORT, "--limit", "2", "-o", "made", "--json")
    two = (*asked, "--structures", "chain:2", "chain:3")
    _, first, _ = call(*two)
    calls = counting(monkeypatch)
    code, again, said = call(*two, "--resume")
    assert (code, calls[0]) == (0, 0)
    assert "stay beside" not in said
    assert json.loads(again)["rows"] == json.loads(first)["rows"]
    _, more, said = call(*asked, "--structures", "chain:2", "chain:4", "--resume")
    left = json.loads(first)["rows"][1]["trace"]
    assert f"index.json will name what is asked for now; 1 other trace(s) stay beside: {left}" in said
    assert calls[0] == 2 + 2  # the warm-up and a new row's prompts
    assert json.loads(more)["rows"][0] == json.loads(first)["rows"][0]
    # Another number of repeats is another request, and nothing of the old is overwritten.
    before = {path.name: path.read_bytes() for path in (folder / "made").glob("*.parquet")}
    call(*two, "--resume", "--repeats", "2")
    assert calls[0] == 4 + 2 * 2 + 2 * 2 * 2
    assert all((folder / "made" / name).read_bytes() == data for name, data in before.items())


def test_an_interrupted_run_keeps_what_it_has_and_is_gone_on_with(call, folder, monkeypatch):
    """What comes of an interruption and a resumption is what an uninterrupted run gives, but for times."""
    asked = (*SHORT, "--structures", "chain:2", TREE, "--json")
    _, whole, _ = call(*asked)
    with monkeypatch.context() as patched:
        counting(patched, stop_after=4 + 2 * 2 + 1)  # warm-up, two prompts by two rows, and one of the third
        code, _, err = call(*asked, "-o", "made")
    assert code == 130
    assert "--resume" in err
    index = json.loads((folder / "made" / "index.json").read_text())
    assert index["complete"] is False
    assert [row["n_prompts"] for row in index["rows"]] == [2, 2]
    for row in index["rows"]:
        trace = Trace.read(folder / "made" / row["trace"])
        assert trace.prompts == ("p0", "p1")
        assert trace.provenance["complete"] is False
    calls = counting(monkeypatch)
    _, resumed, _ = call(*asked, "-o", "made", "--resume")
    assert calls[0] == 4 + 2 * 2
    keys = ("structure", "n_prompts", "cycles", "new_tokens", "tau", "tau_se", "tau_lo", "tau_first", "lossless")
    for one, other in zip(json.loads(resumed)["rows"], json.loads(whole)["rows"], strict=True):
        assert {key: one[key] for key in keys} == {key: other[key] for key in keys}
        assert Trace.read(folder / "made" / one["trace"]).provenance["complete"] is True


def test_a_calibration_gives_trees_a_second_row(call, folder):
    maps = folder / "maps"
    maps.mkdir()
    ScoreCalibration("a", f"{0:064x}", (TemperatureMap(3.0),)).write(maps / "any-name.json")
    code, out, err = call(
        *("--drafters", "a,b", "--prompts", "p.jsonl", "--limit", "2", "--structures", "chain:2", TREE),
        *("--max-new-tokens", "6", "--calibrations", "maps", "-o", "made", "--json"),
    )
    rows = json.loads(out)["rows"]
    assert code == 0
    found = [(row["drafter"], row["structure"][:5], row["calibrated"]) for row in rows]
    a = [("a", "chain", False), ("a", "tree:", False), ("a", "tree:", True)]
    assert found == [*a, ("b", "chain", False), ("b", "tree:", False)]
    assert "'b'" in err
    assert len({row["trace"] for row in rows}) == 5
    ScoreCalibration("a", f"{0:064x}", (TemperatureMap(2.0),)).write(maps / "second.json")
    code, _, err = call(*SHORT, "--structures", TREE, "--calibrations", "maps")
    assert code == 2
    assert "second calibration" in err


def test_a_calibration_of_another_temperature_says_so(call, folder):
    """Fitted on greedy text it is of no use at temperature 1: what is drawn is another text."""
    maps = folder / "maps"
    maps.mkdir()
    asked = (*SHORT, "--limit", "1", "--structures", TREE, "--calibrations", "maps", "--temperatures")
    for fitted, said in (({}, 0), ({"temperature": "hot"}, 0), ({"temperature": 0.0}, 1)):
        ScoreCalibration("a", f"{0:064x}", (TemperatureMap(3.0),), fitted).write(maps / "a.json")
        code, _, err = call(*asked, "0,1")
        assert code == 0
        assert err.count("note: the calibration of 'a' was fitted at temperature 0: at 1 ") == said


def test_damaged_turns_are_refused(call, folder):
    call(*SHORT, "--structures", "chain:2", "-o", "made")
    (path,) = (folder / "made").glob("*.parquet")
    trace = Trace.read(path)
    key = trace.provenance["bench"]["request"]
    for damage in ({"tokens": [0] * 4}, {"verdict": ["fine"] * 4}, {"seconds": [1.0]}, {"tokens": None}):
        turns = trace.provenance["bench"]["turns"] | damage
        facts = trace.provenance | {"bench": {"request": key, "turns": turns}}
        joined([trace], facts).write(path)
        with pytest.raises(InputError, match="bench, turns"):
            RowLog({}, key, path).take_up()
    with pytest.raises(InputError, match="another request"):
        RowLog({}, "0" * 64, path).take_up()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--structures", "chain:2", "chain:2"), ("--structures", "each once")),
        (("--structures", "auto"), ("--structures", "auto")),
        (("--structures", "ring:1"), ("ring:1",)),
        (("--structures", "chain:0"), ("chain:0",)),
        (("chain:2",), ("arguments", "chain:2")),
        (("--temperatures", "warm"), ("--temperatures", "warm")),
        (("--temperatures", "-1"), ("--temperatures", "-1")),
        (("--temperatures", "nan"), ("--temperatures", "nan")),
        (("--temperatures", "1,1.0"), ("--temperatures", "each once")),
        (("--drafters", "a,a"), ("--drafters", "a, a")),
        (("--drafters", ","), ("--drafters", "nothing")),
        (("--prompts", "none.jsonl"), ("none.jsonl",)),
        (("--prompts", "long.jsonl"), ("300 tokens",)),
        (("--resume",), ("--resume", "--output")),
        (("-o", "."), ("p.jsonl", "--resume")),
        (("-o", ".", "--resume"), ("index.json",)),
        (("-o", "p.jsonl"), ("p.jsonl",)),
        (("--report", "p.jsonl"), ("p.jsonl",)),
        (("--calibrations", "nowhere"), ("nowhere",)),
        (("--calibrations", "."), ("0 files",)),
        (("--structures", "chain:2", "--calibrations", "."), ("--calibrations", "dynamic tree")),
        (("--seed", "-1"), ("seed", "-1")),
        (("--dtype", "float8"), ("float8",)),
    ],
)
def test_bad_input_is_one_line_and_status_2(arguments, words, call):
    code, out, err = call(*SHORT, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert len(err.splitlines()) == 1
    assert all(word in err for word in words)
