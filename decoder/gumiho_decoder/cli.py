"""The `gumiho` command: the commands of all three parts in one, and one way to report what is wrong."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from gumiho_simulator.cli import register
from gumiho_theory import InputError
from gumiho_theory.cli import register as register_theorem

# Typer's base of all usage errors, wherever it keeps its copy of click.
_CommandLineError = typer.BadParameter.__mro__[2]

app = typer.Typer(
    pretty_exceptions_enable=False,
    help="Which tokens of a speculative draft matter, what a draft structure will give, and whether it is true.",
)
register(app)
register_theorem(app)

TargetOption = Annotated[str, typer.Option(help="Causal LM: a folder, a hub id, or `tiny` (embedded).")]
DrafterOption = Annotated[str, typer.Option(help="A drafter's folder, or `tiny:gumiho` (embedded).")]
StructureOption = Annotated[str, typer.Option(help="chain:K, or tree:total=64,top_k=14,depth=7,mlp_topk=35.")]
DeviceOption = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, …")]


@app.command()
def decode(
    prompts: Annotated[str, typer.Option(help="JSON lines with `prompt` or `turns`; - is stdin.")],
    target: TargetOption = "tiny",
    drafter: DrafterOption = "tiny:gumiho",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N prompts.")] = None,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Most tokens of an output.")] = 128,
    temperature: Annotated[float, typer.Option(help="0: greedy, which is what this version decodes.")] = 0.0,
    structure: StructureOption = "chain:7",
    dtype: Annotated[str, typer.Option(help="float32, bfloat16 or float16.")] = "float32",
    device: DeviceOption = "cpu",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the cycle trace here (Parquet).")] = None,
    check_lossless: Annotated[bool, typer.Option(help="Compare with plain decoding, and time it.")] = False,
    baseline: Annotated[bool, typer.Option(help="Time plain decoding too.")] = False,
    outputs: Annotated[bool, typer.Option(help="Show what was written.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Decode prompts speculatively, log every cycle, and check that nothing changed.

    Example: gumiho decode --prompts prompts.jsonl --structure chain:5 --check-lossless -o trace.parquet
    """
    from gumiho_decoder.commands import GenerationRequest, decode_prompts

    if temperature != 0:
        raise InputError("--temperature", temperature, "0: this version decodes greedily")
    result = decode_prompts(
        target,
        drafter,
        prompts,
        GenerationRequest(max_new_tokens, structure, limit, dtype, device),
        trace_path=output,
        check=check_lossless,
        baseline=baseline,
    )
    result.show(outputs=outputs, as_json=as_json)
    if result.summary["lossless"]["different"]:
        raise typer.Exit(1)


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the report.")] = Path("gumiho-demo"),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run the main job on the embedded models: decode, check, log, fit on half of the prompts, forecast the others.

    Example: gumiho demo -o report
    """
    from gumiho_decoder.demo import run_demo

    run_demo(output, as_json=as_json)


def main() -> None:
    """Run the command line: exit 0 done, 1 the answer is no, 2 bad input or usage with one `error:` line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal of few letters must not end the work
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
        print("error: interrupted", file=sys.stderr)
        sys.exit(130)
    except (BrokenPipeError, SystemExit):
        # The reader has seen enough, as in `gumiho … | head`; rich turns that into SystemExit(1), which would say "no".
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        _fail(f"standard output: found {error.strerror}, wanted a place to write")
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
