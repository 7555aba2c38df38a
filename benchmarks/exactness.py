"""Is every lossless method exact? All methods x structures on the embedded target, token for token, fp32, greedy.

Run: python benchmarks/exactness.py [--prompts 200] [--tokens 24] [--train-seconds 60] [--seed 0]. Drafters are trained
briefly here on texts that the target samples itself (none of them a prompt of the check), so that drafts are accepted
and caches compacted; a scripted drafter, which knows the text and corrupts it, makes long paths and every branch.
Static trees are built from each drafter's own rank rates. A table on stderr, one JSON object last; exit status 1 if any
output differs (a near-tie, below the stated bound, is counted apart).
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path

import torch
import typer
from transformers import LlamaConfig, LlamaForCausalLM

from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.drafters.draft_model.drafter import DraftModelDrafter
from gumiho_decoder.drafters.eagle.drafter import EagleDrafter, EagleModel
from gumiho_decoder.drafters.eagle.serial import SerialConfig
from gumiho_decoder.drafters.hydra.drafter import HydraDrafter
from gumiho_decoder.drafters.hydra.model import HydraModel
from gumiho_decoder.drafters.load import load_drafter
from gumiho_decoder.drafters.medusa import MedusaDrafter, MedusaModel
from gumiho_decoder.embedded import PROMPTS
from gumiho_decoder.logging.recorder import Recorder, environment
from gumiho_decoder.loop import generate, plain
from gumiho_decoder.measuring.lossless import compare
from gumiho_decoder.measuring.pair import load_pair
from gumiho_decoder.measuring.prompts import read_prompts
from gumiho_decoder.target import Target
from gumiho_decoder.training.loop import split_optimizers
from gumiho_decoder.training.losses import Read, feature_terms, hydra_terms, mean_loss, medusa_terms
from gumiho_theory import ChainStructure, DynamicTree, StaticTree, rank_rates

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from scripted import ScriptedDrafter, mixed

DEPTH = 5
TREE = DynamicTree(total=24, top_k=5, depth=DEPTH, mlp_topk=6)


def cut_prompts(target: Target, count: int) -> list[list[int]]:
    """Return distinct prompts: the embedded ones, then the same cut shorter and shorter."""
    whole = [target.encode(p.turns[0]) for p in read_prompts(str(PROMPTS))]
    cut = [tokens[: max(2, int(len(tokens) * share))] for share in (1.0, 0.8, 0.6, 0.4, 0.2) for tokens in whole]
    return [list(tokens) for tokens in dict.fromkeys(map(tuple, cut))][:count]


def sampled_texts(target: Target, count: int, length: int, seed: int) -> torch.Tensor:
    """Return texts that the target wrote at temperature 1 behind single tokens, int64 (count, length)."""
    torch.manual_seed(seed)
    first = torch.randint(1, target.vocab_size, (count, 1), device=target.device)
    settings = {"do_sample": True, "top_k": 0, "min_new_tokens": length - 1, "max_new_tokens": length - 1}
    return target.model.generate(first, attention_mask=torch.ones_like(first), pad_token_id=0, **settings)


def trained(model: torch.nn.Module, loss, texts: torch.Tensor, seconds: float, seed: int) -> torch.nn.Module:
    """Train for so many seconds."""
    model.requires_grad_(True).train()
    optimizers = split_optimizers(model, 1e-2, 3e-3, 0.0)
    random = torch.Generator().manual_seed(seed)
    started, step = time.perf_counter(), 0
    while (spent := time.perf_counter() - started) < seconds:
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group.setdefault("base", group["lr"])
                group["lr"] = group["base"] * max(0.05, 1 - spent / seconds)
        loss(model, texts[torch.randint(len(texts), (8,), generator=random)], random).backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        step += 1
    print(f"{type(model).__name__}: {step} steps", file=sys.stderr)
    return model.eval().requires_grad_(False)


def drafters(target: Target, texts: torch.Tensor, seconds: float, seed: int) -> dict:
    """Return every method's drafter, briefly trained."""
    torch.manual_seed(seed)
    eagle = EagleModel(SerialConfig.for_target(target))
    medusa, hydra = MedusaModel.new(target, medusa_heads=DEPTH), HydraModel.new(target, hydra_heads=DEPTH, prefix=True)
    shape = target.model.config.to_dict() | {"num_hidden_layers": 2}
    small = LlamaForCausalLM(LlamaConfig.from_dict(shape))
    small.model.embed_tokens.load_state_dict(target.model.model.embed_tokens.state_dict())
    trained(
        eagle,
        lambda m, t, r: mean_loss(feature_terms(target, m, read := Read.of(target, t)), read.mask),
        texts,
        seconds,
        seed,
    )
    trained(
        medusa, lambda m, t, r: mean_loss(medusa_terms(m, read := Read.of(target, t)), read.mask), texts, seconds, seed
    )
    trained(
        hydra,
        lambda m, t, r: mean_loss(hydra_terms(target, m, read := Read.of(target, t)), read.mask),
        texts,
        seconds,
        seed,
    )
    trained(small, lambda m, t, r: m(input_ids=t, labels=t, use_cache=False).loss, texts, seconds, seed)
    return {
        "gumiho": load_drafter("tiny:gumiho", target),
        "eagle": EagleDrafter(eagle, target, "eagle"),
        "medusa": MedusaDrafter(medusa, target, "medusa"),
        "hydra": HydraDrafter(hydra, target, "hydra"),
        "draft-model": DraftModelDrafter(Target(small, target.tokenizer, "small"), target, "small"),
        "ngram": load_drafter("ngram", target),
    }


def static_tree(target: Target, drafter, texts: torch.Tensor) -> StaticTree:
    """Return the best tree of 16 nodes by the drafter's rank rates on a few of the sampled texts."""
    recorder = Recorder()
    for i, text in enumerate(texts[:8].tolist()):
        config = GenerationConfig(32, ChainStructure(DEPTH))
        generate(target, drafter, text[:32], config, recorder.prompt(str(i), None, 0))
    rates = rank_rates(recorder.trace({}), 6).rates
    return StaticTree.best(rates, min(16, 1 + sum(6 ** (d + 1) for d in range(len(rates)))))


def main(prompts: int = 200, tokens: int = 24, train_seconds: float = 60.0, seed: int = 0) -> None:
    """Check all."""
    target, _ = load_pair("tiny", "tiny:gumiho")
    texts = sampled_texts(target, 64, 192, seed)
    made = drafters(target, texts, train_seconds, seed)
    chosen = cut_prompts(target, prompts)
    long = [plain(target, prompt, GenerationConfig(tokens + 12)).token_ids for prompt in chosen]
    scripts = {
        "scripted": lambda p, text: ScriptedDrafter([*p, *text], target.vocab_size, mixed),
        "scripted, 2 serial": lambda p, text: ScriptedDrafter([*p, *text], target.vocab_size, mixed, 2),
    }
    fixed = StaticTree([(1,), (2,), (3,), (1, 1), (1, 2), (2, 1), (1, 1, 1), (1, 2, 1), (1, 1, 1, 1), (1, 1, 1, 1, 1)])
    rows = []
    for method in (*made, *scripts):
        static = static_tree(target, made[method], texts) if method in made else fixed
        for kind, structure in (("chain", ChainStructure(DEPTH)), ("static", static), ("dynamic", TREE)):
            counts, recorder = Counter(), Recorder()
            config = GenerationConfig(tokens, structure)
            for i, (prompt, text) in enumerate(zip(chosen, long, strict=True)):
                drafter = made[method] if method in made else scripts[method](prompt, text)
                out = generate(target, drafter, prompt, config, recorder.prompt(str(i), None, 0))
                counts[
                    compare(target, prompt, text[:tokens] if len(text) > tokens else text, out.token_ids).verdict
                ] += 1
            trace = recorder.trace({})
            rows.append(
                {
                    "method": method,
                    "structure": kind,
                    "prompts": len(chosen),
                    **{verdict: counts[verdict] for verdict in ("equal", "tie", "different")},
                    "tau": trace.tau(),
                    "longest": int(trace.accepted.max(initial=0)),
                    "cycles": trace.n_cycles,
                }
            )
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    print(json.dumps({"rows": rows, "environment": environment(target.device, target.dtype)}))
    raise typer.Exit(int(any(row["different"] for row in rows)))


if __name__ == "__main__":
    typer.run(main)
