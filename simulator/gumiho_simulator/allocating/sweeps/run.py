"""Many forecasts over a grid of models, structures and profiles: in parallel, resumable, in one Parquet file."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gumiho_simulator.allocating.sweeps.file import COLUMNS, read_rows, write_rows
from gumiho_simulator.costs.speed import with_speed
from gumiho_simulator.forecasting.fitting import FitResult
from gumiho_simulator.forecasting.tau import Forecast, canonical, forecast
from gumiho_theory import CostProfile, InputError
from gumiho_theory.files import dumps_json, read_json

MOST_CELLS = 1_000_000
_MOST_NAMES = 10_000
_CHUNK = 16  # structures of one model that share its resamples
_WRITE_SECONDS = 10.0
_BEST = ("model", "structure", "profile", "tau", "speedup")

_Model = tuple[str, str, dict[str, Any]]
_Profile = _Model | tuple[None, None, None]


@dataclass(frozen=True)
class Grid:
    """What is to be forecast: every model with every structure, under every profile.

    Parameters
    ----------
    models
        Model files (see `gumiho fit`).
    structures
        Texts such as "chain:5".
    profiles
        Cost profiles; empty for forecasts of tau alone.

    Raises
    ------
    InputError
        No model or structure, an ill-formed structure, something named twice, or more than a million cells.
    """

    models: tuple[str, ...]
    structures: tuple[str, ...]
    profiles: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, least in (("models", 1), ("structures", 1), ("profiles", 0)):
            values = getattr(self, name)
            if not least <= len(values) <= _MOST_NAMES:
                raise InputError(name, f"{len(values)} values", f"{least} to {_MOST_NAMES}")
        object.__setattr__(self, "structures", tuple(canonical(text) for text in self.structures))
        for name in ("models", "structures", "profiles"):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise InputError(name, "something twice", "each once")
        if self.cells > MOST_CELLS:
            raise InputError("grid", f"{self.cells} cells", f"at most {MOST_CELLS}")

    @property
    def cells(self) -> int:
        """Number of forecasts."""
        return len(self.models) * len(self.structures) * max(1, len(self.profiles))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Grid:
        """Read a grid file: ``{"models": [FILE…], "structures": [TEXT…], "profiles": [FILE…]}``.

        Parameters
        ----------
        path
            JSON. Files that it names are found from its own folder; profiles may be left out.

        Returns
        -------
        Grid
            The grid, with paths from here.

        Raises
        ------
        InputError
            Names the file and what is wrong in it.
        """
        data, folder = read_json(path), Path(path).parent
        lists = {}
        for name in ("models", "structures", "profiles"):
            values = data.get(name, [] if name == "profiles" else None)
            if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
                raise InputError(f"{path}: {name}", repr(values), "a list of texts")
            lists[name] = values if name == "structures" else [str(folder / value) for value in values]
        unknown = sorted(set(data) - set(lists))
        if unknown:
            raise InputError(path, f"key {unknown[0]!r}", "models, structures and profiles")
        try:
            return cls(**{name: tuple(values) for name, values in lists.items()})
        except InputError as error:
            raise error.within(path) from None


@dataclass(frozen=True)
class Task:
    """Some structures of one model under all profiles: what one worker does at a time. Holds contents, not files.

    Parameters
    ----------
    model, model_sha256, content
        Name, hash and content of the model file.
    structures
        To forecast, with one set of resamples.
    profiles
        Name, hash and content of each profile; one of None without profiles.
    """

    model: str
    model_sha256: str
    content: dict[str, Any]
    structures: tuple[str, ...]
    profiles: tuple[_Profile, ...]


@dataclass(frozen=True)
class SweepResult:
    """What a sweep did.

    Parameters
    ----------
    rows
        All rows of the file, in the grid's order; rows of an earlier grid first.
    computed, reused
        Cells forecast now, and found in the file.
    cells
        Forecasts that the grid asks for.
    output
        The file.
    """

    rows: tuple[dict[str, Any], ...]
    computed: int
    reused: int
    cells: int
    output: str

    @property
    def best(self) -> dict[str, Any] | None:
        """The supported row of highest speed-up; None where no profile gives any."""
        fast = [row for row in self.rows if row.get("speedup") is not None and row["supported"]]
        return max(fast, key=lambda row: float(row["speedup"]), default=None)

    def to_json(self) -> dict[str, Any]:
        """Return what ``gumiho sweep --json`` prints: counts, rows refused, the best row's main columns, the file."""
        best = self.best
        return {
            "cells": self.cells,
            "computed": self.computed,
            "reused": self.reused,
            "without_tau": sum(row.get("tau") is None for row in self.rows),
            "best": None if best is None else {key: best[key] for key in _BEST},
            "output": self.output,
        }


def sweep(
    grid: Grid,
    output: str | os.PathLike[str],
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    resume: bool = False,
    progress: Callable[[int, int], object] = lambda done, cells: None,
) -> SweepResult:
    """Forecast every cell of a grid.

    Parameters
    ----------
    grid
        Models, structures, profiles.
    output
        Parquet file, one row a cell. It is written every ten seconds, at the end, and when the work is cut short, each
        time as a whole.
    jobs
        Processes on this machine.
    scheduler
        Address of a Dask scheduler whose workers do the work instead; they need this package, not the files.
    resume
        Keep the rows of `output` and compute what is missing. A row counts for a cell if model and profile had the same
        content; rows that the grid does not ask for stay.
    progress
        Called with the cells done and all cells.

    Returns
    -------
    SweepResult
        A cell that cannot be forecast has no tau, and the reason in its note.

    Raises
    ------
    InputError
        A model or profile that cannot be read, an output that cannot be written or, to resume, read, or a scheduler
        that does not answer.
    """
    if jobs < 1:
        raise InputError("jobs", jobs, "at least 1")
    models = [_content(name, FitResult.from_json) for name in grid.models]
    profiles: list[_Profile] = [_content(name, CostProfile.from_json) for name in grid.profiles]
    profiles = profiles or [(None, None, None)]
    for place, hashes in (("models", [one[1] for one in models]), ("profiles", [one[1] for one in profiles])):
        if len(set(hashes)) < len(hashes):
            raise InputError(place, "two files of the same content", "each once")
    found = {_key(row): row for row in (read_rows(output, MOST_CELLS) if resume and os.path.exists(output) else ())}
    order = {key: index for index, key in enumerate(_cells(models, grid.structures, profiles))}
    reused = len(order.keys() & found.keys())
    tasks = list(_tasks(models, grid.structures, tuple(profiles), found.keys()))

    def rows() -> tuple[dict[str, Any], ...]:
        return tuple(found[key] for key in sorted(found, key=lambda key: order.get(key, -1)))

    progress(reused, grid.cells)
    written = time.monotonic()
    before = len(found)
    try:
        for made in _local(tasks, jobs) if scheduler is None else _cluster(tasks, scheduler):
            found |= {_key(row): row for row in made}
            progress(reused + len(found) - before, grid.cells)
            if time.monotonic() - written > _WRITE_SECONDS:
                write_rows(output, rows())
                written = time.monotonic()
    finally:
        # Whatever ended the work: what is done is kept.
        if len(found) > before or not tasks:
            write_rows(output, rows())
    return SweepResult(rows(), len(found) - before, reused, grid.cells, os.fspath(output))


def run_task(task: Task) -> list[dict[str, Any]]:
    """Forecast the structures of a task: one row a structure and profile, with the keys `file.COLUMNS`."""
    fitted = FitResult.from_json(task.content, task.model)
    forecasts, notes = _forecasts(fitted, task.structures)
    rows: list[dict[str, Any]] = []
    for name, digest, content in task.profiles:
        costs = None if content is None else CostProfile.from_json(content)
        values = [*with_speed(forecasts, costs).rows]
        values += [{"structure": structure, "supported": False, "note": note} for structure, note in notes]
        heads = {"model": task.model, "model_sha256": task.model_sha256, "profile": name, "profile_sha256": digest}
        heads["acceptance"] = fitted.model.name
        rows += [{column: {**value, **heads}.get(column) for column in COLUMNS} for value in values]
    return rows


def _forecasts(fitted: FitResult, structures: tuple[str, ...]) -> tuple[list[Forecast], list[tuple[str, str]]]:
    """Forecast together; where one structure is refused with an error, each for itself."""
    try:
        return list(forecast(fitted, structures)), []
    except InputError as error:
        if len(structures) == 1:
            return [], [(structures[0], f"refused: {error}")]
    made = [_forecasts(fitted, (structure,)) for structure in structures]
    return [one for forecasts, _ in made for one in forecasts], [note for _, notes in made for note in notes]


def _content(name: str, check: Callable[[dict[str, Any]], object]) -> _Model:
    """Return name, hash and content of a JSON file that `check` takes."""
    data = read_json(name)
    try:
        check(data)
    except InputError as error:
        raise error if error.place.startswith(name) else error.within(name) from None
    return name, hashlib.sha256(dumps_json(name, data).encode()).hexdigest(), data


def _cells(
    models: Iterable[_Model], structures: Iterable[str], profiles: Iterable[_Profile]
) -> Iterator[tuple[Any, ...]]:
    for _, model_hash, _ in models:
        for structure in structures:
            for _, profile_hash, _ in profiles:
                yield model_hash, structure, profile_hash


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["model_sha256"], row["structure"], row["profile_sha256"]


def _tasks(
    models: Iterable[_Model],
    structures: tuple[str, ...],
    profiles: tuple[_Profile, ...],
    done: Iterable[tuple[Any, ...]],
) -> Iterator[Task]:
    finished = set(done)
    for model, digest, content in models:
        # Structures that lack the same profiles go together.
        missing: dict[tuple[Any, ...], list[str]] = {}
        for structure in structures:
            lacking = tuple(i for i, (_, which, _) in enumerate(profiles) if (digest, structure, which) not in finished)
            if lacking:
                missing.setdefault(lacking, []).append(structure)
        for lacking, names in missing.items():
            for start in range(0, len(names), _CHUNK):
                chunk = tuple(names[start : start + _CHUNK])
                yield Task(model, digest, content, chunk, tuple(profiles[i] for i in lacking))


def _local(tasks: list[Task], jobs: int) -> Iterator[list[dict[str, Any]]]:
    if jobs == 1:
        yield from map(run_task, tasks)
        return
    from joblib import Parallel, delayed

    yield from Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(run_task)(task) for task in tasks)


def _cluster(tasks: list[Task], address: str) -> Iterator[list[dict[str, Any]]]:
    try:
        from distributed import Client, as_completed
    except ModuleNotFoundError:
        raise InputError("Python package distributed", "none", "it installed (pip install 'gumiho[cluster]')") from None
    try:
        client = Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise InputError("--scheduler", address, f"the address of a running Dask scheduler ({error})") from None
    with client:
        futures = client.map(run_task, tasks, pure=False)
        for future in as_completed(futures):
            yield future.result()
