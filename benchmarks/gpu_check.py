"""What only an accelerator can show, in one command and under eight minutes: exactness there, and what steps cost.

Run: python benchmarks/gpu_check.py --out FOLDER [--device cuda] [--shapes vicuna-7b,llama2-13b,llama3-8b]
[--minutes 7] [--tiny]. Progress on stderr; one JSON object last, kept in FOLDER/gpu_check.json after each part.

exactness   float32 and bfloat16, each method x chain, static and dynamic tree, beside plain decoding there: outputs
            equal, tied (the target's two choices closer than rounding), different. Small models; the target drafting
            for itself stands for drafts that are accepted, random heads for such as are not.
profiles    models of known shapes with random weights, bfloat16: plain step, verification of 1 to 128 nodes, draft
            steps, for each method: FOLDER/profile-SHAPE-METHOD.json (CostProfile).
compiled    time of a draft with torch.compile over that without, for the drafters that hold a Transformer.

No part begins after --minutes; what was left out is said. A part that fails is named, and the others run on; then, or
where an output is different, the exit status is 1.
"""

from __future__ import annotations

import gc
import json
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.drafters.draft_model.drafter import DraftModelDrafter
from gumiho_decoder.drafters.growing.drafter import TreeDrafter
from gumiho_decoder.drafters.load import load_drafter
from gumiho_decoder.drafters.ngram import NgramDrafter
from gumiho_decoder.embedded import PROMPTS
from gumiho_decoder.logging.recorder import environment
from gumiho_decoder.loop import generate, plain
from gumiho_decoder.measuring.lossless import compare
from gumiho_decoder.measuring.profile.pairs import NODES, measure
from gumiho_decoder.measuring.profile.parts import CycleParts, interleaved
from gumiho_decoder.measuring.profile.shapes import METHODS, random_drafter, random_target
from gumiho_decoder.measuring.prompts import read_prompts
from gumiho_decoder.target import Target, load_target
from gumiho_theory import ChainStructure, CostProfile, StaticTree, Structure
from gumiho_theory.files import write_json

STATIC = StaticTree(((1,), (2,), (3,), (1, 1), (1, 2), (2, 1), (1, 1, 1), (1, 1, 2), (1, 1, 1, 1)))
STRUCTURES = (ChainStructure(4), STATIC, Structure.parse("tree:total=24,top_k=5,depth=4,mlp_topk=6"))
LARGE = ("vicuna-7b", "llama2-13b", "llama3-8b")

Part = tuple[str, Callable[[], dict[str, Any]]]


class Device:
    """Where the parts run, and how much of each."""

    def __init__(self, name: str, *, tiny: bool) -> None:
        self.name = name
        self.prompts, self.tokens = (1, 12) if tiny else (4, 48)
        self.nodes, self.repeats = ((1, 8, 32), 2) if tiny else (NODES, 11)
        self.dtype = "float32" if tiny else "bfloat16"
        self.exact = [("random", "float32"), ("random", "bfloat16"), ("embedded", "float32"), ("embedded", "bfloat16")]
        if tiny:
            self.exact.pop()  # a CPU may be slow at it
        self.draft_model = "tiny-shape" if tiny else "llama-68m"
        # There the compiler would take longer than all else: only the tracing is tried.
        self.backend = "eager" if tiny else "inductor"
        self.compiled = ("eagle",) if tiny else ("gumiho", "eagle")

    def clear(self) -> None:
        """Give back the memory of models that are gone."""
        gc.collect()
        if torch.device(self.name).type == "cuda":
            torch.cuda.empty_cache()


def pairs(target: Target, *, embedded: bool) -> Iterator[TreeDrafter]:
    """Yield a drafter of each method on a small target."""
    if embedded:
        yield load_drafter("tiny:gumiho", target)
    else:
        for method in METHODS:
            yield random_drafter(method, target)
    yield NgramDrafter(target)
    yield DraftModelDrafter(target, target, "itself")


@torch.inference_mode()
def exactness(device: Device, name: str, dtype: str) -> dict[str, Any]:
    """Compare every method's and structure's outputs with plain ones."""
    embedded = name == "embedded"
    if embedded:
        target = load_target("tiny", device.name, dtype)
        chosen = read_prompts(str(PROMPTS))
        prompts = [target.encode(p.turns[0]) for p in chosen[:: len(chosen) // device.prompts]][: device.prompts]
    else:
        target = random_target("tiny-shape", device.name, dtype)
        random = np.random.default_rng(0)
        prompts = [random.integers(target.vocab_size, size=12 + 3 * i).tolist() for i in range(device.prompts)]
    config = GenerationConfig(device.tokens)
    expected = [plain(target, prompt, config).token_ids for prompt in prompts]
    rows = []
    for drafter in pairs(target, embedded=embedded):
        for structure in STRUCTURES:
            asked = GenerationConfig(device.tokens, structure)
            cycles: list[int] = []
            made = [generate(target, drafter, p, asked, lambda c, n=cycles: n.append(c.committed)) for p in prompts]
            verdicts = Counter(
                compare(target, p, e, m.token_ids).verdict for p, e, m in zip(prompts, expected, made, strict=True)
            )
            counts = {verdict: verdicts[verdict] for verdict in ("equal", "tie", "different")}
            tau = sum(cycles) / len(cycles)
            rows.append({"method": drafter.method, "structure": structure.kind, "tokens_per_cycle": tau, **counts})
    totals = {verdict: sum(row[verdict] for row in rows) for verdict in ("equal", "tie", "different")}
    return {**totals, "rows": rows}


class Shape:
    """A target of a known shape, made when it is first needed and given up when the next one is."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._name, self._target = "", None

    def __call__(self, name: str) -> Target:
        """Return the target of this shape."""
        if name != self._name:
            self._name, self._target = name, None
            self._device.clear()
            self._target = random_target(name, self._device.name, self._device.dtype)
        return self._target


def drafter_on(target: Target, method: str, device: Device) -> TreeDrafter:
    """Return a drafter of a method; the draft model is a small one with the target's vocabulary."""
    if method == "ngram":
        return NgramDrafter(target)
    if method == "draft-model":
        draft = random_target(device.draft_model, device.name, device.dtype, vocab_size=target.vocab_size)
        return DraftModelDrafter(draft, target, draft.name)
    return random_drafter(method, target)


def profile(device: Device, shape: Shape, name: str, method: str, out: Path) -> dict[str, Any]:
    """Measure one method on one shape, and write its profile."""
    target = shape(name)
    drafter = drafter_on(target, method, device)
    depth = drafter.depth or 7
    made: CostProfile = measure(
        target, drafter, nodes=device.nodes, repeats=device.repeats, structure=ChainStructure(depth)
    )
    del drafter
    device.clear()
    made.write(out / f"profile-{name}-{method}.json")
    return {
        "baseline_ms": 1e3 * made.baseline_seconds,
        "verify_ms": {n: 1e3 * s for n, s in zip(made.verify_nodes, made.verify_seconds, strict=True)},
        "draft_depth": depth,
        "draft_ms": 1e3 * made.draft_seconds(depth),
        "other_ms": 1e3 * made.other_seconds,
    }


@torch.inference_mode()
def compiled(device: Device, shape: Shape, name: str, method: str) -> dict[str, Any]:
    """Time a draft with and without torch.compile; both in the same rounds."""
    target = shape(name)
    drafter = random_drafter(method, target)
    faster = random_drafter(method, target)
    faster.model.serial.compile(dynamic=True, backend=device.backend)
    text = np.random.default_rng(0).integers(target.vocab_size, size=64).tolist()
    structure = ChainStructure(drafter.depth or 4)
    benches = {
        k: CycleParts(target, d, text, GenerationConfig()) for k, d in (("eager", drafter), ("compiled", faster))
    }
    seconds = interleaved({k: lambda b=b: b.draft(structure) for k, b in benches.items()}, device.repeats)
    del drafter, faster, benches
    device.clear()
    ms = {f"{k}_ms": 1e3 * s for k, s in seconds.items()}
    return {**ms, "ratio": seconds["compiled"] / seconds["eager"], "backend": device.backend}


def plan(device: Device, shapes: list[str], out: Path) -> list[Part]:
    """Return all parts, the most needed first."""
    made = Shape(device)
    parts: list[Part] = [
        (f"exactness {name} {dtype}", partial(exactness, device, name, dtype)) for name, dtype in device.exact
    ]
    for name in shapes:
        for method in (*METHODS, "draft-model", "ngram"):
            parts.append((f"profile {name} {method}", partial(profile, device, made, name, method, out)))
    for method in device.compiled:
        parts.append((f"compiled {shapes[0]} {method}", partial(compiled, device, made, shapes[0], method)))
    return parts


def main(
    out: Annotated[Path, typer.Option(help="Folder for the profiles and the result.")],
    device: Annotated[str, typer.Option(help="cuda, cuda:1, …")] = "cuda",
    shapes: Annotated[
        str, typer.Option(help="Names in gumiho_decoder.measuring.profile.shapes, or config.json files.")
    ] = ",".join(LARGE),
    minutes: Annotated[float, typer.Option(help="No part begins after that.")] = 7.0,
    tiny: Annotated[bool, typer.Option(help="Tiny models on the CPU: whether this script works.")] = False,
) -> None:
    """Check and measure what needs an accelerator."""
    started = time.monotonic()
    here = Device("cpu" if tiny else device, tiny=tiny)
    out.mkdir(parents=True, exist_ok=True)
    dtype = getattr(torch, here.dtype)
    result: dict[str, Any] = {
        "environment": environment(torch.device(here.name), dtype),
        "parts": {},
        "failed": [],
        "left_out": [],
        "different": 0,
    }
    for name, work in plan(here, ["tiny-shape"] if tiny else shapes.split(","), out):
        begun = time.monotonic()
        if begun - started > 60 * minutes:
            result["left_out"].append(name)
            continue
        try:
            found = work()
        except Exception as error:  # what the others find must not be lost with it
            traceback.print_exc()
            result["failed"].append(name)
            found = {"error": f"{type(error).__name__}: {error}"}
            here.clear()
        result["parts"][name] = found | {"seconds": time.monotonic() - begun}
        result["different"] += found.get("different", 0)
        print(f"{name}: {time.monotonic() - begun:.1f} s", file=sys.stderr)
        write_json(out / "gpu_check.json", result)
    result["seconds"] = time.monotonic() - started
    write_json(out / "gpu_check.json", result)
    print(json.dumps(result))
    if result["failed"] or result["different"]:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
