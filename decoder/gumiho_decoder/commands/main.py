"""The `gumiho` command: the commands of all three parts in one, and one way to report what is wrong."""

from __future__ import annotations

import io
import signal
import sys
from typing import Annotated, NoReturn

import typer

from gumiho_decoder.commands.bench import bench
from gumiho_decoder.commands.decode import decode
from gumiho_decoder.commands.demo import demo
from gumiho_decoder.commands.profile import profile
from gumiho_decoder.commands.train import train
from gumiho_simulator.commands import register
from gumiho_theory import InputError
from gumiho_theory.commands import register as register_theorem

# Typer's base of all usage errors, wherever it keeps its copy of click.
_CommandLineError = typer.BadParameter.__mro__[2]

INTERRUPTED = 130

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
register(app)
register_theorem(app)
for command in (bench, decode, train, profile, demo):
    app.command()(command)


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
