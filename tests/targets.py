"""A tiny random causal LM of every kind that is claimed to work, from its configuration alone."""

from __future__ import annotations

import torch
import transformers

from fakes import SHAPE, FakeTokenizer
from gumiho_decoder.target import Target

# What each kind needs beside that, or calls otherwise.
KINDS: dict[str, dict] = {
    "llama": {},
    "llama-tied": {"tie_word_embeddings": True},
    "qwen2": {},
    "qwen3": {"head_dim": 16},
    "mistral": {"sliding_window": None},
    "gemma": {"head_dim": 16},
    "phi3": {},
    "olmo2": {},
    "gpt2": {"n_inner": 48, "embd_pdrop": 0.0},
    "gpt_neox": {},
    "stablelm": {},
    "cohere": {},
    "granite": {},
    "mixtral": {"num_local_experts": 4, "sliding_window": None},
}


def config_of(kind: str, **changes):
    values = {**SHAPE, "max_position_embeddings": 160, **KINDS.get(kind, {}), **changes}
    return transformers.AutoConfig.for_model(kind.partition("-")[0], **values)


def model_of(kind: str, seed: int = 0, **changes):
    torch.manual_seed(seed)
    return transformers.AutoModelForCausalLM.from_config(config_of(kind, **changes)).eval()


def target_of(kind: str, seed: int = 0, **changes) -> Target:
    return Target(model_of(kind, seed, **changes), FakeTokenizer(), kind)
