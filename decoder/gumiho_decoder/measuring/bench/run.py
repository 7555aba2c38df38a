"""What `gumiho bench` does: measure the planned rows prompt by prompt, keep what is measured whatever happens."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gumiho_decoder.drafters.load import load_drafter
from gumiho_decoder.logging.recorder import environment
from gumiho_decoder.measuring.bench.contenders import measure_prompt, warm_up
from gumiho_decoder.measuring.bench.log import RowLog
from gumiho_decoder.measuring.bench.plan import SCHEMA, BenchRequest, PlannedRow, planned, read_calibrations
from gumiho_decoder.measuring.decode import calibration_note
from gumiho_decoder.measuring.machine import busy
from gumiho_decoder.measuring.outputs import make_folder
from gumiho_decoder.measuring.progress import progress
from gumiho_decoder.measuring.prompts import Prompt, read_prompts
from gumiho_decoder.target import Target, check_device, load_target
from gumiho_theory import InputError
from gumiho_theory.files import write_json

INDEX = "index.json"
SAVE_SECONDS = 60.0

Plan = list[tuple[list[Prompt], list[PlannedRow]]]


@dataclass(frozen=True)
class BenchResult:
    """What a bench has measured.

    Attributes
    ----------
    rows : list of dict
        One a drafter, structure, calibration, temperature and prompt file; see `rows.summed_up`.
    busy : str or None
        A warning where other work took the machine's cores.
    """

    rows: list[dict[str, Any]]
    busy: str | None

    @property
    def different(self) -> bool:
        """Whether some output was not the target's own."""
        return any(row["lossless"] and row["lossless"]["different"] for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """Return what `gumiho bench --json` prints."""
        return {"rows": self.rows, "busy": self.busy}


def run_bench(request: BenchRequest) -> BenchResult:
    """Measure every combination: what `gumiho bench` does.

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
        (few, planned(request, target, drafters, structures, calibrations, file, few))
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


def _say_left_out(folder: Path, logs: Sequence[RowLog]) -> None:
    """Say which traces in the folder are of other combinations: they stay, but the index will not name them."""
    own = {log.path for log in logs}
    if others := sorted(path.name for path in folder.glob("*.parquet") if path not in own):
        few = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
        print(
            f"note: {INDEX} will name what is asked for now; {len(others)} other trace(s) stay beside: {few}",
            file=sys.stderr,
        )


def _measure(target: Target, plan: Plan, repeats: int) -> None:
    """Decode what is not there yet, and write the logs: each minute, and when a prompt file is done."""
    written = time.monotonic()
    with progress(sum(len(prompts) for prompts, _ in plan), "prompts, each by every row") as advance:
        for prompts, rows in plan:
            able = {row.contender: row.log for row in rows if row.contender is not None and row.log is not None}
            done = {contender: log.prompts for contender, log in able.items()}
            cold = True
            for index, prompt in enumerate(prompts):
                contenders = [contender for contender in able if prompt.prompt_id not in done[contender]]
                if contenders:
                    if cold:
                        warm_up(target, prompt, contenders)
                        cold = False
                    for contender, (trace, turns) in measure_prompt(target, prompt, index, contenders, repeats).items():
                        able[contender].add(trace, turns)
                    if time.monotonic() - written > SAVE_SECONDS:
                        for log in able.values():
                            log.write(complete=False)
                        written = time.monotonic()
                advance()
            for log in able.values():
                log.write(complete=True)
