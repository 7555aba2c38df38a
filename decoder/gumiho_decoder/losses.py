"""The training loss of each method, on blocks of tokens and the frozen target's hidden states."""

from __future__ import annotations

import torch
from torch.nn.functional import cross_entropy

from gumiho_decoder.drafters.hydra_model import HydraModel
from gumiho_decoder.drafters.medusa import MedusaModel
from gumiho_decoder.target import Target

# Cai et al. (arXiv 2401.10774), section 2.2.1: later heads, which know less, weigh less.
MEDUSA_DECAY = 0.8


def read_target(target: Target, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the target's embeddings and features of every token, (batch, length, H) each, without gradient."""
    with torch.no_grad():
        out = target.model(input_ids=tokens, output_hidden_states=True, logits_to_keep=1, use_cache=False)
        return target.model.get_input_embeddings()(tokens), out.hidden_states[-1].float()


def medusa_loss(target: Target, model: MedusaModel, tokens: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of head i (1-based) on the token i + 1 behind, weighted 0.8^i, (batch, length) blocks."""
    _, features = read_target(target, tokens)
    heads = model.config.medusa_heads
    known = tokens.shape[1] - heads - 1
    logits = model(features[:, :known], heads)
    return sum(
        MEDUSA_DECAY ** (i + 1)
        * cross_entropy(logits[i].flatten(0, 1).float(), tokens[:, i + 2 : i + 2 + known].flatten())
        for i in range(heads)
    )


def hydra_loss(target: Target, model: HydraModel, tokens: torch.Tensor) -> torch.Tensor:
    """Soft cross-entropy of every head against the target's own distribution (Hydra++), (batch, length) blocks.

    Ankner et al. (arXiv 2402.05109), section 4.1: heads learn what the target would say, the text before given.
    """
    embedded, features = read_target(target, tokens)
    heads = model.config.hydra_heads
    known = tokens.shape[1] - heads - 1
    with torch.no_grad():
        p_target = target.log_probabilities(features[:, 1:]).exp()  # row t: of the token t + 2
    path = model.condition(features)[:, :known]
    total = features.new_zeros(())
    for i, head in enumerate(model.heads):
        # Head i (0-based) knows the feature of token t and tokens t + 1 .. t + 1 + i; it is to say token t + 2 + i.
        if model.config.grounded:
            path = torch.cat([path, embedded[:, i + 1 : i + 1 + known].to(path)], dim=-1)
        log_q = head(path).float().log_softmax(-1)
        total = total - (p_target[:, i : i + known] * log_q).sum(-1).mean()
    return total
