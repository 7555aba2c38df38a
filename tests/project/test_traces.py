"""The shipped traces: each can be read, is of the frozen target, names no folders, and gives the table's tau."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gumiho_simulator.replaying.as_trace import replay_trace
from gumiho_theory import CostProfile, EveryPositionLog, StaticTree, Structure, Trace

FOLDER = Path(__file__).parents[2] / "traces"
FILES = sorted(FOLDER.rglob("*.parquet"))
LOGS = [path for path in FILES if path.parent.name.startswith("positions")]
TRACES = [path for path in FILES if path not in LOGS]


def name(path: Path) -> str:
    return str(path.relative_to(FOLDER))


def test_all_of_it_fits_its_size():
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < 20_000_000


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_file_is_valid_complete_and_says_what_made_it(path: Path):
    made = (EveryPositionLog if path in LOGS else Trace).read(path)
    facts = made.provenance
    assert facts["complete"] and facts["target"] == "tiny" and facts["lossless_mode"]
    assert len(facts["drafter_fingerprint"]) == 64
    assert facts["drafter"].removeprefix("tiny:") == path.stem
    assert "/" not in str([value for key, value in facts.items() if isinstance(value, str) and key != "schema"])


SECTIONS = (FOLDER / "README.md").read_text("utf-8").split("\n## ")
TABLES = {match[1]: part for part in SECTIONS if (match := re.match(r"[^\n]*`([\w/]+)`\n", part))}


def test_the_readme_has_the_tables_of_the_sweep():
    assert {f"{way}/{text}" for way in ("sweep", "apart") for text in ("greedy", "t1")} <= set(TABLES)


@pytest.mark.parametrize("folder", TABLES)
def test_a_table_s_tau_is_that_of_the_rows(folder: str):
    rows = re.findall(r"^\| (\w+) \|.* (\d+) \| (\d\.\d{3}) \[", TABLES[folder], re.M)
    assert {row[0] for row in rows} == {path.stem for path in (FOLDER / folder).glob("*.parquet")}
    for allocation, prompts, tau in rows:
        trace = Trace.read(FOLDER / folder / f"{allocation}.parquet")
        assert (f"{trace.tau():.3f}", len(trace.prompts)) == (tau, int(prompts))


@pytest.mark.parametrize("drafter", ["gumiho", "eagle"])
def test_a_long_log_replays_to_the_trace_beside_it(drafter: str):
    log = EveryPositionLog.read(FOLDER / "family" / "positions-800" / f"{drafter}.parquet")
    trace = Trace.read(FOLDER / "family" / "greedy" / f"{drafter}.parquet")
    assert len(log.prompts) == len(trace.prompts) == 800
    assert replay_trace(log, "chain:7").tau() == trace.tau()


def test_what_was_decoded_for_real_has_the_cycles_of_the_replay():
    for path in sorted((FOLDER / "sweep" / "decoded").glob("*.parquet")):
        real, replayed = Trace.read(path), Trace.read(FOLDER / "sweep" / "greedy" / path.name)
        assert len(real.prompts) == 20 and set(real.prompts) <= set(replayed.prompts)
        one, other = real, replayed.select(real.prompts)
        assert one.accepted.tolist() == other.accepted.tolist()
        assert one.position.tolist() == other.position.tolist()


@pytest.mark.parametrize("way", ["sweep", "apart"])
def test_each_allocation_of_the_sweep_has_its_step_times(way: str):
    profiles = {path.stem: CostProfile.read(path) for path in (FOLDER / way / "profiles").glob("*.json")}
    assert set(profiles) == {path.stem for path in (FOLDER / way / "greedy").glob("*.parquet")}
    for allocation, profile in profiles.items():
        shape = Trace.read(FOLDER / way / "greedy" / f"{allocation}.parquet").provenance["drafter_shape"]
        found = profile.drafter, profile.serial_steps, profile.serial_layers, profile.parallel_heads or 0
        wanted = tuple(shape[key] for key in ("serial_steps", "serial_layers", "parallel_heads"))
        assert found == (allocation, *wanted)


def test_the_sweep_is_whole_and_as_large_as_it_says():
    """Fourteen allocations, 200 prompts greedy and at temperature 1, of at least four kinds of text."""
    logged = {text: sorted((FOLDER / "sweep" / text).glob("*.parquet")) for text in ("greedy", "t1", "decoded")}
    assert {len(paths) for paths in logged.values()} == {14}
    for text in ("greedy", "t1"):
        assert {path.name for path in (FOLDER / "sweep" / text / "positions").iterdir()} == {
            path.name for path in logged[text]
        }
        for path in logged[text]:
            trace = Trace.read(path)
            assert len(trace.prompts) == 200 and len({*trace.task}) >= 4
            assert trace.provenance["temperature"] == (1.0 if text == "t1" else 0.0)


def test_the_static_trees_are_of_their_sizes():
    for path in (FOLDER / "trees").glob("*.json"):
        tree = Structure.parse(f"static:{path}")
        assert isinstance(tree, StaticTree)
        assert len(tree.paths) + 1 == int(path.stem.rpartition("-")[2])
