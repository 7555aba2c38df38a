"""What the trainer needs of each method: new weights, their loss, a drafter of them, and the folder they end in."""

from __future__ import annotations

import copy
import os
import shutil
from dataclasses import fields
from pathlib import Path

import numpy as np
import torch
from torch import nn

from gumiho_decoder.draft import DraftOptions
from gumiho_decoder.drafters.draft_model.drafter import DraftModelDrafter
from gumiho_decoder.drafters.eagle.drafter import EagleDrafter, EagleModel
from gumiho_decoder.drafters.eagle.serial import SerialConfig
from gumiho_decoder.drafters.growing.drafter import TreeDrafter
from gumiho_decoder.drafters.growing.heads import placed
from gumiho_decoder.drafters.gumiho.drafter import GumihoDrafter
from gumiho_decoder.drafters.gumiho.model import GumihoConfig, GumihoModel
from gumiho_decoder.drafters.hydra.drafter import HydraDrafter
from gumiho_decoder.drafters.hydra.model import HydraModel
from gumiho_decoder.drafters.medusa import MedusaDrafter, MedusaModel
from gumiho_decoder.logging.places import batches, behind_truth, most_places
from gumiho_decoder.target import Target
from gumiho_decoder.training.config import TrainConfig
from gumiho_decoder.training.features import read_features
from gumiho_decoder.training.losses import (
    HeadWeights,
    Read,
    Term,
    feature_terms,
    hydra_terms,
    language_terms,
    mean_loss,
    medusa_terms,
    windows_of,
)
from gumiho_theory import ChainStructure, InputError

DEPTH = 7  # draft positions that are measured where a method reaches any
_DRAFTERS = {"gumiho": GumihoDrafter, "eagle": EagleDrafter, "medusa": MedusaDrafter, "hydra": HydraDrafter}


def new_model(target: Target, config: TrainConfig, start: Path | None = None) -> nn.Module:
    """Return weights to be trained, float32, on the device of the target's lm_head; they depend on the seed alone.

    `start`: A drafter's folder, in the own format, whose weights are to be trained on, in place of new ones. Raises
    InputError: The target's features are not what its lm_head reads, a draft model of no possible width, or a `start`
    of another method or shape than is to be trained.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        model = _new(target, config)
    if start is not None:
        model.load_state_dict(_started(start, config.method, model).state_dict())
    if config.method != "draft-model":
        target.check_fit(config.method, model.config.hidden_size, model.config.vocab_size)
    return model.float().to(target.head_device).train()


def _started(start: Path, method: str, like: nn.Module) -> nn.Module:
    if method == "draft-model":
        raise InputError(
            "start", f"{start}, for method 'draft-model'", "a method whose heads read the target's features"
        )
    found = type(like).from_pretrained(start)
    for field in fields(like.config):
        own, wanted = getattr(found.config, field.name), getattr(like.config, field.name)
        if own != wanted:
            raise InputError(f"start {start}, {field.name}", own, f"{wanted}, as is to be trained")
    return found


def _new(target: Target, config: TrainConfig) -> nn.Module:
    match config.method:
        case "gumiho":
            names = ("serial_steps", "serial_layers", "parallel_heads", "head_blocks")
            shape = {name: getattr(config, name) for name in names} | {"own_input": config.head_input == "own"}
            return GumihoModel(GumihoConfig.for_target(target, **shape))
        case "eagle":
            return EagleModel(SerialConfig.for_target(target, serial_layers=config.serial_layers))
        case "medusa":
            return MedusaModel.new(target, medusa_heads=config.heads, medusa_layers=config.layers)
        case "hydra":
            shape = dict(hydra_heads=config.heads, hydra_layers=config.layers, prefix=config.prefix)
            return HydraModel.new(target, **shape)
    return _new_draft_model(target, config)


def _new_draft_model(target: Target, config: TrainConfig) -> nn.Module:
    """Return a small LLaMA of the target's vocabulary; its embedding starts as the target's if they agree in shape."""
    from transformers import LlamaConfig, LlamaForCausalLM

    like = SerialConfig.for_target(target)
    hidden = config.hidden_size or like.hidden_size
    heads = next((count for count in range(like.heads, 0, -1) if hidden % (2 * count) == 0), None)
    if heads is None:
        raise InputError("training, hidden_size", hidden, "an even number (rotary embedding)")
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=like.vocab_size,
            hidden_size=hidden,
            intermediate_size=max(1, round(like.intermediate_size * hidden / like.hidden_size)),
            num_hidden_layers=config.layers,
            num_attention_heads=heads,
            num_key_value_heads=like.key_value_heads if heads % like.key_value_heads == 0 else heads,
            max_position_embeddings=like.positions,
            rms_norm_eps=like.norm_eps,
            rope_parameters={"rope_type": "default", "rope_theta": like.rope_theta},
            tie_word_embeddings=bool(getattr(target.config, "tie_word_embeddings", False)),
            bos_token_id=target.config.bos_token_id,
            eos_token_id=target.config.eos_token_id,
            pad_token_id=target.config.pad_token_id,
        )
    )
    theirs, own = target.model.get_input_embeddings().weight, model.get_input_embeddings().weight
    if theirs.shape == own.shape:
        with torch.no_grad():
            own.copy_(theirs)
    return model


class Learner(nn.Module):
    """A drafter's weights with their loss: one forward, so that gradients can be summed over processes."""

    def __init__(self, target: Target, model: nn.Module, config: TrainConfig) -> None:
        super().__init__()
        self.model = model
        self._target, self._config = target, config

    def forward(
        self,
        tokens: torch.Tensor,
        mask: torch.Tensor,
        features: torch.Tensor | None,
        whole: torch.Tensor,
        step: int,
        first: int,
    ) -> torch.Tensor:
        """Return what these blocks add to the loss of a step.

        `tokens`, `mask`: Tensor, shape (b, length). `features` (Tensor, shape (b, length, H), or None): As
        `read_features` gives them; None: a draft model needs none. `whole` (bool Tensor, shape (batch, length)): The
        mask of all blocks of the step. `step`, `first`: The step, and the number of the first of these blocks in it:
        all randomness depends on these and the seed.
        """
        mask = mask.to(self._target.head_device)
        return mean_loss(self._terms(tokens, mask, features, step, first), mask, whole)

    def _terms(
        self, tokens: torch.Tensor, mask: torch.Tensor, features: torch.Tensor | None, step: int, first: int
    ) -> list[Term]:
        config, model = self._config, self.model
        if features is None:
            return language_terms(model, tokens.to(mask.device))
        read = Read.of(self._target, tokens, mask, features)
        if isinstance(model, MedusaModel):
            return medusa_terms(model, read, decay=config.head_decay)
        if isinstance(model, HydraModel):
            return hydra_terms(self._target, model, read)
        noise = None
        if config.noise:
            rows = [_noise(read.features[i], config, step, first + i) for i in range(len(tokens))]
            noise = torch.stack(rows)
        settings = dict(regression=config.regression, soft=config.cross_entropy, noise=noise)
        if config.method == "gumiho":
            soft = step >= config.head_cross_entropy_from * config.steps
            settings |= dict(places=_places(model, config, step), detach_heads=config.detach_heads)
            settings |= dict(heads=HeadWeights(config.head_weight, config.head_decay, soft))
        return feature_terms(self._target, model, read, **settings)


def _noise(like: torch.Tensor, config: TrainConfig, step: int, row: int) -> torch.Tensor:
    """Return the noise on one block's features: its own, whichever process reads the block."""
    random = _generator(like.device, config.seed, step, row)
    return (torch.rand(like.shape, generator=random, device=like.device) - 0.5) * config.noise


def _places(model: nn.Module, config: TrainConfig, step: int) -> torch.Tensor | None:
    """Return the windows at which Gumiho's parallel heads are trained in a step; None: all."""
    if config.head_share in (None, 1.0) or model.heads is None:
        return None
    last = windows_of(model, config.length)
    random = _generator(torch.device("cpu"), config.seed, step, config.batch)  # as if of one block more
    chosen = torch.randperm(last, generator=random)
    return chosen[: max(1, int(config.head_share * last))]


def _generator(device: torch.device, *numbers: int) -> torch.Generator:
    state = np.random.SeedSequence(numbers).generate_state(1, np.uint64)
    return torch.Generator(device).manual_seed(int(state[0]) >> 1)


def drafter_of(target: Target, model: nn.Module, config: TrainConfig) -> TreeDrafter:
    """Return a drafter of a copy of the weights: drafters take the target's dtype, training keeps its own."""
    model = copy.deepcopy(model)
    if config.method == "draft-model":
        draft = placed(model, target.head_device, target.dtype)
        return DraftModelDrafter(Target(draft, target.tokenizer, "draft"), target, "draft")
    return _DRAFTERS[config.method](model, target, config.method)


@torch.inference_mode()
def heldout_accuracy(
    target: Target, model: nn.Module, config: TrainConfig, tokens: torch.Tensor, mask: torch.Tensor
) -> list[float | None]:
    """Return, per draft position, how often the first candidate is the target's greedy choice.

    Drafted as in decoding, with the drafter's own features, from every place of the blocks, (n, length); the text
    before each draft position is the true one. A position counts if the mask of its token is True; None: none did.
    """
    drafter = drafter_of(target, model, config)
    length = tokens.shape[1]
    depth = min(drafter.depth or DEPTH, length - 2)
    most = most_places(ChainStructure(depth), target.vocab_size, DraftOptions())
    right, counted = torch.zeros(depth, dtype=torch.int64), torch.zeros(depth, dtype=torch.int64)
    for text, counts in zip(tokens.to(target.head_device), mask.cpu(), strict=True):
        if not counts.any():
            continue
        features = read_features(target, text[None])[0].to(target.dtype)
        greedy = target.log_probabilities(features).argmax(-1).cpu()  # behind each token
        drafter.start(text, features[:-1])
        for places, _ in batches(range(1, length - depth), depth, length, most):
            at = torch.arange(places.start, places.stop)[:, None] + torch.arange(1, depth + 1)
            if counts[at].any():
                drafted = torch.tensor(behind_truth(drafter, text, places, depth, 1)["top_ids"])[..., 0]
                right += ((drafted == greedy[at - 1]) & counts[at]).sum(0)
                counted += counts[at].sum(0)
    return [round(r / n, 4) if n else None for r, n in zip(right.tolist(), counted.tolist(), strict=True)]


def save(target: Target, model: nn.Module, config: TrainConfig, folder: Path, target_fingerprint: str) -> None:
    """Write the weights as `load_drafter` reads them; config.json last."""
    if config.method != "draft-model":
        model.save_pretrained(folder, target_fingerprint=target_fingerprint)
    else:
        model.config.target_fingerprint = target_fingerprint
        _save_draft_model(target, model, folder)


def _save_draft_model(target: Target, model: nn.Module, folder: Path) -> None:
    # transformers writes config.json first: so into a folder beside, and from there one by one.
    beside = folder / "model.part"
    shutil.rmtree(beside, ignore_errors=True)
    target.tokenizer.save_pretrained(beside)
    model.save_pretrained(beside)
    for path in sorted(beside.iterdir(), key=lambda path: path.name == "config.json"):
        os.replace(path, folder / path.name)
    beside.rmdir()
