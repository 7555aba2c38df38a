"""What is asked of a bench, and the rows that it plans: every drafter, structure, calibration and temperature."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import torch

from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.draft import Drafter
from gumiho_decoder.embedded import CALIBRATIONS
from gumiho_decoder.logging.recorder import provenance
from gumiho_decoder.measuring.bench.contenders import Contender
from gumiho_decoder.measuring.bench.log import RowLog, digest, file_name
from gumiho_decoder.measuring.bench.rows import summed_up
from gumiho_decoder.measuring.pair import Request
from gumiho_decoder.measuring.prompts import Prompt
from gumiho_decoder.measuring.runs import encode
from gumiho_decoder.target import Target
from gumiho_theory import AutoStructure, DynamicTree, InputError, ScoreCalibration, Structure, Trace
from gumiho_theory.files import reason

SCHEMA = "gumiho.bench/1"
MOST_CALIBRATIONS = 256


@dataclass(frozen=True, kw_only=True)
class BenchRequest(Request):
    """What is asked of a bench: every drafter with every structure, at every temperature, on every prompt file.

    Attributes
    ----------
    drafters, prompts, structures : tuple of str
        As `load_drafter`, `read_prompts` and `Structure.parse` take them.
    first : int
        Rows also say tau over the cycles that start within so many new tokens.
    repeats : int
        Times that each output is made and timed.
    calibrations : Path or None
        Folder of score calibrations, `tiny` the embedded one: each belongs to the drafter whose fingerprint it names.
    output : Path or None
        Folder of the traces and the index.
    resume : bool
        Go on with what is in that folder.
    """

    drafters: tuple[str, ...]
    prompts: tuple[str, ...]
    structures: tuple[str, ...]
    temperatures: tuple[float, ...] = (0.0,)
    max_new_tokens: int = 128
    first: int = 32
    repeats: int = 1
    seed: int = 0
    calibrations: Path | None = None
    output: Path | None = None
    resume: bool = False

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
class PlannedRow:
    """A row to be.

    Attributes
    ----------
    head : dict
        What it is of.
    contender : Contender or None
        What is decoded; None where that cannot be.
    log : RowLog or None
        What has been measured.
    error : str or None
        Why nothing is.
    """

    head: dict[str, Any]
    contender: Contender | None = None
    log: RowLog | None = None
    error: str | None = None

    def result(self, first: int, number: int) -> tuple[dict[str, Any], bool]:
        """Return the row as JSON values, and whether all of its prompts, that many, are in it."""
        if self.log is None:
            nothing = summed_up(Trace.from_rows([]), [], first)
            return self.head | nothing | {"trace": None, "error": self.error}, True
        made = summed_up(self.log.trace(complete=False), self.log.turns, first)
        name = None if self.log.path is None else self.log.path.name
        return self.head | made | {"trace": name, "error": None}, made["n_prompts"] == number


def planned(
    request: BenchRequest,
    target: Target,
    drafters: Sequence[Drafter],
    structures: Sequence[Structure],
    calibrations: Mapping[str, ScoreCalibration],
    file: str,
    prompts: Sequence[Prompt],
) -> list[PlannedRow]:
    """Return the rows of one prompt file."""
    for prompt in prompts:
        encode(target, prompt, [])
    texts = digest([asdict(prompt) for prompt in prompts])
    short = {drafter: _refusal(target, drafter, prompts) for drafter in drafters}
    rows = []
    for temperature, drafter, structure in product(request.temperatures, drafters, structures):
        own = calibrations.get(drafter.fingerprint)
        for calibration in [None, own] if own is not None and isinstance(structure, DynamicTree) else [None]:
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
                rows.append(PlannedRow(head, error=str(error)))
            else:
                contender = Contender(drafter, asked)
                rows.append(PlannedRow(head, contender, _log(request, target, contender, file, texts)))
    return rows


def _refusal(target: Target, drafter: Drafter, prompts: Sequence[Prompt]) -> InputError | None:
    """Return why the drafter cannot read the prompts, if it cannot."""
    try:
        for prompt in prompts:
            encode(target, prompt, [], drafter)
    except InputError as error:
        return error
    return None


def _log(request: BenchRequest, target: Target, contender: Contender, file: str, texts: str) -> RowLog:
    generation = contender.generation
    facts = provenance(target, contender.drafter, generation) | {"prompts": file, "repeats": request.repeats}
    # Neither the words of the command nor the commit: the same outputs may be asked for in others.
    depends = {name: value for name, value in facts.items() if name not in ("arguments", "commit")}
    calibration = None if generation.calibration is None else generation.calibration.to_json()
    key = digest(SCHEMA, depends, target.config.to_dict(), generation.structure.to_json(), calibration, texts)
    words = [contender.drafter.name, str(generation.structure), *(["calibrated"] if calibration else [])]
    words += [f"t{generation.temperature:g}", Path(file).stem]
    return RowLog(facts, key, None if request.output is None else request.output / file_name(words, key))


def read_calibrations(folder: Path, drafters: Sequence[Drafter]) -> dict[str, ScoreCalibration]:
    """Return the calibrations in a folder (each `*.json` there) that belong to these drafters, by fingerprint.

    Raises InputError: None is there, one cannot be read, or two are of the same drafter.
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
