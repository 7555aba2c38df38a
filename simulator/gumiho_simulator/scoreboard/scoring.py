"""The scoreboard: how far forecasts are off, over logs, cycle traces and published curves, on prompts never fitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from gumiho_simulator.forecasting.tau import CONVENTION, canonical
from gumiho_simulator.scoreboard.rows import ScoreRow, ScoreSummary, summarise
from gumiho_simulator.scoreboard.sources import FIT_LENGTH, HOLDOUT, score_log, score_published, score_traces
from gumiho_theory import ChainStructure, EveryPositionLog, InputError, Trace

Progress = Callable[[str, int], object]


@dataclass(frozen=True)
class Scoreboard:
    """All forecasts, their summaries, and the files and parts of files that were left out, each with the reason."""

    rows: tuple[ScoreRow, ...]
    summaries: tuple[ScoreSummary, ...]
    skipped: tuple[str, ...]
    seeds: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain values: convention, seeds, holdout, rows, summaries (lists of dicts, a key a field), skipped."""
        return {
            "convention": f"tau: {CONVENTION}, over complete cycles; errors relative to the measured tau",
            "seeds": list(self.seeds),
            "holdout": HOLDOUT,
            "rows": [row.to_json() for row in self.rows],
            "summaries": [one.to_json() for one in self.summaries],
            "skipped": list(self.skipped),
        }


def scoreboard(
    logs: Mapping[str, EveryPositionLog],
    traces: Mapping[str, Trace],
    seeds: Sequence[int] = (0, 1, 2, 3, 4),
    published: bool = True,
    progress: Progress | None = None,
    skipped: Sequence[str] = (),
) -> Scoreboard:
    """Score every forecast that the logs and traces, by name, allow on prompts that it was not fitted to.

    Parameters
    ----------
    seeds
        One split of the prompts a seed.
    published
        Whether to score the published curves too.
    progress
        Called before each piece of work with a few words and the number of pieces in all.
    skipped
        What was left out before, to stand beside what is left out here.

    Returns
    -------
    Scoreboard
        tau: bonus included, micro, over complete cycles.

    Raises
    ------
    InputError
        Nothing at all could be scored; names each reason.
    """
    groups, unusable = _group(traces)
    pieces = (len(logs) + len(groups)) * len(seeds) + published
    tell = progress or (lambda words, pieces: None)
    rows: list[ScoreRow] = []
    left_out = list(skipped)

    def score(name: str, work: Callable[[int], tuple[list[ScoreRow], list[str]]]) -> None:
        for seed in seeds:
            tell(f"{name}, split {seed}", pieces)
            try:
                made, notes = work(seed)
            except InputError as error:
                left_out.append(f"{name}: {error}")
                return
            rows.extend(made)
            left_out.extend(note for note in (f"{name}: {note}" for note in notes) if note not in left_out)

    for name, log in logs.items():
        score(name, partial(score_log, name, log))
    left_out += unusable
    for name, group in groups.items():
        score(name, partial(score_traces, name, group))
    if published:
        tell("published curves", pieces)
        rows += score_published()
    if not rows:
        raise InputError("scoreboard", "; ".join(left_out) or "no log", "at least one log or trace of four prompts")
    return Scoreboard(tuple(rows), summarise(rows), tuple(left_out), tuple(seeds))


def _group(traces: Mapping[str, Trace]) -> tuple[dict[str, dict[str, Trace]], list[str]]:
    """Group traces of one drafter on the same prompts: chain:3 first, to be fitted; without it each alone."""
    groups: dict[tuple[Any, ...], dict[str, tuple[str, Trace]]] = {}
    skipped: list[str] = []
    for name, trace in traces.items():
        logged = trace.provenance.get("structure")
        structure = canonical(logged) if isinstance(logged, str) else str(ChainStructure(trace.depth))
        facts = [trace.provenance.get(key) for key in ("target", "drafter", "drafter_fingerprint", "temperature")]
        group = groups.setdefault((*map(repr, facts), frozenset(trace.prompts)), {})
        if structure in group:
            skipped.append(f"{name}: {structure} on these prompts is in {group[structure][0]} already")
            continue
        group[structure] = name, trace
    made: dict[str, dict[str, Trace]] = {}
    source = f"chain:{FIT_LENGTH}"
    for found in groups.values():
        if source in found and len(found) > 1:
            order = [source, *(structure for structure in found if structure != source)]
            made[found[source][0]] = {structure: found[structure][1] for structure in order}
        else:
            made |= {name: {structure: trace} for structure, (name, trace) in found.items()}
    return made, skipped
