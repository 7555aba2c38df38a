"""What `gumiho decode` does: load a pair, decode a prompt file, write the logs whatever happens, sum up."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.draft import Drafter
from gumiho_decoder.logging.every_position import Log
from gumiho_decoder.logging.recorder import Recorder, provenance
from gumiho_decoder.measuring.auto import PILOT_PROMPTS, choose
from gumiho_decoder.measuring.machine import busy
from gumiho_decoder.measuring.outputs import PARQUET, check_place
from gumiho_decoder.measuring.pair import Request, load_pair
from gumiho_decoder.measuring.progress import progress
from gumiho_decoder.measuring.prompts import Prompt, read_prompts, spread
from gumiho_decoder.measuring.runs import Output, RunConfig, encode, run
from gumiho_decoder.measuring.summary import summarize
from gumiho_decoder.target import Target
from gumiho_theory import AutoStructure, InputError, ScoreCalibration, Structure, Trace


@dataclass(frozen=True, kw_only=True)
class DecodeRequest(Request):
    """A prompt file to decode, and what to write and to measure beside it.

    Attributes
    ----------
    prompts, drafter : str
        As `read_prompts` and `load_drafter` take them.
    generation : GenerationConfig
        How; its structure may be `auto`.
    trace, every_position : Path or None
        Where the cycle trace and the every-position log are to be written.
    log_structures : tuple of Structure
        Whose accepted lengths that log holds; the decoded one unless given.
    log_top_k : int
        Draft candidates at each depth in that log.
    check, baseline : bool
        Compare each output with plain decoding, and time that; only time it.
    """

    prompts: str
    drafter: str = "tiny:gumiho"
    generation: GenerationConfig = field(default_factory=GenerationConfig)
    trace: Path | None = None
    every_position: Path | None = None
    log_structures: tuple[Structure, ...] = ()
    log_top_k: int = 10
    check: bool = False
    baseline: bool = False


@dataclass(frozen=True)
class DecodeResult:
    """Outputs, their trace, and the numbers that sum them up.

    Attributes
    ----------
    summary : dict
        What `gumiho decode --json` prints, less the outputs.
    """

    outputs: list[Output]
    trace: Trace
    summary: dict[str, Any]

    @property
    def different(self) -> bool:
        """Whether a mode that promises the target's own output gave another one."""
        return self.summary["lossless_mode"] and self.summary["lossless"]["different"] > 0

    def to_json(self, *, outputs: bool = False) -> dict[str, Any]:
        """Return what `gumiho decode --json` prints, with the `outputs` where asked to."""
        if not outputs:
            return self.summary
        written = [
            {
                "prompt_id": o.prompt_id,
                "turn": o.turn,
                "token_ids": list(o.speculative.token_ids),
                "text": o.text,
                "stop_reason": o.speculative.stop_reason,
            }
            for o in self.outputs
        ]
        return {**self.summary, "outputs": written}


def decode_prompts(request: DecodeRequest) -> DecodeResult:
    """Decode a prompt file: what `gumiho decode` does.

    Raises
    ------
    InputError
        Anything that is wrong with the request, found before decoding as far as it can be.
    """
    _check(request)
    prompts = read_prompts(request.prompts, request.limit)
    target, drafter = load_pair(request.target, request.drafter, request.dtype, request.device)
    generation = ready(target, drafter, prompts, request.generation)
    log = None
    if request.every_position is not None:
        if request.log_top_k > target.vocab_size:
            raise InputError("--log-top-k", request.log_top_k, f"at most {target.vocab_size}, the tokens")
        log = Log(drafter, generation, request.log_structures or (generation.structure,), request.log_top_k)
    config = RunConfig(request.baseline, request.check)
    if (config.plain or config.check) and (warning := busy()):
        print(warning, file=sys.stderr)
    outputs, trace = decode(target, drafter, prompts, generation, config, request.trace, log, request.every_position)
    summary = {
        "tau": trace.tau(),
        "tau_convention": "micro, bonus included, complete cycles",
        "cycles": trace.n_cycles,
        "structure": str(generation.structure),
        "mean_nodes": float(trace.nodes.mean()) if trace.n_cycles else None,
        "mode": generation.mode,
        "lossless_mode": generation.lossless,
        **summarize(outputs),
    }
    return DecodeResult(outputs, trace, summary)


def _check(request: DecodeRequest) -> None:
    taken = [] if request.prompts == "-" else [Path(request.prompts)]
    for name, path in (("the trace", request.trace), ("the every-position log", request.every_position)):
        if path is not None:
            check_place(path, PARQUET, taken, name)
            taken.append(path)
    if request.check and not request.generation.warp.greedy:
        found, wanted = f"temperature {request.generation.temperature}", "temperature 0"
        raise InputError("--check-lossless", found, f"{wanted}: a sampled text has no single right one to compare with")
    if any(isinstance(structure, AutoStructure) for structure in request.log_structures):
        raise InputError("--log-structure", "'auto'", "structures by name: auto is chosen for decoding")


def ready(
    target: Target, drafter: Drafter, prompts: Sequence[Prompt], generation: GenerationConfig
) -> GenerationConfig:
    """Return the settings with a structure chosen where it is `auto`, once for all prompts; all of them checked.

    What speaks against a calibration, a choice or a cost profile is said on stderr.

    Raises InputError: The drafter cannot make the structure, or the calibration is another drafter's.
    """
    notes = []
    if generation.calibration is not None:  # `generate` says so too, but only after `auto` has measured
        generation.calibration.check_drafter(drafter.fingerprint)
        notes.append(calibration_note(generation.calibration, generation.temperature))
    if generation.budget is not None:
        measured = generation.budget.target, generation.budget.drafter
        if measured != (target.name, drafter.name):
            notes.append(f"note: the cost profile was measured for {' and '.join(measured)}")
    for note in filter(None, notes):
        print(note, file=sys.stderr)
    if isinstance(generation.structure, AutoStructure):
        few = [encode(target, prompt, []) for prompt in spread(prompts, PILOT_PROMPTS)]
        choice = choose(target, drafter, few, generation)
        print(choice, file=sys.stderr)
        generation = replace(generation, structure=choice.structure)
    drafter.check(generation.structure, generation.options(torch.Generator()))
    return generation


def calibration_note(calibration: ScoreCalibration, temperature: float) -> str | None:
    """Return what to say where a calibration was fitted at another temperature than is decoded at; None: nothing."""
    fitted = calibration.provenance.get("temperature")
    if not isinstance(fitted, int | float) or fitted == temperature:
        return None  # it does not say, or says nothing against it
    return (
        f"note: the calibration of {calibration.drafter!r} was fitted at temperature {fitted:g}: at {temperature:g} "
        "its probabilities, and the trees chosen by them, may be worse than the drafter's own"
    )


def decode(
    target: Target,
    drafter: Drafter,
    prompts: Sequence[Prompt],
    generation: GenerationConfig,
    config: RunConfig,
    trace_path: Path | None,
    log: Log | None = None,
    log_path: Path | None = None,
) -> tuple[list[Output], Trace]:
    """Decode with a progress bar on stderr. When it is cut short, the cycles so far are written all the same."""
    recorder, made_with = Recorder(), provenance(target, drafter, generation)

    def write(complete: bool) -> Trace:
        facts = made_with | {"complete": complete}
        trace = recorder.trace(facts)
        if trace_path is not None:
            trace.write(trace_path)
        if log is not None and log_path is not None:
            log.made(facts).write(log_path)
        return trace

    try:
        with progress(sum(len(p.turns) for p in prompts)) as advance:
            outputs = run(target, drafter, prompts, generation, config, recorder, lambda _: advance(), log)
    except BaseException:
        if recorder:
            write(complete=False)
            places = " and ".join(str(path) for path in (trace_path, log_path) if path is not None)
            if places:
                print(f"stopped early: the cycles so far are in {places}", file=sys.stderr)
        raise
    return outputs, write(complete=True)
