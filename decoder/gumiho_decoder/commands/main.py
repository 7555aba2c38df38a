"""The `gumiho` command: the commands of all three parts in one, and one way to report what is wrong."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from gumiho_decoder.commands.bench import bench
from gumiho_simulator.commands.assemble import register
from gumiho_theory import InputError
from gumiho_theory.commands.theorem import register as register_theorem

# Typer's base of all usage errors, wherever it keeps its copy of click.
_CommandLineError = typer.BadParameter.__mro__[2]

INTERRUPTED = 130

app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
register(app)
register_theorem(app)
app.command()(bench)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"gumiho {version('gumiho')}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Which tokens of a speculative draft matter, what a draft structure will give, and whether it is true."""


TargetOption = Annotated[str, typer.Option(help="Causal LM: a folder, a hub id, or `tiny` (embedded).")]
DrafterOption = Annotated[
    str,
    typer.Option(
        help="A drafter's folder or hub id (own or published format), tiny:gumiho (or eagle, hydra, medusa, small), "
        "draft-model:T or ngram."
    ),
]
StructureOption = Annotated[
    str, typer.Option(help="chain:K, tree:total=64,top_k=14,depth=7,mlp_topk=35, static:FILE, or auto.")
]
DeviceOption = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, …; auto: layers spread over all devices.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.command()
def decode(
    prompts: Annotated[str, typer.Option(help="JSON lines with `prompt` or `turns`; - is stdin.")],
    target: TargetOption = "tiny",
    drafter: DrafterOption = "tiny:gumiho",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N prompts.")] = None,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Most tokens of an output.")] = 128,
    temperature: Annotated[float, typer.Option(help="0: greedy.")] = 0.0,
    top_k: Annotated[int | None, typer.Option(help="Sample among the k most probable tokens.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Sample among the fewest tokens of this probability.")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same output.")] = 0,
    structure: StructureOption = "chain:7",
    candidates: Annotated[str, typer.Option(help="top: most probable draft tokens; sampled: drawn.")] = "top",
    acceptance: Annotated[str, typer.Option(help="exact; typical: Medusa's rule, LOSSY.")] = "exact",
    fta: Annotated[str, typer.Option(help="Full tree attention: off; released or literal, LOSSY.")] = "off",
    calibration: Annotated[
        Path | None, typer.Option(help="Score calibration of this drafter: JSON, or tiny:gumiho, …")
    ] = None,
    budget: Annotated[Path | None, typer.Option(help="Cost profile: trees as large as pays for itself.")] = None,
    stop_string: Annotated[list[str] | None, typer.Option(help="End an output with this text; repeatable.")] = None,
    stop_token: Annotated[list[int] | None, typer.Option(help="End an output with this id; repeatable.")] = None,
    dtype: Annotated[str, typer.Option(help="float32, bfloat16 or float16.")] = "float32",
    device: DeviceOption = "cpu",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the cycle trace here (Parquet).")] = None,
    every_position: Annotated[Path | None, typer.Option(help="Write the every-position log here (Parquet).")] = None,
    log_structure: Annotated[
        list[str] | None, typer.Option(help="Structure whose accepted lengths that log holds; repeatable.")
    ] = None,
    log_top_k: Annotated[int, typer.Option(min=1, max=512, help="Draft candidates a depth in that log.")] = 10,
    check_lossless: Annotated[
        bool, typer.Option("--check-lossless", help="Compare with plain decoding, and time it.")
    ] = False,
    baseline: Annotated[bool, typer.Option("--baseline", help="Time plain decoding too.")] = False,
    outputs: Annotated[bool, typer.Option("--outputs", help="Show what was written.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Decode prompts speculatively, log every cycle, and check that nothing changed.

    Examples: gumiho decode --prompts p.jsonl --structure chain:5 --check-lossless -o trace.parquet

    gumiho decode --prompts p.jsonl --structure tree:total=32,top_k=8,depth=7,mlp_topk=8 --outputs
    """
    from gumiho_decoder.measuring.decode import DecodeRequest, decode_prompts

    result = decode_prompts(
        DecodeRequest(
            prompts,
            target,
            drafter,
            limit,
            dtype,
            device,
            structure,
            dict(
                max_new_tokens=max_new_tokens,
                temperature=temperature,
                top_k=top_k,
                top_p=top_p,
                seed=seed,
                candidates=candidates,
                acceptance=acceptance,
                fta=fta,
                stop_strings=tuple(stop_string or ()),
                stop_token_ids=tuple(stop_token or ()),
            ),
            calibration,
            budget,
            output,
            every_position,
            tuple(log_structure or ()),
            log_top_k,
            check_lossless,
            baseline,
        )
    )
    result.show(outputs=outputs, as_json=as_json)
    if result.summary["lossless_mode"] and result.summary["lossless"]["different"]:
        raise typer.Exit(1)


@app.command()
def train(
    method: Annotated[str, typer.Option(help="gumiho, eagle, medusa, hydra or draft-model.")],
    data: Annotated[list[str], typer.Option(help="Text, or chat as JSON lines; repeatable; sharegpt (extra `data`).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the drafter.")],
    target: TargetOption = "tiny",
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the folder's last checkpoint.")] = False,
    steps: Annotated[int | None, typer.Option(help="Optimizer steps (instead of epochs).")] = None,
    epochs: Annotated[float | None, typer.Option(help="Times that all data are read.")] = None,
    length: Annotated[int | None, typer.Option(help="Tokens of a block.")] = None,
    batch: Annotated[int | None, typer.Option(help="Blocks of a step, over all processes.")] = None,
    rate: Annotated[float | None, typer.Option(help="Peak learning rate.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of weights, noise and order.")] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="Any other setting of TrainConfig, name=value; repeatable.")
    ] = None,
    cache_features: Annotated[
        bool, typer.Option("--cache-features", help="Keep the target's hidden states on disk.")
    ] = False,
    dtype: Annotated[str, typer.Option(help="Of the target: float32, bfloat16 or float16.")] = "float32",
    device: DeviceOption = "cpu",
    as_json: JsonOption = False,
) -> None:
    """Train a drafter for a frozen target. Several processes: torchrun --nproc-per-node N -m gumiho_decoder train.

    Example: gumiho train --method eagle --data book.txt --steps 200 -o heads --set serial_layers=2
    """
    from gumiho_decoder.training.job import train_command

    named = {"steps": steps, "epochs": epochs, "length": length, "batch": batch, "rate": rate, "seed": seed}
    named = {name: value for name, value in named.items() if value is not None}
    for text in setting or []:
        name, equals, value = text.partition("=")
        if not equals or name in named:
            raise InputError("--set", repr(text), "name=value, each name once")
        try:
            named[name] = json.loads(value)
        except ValueError:
            named[name] = value  # a word, as in optimizer=muon
    made = train_command(
        *(target, method, data, output),
        resume=resume,
        overrides=named,
        cache_features=cache_features,
        device=device,
        dtype=dtype,
    )
    if os.environ.get("RANK", "0") != "0":
        return
    if as_json:
        typer.echo(json.dumps(made, allow_nan=False))
        return
    from gumiho_simulator.reports.tables import show, table
    from gumiho_simulator.reports.tables import text as cell

    rows = [(name, cell(value)) for name, value in made.items() if name != "data"]
    show(table(("quantity", "value"), rows), "held-out accuracy: share of the target's greedy choices, by position")


@app.command()
def profile(
    output: Annotated[Path, typer.Option("--output", "-o", help="Cost profile to write (JSON).")],
    target: Annotated[str | None, typer.Option(help="Causal LM to time, as in `decode`.")] = None,
    drafter: Annotated[str | None, typer.Option(help="Drafter to time with it, as in `decode`.")] = None,
    shape: Annotated[
        str | None, typer.Option(help="Instead: random weights, vicuna-7b, llama2-13b, llama3-8b or a config.json.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="With --shape: gumiho, eagle, medusa or hydra.")] = None,
    context: Annotated[
        int | None, typer.Option(min=3, help="Tokens behind which the steps are timed; 128 if they fit.")
    ] = None,
    dtype: Annotated[str, typer.Option(help="float32, bfloat16 or float16.")] = "float32",
    device: DeviceOption = "cpu",
    as_json: JsonOption = False,
) -> None:
    """Measure what the steps of a cycle cost here: plain step, verification by nodes, draft steps.

    Example: gumiho profile --target tiny --drafter tiny:gumiho -o profile.json
    """
    given = [name for name, value in (("--target", target), ("--shape", shape)) if value is not None]
    if len(given) != 1 or (method is not None) != (shape is not None) or (drafter is not None) != (target is not None):
        raise InputError("options", " and ".join(given) or "none", "--target and --drafter, or --shape and --method")
    from gumiho_decoder.measuring.profile.times import profile_command

    pair = (target, drafter) if shape is None else (f"random:{shape}", f"random:{method}")
    made = profile_command(*pair, device=device, dtype=dtype, context=context, output=output)
    if as_json:
        typer.echo(json.dumps(made.to_json(), allow_nan=False))
        return
    from gumiho_simulator.reports.tables import show, table

    def ms(seconds: float) -> str:
        return f"{1000 * seconds:.3f} ms"

    rows = [("plain step", ms(made.baseline_seconds)), ("any draft", ms(made.draft_fixed_seconds))]
    rows += [("each serial draft step", ms(made.draft_serial_seconds))]
    rows += [("parallel heads, once", ms(made.draft_parallel_seconds)), ("rest of a cycle", ms(made.other_seconds))]
    rows += [(f"verification of {n} nodes", ms(s)) for n, s in zip(made.verify_nodes, made.verify_seconds, strict=True)]
    show(table(("step", "time (lower quartile)"), rows, f"{made.target}, {made.drafter}, {made.device}, {made.dtype}"))


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the report.")] = Path("gumiho-demo"),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run the main job on the embedded models: decode, check, log, fit on half of the prompts, forecast the others.

    Example: gumiho demo -o report
    """
    from gumiho_decoder.commands.demo import run_demo

    run_demo(output, as_json=as_json)


def main() -> None:
    """Run the command line: exit 0 done, 1 the answer is no, 2 bad input or usage with one `error:` line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal of few letters must not end the work
    for name in ("SIGTERM", "SIGHUP"):  # as Ctrl-C: what was done so far is written
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) == signal.SIG_DFL:  # not under nohup
            signal.signal(getattr(signal, name), signal.default_int_handler)
    try:
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
    except InputError as error:
        _fail(str(error))
    except _CommandLineError as error:
        _fail(error.format_message() + _found(error, sys.argv[1:]))
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"torch", "transformers", "safetensors", "accelerate"}:
            raise
        _fail(f"Python package {error.name}: found none, wanted it installed (pip install 'gumiho[decoder]')")
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # The reader has seen enough, as in `gumiho … | head`; rich turns that into SystemExit(1), which would say "no".
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        _fail(f"standard output: found {error.strerror}, wanted a place to write")
    if code == INTERRUPTED:  # what Typer makes of Ctrl-C, without a word
        print("error: interrupted", file=sys.stderr)
    sys.exit(code if isinstance(code, int) else 0)


def _found(error: Exception, arguments: list[str]) -> str:
    """Return what was typed for the option that typer complains of, which its own message leaves out."""
    names = getattr(getattr(error, "param", None), "opts", [])
    for place, argument in reversed(list(enumerate(arguments))):
        name, equals, value = argument.partition("=")
        if name in names and (equals or place + 1 < len(arguments)):
            return f": found {value if equals else arguments[place + 1]!r}"
    return ""


def _fail(message: str) -> NoReturn:
    print("error: " + " ".join(message.split()), file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
