"""Small random models, and a drafter that follows a script; used by the decoder's tests."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from gumiho_decoder.drafters.gumiho.drafter import GumihoDrafter
from gumiho_decoder.drafters.gumiho.model import GumihoConfig, GumihoModel
from gumiho_decoder.target import Target

VOCAB = 61
# With grouped-query attention, and weights so large that greedy text does not settle at once.
SHAPE = dict(
    vocab_size=VOCAB,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    initializer_range=1.0,
    bos_token_id=None,
    eos_token_id=None,
    pad_token_id=None,
)


@dataclass
class FakeTokenizer:
    """Characters are tokens; no chat template."""

    chat_template: str | None = None

    def __call__(self, text: str, **_: object) -> dict[str, list[int]]:
        return {"input_ids": [ord(c) % VOCAB for c in text]}

    def decode(self, ids, **_: object) -> str:
        return "".join(chr(65 + i) for i in ids)


def random_target(seed: int = 0, *, positions: int = 256, eos: int | None = None, spread: float = 1.0) -> Target:
    """A random LLaMA with grouped-query attention whose greedy text does not settle at once."""
    torch.manual_seed(seed)
    changes = {"max_position_embeddings": positions, "initializer_range": spread, "eos_token_id": eos}
    return Target(LlamaForCausalLM(LlamaConfig(**SHAPE | changes)), FakeTokenizer(), "random")


def random_drafter(target: Target, seed: int = 0, **changes: int) -> GumihoDrafter:
    torch.manual_seed(seed)
    model = GumihoModel(GumihoConfig.for_target(target, **changes))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.15)  # zero-initialised heads would all draft the same token
    return GumihoDrafter(model, target, "random")
