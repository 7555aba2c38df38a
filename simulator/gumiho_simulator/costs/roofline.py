"""Step times of a model pair that nobody has measured: the roofline of a named accelerator.

A part of a step takes the longer of two times: its bytes over the memory's bandwidth, its operations over the
arithmetic rate. Attention and matrices are such parts, one after the other; launching the kernels of a layer comes on
top. Small batches wait for the weights (memory-bound, so that further tokens cost next to nothing), large ones for the
arithmetic (compute-bound, so that every token counts). Peaks of data sheets are never quite reached: these are lower
bounds of times, and speed-ups by them are ratios of such bounds.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import Any

from gumiho_simulator.costs.accelerators import Accelerator
from gumiho_simulator.costs.accelerators import accelerator as named
from gumiho_simulator.costs.shapes import ModelShape, model_shape
from gumiho_theory import CostProfile, InputError

METHODS = ("gumiho", "eagle", "medusa", "hydra", "draft-model")
NODES = (1, 2, 4, 8, 16, 32, 64, 128)
DEPTH = 7  # draft positions of the methods that reach any

# A layer's launches, from one published fit: on an H100 a step of Llama-3.1-8B takes 5.886 ms (SpecDecode-Bench), of
# which reading 15.0 GB takes 4.48; the rest over 33 parts (32 layers and the vocabulary matrix) is 43 microseconds.
LAUNCH_SECONDS = 43e-6
_CACHE_BYTES = 2  # of a key or value: 16 bits


@dataclass(frozen=True)
class Setting:
    """Where and how steps run.

    Parameters
    ----------
    accelerator
        The device.
    batch
        Sequences decoded together, at least 1.
    context
        Tokens of each before the step, at least 0.

    Raises
    ------
    InputError
        A batch or context out of range.
    """

    accelerator: Accelerator
    batch: int = 1
    context: int = 512

    def __post_init__(self) -> None:
        for name, value, least, most in (("batch", self.batch, 1, 1 << 16), ("context", self.context, 0, 1 << 24)):
            if not least <= value <= most:
                raise InputError(name, value, f"{least} to {most}")

    def part(self, moved_bytes: float, operations: float) -> float:
        """Seconds of one part: the longer of moving its bytes and doing its operations."""
        return max(moved_bytes / self.accelerator.bandwidth, operations / self.accelerator.flops)

    def matrices(self, weights: float, weight_bytes: float, tokens: int = 1) -> float:
        """Seconds of matrix products alone: weights read once, each multiplying `tokens` vectors of every sequence."""
        return self.part(weights * weight_bytes, 2.0 * weights * tokens * self.batch)

    def attention(self, shape: ModelShape, layers: int, tokens: int) -> float:
        """Seconds of attention of `tokens` new tokens: every sequence reads the keys and values of its own context."""
        length = self.context + tokens
        read = 2.0 * shape.key_value_heads * shape.head_dim * layers * _CACHE_BYTES * length * self.batch
        operations = 4.0 * shape.heads * shape.head_dim * layers * length * tokens * self.batch
        return self.part(read, operations)


@dataclass(frozen=True)
class Estimate:
    """An estimated cost profile and what it rests on.

    Parameters
    ----------
    profile
        Every time of it is marked as estimated.
    source
        The accelerator's data sheet.
    """

    profile: CostProfile
    source: str

    def to_json(self) -> dict[str, Any]:
        """Return what ``gumiho roofline --json`` prints: the profile's keys, and source."""
        return {**self.profile.to_json(), "source": self.source}


def estimate_profile(
    shape: str | os.PathLike[str],
    method: str,
    accelerator: str,
    *,
    batch: int = 1,
    context: int = 512,
    weight_bytes: float = 2.0,
    draft_shape: str | os.PathLike[str] | None = None,
    **heads: int,
) -> Estimate:
    """Estimate a cost profile from names; see `roofline_profile`, which it calls.

    Parameters
    ----------
    shape, draft_shape
        Names of the target and of the smaller model, or their config.json (see `model_shape`).
    method
        "gumiho", "eagle", "medusa", "hydra" or "draft-model".
    accelerator
        Its name.
    batch, context
        Sequences decoded together, and tokens of each before the step.
    weight_bytes
        Bytes of a weight of either model.
    **heads
        serial_steps, serial_layers, parallel_heads, heads, as for `roofline_profile`.

    Returns
    -------
    Estimate
        The profile, and where the accelerator's rates are from.

    Raises
    ------
    InputError
        An unknown name, or what `roofline_profile` refuses.
    """
    device, target = named(accelerator), model_shape(shape, weight_bytes)
    setting = Setting(device, batch, context)
    draft = None if draft_shape is None else model_shape(draft_shape, weight_bytes)
    return Estimate(roofline_profile(target, method, setting, draft_shape=draft, **heads), device.source)


def forward_seconds(shape: ModelShape, tokens: int, setting: Setting) -> float:
    """Time of one forward of the whole model.

    `shape`: The model. `tokens`: Tokens of each sequence that it reads: 1 for a plain step, the tree's nodes for a
    verification. `setting`: Where. Returns seconds.
    """
    matrices = setting.matrices(shape.step_weights, shape.weight_bytes, tokens)
    return matrices + setting.attention(shape, shape.layers, tokens) + LAUNCH_SECONDS * (shape.layers + 1)


def roofline_profile(
    shape: ModelShape,
    method: str,
    setting: Setting,
    *,
    draft_shape: ModelShape | None = None,
    serial_steps: int = 2,
    serial_layers: int = 2,
    parallel_heads: int = 5,
    heads: int = 5,
) -> CostProfile:
    """Estimate a cost profile.

    Parameters
    ----------
    shape
        The target.
    method
        "gumiho", "eagle", "medusa", "hydra" or "draft-model".
    setting
        Accelerator, batch, context. Times are of the whole batch's step, speed-ups those of each of its sequences.
    draft_shape
        The smaller model, for "draft-model".
    serial_steps, serial_layers, parallel_heads
        For "gumiho": as in the paper.
    heads
        For "medusa" and "hydra": draft positions.

    Returns
    -------
    CostProfile
        Every time is marked as estimated. A serial draft step reads one token of each sequence: wide trees cost more
        only where the batch is compute-bound. The rest of a cycle is one layer's launches.

    Raises
    ------
    InputError
        Another method, numbers out of range, a draft model without a shape, or weights and caches beyond the
        accelerator's memory.
    """
    if method not in METHODS:
        raise InputError("method", repr(method), f"one of {', '.join(METHODS)}")
    if (draft_shape is not None) != (method == "draft-model"):
        found = "a draft shape" if draft_shape is not None else "no draft shape"
        raise InputError(f"method {method}", found, "a draft shape with draft-model, and only there")
    for name, value, least in (
        ("serial steps", serial_steps, 1),
        ("serial layers", serial_layers, 1),
        ("parallel heads", parallel_heads, 0),
        ("heads", heads, 1),
    ):
        if not least <= value <= 64:
            raise InputError(name, value, f"{least} to 64")
    _check_memory(shape, draft_shape, setting)
    if method in ("gumiho", "eagle"):
        layers = serial_layers if method == "gumiho" else 1
        costs = _serial_costs(shape, setting, layers, serial_steps, parallel_heads if method == "gumiho" else 0)
        steps = serial_steps if method == "gumiho" else DEPTH
    elif draft_shape is not None:
        costs, steps = {"draft_serial_seconds": forward_seconds(draft_shape, 1, setting)}, DEPTH
    else:
        costs, steps = _head_costs(shape, setting, method, heads), 1 if method == "medusa" else heads
    verify = tuple(forward_seconds(shape, nodes, setting) for nodes in NODES)
    times = {"draft_parallel_seconds": 0.0, **costs}
    return CostProfile(
        target=shape.name,
        drafter=method if draft_shape is None else f"draft-model:{draft_shape.name}",
        device=f"{setting.accelerator.name}, batch {setting.batch}, context {setting.context} (roofline)",
        dtype=f"{8 * shape.weight_bytes:g}-bit weights",
        baseline_seconds=verify[0],
        verify_nodes=NODES,
        verify_seconds=verify,
        serial_steps=steps,
        other_seconds=LAUNCH_SECONDS,
        serial_layers=layers if method in ("gumiho", "eagle") else None,
        parallel_heads=parallel_heads if method == "gumiho" else None,
        estimated=("baseline_seconds", "verify_seconds", "other_seconds", *times),
        **times,
    )


def _serial_costs(
    shape: ModelShape, setting: Setting, layers: int, steps: int, parallel_heads: int
) -> dict[str, float]:
    """EAGLE's step (arXiv 2401.15077), and Gumiho's parallel heads behind it (arXiv 2503.10135)."""
    matrices = partial(setting.matrices, weight_bytes=shape.weight_bytes)
    square = shape.hidden**2
    vocabulary = matrices(shape.head_weights) + LAUNCH_SECONDS
    layer = matrices(shape.layer_weights) + setting.attention(shape, 1, 1) + LAUNCH_SECONDS
    costs = {"draft_serial_seconds": matrices(2 * square) + layers * layer + vocabulary, "layer_seconds": layer}
    if parallel_heads:
        # A head: window x H -> H, then five blocks H -> H, all heads in the same launches; the vocabulary is read once.
        head = matrices((steps + 5) * square)
        read = matrices(shape.head_weights, tokens=parallel_heads)
        costs["draft_parallel_seconds"] = parallel_heads * head + read + 2 * LAUNCH_SECONDS
        costs["head_seconds"] = head
    return costs


def _head_costs(shape: ModelShape, setting: Setting, method: str, heads: int) -> dict[str, float]:
    """Medusa's heads (arXiv 2401.10774), all at once, or Hydra's (2402.05109), each reading the tokens before it."""
    matrices = partial(setting.matrices, weight_bytes=shape.weight_bytes)
    square = shape.hidden**2
    if method == "medusa":
        one = matrices(square + shape.head_weights)
        return {"draft_serial_seconds": one + LAUNCH_SECONDS, "draft_parallel_seconds": (heads - 1) * one}
    # Where the width changes a second matrix stands for the skip; the heads' mean stands for each.
    mean = sum(2 * (2 + i) * square + shape.head_weights for i in range(heads)) / heads
    return {"draft_serial_seconds": matrices(mean) + LAUNCH_SECONDS}


def _check_memory(shape: ModelShape, draft_shape: ModelShape | None, setting: Setting) -> None:
    needed = 0.0
    for model in (shape, draft_shape):
        if model is not None:
            cache = 2 * model.key_value_heads * model.head_dim * model.layers * _CACHE_BYTES
            needed += (model.step_weights + model.head_weights) * model.weight_bytes
            needed += cache * setting.batch * (setting.context + NODES[-1])
    if needed > setting.accelerator.memory:
        found = f"{needed / 1e9:.1f} GB of weights, keys and values"
        most = f"at most {setting.accelerator.memory / 1e9:.0f} GB, as one {setting.accelerator.name} has"
        raise InputError("roofline", found, most)
