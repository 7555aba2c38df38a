"""Log every trained drafter over the same texts, and decode some of the prompts for real.

Run: python benchmarks/sweep.py texts -o TEXTS [--temperature 1]: what the target writes behind each prompt, once.
python benchmarks/sweep.py logs DRAFTERS --texts TEXTS -o FOLDER: an every-position log of each drafter on these texts,
and the cycles that a chain of all its positions would have had, replayed from the log (FOLDER/NAME.parquet; the log of
the first prompts in FOLDER/positions). python benchmarks/sweep.py decode DRAFTERS --texts TEXTS -o FOLDER: real greedy
decoding of some prompts; each output is compared with the text, each cycle with the replay. DRAFTERS holds a folder a
drafter, as `python -m gumiho_decoder.tiny.build drafters` leaves them, or is `tiny`. What is there is not made again.
python benchmarks/sweep.py profiles DRAFTERS -o FOLDER: what each step costs, of all drafters in the same rounds.
One JSON line a run, on stdout.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from shared import MEASURED, Drafters, Limit, Names, Prompts, on_threads, to_do

from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.cycle import Generation
from gumiho_decoder.drafters.growing.drafter import TreeDrafter
from gumiho_decoder.logging.collector import GivenText
from gumiho_decoder.logging.every_position import Log
from gumiho_decoder.logging.recorder import provenance
from gumiho_decoder.loop import plain
from gumiho_decoder.measuring.decode import decode as decode_prompts
from gumiho_decoder.measuring.lossless import compare
from gumiho_decoder.measuring.profile.pairs import REPEATS, measure_together
from gumiho_decoder.measuring.prompts import Prompt, read_prompts, spread
from gumiho_decoder.measuring.runs import RunConfig, place_seed
from gumiho_decoder.target import Target, load_target
from gumiho_simulator.replaying.as_trace import replay_trace
from gumiho_theory import ChainStructure, EveryPositionLog, Structure, Trace

REACH = 7  # of a drafter that reaches any depth
app = typer.Typer(no_args_is_help=True, add_completion=False)


def read_texts(path: Path, limit: int | None) -> tuple[list[dict[str, Any]], GenerationConfig]:
    """Return texts, and the settings they were made with, which are the file's first line."""
    first, *rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return spread(rows, limit), GenerationConfig(first["max_new_tokens"], temperature=first["temperature"])


@app.command()
def texts(
    output: Annotated[Path, typer.Option("--output", "-o", help="JSON lines to write.")],
    prompts: Prompts = MEASURED,
    limit: Limit = None,
    temperature: float = 0.0,
    max_new_tokens: int = 48,
) -> None:
    """Let the target write: plain decoding behind each prompt."""
    target = load_target("tiny")
    lines = [json.dumps({"max_new_tokens": max_new_tokens, "temperature": temperature})]
    for index, prompt in enumerate(spread(read_prompts(str(prompts)), limit)):
        tokens = target.encode(prompt.turns[0])
        made = plain(
            target, tokens, GenerationConfig(max_new_tokens, temperature=temperature, seed=place_seed(0, index, 0))
        )
        row = {"prompt_id": prompt.prompt_id, "task": prompt.task, "text": prompt.turns[0], "prompt": tokens}
        lines.append(json.dumps(row | {"output": made.token_ids, "stop_reason": made.stop_reason}))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text("\n".join(lines) + "\n", encoding="utf-8")


def log_of(
    target: Target,
    drafter: TreeDrafter,
    rows: list[dict[str, Any]],
    config: GenerationConfig,
    structures: list[Structure],
    top_k: int,
) -> EveryPositionLog:
    """Return the drafter's every-position log of the texts."""
    log = Log(drafter, config, structures, top_k)
    for row in rows:
        made = Generation(tuple(row["output"]), row["stop_reason"], 0.0)
        prompt = Prompt(row["prompt_id"], row["task"], ("",), chat=False)
        given = GivenText(target, row["prompt"], row["output"])
        log.add(target, drafter, row["prompt"], made, given, prompt.prompt_id, prompt.task, 0)
    return log.made(without_paths(provenance(target, drafter, config)) | {"structure": None, "complete": True})


def of_prompts(log: EveryPositionLog, prompts: list[str]) -> EveryPositionLog:
    """Return the rows of some prompts."""
    rows = np.isin(log.prompt_id, prompts)
    columns = [field.name for field in fields(log) if field.name not in ("provenance", "missing")]
    return replace(log, **{name: getattr(log, name)[rows] for name in columns})


def without_paths(facts: dict[str, Any]) -> dict[str, Any]:
    """Return a provenance without the command line, which names folders of this machine."""
    return {name: value for name, value in facts.items() if name != "arguments"}


def rounded(trace: Trace, digits: int | None) -> Trace:
    """Round probabilities to significant digits: they are most of a trace's size."""
    if digits is None:
        return trace

    def of(values: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = 10.0 ** (digits - 1 - np.floor(np.log10(values)))
            return np.where(values > 0, np.round(values * scale) / scale, values)

    return replace(trace, q_draft=of(trace.q_draft), p_target=of(trace.p_target))


@app.command()
def logs(
    folder: Drafters,
    texts: Annotated[Path, typer.Option(exists=True, help="What `texts` wrote.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for traces and logs.")],
    names: Names = "",
    limit: Limit = None,
    keep: Annotated[int | None, typer.Option(help="Prompts whose log is written.")] = 40,
    structures: Annotated[str, typer.Option(help="Dynamic trees to log too, separated by spaces.")] = "",
    top_k: Annotated[int, typer.Option(help="Candidates a depth in the log.")] = 1,
    digits: Annotated[int | None, typer.Option(min=1, help="Of probabilities in the cycles; all unless given.")] = None,
    threads: int = 1,
) -> None:
    """Log every position of the texts, and replay chains."""
    target = on_threads(threads)
    rows, config = read_texts(texts, limit)
    for path, drafter in to_do(target, folder, names, output):
        chain = ChainStructure(drafter.depth or REACH)
        trees = [Structure.parse(text) for text in structures.split()]
        log = log_of(target, drafter, rows, config, [chain, *trees], top_k)
        trace = replay_trace(log, chain)
        some = [row["prompt_id"] for row in spread(rows, keep)]
        if some:
            (output / "positions").mkdir(exist_ok=True)
            of_prompts(log, some).write(output / "positions" / path.name)
        rounded(trace, digits).write(path)
        print(json.dumps({"drafter": path.stem, "structure": str(chain), "tau": trace.tau(), "prompts": len(rows)}))


def same_cycles(made: Trace, replayed: Trace) -> dict[str, int]:
    """Return of how many prompts all cycles agree in place and accepted length."""
    found = Counter()
    for prompt in made.prompts:
        pairs = [
            np.stack([trace.position[at], trace.accepted[at]])
            for trace in (made, replayed)
            for at in [trace.prompt_id == prompt]
        ]
        found["same" if pairs[0].shape == pairs[1].shape and (pairs[0] == pairs[1]).all() else "other"] += 1
    return dict(found)


@app.command()
def decode(
    folder: Drafters,
    texts: Annotated[Path, typer.Option(exists=True, help="What `texts` wrote, greedily.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the traces.")],
    names: Names = "",
    limit: Limit = 40,
    threads: int = 1,
) -> None:
    """Decode for real."""
    target = on_threads(threads)
    rows, config = read_texts(texts, limit)
    prompts = [Prompt(row["prompt_id"], row["task"], (row["text"],), chat=False) for row in rows]
    for path, drafter in to_do(target, folder, names, output):
        chain = ChainStructure(drafter.depth or REACH)
        asked = GenerationConfig(config.max_new_tokens, chain)
        outputs, trace = decode_prompts(target, drafter, prompts, asked, RunConfig(), path.with_suffix(".part"))
        found = Counter(
            compare(target, row["prompt"], tuple(row["output"]), made.speculative.token_ids).verdict
            for row, made in zip(rows, outputs, strict=True)
        )
        replayed = replay_trace(log_of(target, drafter, rows, config, [chain], 1), chain)
        replace(trace, provenance=without_paths(trace.provenance)).write(path)
        path.with_suffix(".part").unlink()
        result = {"drafter": path.stem, "structure": str(chain), "tau": trace.tau(), "prompts": len(rows)}
        print(json.dumps(result | {"outputs": found, "cycles_as_replayed": same_cycles(trace, replayed)}), flush=True)


@app.command()
def profiles(
    folder: Drafters,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for cost profiles, NAME.json.")],
    names: Names = "",
    repeats: int = REPEATS,
    threads: int = 1,
) -> None:
    """Measure what each step costs, of all drafters in each round: machines change from minute to minute."""
    target = on_threads(threads)
    found = list(to_do(target, folder, names, output, ".json"))
    for (path, _), profile in zip(
        found, measure_together(target, [one for _, one in found], repeats=repeats), strict=True
    ):
        profile.write(path)
        print(json.dumps({"drafter": path.stem, "cycle_ms": 1000 * profile.cycle_seconds(REACH, REACH + 1)}))


if __name__ == "__main__":
    app()
