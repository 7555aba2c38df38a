"""What `gumiho bench` does: plan the rows, measure prompt by prompt, keep what is measured whatever happens, sum up."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.draft import Drafter
from gumiho_decoder.drafters.load import load_drafter
from gumiho_decoder.embedded import CALIBRATIONS
from gumiho_decoder.logging.recorder import environment, provenance
from gumiho_decoder.measuring.bench.cells import Cell, measure, warm_up
from gumiho_decoder.measuring.bench.log import BenchLog, digest, file_name
from gumiho_decoder.measuring.bench.rows import summed_up
from gumiho_decoder.measuring.decode import calibration_note
from gumiho_decoder.measuring.outputs import make_folder
from gumiho_decoder.measuring.progress import progress
from gumiho_decoder.measuring.prompts import Prompt, read_prompts
from gumiho_decoder.measuring.runs import encode
from gumiho_decoder.measuring.speed import busy
from gumiho_decoder.target import Target, check_device, load_target
from gumiho_theory import AutoStructure, DynamicTree, InputError, ScoreCalibration, Structure, Trace
from gumiho_theory.files import reason, write_json

SCHEMA = "gumiho.bench/1"
INDEX = "index.json"
MOST_CALIBRATIONS = 256
SAVE_SECONDS = 60.0


@dataclass(frozen=True)
class BenchRequest:
    """What is asked for on the command line, as typed; see `GenerationConfig` for the settings' meaning.

    Attributes
    ----------
    calibrations : Path or None
        Folder of score calibrations, `tiny` the embedded one: each belongs to the drafter whose fingerprint it names.
    output : Path or None
        Folder of the traces and the index.
    """

    target: str
    drafters: tuple[str, ...]
    prompts: tuple[str, ...]
    structures: tuple[str, ...]
    temperatures: tuple[float, ...]
    limit: int | None = None
    max_new_tokens: int = 128
    first: int = 32
    repeats: int = 1
    seed: int = 0
    calibrations: Path | None = None
    output: Path | None = None
    resume: bool = False
    dtype: str = "float32"
    device: str = "cpu"

    def parsed(self) -> list[Structure]:
        """Return the structures, read and checked, and check that nothing is asked for twice.

        Raises
        ------
        InputError
            Nothing, or the same twice; `auto`; a calibration without a tree; a place to resume from that is none.
        """
        structures = [Structure.parse(text) for text in self.structures]
        named = [str(structure) for structure in structures]
        for place, values in (
            ("--drafters", self.drafters),
            ("--prompts", self.prompts),
            ("--structures", named),
            ("--temperatures", self.temperatures),
        ):
            if not values or len(set(values)) < len(values):
                raise InputError(place, ", ".join(map(str, values)) or "nothing", "at least one, each once")
        if any(isinstance(structure, AutoStructure) for structure in structures):
            raise InputError("--structures", "'auto'", "structures by name: they are what is compared")
        if self.calibrations is not None and not any(isinstance(s, DynamicTree) for s in structures):
            raise InputError("--calibrations", ", ".join(named), "a dynamic tree, whose nodes they choose")
        if self.resume and self.output is None:
            raise InputError("--resume", "no --output", "the folder of the earlier run")
        return structures


@dataclass(frozen=True)
class Row:
    """A row to be.

    Attributes
    ----------
    head : dict
        What it is of.
    cell : Cell or None
        What is decoded; None where that cannot be.
    log : BenchLog or None
        What has been measured.
    error : str or None
        Why nothing is.
    """

    head: dict[str, Any]
    cell: Cell | None = None
    log: BenchLog | None = None
    error: str | None = None

    def result(self, first: int, number: int) -> tuple[dict[str, Any], bool]:
        """Return the row as JSON values, and whether all of its prompts, that many, are in it."""
        if self.log is None:
            nothing = summed_up(Trace.from_rows([]), [], first)
            return self.head | nothing | {"trace": None, "error": self.error}, True
        made = summed_up(self.log.trace(complete=False), self.log.turns, first)
        name = None if self.log.path is None else self.log.path.name
        return self.head | made | {"trace": name, "error": None}, made["n_prompts"] == number


Plan = list[tuple[list[Prompt], list[Row]]]


@dataclass(frozen=True)
class BenchResult:
    """What a bench measured.

    Attributes
    ----------
    rows : list of dict
        One a combination: target, drafter, structure, tau, speedup, …
    busy : str or None
        What to say where other work ran beside it.
    """

    rows: list[dict[str, Any]]
    busy: str | None

    @property
    def different(self) -> int:
        """Greedy outputs that differ from plain decoding, over all rows."""
        return sum(row["lossless"]["different"] for row in self.rows if row["lossless"])

    def to_json(self) -> dict[str, Any]:
        """Return what `gumiho bench --json` prints."""
        return {"rows": self.rows, "busy": self.busy}


def run_bench(request: BenchRequest) -> BenchResult:
    """Measure every combination; see `gumiho bench`.

    Raises
    ------
    InputError
        Anything that is wrong with the request, found before decoding. A drafter that cannot make a structure, or has
        fewer positions than a prompt, makes a row that says so.
    """
    structures = request.parsed()
    if request.output is not None:
        _prepare(request.output, resume=request.resume)
    prompts = [read_prompts(file, request.limit) for file in request.prompts]
    check_device(request.device, request.dtype)
    target = load_target(request.target, request.device, request.dtype)
    drafters = [load_drafter(name, target) for name in request.drafters]
    calibrations = {} if request.calibrations is None else read_calibrations(request.calibrations, drafters)
    used = [calibrations[one.fingerprint] for one in drafters if one.fingerprint in calibrations]
    for note in filter(None, (calibration_note(one, at) for one in used for at in request.temperatures)):
        print(note, file=sys.stderr)
    plan = [
        (few, _rows(request, target, drafters, structures, calibrations, file, few))
        for file, few in zip(request.prompts, prompts, strict=True)
    ]
    logs = [row.log for _, rows in plan for row in rows if row.log is not None]
    if request.resume:
        for log in logs:
            log.take_up()
        _say_left_out(request.output, logs)
    if warning := busy():
        print(warning, file=sys.stderr)
    facts = {"schema": SCHEMA, "environment": environment(target.device, target.dtype), "busy": warning}
    facts |= {"request": {name: str(v) if isinstance(v, Path) else v for name, v in asdict(request).items()}}

    def keep() -> list[dict[str, Any]]:
        results = [row.result(request.first, len(few)) for few, rows in plan for row in rows]
        rows = [values for values, _ in results]
        if request.output is not None:
            complete = all(done for _, done in results)
            write_json(request.output / INDEX, facts | {"complete": complete, "rows": rows})
        return rows

    keep()
    try:
        _measure(target, plan, request.repeats)
    except BaseException:
        for log in logs:
            log.write(complete=False)
        keep()
        if request.output is not None:
            print(f"stopped early: go on with --resume from {request.output}", file=sys.stderr)
        raise
    return BenchResult(keep(), warning)


def _prepare(folder: Path, *, resume: bool) -> None:
    there = make_folder(folder)
    if there and not resume:
        raise InputError(str(folder), ", ".join(there[:5]), "an empty or a new folder, or --resume")
    if there and INDEX not in there:
        raise InputError(str(folder), f"no {INDEX}", "the folder of an earlier bench, or an empty one")


def _say_left_out(folder: Path, logs: Sequence[BenchLog]) -> None:
    """Say which traces in the folder are of other combinations: they stay, but the index will not name them."""
    own = {log.path for log in logs}
    if others := sorted(path.name for path in folder.glob("*.parquet") if path not in own):
        few = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
        print(
            f"note: {INDEX} will name what is asked for now; {len(others)} other trace(s) stay beside: {few}",
            file=sys.stderr,
        )


def read_calibrations(folder: Path, drafters: Sequence[Drafter]) -> dict[str, ScoreCalibration]:
    """Return the calibrations in a folder (each `*.json` there) that belong to these drafters, by fingerprint.

    Raises
    ------
    InputError
        None is there, one cannot be read, or two are of the same drafter.
    """
    folder = CALIBRATIONS if str(folder) == "tiny" else folder
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".json")
    except OSError as error:
        raise InputError(str(folder), reason(error), "a folder of calibrations") from error
    if not 1 <= len(paths) <= MOST_CALIBRATIONS:
        raise InputError(f"{folder}, *.json", f"{len(paths)} files", f"1 to {MOST_CALIBRATIONS} calibrations")
    found: dict[str, ScoreCalibration] = {}
    for path in paths:
        made = ScoreCalibration.read(path)
        if found.setdefault(made.fingerprint, made) is not made:
            raise InputError(path, f"a second calibration of drafter {made.drafter!r}", "one a drafter")
    for drafter in drafters:
        if drafter.fingerprint not in found:
            print(f"note: no calibration in {folder} is of drafter {drafter.name!r}", file=sys.stderr)
    return found


def _rows(
    request: BenchRequest,
    target: Target,
    drafters: Sequence[Drafter],
    structures: Sequence[Structure],
    calibrations: Mapping[str, ScoreCalibration],
    file: str,
    prompts: Sequence[Prompt],
) -> list[Row]:
    """Return the rows of one prompt file."""
    for prompt in prompts:
        encode(target, prompt, [])
    texts = digest([asdict(prompt) for prompt in prompts])
    short = {drafter: _refusal(target, drafter, prompts) for drafter in drafters}
    rows = []
    for temperature in request.temperatures:
        for drafter in drafters:
            fitting = [None, calibrations.get(drafter.fingerprint)]
            for structure in structures:
                for calibration in fitting if isinstance(structure, DynamicTree) and fitting[1] else [None]:
                    head = {"target": target.name, "drafter": drafter.name, "method": drafter.method}
                    head |= {"structure": str(structure), "calibrated": calibration is not None}
                    head |= {"prompts": file, "temperature": temperature}
                    asked = GenerationConfig(
                        request.max_new_tokens, structure, temperature, seed=request.seed, calibration=calibration
                    )
                    try:
                        drafter.check(structure, asked.options(torch.Generator()))
                        if short[drafter] is not None:
                            raise short[drafter]
                    except InputError as error:
                        rows.append(Row(head, error=str(error)))
                        continue
                    log = _log(request, target, Cell(drafter, asked), file, texts)
                    rows.append(Row(head, Cell(drafter, asked), log))
    return rows


def _refusal(target: Target, drafter: Drafter, prompts: Sequence[Prompt]) -> InputError | None:
    """Return why the drafter cannot read the prompts, if it cannot."""
    try:
        for prompt in prompts:
            encode(target, prompt, [], drafter)
    except InputError as error:
        return error
    return None


def _log(request: BenchRequest, target: Target, cell: Cell, file: str, texts: str) -> BenchLog:
    generation = cell.generation
    facts = provenance(target, cell.drafter, generation) | {"prompts": file, "repeats": request.repeats}
    # Neither the words of the command nor the commit: the same outputs may be asked for in others.
    depends = {name: value for name, value in facts.items() if name not in ("arguments", "commit")}
    calibration = None if generation.calibration is None else generation.calibration.to_json()
    key = digest(SCHEMA, depends, target.config.to_dict(), generation.structure.to_json(), calibration, texts)
    words = [cell.drafter.name, str(generation.structure), *(["calibrated"] if calibration else [])]
    words += [f"t{generation.temperature:g}", Path(file).stem]
    return BenchLog(facts, key, None if request.output is None else request.output / file_name(words, key))


def _measure(target: Target, plan: Plan, repeats: int) -> None:
    """Decode what is not there yet, and write the logs: each minute, and when a prompt file is done."""
    written = time.monotonic()
    with progress(sum(len(prompts) for prompts, _ in plan), "prompts, each by every row") as advance:
        for prompts, rows in plan:
            able = {row.cell: row.log for row in rows if row.cell is not None and row.log is not None}
            done = {cell: log.prompts for cell, log in able.items()}
            cold = True
            for index, prompt in enumerate(prompts):
                cells = [cell for cell in able if prompt.prompt_id not in done[cell]]
                if cells:
                    if cold:
                        warm_up(target, prompt, cells)
                        cold = False
                    for cell, (trace, turns) in measure(target, prompt, index, cells, repeats).items():
                        able[cell].add(trace, turns)
                    if time.monotonic() - written > SAVE_SECONDS:
                        for log in able.values():
                            log.write(complete=False)
                        written = time.monotonic()
                advance()
            for log in able.values():
                log.write(complete=True)
