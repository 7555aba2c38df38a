"""A small LLaMA-architecture target trained from text: a real model where no hub can be reached."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from gumiho_decoder.tiny.making.stream import Blocks, evenly
from gumiho_decoder.training.loop import Log, LoopConfig, run_loop, split_optimizers


@dataclass(frozen=True)
class TargetConfig:
    """Shape and training of the target.

    Attributes
    ----------
    hidden_size, intermediate_size, layers, heads, vocab_size, positions : int
        The LLaMA shape; embeddings are tied. Deep rather than wide, so that a draft step is cheap beside a target step.
    tokens_per_step : int
        Tokens of one optimizer step.
    rate : float
        Peak learning rate, of both optimizers.
    lengths : tuple of (float, int)
        Block length up to each share of the steps: short blocks first, since attention is the dearer part on a CPU.
    """

    hidden_size: int = 256
    intermediate_size: int = 688
    layers: int = 12
    heads: int = 4
    vocab_size: int = 4096
    positions: int = 1024
    rate: float = 1e-2
    weight_decay: float = 0.1
    tokens_per_step: int = 4096
    lengths: tuple[tuple[float, int], ...] = ((0.75, 256), (1.0, 1024))
    seed: int = 0


def new_target(config: TargetConfig):
    """Return a freshly initialised `LlamaForCausalLM` of this shape, float32."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(config.seed)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=config.vocab_size,
            hidden_size=config.hidden_size,
            intermediate_size=config.intermediate_size,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.heads,
            max_position_embeddings=config.positions,
            tie_word_embeddings=True,
            bos_token_id=0,
            eos_token_id=0,
        )
    )


def train_target(
    config: TargetConfig,
    loop: LoopConfig,
    stream: NDArray[np.uint16],
    folder: Path,
    log: Log,
    *,
    resume: bool,
    device: str = "cpu",
    start: Path | None = None,
    bf16: bool = False,
    compiled: bool = False,
):
    """Train a target on a token stream; returns (model, seconds). The last checkpoint is `folder/checkpoint.pt`.

    `start` is the folder of a model to begin from, else new weights; `bf16` multiplies in bfloat16 (slow on a CPU
    without instructions for it), `compiled` through torch.compile (needs a C++ compiler).
    """
    from transformers import LlamaForCausalLM

    model = LlamaForCausalLM.from_pretrained(start, dtype=torch.float32) if start else new_target(config)
    model = model.to(device).train()
    if compiled:
        model.compile()
    optimizers = split_optimizers(model, config.rate, config.rate, config.weight_decay)
    stages = [
        (share * loop.steps, Blocks(stream, n, config.tokens_per_step // n, config.seed)) for share, n in config.lengths
    ]

    def batch_loss(step: int) -> torch.Tensor:
        blocks = next(blocks for end, blocks in stages if step < end)
        tokens = blocks(step).to(device)
        with torch.autocast(device.split(":")[0], dtype=torch.bfloat16, enabled=bf16):
            return model(input_ids=tokens, labels=tokens, use_cache=False).loss

    seconds = run_loop(loop, model, optimizers, batch_loss, folder / "checkpoint.pt", log, resume=resume)
    return model.eval(), seconds


@torch.no_grad()
def heldout_loss(model, stream: NDArray[np.uint16], length: int = 512, count: int = 64) -> float:
    """Return the mean cross-entropy in nats per token over `count` held-out blocks, float32."""
    losses = []
    for rows in evenly(stream, length, count).split(8):
        rows = rows.to(model.device)
        losses.append(float(model(input_ids=rows, labels=rows, use_cache=False).loss) * len(rows))
    loss = math.fsum(losses) / count
    return loss
