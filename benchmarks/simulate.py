"""How fast is the simulator? Each job beside a plain NumPy or Python loop in the same run, and in milliseconds.

Run: python benchmarks/simulate.py [--repeats 20]. A table on stderr, one JSON object last. A job and its loop are timed
in turns; times are of the processor, so that other programs hardly count, the fastest of the repeats, and ratios are of
those. One thread: set OMP_NUM_THREADS=1.

cycles      accepted lengths of independent cycles: one multinomial draw over L = 0..D, however many cycles there are,
            against drawing every position of every cycle
tree        the best static tree of 1,024 nodes from rank rates of 10 depths and 10 ranks, against growing it by looking
            for the most probable open candidate again and again
bootstrap   tau of 2,000 resamples of 400 prompts: counted draws and one matrix product, against a loop over resamples
allocation  every number of serial and parallel heads of 7 positions with trees of up to 64 nodes; no loop beside it
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable

import numpy as np
import typer

from gumiho_simulator import allocate
from gumiho_simulator.accelerators import accelerator
from gumiho_simulator.acceptance import HazardModel, simulate_lengths
from gumiho_simulator.allocate_traces import resample_weights
from gumiho_simulator.model_shape import model_shape
from gumiho_simulator.roofline import Setting, roofline_profile
from gumiho_theory import AcceptanceCounts, StaticTree

# Cycles that reached each position, and the last column those accepted in full: rates .88 .89 .78 .45 .50 .45 .60.
REACHED = np.array([100_000, 88_000, 78_320, 61_089, 27_490, 13_745, 6_185, 3_711])
RATES = REACHED[1:] / REACHED[:-1]
CYCLES = 1_000_000
# Sequoia's rank acceptance vector (arXiv 2402.12374, one depth), continued to ten ranks.
RANKS = np.array([0.634, 0.108, 0.057, 0.022, 0.019, 0.015, 0.012, 0.010, 0.008, 0.006])
TABLE = np.outer(0.97 ** np.arange(10), RANKS)
NODES = 1024
PROMPTS, RESAMPLES = 400, 2000

Job = tuple[str, Callable[[], object], Callable[[], object] | None]


def lengths_at_once(rng: np.random.Generator) -> np.ndarray:
    """Return the number of cycles by accepted length."""
    total = np.array([REACHED[1:].sum()])
    counts = AcceptanceCounts(("p",), REACHED[:1], total, REACHED[:1], REACHED[None, :-1], REACHED[None, 1:])
    return simulate_lengths(HazardModel(counts), RATES.size, CYCLES, rng)


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


def jobs() -> list[Job]:
    """Return name, job and loop of each row; further rows go here."""
    rng = np.random.default_rng(0)
    cycles = rng.integers(10, 40, PROMPTS).astype(np.float64)
    accepted = rng.binomial(cycles.astype(np.int64) * 7, 0.4).astype(np.float64)
    profile = roofline_profile(model_shape("vicuna-7b"), "gumiho", Setting(accelerator("H100")))
    types = {"serial": TABLE[:7], "parallel": 0.7 * TABLE[:7]}
    return [
        ("cycles", lambda: lengths_at_once(rng), lambda: lengths_by_position(rng)),
        ("tree", lambda: StaticTree.best(TABLE, NODES), tree_by_search),
        (
            "bootstrap",
            lambda: resampled_at_once(accepted, cycles, rng),
            lambda: resampled_one_by_one(accepted, cycles, rng),
        ),
        ("allocation", lambda: allocate(profile, types, 7, (8, 16, 32, 64)), None),
    ]


def check() -> None:
    """Fail where a job and its loop would not do the same work."""
    best = StaticTree.best(TABLE, NODES)
    rates = [0.0, *(TABLE[len(path) - 1, path[-1] - 1] for path in best.paths)]
    assert abs(best.tree.expected_accepted(rates) - tree_by_search()) < 1e-9
    rng = np.random.default_rng(1)
    shares = [make(rng) / CYCLES for make in (lengths_at_once, lengths_by_position)]
    assert np.abs(shares[0] - shares[1]).max() < 0.003


def main(repeats: int = 20) -> None:
    """Time every job."""
    check()
    rows = []
    for name, job, loop in jobs():
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
        row = {"job": name, "ms": fastest[0], "median_ms": medians[0]}
        row |= {"loop_ms": None, "ratio": None} if loop is None else {"loop_ms": fastest[1]}
        if loop is not None:
            row["ratio"] = fastest[1] / fastest[0]
        rows.append(row)
        beside = "" if loop is None else f", loop {fastest[1]:9.3f} ms, {row['ratio']:.0f} times as fast"
        print(f"{name:12} {fastest[0]:9.3f} ms{beside}", file=sys.stderr)
    facts = {"python": platform.python_version(), "numpy": np.__version__, "cores": os.cpu_count()}
    print(json.dumps({"rows": rows, "repeats": repeats, "environment": facts}))


if __name__ == "__main__":
    typer.run(main)
