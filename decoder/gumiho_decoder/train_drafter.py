"""Train Gumiho heads on a frozen target's hidden states.

Loss of Gumiho (ICML 2025), section 3: smooth-L1 between predicted and true features plus 0.1 x soft cross-entropy
through the frozen lm_head, for the serial Transformer and for every parallel head, whose terms are shifted by position.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from gumiho_decoder.data import Blocks, evenly
from gumiho_decoder.drafters.gumiho_model import GumihoConfig, GumihoModel
from gumiho_decoder.drafters.serial_model import SerialModel
from gumiho_decoder.target import Target
from gumiho_decoder.train_losses import Read, feature_terms, mean_loss, serial, windows_of
from gumiho_decoder.training import Log, LoopConfig, run_loop, split_optimizers


@dataclass(frozen=True)
class DrafterTraining:
    """How a drafter is trained.

    Attributes
    ----------
    length, batch : int
        Tokens of a block, blocks of a step.
    cross_entropy_weight : float
        Weight of the soft cross-entropy beside smooth-L1's 1.
    noise : float
        Width of the uniform noise added to the input features, so that the serial part learns to read inexact ones.
    head_share : float
        Share of positions at which the parallel heads are trained in a step, drawn anew each time: their softmaxes
        over the vocabulary would otherwise cost more than everything else.
    muon_rate, adam_rate, weight_decay : float
        Peak learning rates and weight decay; see `split_optimizers`.
    """

    length: int = 512
    batch: int = 8
    cross_entropy_weight: float = 0.1
    noise: float = 0.2
    head_share: float = 0.5
    muon_rate: float = 1e-2
    adam_rate: float = 3e-3
    weight_decay: float = 0.0
    seed: int = 1


def train_gumiho(
    target: Target,
    shape: GumihoConfig,
    config: DrafterTraining,
    loop: LoopConfig,
    stream: NDArray[np.uint16],
    folder: Path,
    log: Log,
    *,
    resume: bool,
) -> tuple[GumihoModel, float]:
    """Train heads on a token stream; returns (model, seconds). The last checkpoint is `folder/checkpoint.pt`."""
    torch.manual_seed(config.seed)
    model = GumihoModel(shape).to(target.device).train()
    blocks = Blocks(stream, config.length, config.batch, config.seed)
    optimizers = split_optimizers(model, config.muon_rate, config.adam_rate, config.weight_decay)

    def batch_loss(step: int) -> torch.Tensor:
        random = torch.Generator().manual_seed((config.seed << 32) + step)
        with torch.autocast(target.device.type, dtype=torch.bfloat16):
            return drafter_loss(target, model, blocks(step).to(target.device), config, random)

    seconds = run_loop(loop, model, optimizers, batch_loss, folder / "checkpoint.pt", log, resume=resume)
    return model.eval(), seconds


def drafter_loss(
    target: Target, model: SerialModel, tokens: torch.Tensor, config: DrafterTraining, random: torch.Generator
) -> torch.Tensor:
    """Return the training loss of a batch of blocks, `tokens` int64 (batch, length): Gumiho's, or EAGLE's."""
    read = Read.of(target, tokens)
    noise = (torch.rand(read.features.shape, generator=random) - 0.5) * config.noise
    places = None
    if isinstance(model, GumihoModel) and model.heads is not None:
        last = windows_of(model, tokens.shape[1])
        places = torch.randperm(last, generator=random)[: max(1, int(config.head_share * last))]
    terms = feature_terms(target, model, read, soft=config.cross_entropy_weight, noise=noise, places=places)
    return mean_loss(terms, read.mask)


@torch.no_grad()
def heldout_accuracy(
    target: Target, model: GumihoModel, stream: NDArray[np.uint16], length: int = 512, count: int = 32
) -> list[float]:
    """Return, per draft position, how often the draft is the target's greedy choice, the text before it being given.

    The serial positions share one figure: with the text given they are the same prediction.
    """
    hits = torch.zeros(model.config.depth, dtype=torch.float64)
    head = target.model.get_output_embeddings()
    batches = evenly(stream, length, count).split(8)
    for tokens in batches:
        read = Read.of(target, tokens)
        features = read.features
        predicted, windows = serial(model, read.embedded, features)
        true = head(features).argmax(-1)
        early = (head(predicted).argmax(-1) == true[:, 1:]).double().mean().cpu()
        hits[: model.config.serial_steps] += early * len(tokens)
        for j, ahead in enumerate(model.heads(windows) if model.heads is not None else []):
            shifted = true[:, model.config.window + 1 + j :]
            right = head(ahead[:, : shifted.shape[1]]).argmax(-1) == shifted[:, : ahead.shape[1]]
            hits[model.config.serial_steps + j] += right.double().mean().cpu() * len(tokens)
    return [round(float(h) / count, 4) for h in hits]
