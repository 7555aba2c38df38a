"""The best allocation of draft heads among those that were logged, with what choosing by few prompts may cost."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gumiho_simulator.allocating.files import read_profiles, read_traces
from gumiho_simulator.allocating.heads import Allocation, Allocations, HeadCosts, pareto_front
from gumiho_simulator.costs.speed import speedup_limits
from gumiho_simulator.forecasting.intervals import effective_prompts, small_sample_factor, stretch
from gumiho_theory import CostProfile, InputError, Trace
from gumiho_theory.types import FloatArray

_BATCH_CELLS = 4_000_000
_METHODS = ("gumiho", "eagle")


@dataclass(frozen=True)
class _Logged:
    """One trace under the profile: sums over complete cycles by prompt [G]."""

    name: str
    profile: CostProfile
    serial: int
    parallel: int
    layers: int
    nodes: float
    structure: str | None
    prompts: tuple[str, ...]
    cycles: FloatArray
    tokens: FloatArray
    seconds: FloatArray


def allocate_traces(
    profile: CostProfile | Mapping[str, CostProfile],
    traces: Mapping[str, Trace],
    seed: int = 0,
    n_resamples: int = 2000,
) -> Allocations:
    """Compare the allocations that traces logged, by tau and by the profile's times.

    Prompts are resampled over all traces together: a prompt that several share is drawn for all of them, so that what
    makes it easy or hard cancels from their differences.

    Parameters
    ----------
    profile : CostProfile, or mapping of drafter to CostProfile
        Step times of a pair: draft times are carried over to other numbers of layers and heads. Or those of each
        drafter: each trace is put under that of its own.
    traces : mapping of name to Trace
        Provenance gives the method and drafter_shape: gumiho (serial_steps, serial_layers, parallel_heads), or eagle
        (serial_layers; every position is serial).
    seed
        Of the resampling.
    n_resamples
        Number of resamples.

    Returns
    -------
    Allocations
        Traces that could not be used are named in `warnings`.

    Raises
    ------
    InputError
        No trace that can be used.
    """
    warnings: list[str] = []
    shapes: dict[str, dict[str, int]] = {}
    for name, trace in traces.items():
        try:
            shapes[name] = _shape(trace)
        except InputError as error:
            warnings.append(f"left out: {error.within(name)}")
    used = _costs(profile, traces, shapes, warnings)
    logged = []
    for name, shape in shapes.items():
        try:
            logged.append(_under(_of(used, traces[name]), name, traces[name], shape))
        except InputError as error:
            warnings.append(f"left out: {error.within(name)}")
    if not logged:
        raise InputError("traces", "; ".join(warnings) or "none", "a trace that can be used")
    warnings += _differences({one.name: traces[one.name] for one in logged})
    prompts = tuple(dict.fromkeys(prompt for one in logged for prompt in one.prompts))
    taus, speeds = _draws(logged, prompts, np.random.default_rng(seed), n_resamples)
    rows = tuple(_row(*each) for each in zip(logged, taus, speeds, strict=True))
    chosen = int(np.argmax([row.speedup for row in rows]))
    # A resample in which some trace has no prompt left says nothing of the choice.
    whole = speeds[:, np.isfinite(speeds).all(axis=0)] if len(prompts) > 1 else np.zeros((len(rows), 0))
    loss = whole.max(axis=0) - whole[chosen]
    return Allocations(
        rows,
        rows[chosen],
        pareto_front(rows),
        tuple(warnings),
        tuple(dict.fromkeys(said for one in used.values() for said in one.assumptions)),
        regret=float(loss.mean()) if loss.size else None,
        best_probability=float((loss == 0).mean()) if loss.size else None,
        prompts=len(prompts),
        seed=seed,
    )


def allocate_folder(
    profiles: str | os.PathLike[str], traces: str | os.PathLike[str], seed: int = 0, n_resamples: int = 2000
) -> Allocations:
    """Compare the allocations that a folder's traces logged: `allocate_traces` on files.

    Parameters
    ----------
    profiles, traces
        Files and folders, as for `read_profiles` and `read_traces`.
    seed, n_resamples
        As for `allocate_traces`.

    Returns
    -------
    Allocations
        Files that could not be read are named in `warnings` too, first.

    Raises
    ------
    InputError
        What cannot be read, or no trace that can be used.
    """
    logs, unread = read_traces(traces)
    found = allocate_traces(read_profiles(profiles), logs, seed, n_resamples)
    return replace(found, warnings=(*unread, *found.warnings))


def resample_weights(prompts: int, n_resamples: int, generator: np.random.Generator) -> FloatArray:
    """Draw how often each prompt enters each resample.

    `prompts`: Number of prompts G to draw from. `n_resamples`: Number of resamples B. Returns ndarray [B, G]: Whole
    numbers; each row sums to G. Counting draws takes a tenth of the time of multinomial ones.
    """
    drawn = generator.integers(prompts, size=(n_resamples, prompts)) + prompts * np.arange(n_resamples)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=n_resamples * prompts)
    return counts.reshape(n_resamples, prompts).astype(np.float64)


def _shape(trace: Trace) -> dict[str, int]:
    """Return serial_steps, serial_layers and parallel_heads of the drafter; InputError names what is missing."""
    method, shape = trace.provenance.get("method"), trace.provenance.get("drafter_shape")
    if method not in _METHODS:
        raise InputError("provenance, method", repr(method), " or ".join(_METHODS))
    found: Any = shape if isinstance(shape, dict) else {}
    known = {"serial_steps": trace.depth, "parallel_heads": 0} if method == "eagle" else {}
    for key in ("serial_steps", "serial_layers", "parallel_heads"):
        value = known.get(key, found.get(key))
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InputError(f"provenance, drafter_shape, {key}", repr(value), "a whole number")
        known[key] = value
    if trace.depth > known["serial_steps"] + known["parallel_heads"]:
        raise InputError("drafted", trace.depth, f"at most the {sum(known.values()) - known['serial_layers']} heads")
    return known


def _costs(
    profile: CostProfile | Mapping[str, CostProfile],
    traces: Mapping[str, Trace],
    shapes: Mapping[str, dict[str, int]],
    warnings: list[str],
) -> dict[str | None, HeadCosts]:
    """Draft times by drafter; one profile's, under None, are for all."""
    drafters = {str(traces[name].provenance.get("drafter")) for name in shapes}
    if not isinstance(profile, CostProfile):
        used = {drafter: one for drafter, one in profile.items() if drafter in drafters}
        for key in ("target", "device", "dtype"):
            values = sorted({str(getattr(one, key)) for one in used.values()})
            if len(values) > 1:
                warnings.append(f"profiles differ in {key}: {'; '.join(values)}")
        return {drafter: HeadCosts(one) for drafter, one in profile.items()}
    costs = HeadCosts(profile, _profile_layers(profile, traces, shapes, warnings))
    others = sorted(drafters - {profile.drafter})
    if others:
        costs.assumptions[f"step times of {profile.drafter}, the profile's drafter, hold for {_few(others)} too"] = None
    return {None: costs}


def _few(names: Iterable[object]) -> str:
    shown = [str(name) for name in names]
    return ", ".join(shown[:3]) + (", …" if len(shown) > 3 else "")


def _of(costs: Mapping[str | None, HeadCosts], trace: Trace) -> HeadCosts:
    drafter = trace.provenance.get("drafter")
    found = costs.get(None) or (costs.get(drafter) if isinstance(drafter, str) else None)
    if found is None:
        raise InputError("provenance, drafter", repr(drafter), f"one with a profile: {_few(costs)}")
    target = trace.provenance.get("target")
    if target != found.profile.target:
        found.assumptions[f"step times of {found.profile.target}, the profile's target, hold for {target} too"] = None
    return found


def _profile_layers(
    profile: CostProfile, traces: Mapping[str, Trace], shapes: Mapping[str, dict[str, int]], warnings: list[str]
) -> int | None:
    """Layers of the profile's serial step, if it does not say: those of the trace of the same drafter."""
    layers = {shape["serial_layers"] for shape in shapes.values()}
    if profile.serial_layers is not None or len(layers) < 2:
        return None
    for name, shape in shapes.items():
        if traces[name].provenance.get("drafter") == profile.drafter:
            return shape["serial_layers"]
    warnings.append(
        f"the profile (drafter {profile.drafter!r}) does not say how many layers its serial step has, and no trace is "
        f"of that drafter: its time was taken for every number of layers ({', '.join(map(str, sorted(layers)))})"
    )
    return None


def _under(costs: HeadCosts, name: str, trace: Trace, shape: Mapping[str, int]) -> _Logged:
    """Put one trace under the profile."""
    complete, profile = trace.complete, costs.profile
    if not complete.any():
        raise InputError("trace", "no complete cycle", "at least one")
    serial = min(shape["serial_steps"], trace.depth)
    parallel = trace.depth - serial
    sizes, size = np.unique(np.stack([trace.drafted, trace.nodes])[:, complete], axis=1, return_inverse=True)
    seconds = np.array(
        [
            costs.draft_seconds(int(depth), serial, shape["serial_layers"], parallel)
            + profile.verify_at(int(nodes))
            + profile.other_seconds
            for depth, nodes in sizes.T
        ]
    )[size]
    prompts, prompt = np.unique(trace.prompt_id[complete].astype(str), return_inverse=True)
    nodes = trace.nodes[complete]
    structure = trace.provenance.get("structure")
    return _Logged(
        name=name,
        profile=profile,
        serial=serial,
        parallel=parallel,
        layers=shape["serial_layers"],
        nodes=int(nodes[0]) if (nodes == nodes[0]).all() else float(nodes.mean()),
        structure=structure if isinstance(structure, str) else None,
        prompts=tuple(prompts.tolist()),
        cycles=np.bincount(prompt).astype(np.float64),
        tokens=np.bincount(prompt, weights=trace.accepted[complete] + 1.0).astype(np.float64),
        seconds=np.bincount(prompt, weights=seconds).astype(np.float64),
    )


def _differences(traces: Mapping[str, Trace]) -> list[str]:
    """Say what else differs between traces than their heads."""
    notes = []
    for key in ("target", "temperature", "mode"):
        values = sorted({str(trace.provenance.get(key)) for trace in traces.values()})
        if len(values) > 1:
            notes.append(f"traces differ in {key}: {', '.join(values)}")
    notes += [f"{name} was cut short" for name, trace in traces.items() if trace.provenance.get("complete") is False]
    return notes


def _draws(
    logged: list[_Logged],
    prompts: tuple[str, ...],
    generator: np.random.Generator,
    n_resamples: int,
) -> tuple[FloatArray, FloatArray]:
    """Resampled tau and speed-up of each trace, [A, B]; nan where a resample holds none of its prompts."""
    place = {prompt: index for index, prompt in enumerate(prompts)}
    sums = np.zeros((3, len(logged), len(prompts)))
    for row, one in enumerate(logged):
        at = [place[prompt] for prompt in one.prompts]
        sums[:, row, at] = one.cycles, one.tokens, one.seconds
    parts, batch = [], max(1, _BATCH_CELLS // len(prompts))
    for start in range(0, n_resamples, batch):
        weights = resample_weights(len(prompts), min(batch, n_resamples - start), generator)
        parts.append(sums @ weights.T)
    cycles, tokens, seconds = np.concatenate(parts, axis=2)
    with np.errstate(invalid="ignore"):
        return tokens / cycles, np.array([[one.profile.baseline_seconds] for one in logged]) * tokens / seconds


def _row(one: _Logged, taus: FloatArray, speeds: FloatArray) -> Allocation:
    tau = float(one.tokens.sum() / one.cycles.sum())
    speedup = one.profile.baseline_seconds * float(one.tokens.sum() / one.seconds.sum())
    limits: tuple[float | None, ...] = (None, None, None, None)
    if len(one.prompts) > 1:
        factor = small_sample_factor(effective_prompts(one.cycles))
        low, high = (float(value) for value in stretch(np.array(tau), taus, factor))
        slow, fast = (float(value) for value in stretch(np.array(speedup), speeds, factor))
        # Stretching can pass what no speed-up falls below.
        slow = max(slow, speedup * 1e-6)
        widened = speedup_limits(speedup, speedup, slow, fast, one.profile.relative_error or 0.0)
        limits = (max(low, 1.0), high, *widened)
    lo, hi, speedup_lo, speedup_hi = limits
    seconds = float(one.seconds.sum() / one.cycles.sum())
    heads = (one.serial, one.parallel, one.layers, one.nodes)
    return Allocation(*heads, tau, lo, hi, seconds, speedup, speedup_lo, speedup_hi, one.structure, one.name)
