"""Decode every trained head allocation over the same prompts: traces, every-position logs and cost profiles.

Run: python benchmarks/sweep.py DRAFTERS -o traces/sweep [--names serial1,serial2] [--limit 200] [--temperature 1]
[--every-position], where DRAFTERS holds a folder a drafter, as `python -m gumiho_decoder.tiny.build drafters` leaves
them. Traces go to OUTPUT/greedy/NAME.parquet or OUTPUT/t1/NAME.parquet, every-position logs to OUTPUT/greedy-positions.
Each drafter drafts chains of all its positions. Greedy outputs are compared with plain decoding, made once. What is
there is not made again. One JSON line a run, on stdout.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import torch
import typer

from gumiho_decoder.commands import decode
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.drafters.load import load_drafter
from gumiho_decoder.every_position import EveryPositionRequest
from gumiho_decoder.loop import plain
from gumiho_decoder.lossless import compare
from gumiho_decoder.prompts import Prompt, read_prompts
from gumiho_decoder.run import RunConfig
from gumiho_decoder.target import Target, load_target
from gumiho_decoder.tiny.family import SWEEP
from gumiho_theory import ChainStructure

REACH = 7  # of a drafter that reaches any depth


class Greedy:
    """What plain greedy decoding gives, each output made once."""

    def __init__(self, target: Target, config: GenerationConfig) -> None:
        self._target, self._config = target, config
        self._made: dict[tuple[int, ...], tuple[int, ...]] = {}

    def verdict(self, prompt: tuple[int, ...], tokens: tuple[int, ...]) -> str:
        """Return `equal`, `tie` or `different`."""
        if prompt not in self._made:
            self._made[prompt] = plain(self._target, prompt, self._config).token_ids
        return compare(self._target, list(prompt), self._made[prompt], tokens).verdict


def spread(prompts: list[Prompt], limit: int | None) -> list[Prompt]:
    """Return so many prompts, spread evenly over the file, which is sorted by kind of text."""
    if limit is None or limit >= len(prompts):
        return prompts
    return [prompts[index * len(prompts) // limit] for index in range(limit)]


def main(
    drafters: Annotated[Path, typer.Argument(help="Folder of drafters.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the logs.")],
    names: Annotated[str, typer.Option(help="Comma-separated; all unless given.")] = "",
    prompts: Annotated[Path, typer.Option(help="JSON lines.")] = Path(__file__).parent / "prompts" / "measured.jsonl",
    limit: Annotated[int | None, typer.Option(help="Prompts, spread evenly over the file.")] = None,
    temperature: float = 0.0,
    max_new_tokens: int = 48,
    every_position: Annotated[bool, typer.Option(help="Write every-position logs too.")] = False,
    top_k: Annotated[int, typer.Option(help="Candidates a depth in those logs.")] = 1,
    threads: int = 1,
) -> None:
    """Decode."""
    torch.set_num_threads(threads)
    target = load_target("tiny")
    texts = spread(read_prompts(str(prompts)), limit)
    greedy = Greedy(target, GenerationConfig(max_new_tokens))
    how = "greedy" if temperature == 0 else f"t{temperature:g}"
    for kind in (how, f"{how}-positions") if every_position else (how,):
        (output / kind).mkdir(parents=True, exist_ok=True)
    wanted = names.split(",") if names else sorted(path.name for path in drafters.iterdir() if path.is_dir())
    for name in wanted:
        folder, shown = drafters / name, name.partition("-")[0] if name.startswith(tuple(SWEEP)) else name
        trace_path, log_path = (output / kind / f"{shown}.parquet" for kind in (how, f"{how}-positions"))
        if trace_path.exists():
            continue
        draft_model = (folder / "tokenizer.json").exists()
        drafter = load_drafter(f"draft-model:{folder}" if draft_model else str(folder), target)
        drafter.name = shown  # a folder's path is nobody else's business
        structure = ChainStructure(drafter.depth or REACH)
        config = GenerationConfig(max_new_tokens, structure, temperature=temperature)
        log = EveryPositionRequest(log_path, (structure,), top_k) if every_position else None
        part = trace_path.with_suffix(".part")
        outputs, trace = decode(target, drafter, texts, config, RunConfig(every_position=log), part)
        verdicts = None
        if temperature == 0:
            verdicts = Counter(greedy.verdict(o.prompt, o.speculative.token_ids) for o in outputs)
        part.replace(trace_path)
        row = {
            **{"drafter": shown, "decoding": how, "structure": str(structure), "tau": trace.tau()},
            **{"cycles": trace.n_cycles, "prompts": len(texts), "verdicts": verdicts},
        }
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    typer.run(main)
