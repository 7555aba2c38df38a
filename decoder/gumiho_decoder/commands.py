"""What `gumiho decode` does: load, decode with a progress bar, write the trace whatever happens, sum up."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import typer

from gumiho_decoder.drafters.gumiho import GumihoDrafter, load_drafter
from gumiho_decoder.loop import GenerationConfig
from gumiho_decoder.prompts import Prompt, read_prompts
from gumiho_decoder.recorder import Recorder, environment
from gumiho_decoder.run import Output, RunConfig, run, summary
from gumiho_decoder.target import Target, load_target
from gumiho_theory import InputError, Structure, Trace
from gumiho_theory.files import reason

DTYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class GenerationRequest:
    """What is asked for on the command line, as typed."""

    max_new_tokens: int = 128
    structure: str = "chain:7"
    limit: int | None = None
    dtype: str = "float32"
    device: str = "cpu"


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

    def show(self, *, outputs: bool, as_json: bool) -> None:
        """Print the result on stdout: one JSON object, or a table."""
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
        if as_json:
            typer.echo(json.dumps({**self.summary, **({"outputs": written} if outputs else {})}, allow_nan=False))
            return
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table

        console = Console(highlight=False)
        table = Table("quantity", "value", show_edge=False)
        for name, value in self.summary.items():
            shown = ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else value
            table.add_row(name, f"{shown:.4g}" if isinstance(shown, float) else "–" if shown is None else str(shown))
        console.print(table)
        for row in written if outputs else []:
            console.rule(escape(f"{row['prompt_id']}, turn {row['turn']} ({row['stop_reason']})"))
            typer.echo(row["text"])


def decode_prompts(
    target_name: str,
    drafter_name: str,
    prompts_path: str,
    request: GenerationRequest,
    *,
    trace_path: Path | None,
    check: bool,
    baseline: bool,
) -> DecodeResult:
    """Decode a prompt file; see `gumiho decode`.

    Raises
    ------
    InputError
        Anything that is wrong with the request, found before decoding as far as it can be.
    """
    if trace_path is not None:
        check_output(trace_path)
    generation = GenerationConfig(request.max_new_tokens, Structure.parse(request.structure))
    prompts = read_prompts(prompts_path, request.limit)
    target, drafter = load_pair(target_name, drafter_name, request.dtype, request.device)
    outputs, trace = decode(target, drafter, prompts, generation, RunConfig(baseline, check), trace_path)
    tau = {"tau": trace.tau(), "tau_convention": "micro, bonus included, complete cycles", "cycles": trace.n_cycles}
    return DecodeResult(outputs, trace, tau | summary(outputs))


def load_pair(target: str, drafter: str, dtype: str = "float32", device: str = "cpu") -> tuple[Target, GumihoDrafter]:
    """Load a target and a drafter that fits it, both on one device.

    Raises
    ------
    InputError
        Unknown dtype or device, nothing loadable, or a drafter that does not fit.
    """
    if dtype not in DTYPES:
        raise InputError("--dtype", repr(dtype), ", ".join(DTYPES))
    try:
        torch.zeros(1, device=device).item()  # a device of no memory, such as meta, has no item
    except (RuntimeError, AssertionError, ImportError) as error:
        raise InputError("--device", repr(device), "cpu, or an accelerator that this machine has") from error
    loaded = load_target(target, device, dtype)
    return loaded, load_drafter(drafter, loaded)


def decode(
    target: Target,
    drafter: GumihoDrafter,
    prompts: Sequence[Prompt],
    generation: GenerationConfig,
    config: RunConfig,
    trace_path: Path | None,
) -> tuple[list[Output], Trace]:
    """Decode with a progress bar on stderr. When it is cut short, the cycles so far are written all the same."""
    recorder = Recorder()
    provenance = environment(target.device, target.dtype) | {
        "target": target.name,
        "drafter": drafter.name,
        "method": "gumiho",
        "drafter_shape": asdict(drafter.config),
        "structure": str(generation.structure),
        "max_new_tokens": generation.max_new_tokens,
        "temperature": 0.0,
        "lossless_mode": True,
        "seed": None,  # greedy decoding draws nothing
    }
    try:
        with progress(sum(len(p.turns) for p in prompts)) as advance:
            outputs = run(target, drafter, prompts, generation, config, recorder, lambda _: advance())
    except BaseException:
        if trace_path is not None and recorder:
            recorder.trace(provenance | {"complete": False}).write(trace_path)
            print(f"stopped early: the cycles so far are in {trace_path}", file=sys.stderr)
        raise
    trace = recorder.trace(provenance | {"complete": True})
    if trace_path is not None:
        trace.write(trace_path)
    return outputs, trace


@contextmanager
def progress(total: int) -> Iterator[Any]:
    """Show a bar on stderr (only on a terminal); yields the function that moves it on."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("decoding", total=total)
        yield lambda: bar.advance(task)


def check_output(path: Path) -> None:
    """Make sure, before hours of work, that a file can be written at a path; nothing there is touched.

    Raises
    ------
    InputError
        It cannot: no such folder, a folder in its place, a device, a name that is too long.
    """
    check_writable(path.parent)
    try:
        if path.is_file():
            return
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        path.unlink()
    except OSError as error:
        raise InputError(str(path), reason(error), "a file that can be written") from error


def check_writable(folder: Path) -> None:
    """Make sure, before hours of work, that a file can be written into a folder.

    Raises
    ------
    InputError
        It cannot.
    """
    try:
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(str(folder), reason(error), "a folder that can be written") from error
