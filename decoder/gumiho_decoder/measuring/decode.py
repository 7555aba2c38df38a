"""What `gumiho decode` does: load, decode with a progress bar, write the logs whatever happens, sum up."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.draft import Drafter
from gumiho_decoder.embedded import calibration_path
from gumiho_decoder.logging.every_position import EveryPositionRequest
from gumiho_decoder.logging.recorder import Recorder, provenance
from gumiho_decoder.measuring.outputs import check_output
from gumiho_decoder.measuring.pair import load_pair
from gumiho_decoder.measuring.progress import progress
from gumiho_decoder.measuring.prompts import Prompt, read_prompts, spread
from gumiho_decoder.measuring.runs import Output, RunConfig, encode, run, summary
from gumiho_decoder.measuring.speed import busy
from gumiho_decoder.target import Target
from gumiho_theory import AutoStructure, CostProfile, InputError, ScoreCalibration, Structure, Trace


@dataclass(frozen=True)
class DecodeRequest:
    """What is asked for on the command line, as typed; see `GenerationConfig` for the settings' meaning."""

    prompts: str
    target: str = "tiny"
    drafter: str = "tiny:gumiho"
    limit: int | None = None
    dtype: str = "float32"
    device: str = "cpu"
    structure: str = "chain:7"
    settings: dict[str, Any] = field(default_factory=dict)
    calibration: Path | None = None
    budget: Path | None = None
    trace: Path | None = None
    every_position: Path | None = None
    log_structures: tuple[str, ...] = ()
    log_top_k: int = 10
    check: bool = False
    baseline: bool = False

    def generation(self) -> GenerationConfig:
        """Return the settings of an output, read and checked.

        Raises
        ------
        InputError
            One that is out of range, or two that do not go together.
        """
        made = GenerationConfig(
            structure=Structure.parse(self.structure),
            calibration=None if self.calibration is None else ScoreCalibration.read(calibration_path(self.calibration)),
            budget=None if self.budget is None else CostProfile.read(self.budget),
            **self.settings,
        )
        if self.check and not made.warp.greedy:
            raise InputError(
                "--check-lossless",
                f"temperature {made.temperature}",
                "temperature 0: a sampled text has no single right one to compare with",
            )
        return made


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
    def different(self) -> int:
        """Prompts whose output differs from plain decoding although the mode is lossless: 0, or a bug."""
        return self.summary["lossless"]["different"] if self.summary["lossless_mode"] else 0

    def written(self) -> list[dict[str, Any]]:
        """Return what was written, one dict an output."""
        return [
            {
                "prompt_id": o.prompt_id,
                "turn": o.turn,
                "token_ids": list(o.speculative.token_ids),
                "text": o.text,
                "stop_reason": o.speculative.stop_reason,
            }
            for o in self.outputs
        ]

    def to_json(self, *, outputs: bool = False) -> dict[str, Any]:
        """Return what `gumiho decode --json` prints, with what was written if asked for."""
        return self.summary | ({"outputs": self.written()} if outputs else {})


def decode_prompts(request: DecodeRequest) -> DecodeResult:
    """Decode a prompt file; see `gumiho decode`.

    Raises
    ------
    InputError
        Anything that is wrong with the request, found before decoding as far as it can be.
    """
    places: dict[Path, str] = {}
    if request.prompts != "-":
        places[Path(request.prompts).resolve()] = "the prompts"
    for name, path in (("the trace", request.trace), ("the every-position log", request.every_position)):
        if path is not None:
            if (other := places.setdefault(path.resolve(), name)) != name:
                raise InputError(f"{name}, {path}", f"the place of {other}", "a file of its own")
            check_output(path)
    generation = request.generation()
    structures = tuple(Structure.parse(text) for text in request.log_structures)
    if any(isinstance(structure, AutoStructure) for structure in structures):
        raise InputError("--log-structure", "'auto'", "structures by name: auto is chosen for decoding")
    prompts = read_prompts(request.prompts, request.limit)
    target, drafter = load_pair(request.target, request.drafter, request.dtype, request.device)
    generation = settled(target, drafter, prompts, generation)
    log = None
    if request.every_position is not None:
        log = EveryPositionRequest(request.every_position, structures or (generation.structure,), request.log_top_k)
        if request.log_top_k > target.vocab_size:
            raise InputError("--log-top-k", request.log_top_k, f"at most {target.vocab_size}, the tokens")
    config = RunConfig(request.baseline, request.check, every_position=log)
    if (config.plain or config.check) and (warning := busy()):
        print(warning, file=sys.stderr)
    outputs, trace = decode(target, drafter, prompts, generation, config, request.trace)
    head = {
        "tau": trace.tau(),
        "tau_convention": "micro, bonus included, complete cycles",
        "cycles": trace.n_cycles,
        "structure": str(generation.structure),
        "mean_nodes": float(trace.nodes.mean()) if trace.n_cycles else None,
        "mode": generation.mode,
        "lossless_mode": generation.lossless,
    }
    return DecodeResult(outputs, trace, head | summary(outputs))


def calibration_note(calibration: ScoreCalibration, temperature: float) -> str | None:
    """Return what to say where a calibration was fitted at another temperature than is decoded at; None: nothing."""
    fitted = calibration.provenance.get("temperature")
    if not isinstance(fitted, int | float) or fitted == temperature:
        return None  # it does not say, or says nothing against it
    return (
        f"note: the calibration of {calibration.drafter!r} was fitted at temperature {fitted:g}: at {temperature:g} "
        "its probabilities, and the trees chosen by them, may be worse than the drafter's own"
    )


def settled(
    target: Target, drafter: Drafter, prompts: Sequence[Prompt], generation: GenerationConfig
) -> GenerationConfig:
    """Return the settings with their structure chosen if it is `auto`, once for all prompts; all of them checked.

    Raises
    ------
    InputError
        The drafter cannot make the structure, or the calibration is another drafter's.
    """
    if generation.calibration is not None:  # `generate` says so too, but only after `auto` has measured
        generation.calibration.check_drafter(drafter.fingerprint)
        if note := calibration_note(generation.calibration, generation.temperature):
            print(note, file=sys.stderr)
    if isinstance(generation.structure, AutoStructure):
        from gumiho_decoder.measuring.auto import PROMPTS, choose

        few = [encode(target, prompt, []) for prompt in spread(prompts, PROMPTS)]
        choice = choose(target, drafter, few, generation)
        interval = "" if choice.interval is None else " [{:.2f}, {:.2f}]".format(*choice.interval)
        predicted = f"predicted {choice.speedup:.2f}x{interval} plain"
        print(f"structure auto: {choice.structure} (times {choice.source}; {predicted})", file=sys.stderr)
        if choice.note:
            print(f"note: {choice.note.removeprefix('note: ')}", file=sys.stderr)
        generation = replace(generation, structure=choice.structure)
    drafter.check(generation.structure, generation.options(torch.Generator()))
    if generation.budget is not None:
        measured = generation.budget.target, generation.budget.drafter
        if measured != (target.name, drafter.name):
            print(f"note: the cost profile was measured for {' and '.join(measured)}", file=sys.stderr)
    return generation


def decode(
    target: Target,
    drafter: Drafter,
    prompts: Sequence[Prompt],
    generation: GenerationConfig,
    config: RunConfig,
    trace_path: Path | None,
) -> tuple[list[Output], Trace]:
    """Decode with a progress bar on stderr. When it is cut short, the cycles so far are written all the same."""
    recorder, made_with = Recorder(), provenance(target, drafter, generation)
    log = None if config.every_position is None else config.every_position.log(drafter, generation)

    def write(complete: bool) -> Trace:
        facts = made_with | {"complete": complete}
        trace = recorder.trace(facts)
        if trace_path is not None:
            trace.write(trace_path)
        if log is not None:
            log.made(facts).write(config.every_position.path)
        return trace

    try:
        with progress(sum(len(p.turns) for p in prompts)) as advance:
            outputs = run(target, drafter, prompts, generation, config, recorder, lambda _: advance(), log)
    except BaseException:
        if recorder:
            write(complete=False)
            written = [trace_path, config.every_position and config.every_position.path]
            places = " and ".join(str(path) for path in written if path is not None)
            if places:
                print(f"stopped early: the cycles so far are in {places}", file=sys.stderr)
        raise
    return outputs, write(complete=True)
