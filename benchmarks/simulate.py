"""How fast is the simulator? Each job beside a plain NumPy or Python loop in the same run, and in milliseconds.

Run: python benchmarks/simulate.py [--repeats 20]. A table on stderr, one JSON object last. A job and its loop are timed
in turns; times are of the processor, so that other programs hardly count, the fastest of the repeats, and ratios are of
those. One thread: set OMP_NUM_THREADS=1. What numba compiles it compiles in the first round, which is not counted.

cycles      accepted lengths of independent cycles: one multinomial draw over L = 0..D, however many cycles there are,
            against drawing every position of every cycle
tree        the best static tree of 1,024 nodes from rank rates of 10 depths and 10 ranks, against growing it by looking
            for the most probable open candidate again and again
bootstrap   tau of 2,000 resamples of 400 prompts: counted draws and one matrix product, against a loop over resamples
replay      chain:5 and a static tree of 20 nodes replayed on an every-position log of a million rows: compiled. The
            log was laid out before, as from its second structure on; against plain NumPy, every row at once, which lays
            it out each time
hmm         4 million tokens of a hidden Markov chain drafted by chain:7: a compiled table look-up a cycle, against a
            Python loop over positions (on a thousandth of the tokens, its time scaled up)
mixture     the same of prompts that differ, against a Python loop over cycles
allocation  every number of serial and parallel heads of 7 positions with trees of up to 64 nodes; no loop beside it
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import typer

from gumiho_simulator import allocate
from gumiho_simulator.acceptance import HazardModel, Observations, simulate_lengths
from gumiho_simulator.acceptance.chain.tokens import TokenChain
from gumiho_simulator.acceptance.simulating.draws import alias_tables, cycle_table
from gumiho_simulator.acceptance.simulating.kernel import draw_apart, draw_in_order
from gumiho_simulator.allocating.logged import resample_weights
from gumiho_simulator.costs.accelerators import accelerator
from gumiho_simulator.costs.roofline import Setting, roofline_profile
from gumiho_simulator.costs.shapes import model_shape
from gumiho_simulator.replaying.cycles import replay_cycles
from gumiho_theory import AcceptanceCounts, ChainStructure, EveryPositionLog, StaticTree, length_pmf

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from replay_by_numpy import replay_by_numpy  # the slow twin of the tests

# Cycles that reached each position, and the last column those accepted in full: rates .88 .89 .78 .45 .50 .45 .60.
REACHED = np.array([100_000, 88_000, 78_320, 61_089, 27_490, 13_745, 6_185, 3_711])
RATES = REACHED[1:] / REACHED[:-1]
CYCLES = 1_000_000
# Sequoia's rank acceptance vector (arXiv 2402.12374, one depth), continued to ten ranks.
RANKS = np.array([0.634, 0.108, 0.057, 0.022, 0.019, 0.015, 0.012, 0.010, 0.008, 0.006])
TABLE = np.outer(0.97 ** np.arange(10), RANKS)
NODES = 1024
PROMPTS, RESAMPLES = 400, 2000

POSITIONS, OUTPUT = 1_000_000, 500  # rows of the every-position log, and of each output
CHAIN = TokenChain(2, 7, np.array([-0.4, 1.9, -0.2, -0.1, 0.0, 0.0, 0.0, 0.0, 1.5, 0.4, -0.5]))
LENGTH, TEXTS, TOKENS = 7, 100, 40_000  # what the chain models draft
SLOW = 1 / 1000  # share of the tokens that the plain loops draft, their time scaled up

# Name, job, loop, units of work of the job, what a unit is, and by what the loop's time is multiplied.
Job = tuple[str, Callable[[], object], Callable[[], object] | None, int, str, float]


def lengths_at_once(rng: np.random.Generator) -> np.ndarray:
    """Return the number of cycles by accepted length."""
    total = np.array([REACHED[1:].sum()])
    counts = AcceptanceCounts(("p",), REACHED[:1], total, REACHED[:1], REACHED[None, :-1], REACHED[None, 1:])
    return simulate_lengths(HazardModel(Observations(counts)), RATES.size, CYCLES, rng)


def lengths_by_position(rng: np.random.Generator) -> np.ndarray:
    """Return the same from every position of every cycle."""
    counts = np.zeros(RATES.size + 1, dtype=np.int64)
    for _ in range(10):
        accepted = rng.random((CYCLES // 10, RATES.size)) < RATES
        counts += np.bincount(np.cumprod(accepted, axis=1).sum(axis=1), minlength=RATES.size + 1)
    return counts


def tree_by_search() -> float:
    """Return the expected accepted length of the best tree, found by trying every open candidate for each node."""
    chance, opened, depth = np.ones(1), np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    expected = 0.0
    for _ in range(NODES - 1):
        room = (depth < len(TABLE)) & (opened < len(RANKS))
        rates = TABLE[np.minimum(depth, len(TABLE) - 1), np.minimum(opened, len(RANKS) - 1)]
        scores = np.where(room, chance * rates, -1.0)
        parent = int(scores.argmax())
        expected += scores[parent]
        chance, opened = np.append(chance, scores[parent]), np.append(opened, 0)
        depth = np.append(depth, depth[parent] + 1)
        opened[parent] += 1
    return expected


def resampled_at_once(accepted: np.ndarray, cycles: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return tau of every resample."""
    weights = resample_weights(PROMPTS, RESAMPLES, rng)
    return 1 + (weights @ accepted) / (weights @ cycles)


def resampled_one_by_one(accepted: np.ndarray, cycles: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the same in a loop."""
    taus = np.empty(RESAMPLES)
    for row in range(RESAMPLES):
        index = rng.integers(PROMPTS, size=PROMPTS)
        taus[row] = 1 + accepted[index].sum() / cycles[index].sum()
    return taus


def every_position_log(rng: np.random.Generator) -> EveryPositionLog:
    """Return a log of many outputs whose ranks are drawn at random: first, second, third or none."""
    depth, outputs = 5, POSITIONS // OUTPUT
    left = np.tile(np.arange(OUTPUT)[::-1], outputs)[:, None]
    known = np.arange(depth) < left
    rank = np.where(known, rng.choice([1, 2, 3, 0], p=[0.65, 0.12, 0.06, 0.17], size=(POSITIONS, depth)), 0)
    nothing = np.full((POSITIONS, depth), np.nan)
    stops = np.full(POSITIONS, None, dtype=object)
    stops[OUTPUT - 1 :: OUTPUT] = "length"
    return EveryPositionLog(
        prompt_id=np.repeat(np.array([f"p{i}" for i in range(outputs)], dtype=object), OUTPUT),
        task=np.full(POSITIONS, None, dtype=object),
        turn=np.zeros(POSITIONS, dtype=np.int64),
        position=np.tile(np.arange(OUTPUT), outputs),
        drafted=np.full(POSITIONS, depth),
        stop_reason=stops,
        true_token=np.where(known, 1, -1),
        rank=rank,
        q_draft=nothing,
        p_target=nothing,
        top_ids=np.zeros((POSITIONS, depth, 0), dtype=np.int64),
        top_q=np.zeros((POSITIONS, depth, 0)),
        accepted=np.zeros((POSITIONS, 0), dtype=np.int64),
        censored=np.zeros((POSITIONS, 0), dtype=np.int64),
        provenance={"top_k": 0, "temperature": 0.0, "candidates": "top", "stop_ids": [0]},
    )


def mixture_laws(rng: np.random.Generator) -> np.ndarray:
    """Return the cumulative law of L of prompts that share rates up to a shift."""
    levels = np.log(RATES / (1 - RATES)) + 0.4 * rng.standard_normal(TEXTS)[:, None]
    return np.cumsum(length_pmf(1 / (1 + np.exp(-levels))), axis=1)


def chain_by_position(rng: np.random.Generator) -> None:
    """Draft a share of the tokens position by position."""
    CHAIN.simulate(LENGTH, int(TEXTS * TOKENS * SLOW), rng)


def mixture_by_position(laws: np.ndarray, rng: np.random.Generator) -> None:
    """Draft a share of the tokens cycle by cycle."""
    for law in laws:
        written = 0
        while written < TOKENS * SLOW:
            written += 1 + int(np.searchsorted(law, rng.random(), side="right"))


def jobs() -> list[Job]:
    """Return name, job, loop and units of each row; further rows go here."""
    rng = np.random.default_rng(0)
    cycles = rng.integers(10, 40, PROMPTS).astype(np.float64)
    accepted = rng.binomial(cycles.astype(np.int64) * 7, 0.4).astype(np.float64)
    profile = roofline_profile(model_shape("vicuna-7b"), "gumiho", Setting(accelerator("H100")))
    types = {"serial": TABLE[:7], "parallel": 0.7 * TABLE[:7]}
    log, chain, tree = every_position_log(rng), ChainStructure(5), StaticTree.best(TABLE[:5], 20)
    start, table = cycle_table(CHAIN, np.zeros(LENGTH + 1))
    order = (np.cumsum(start), *alias_tables(table.reshape(len(start), -1)), TEXTS, TOKENS)
    laws = mixture_laws(rng)
    drawn = [len(draw_in_order(*order, rng)[0]), len(draw_apart(laws, TOKENS, rng)[0])]
    return [
        ("cycles", lambda: lengths_at_once(rng), lambda: lengths_by_position(rng), CYCLES, "cycles", 1),
        (
            "replay chain",
            lambda: replay_cycles(log, chain),
            lambda: replay_by_numpy(log, chain),
            *(POSITIONS, "rows", 1),
        ),
        ("replay tree", lambda: replay_cycles(log, tree), lambda: replay_by_numpy(log, tree), *(POSITIONS, "rows", 1)),
        ("hmm", lambda: draw_in_order(*order, rng), lambda: chain_by_position(rng), drawn[0], "cycles", 1 / SLOW),
        (
            "mixture",
            lambda: draw_apart(laws, TOKENS, rng),
            lambda: mixture_by_position(laws, rng),
            *(drawn[1], "cycles", 1 / SLOW),
        ),
        ("tree", lambda: StaticTree.best(TABLE, NODES), tree_by_search, NODES, "nodes", 1),
        (
            "bootstrap",
            lambda: resampled_at_once(accepted, cycles, rng),
            lambda: resampled_one_by_one(accepted, cycles, rng),
            *(RESAMPLES, "resamples", 1),
        ),
        ("allocation", lambda: allocate(profile, types, 7, (8, 16, 32, 64)), None, 1, "searches", 1),
    ]


def check() -> None:
    """Fail where a job and its loop would not do the same work."""
    best = StaticTree.best(TABLE, NODES)
    rates = [0.0, *(TABLE[len(path) - 1, path[-1] - 1] for path in best.paths)]
    assert abs(best.tree.expected_accepted(rates) - tree_by_search()) < 1e-9
    rng = np.random.default_rng(1)
    shares = [make(rng) / CYCLES for make in (lengths_at_once, lengths_by_position)]
    assert np.abs(shares[0] - shares[1]).max() < 0.003
    log = every_position_log(rng)
    for tree in (ChainStructure(5), StaticTree.best(TABLE[:5], 20)):
        made, (rows, accepted, _) = replay_cycles(log, tree), replay_by_numpy(log, tree)
        assert (made.row == rows).all()
        assert (made.accepted == accepted).all()
    start, table = cycle_table(CHAIN, np.zeros(LENGTH + 1))
    order = (np.cumsum(start), *alias_tables(table.reshape(len(start), -1)), TEXTS, TOKENS)
    means = draw_in_order(*order, rng)[0].mean(), CHAIN.simulate(LENGTH, 100_000, rng).mean()
    assert abs(means[0] / means[1] - 1) < 0.03


def main(repeats: int = 20) -> None:
    """Time every job."""
    check()
    rows = []
    for name, job, loop, units, unit, scale in jobs():
        both = [job] if loop is None else [job, loop]
        seconds = [[] for _ in both]
        for repeat in range(-1, repeats):  # the first round only warms up
            for run, took in zip(both, seconds, strict=True):
                started = time.process_time()
                run()
                if repeat >= 0:
                    took.append(time.process_time() - started)
        fastest = [1000 * min(took) for took in seconds]
        medians = [1000 * float(np.median(took)) for took in seconds]
        row = {"job": name, "ms": fastest[0], "median_ms": medians[0], "unit": unit}
        row["units_per_second"] = 1000 * units / fastest[0]
        row |= {"loop_ms": None, "ratio": None} if loop is None else {"loop_ms": scale * fastest[1]}
        if loop is not None:
            row["ratio"] = scale * fastest[1] / fastest[0]
        rows.append(row)
        beside = "" if loop is None else f", loop {row['loop_ms']:11.3f} ms, {row['ratio']:.0f} times as fast"
        speed = f"{row['units_per_second'] / 1e6:10.3f} million {unit}/s"
        print(f"{name:12} {fastest[0]:9.3f} ms, {speed}{beside}", file=sys.stderr)
    facts = {"python": platform.python_version(), "numpy": np.__version__, "cores": os.cpu_count()}
    print(json.dumps({"rows": rows, "repeats": repeats, "environment": facts}))


if __name__ == "__main__":
    typer.run(main)
