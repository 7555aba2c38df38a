"""The training loss of each method: means over the positions that count, on blocks of tokens and the target's features.

A position counts if the mask of the token that it predicts is True. Each term is a mean of its own, so that blocks may
be computed in parts: the sums of the parts, over the counts of the whole, add up to the loss of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import cross_entropy, smooth_l1_loss

from gumiho_decoder.drafters.eagle.serial import SerialModel
from gumiho_decoder.drafters.gumiho.model import GumihoModel
from gumiho_decoder.drafters.hydra.model import HydraModel
from gumiho_decoder.drafters.medusa import MedusaModel
from gumiho_decoder.target import Target
from gumiho_decoder.training.features import read_features

# Cai et al. (arXiv 2401.10774), section 2.2.1: later heads, which know less, weigh less.
MEDUSA_DECAY = 0.8


@dataclass(frozen=True)
class Read:
    """Blocks as the frozen target reads them.

    Attributes
    ----------
    tokens : int64 Tensor, shape (batch, length)
    mask : bool Tensor, shape (batch, length)
        Tokens whose prediction counts.
    embedded, features : Tensor, shape (batch, length, H)
        The target's embedding and last hidden state of every token.
    """

    tokens: torch.Tensor
    mask: torch.Tensor
    embedded: torch.Tensor
    features: torch.Tensor

    @classmethod
    @torch.no_grad()
    def of(
        cls,
        target: Target,
        tokens: torch.Tensor,
        mask: torch.Tensor | None = None,
        features: torch.Tensor | None = None,
    ) -> Read:
        """Read blocks; without a mask every token counts, without features the target computes them."""
        features = read_features(target, tokens) if features is None else features.to(target.head_device)
        tokens = tokens.to(target.head_device)
        mask = torch.ones_like(tokens, dtype=torch.bool) if mask is None else mask.to(target.head_device)
        return cls(tokens, mask, target.embed(tokens), features)


@dataclass(frozen=True)
class Term:
    """One mean of a loss.

    Attributes
    ----------
    weight : float
    values : Tensor, shape (batch, positions)
        Loss of each position.
    at : int64 Tensor, shape (positions,)
        Index of the token that each position predicts; `length` is the unknown one behind the block.
    """

    weight: float
    values: torch.Tensor
    at: torch.Tensor


@dataclass(frozen=True)
class HeadWeights:
    """What Gumiho's parallel heads weigh beside the serial part.

    The defaults are those of the released training program (AMD-AIG-AIMA/Gumiho at 9a1bc87, gumiho/train/
    main_deepspeed.py: `mlp_loss_weight` 9, `mlp_loss_decay_coefficient` 0.8): five heads together weigh 0.30.

    Attributes
    ----------
    weight, decay : float
        Head i (1-based) weighs weight * decay ** i, in each of the two terms.
    soft : bool
        Whether the heads' soft cross-entropy counts yet.
    """

    weight: float = 1 / 9
    decay: float = 0.8
    soft: bool = True


def mean_loss(terms: Sequence[Term], mask: torch.Tensor, whole: torch.Tensor | None = None) -> torch.Tensor:
    """Return the weighted sum of the terms' means.

    `mask` (bool Tensor, shape (batch, length)): Of the terms' blocks. `whole` (bool Tensor, shape (blocks, length)): Of
    all blocks of a step, of which these are a part; else these are all.
    """
    mask = _with_behind(mask)
    whole = mask if whole is None else _with_behind(whole.to(mask.device))
    losses = [
        # A term without any position is 0, not 0 / 0.
        term.weight * (term.values * mask[:, term.at]).sum() / whole[:, term.at].sum().clamp_min(1)
        for term in terms
    ]
    return torch.stack(losses).sum()


def _with_behind(mask: torch.Tensor) -> torch.Tensor:
    """Return a mask with a column for the token behind each block: it counts as the block's last one does."""
    return torch.cat([mask, mask[:, -1:]], dim=1)


def feature_terms(
    target: Target,
    model: SerialModel,
    read: Read,
    *,
    regression: float = 1.0,
    soft: float = 0.1,
    noise: torch.Tensor | None = None,
    places: torch.Tensor | None = None,
    detach_heads: bool = False,
    heads: HeadWeights = HeadWeights(),
) -> list[Term]:
    """Return EAGLE's terms, and Gumiho's: smooth-L1 to the true features, and soft cross-entropy through the lm_head.

    Gumiho (ICML 2025), section 3: for the serial Transformer, and for every parallel head, shifted by its position and
    weighed as released (`HeadWeights`). The serial part reads the true features with noise, as released.

    `regression`, `soft`: Weights of the two. `noise` (Tensor, shape (batch, length, H)): Added to the features that are
    read. `places`: Windows at which the parallel heads are trained; else all that have a true feature for every head.
    `detach_heads`: The parallel heads' terms give the serial part no gradient. `heads`: What the parallel heads weigh.
    """
    length = read.tokens.shape[1]
    entering = read.features if noise is None else read.features + noise.to(read.features)
    predicted, windows = serial(model, read.embedded, entering, detach_heads)
    with torch.no_grad():
        p_target = _log_probabilities(target, read.features).exp()

    def compared(predicted: torch.Tensor, at: torch.Tensor, weight: float = 1.0, said: bool = True) -> list[Term]:
        """Compare with the features `at` these indices, each of which predicts the token behind it."""
        close = smooth_l1_loss(predicted.float(), read.features[:, at], reduction="none").mean(-1)
        terms = [Term(weight * regression, close, at + 1)]
        if said:
            entropy = -(p_target[:, at] * _log_probabilities(target, predicted)).sum(-1)
            terms.append(Term(weight * soft, entropy, at + 1))
        return terms

    terms = compared(predicted, torch.arange(1, length, device=predicted.device))
    if isinstance(model, GumihoModel) and model.heads is not None:
        if places is None:
            places = torch.arange(windows_of(model, length))
        places = places.to(windows.device)
        for j, ahead in enumerate(model.heads(windows[:, places])):
            # Window t ends with token t + w + 1, so that head j (0-based) predicts feature t + w + 1 + j.
            at, weight = places + model.config.window + 1 + j, heads.weight * heads.decay ** (j + 1)
            terms += compared(ahead, at, weight, heads.soft)
    return terms


def windows_of(model: GumihoModel, length: int) -> int:
    """Return how many windows of a block have a true feature for every parallel head."""
    return length - 1 - model.config.window - model.config.parallel_heads


def serial(
    model: SerialModel, embedded: torch.Tensor, features: torch.Tensor, detach: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return predicted features and the heads' input windows.

    Predicted feature t (of length - 1) stands for true feature t + 1. Window t joins the FC outputs of serial
    predictions t..t + w - 1, each with the token it predicted: what the heads read when drafting. With `detach` the
    windows give the serial part no gradient; an FC of the heads' own is theirs to train.
    """
    predicted = model.serial(
        inputs_embeds=model.combine(embedded[:, 1:], features[:, :-1]), use_cache=False
    ).last_hidden_state
    known = predicted[:, :-1].detach() if detach else predicted[:, :-1]
    if isinstance(model, GumihoModel) and model.head_fc is not None:
        entered = model.combine_for_heads(embedded[:, 2:], known)
    else:
        entered = model.combine(embedded[:, 2:], known)
        entered = entered.detach() if detach else entered
    width = getattr(model.config, "window", 1)
    count = entered.shape[1] - width + 1
    return predicted, torch.cat([entered[:, i : i + count] for i in range(width)], dim=-1)


def medusa_terms(model: MedusaModel, read: Read, *, decay: float = MEDUSA_DECAY) -> list[Term]:
    """Return the cross-entropy of head i (1-based) on the token i + 1 behind, weighted decay^i."""
    heads = model.config.medusa_heads
    known = read.tokens.shape[1] - heads - 1
    logits = model(read.features[:, :known], heads)
    return [
        Term(decay ** (i + 1), _cross_entropy(logits[i], read.tokens[:, i + 2 : i + 2 + known]), _ahead(read, i, known))
        for i in range(heads)
    ]


def hydra_terms(target: Target, model: HydraModel, read: Read) -> list[Term]:
    """Return the soft cross-entropy of every head against the target's own distribution (Hydra++).

    Ankner et al. (arXiv 2402.05109), section 4.1: heads learn what the target would say, the text before given.
    """
    heads = model.config.hydra_heads
    known = read.tokens.shape[1] - heads - 1
    with torch.no_grad():
        p_target = _log_probabilities(target, read.features[:, 1:]).exp()  # row t: of the token t + 2
    path = model.condition(read.features)[:, :known]
    terms = []
    for i, head in enumerate(model.heads):
        # Head i (0-based) knows the feature of token t and tokens t + 1 .. t + 1 + i; it is to say token t + 2 + i.
        if model.config.grounded:
            path = torch.cat([path, read.embedded[:, i + 1 : i + 1 + known].to(path)], dim=-1)
        log_q = head(path).float().log_softmax(-1)
        terms.append(Term(1.0, -(p_target[:, i : i + known] * log_q).sum(-1), _ahead(read, i, known)))
    return terms


def language_terms(model: nn.Module, tokens: torch.Tensor) -> list[Term]:
    """Return the cross-entropy of a causal LM on each next token."""
    logits = model(input_ids=tokens, use_cache=False).logits[:, :-1]
    at = torch.arange(1, tokens.shape[1], device=tokens.device)
    return [Term(1.0, _cross_entropy(logits, tokens[:, 1:]), at)]


def _ahead(read: Read, head: int, known: int) -> torch.Tensor:
    """Return the tokens that head `head` (0-based) predicts, given the feature before the root."""
    return torch.arange(head + 2, head + 2 + known, device=read.tokens.device)


def _cross_entropy(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return cross_entropy(logits.float().flatten(0, 1), tokens.flatten(), reduction="none").view(tokens.shape)


def _log_probabilities(target: Target, features: torch.Tensor) -> torch.Tensor:
    """Read features as drafting does, in the target's dtype."""
    return target.log_probabilities(features.to(target.dtype))
