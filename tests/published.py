"""Random checkpoints in the layouts of the methods' authors, for a small target, as if from the hub.

Names and files are theirs; so is what is left out. Every weight is random, so that each counts.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch

from gumiho_decoder.target import Target

State = dict[str, torch.Tensor]
THETA, EPS = 50_000.0, 1e-3  # of EAGLE's config.json; unlike the target's
HIDDEN, INNER, HEADS, GROUPS = 32, 48, 4, 2  # as fakes.random_target


def write(folder: Path, file: str, state: State, config: dict | None = None) -> Path:
    """Write a checkpoint's folder: tensors as safetensors or pickle by the file's name."""
    folder.mkdir(parents=True, exist_ok=True)
    if file.endswith(".safetensors"):
        from safetensors.torch import save_file

        save_file(state, folder / file)
    else:
        torch.save(state, folder / file)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    return folder


def _random(shapes: dict[str, tuple[int, ...]], seed: int) -> State:
    random = torch.Generator().manual_seed(seed)
    return {name: torch.randn(shape, generator=random) * 0.2 for name, shape in shapes.items()}


def _linear(name: str, outputs: int, inputs: int, bias: bool = True) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (outputs, inputs)} | ({f"{name}.bias": (outputs,)} if bias else {})


def _layer(name: str, input_norm: bool) -> dict[str, tuple[int, ...]]:
    size = HIDDEN // HEADS
    shapes = {f"{name}.post_attention_layernorm.weight": (HIDDEN,)}
    if input_norm:
        shapes[f"{name}.input_layernorm.weight"] = (HIDDEN,)
    for part, outputs, inputs in (
        ("self_attn.q_proj", HIDDEN, HIDDEN),
        ("self_attn.k_proj", GROUPS * size, HIDDEN),
        ("self_attn.v_proj", GROUPS * size, HIDDEN),
        ("self_attn.o_proj", HIDDEN, HIDDEN),
        ("mlp.gate_proj", INNER, HIDDEN),
        ("mlp.up_proj", INNER, HIDDEN),
        ("mlp.down_proj", HIDDEN, INNER),
    ):
        shapes |= _linear(f"{name}.{part}", outputs, inputs, bias=False)
    return shapes


def serial_state(target: Target, *, layers: int, bias: bool, seed: int = 0) -> State:
    """EAGLE's tensors, and the first of Gumiho's."""
    shapes = {"embed_tokens.weight": (target.vocab_size, HIDDEN), **_linear("fc", HIDDEN, 2 * HIDDEN, bias)}
    for layer in range(layers):
        shapes |= _layer(f"layers.{layer}", input_norm=layer > 0)
    return _random(shapes, seed)


def gumiho_state(target: Target, *, spelling: str = "mlp.", window: int = 2, heads: int = 2, blocks: int = 2) -> State:
    shapes = {}
    for head in range(heads):
        for block in range(1 + blocks):
            shapes |= _linear(f"{spelling}{head}.{block}.linear", HIDDEN, (1 if block else window) * HIDDEN)
    return serial_state(target, layers=2, bias=True) | _random(shapes, 1)


def eagle_config(target: Target, **changes: object) -> dict:
    return {
        "architectures": ["LlamaForCausalLM"],
        "hidden_act": "silu",
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "max_position_embeddings": 2048,
        "model_type": "llama",
        "num_attention_heads": HEADS,
        "num_key_value_heads": GROUPS,
        "num_hidden_layers": 1,
        "rms_norm_eps": EPS,
        "rope_scaling": None,
        "rope_theta": THETA,
        "vocab_size": target.vocab_size,
        **changes,
    }


def medusa_state(target: Target, *, heads: int = 3, layers: int = 1, own: bool = True) -> State:
    shapes = {}
    for head in range(heads):
        for layer in range(layers):
            shapes |= _linear(f"{head}.{layer}.linear", HIDDEN, HIDDEN)
        shapes |= _linear(f"{head}.{layers}", target.vocab_size, HIDDEN, bias=False) if own else {}
    return _random(shapes, 2)


def medusa_config() -> dict:
    return {"medusa_num_heads": 2, "medusa_num_layers": 1, "base_model_name_or_path": "somewhere/else"}


def hydra_state(target: Target, *, prefix: bool, grounded: bool = True, heads: int = 3, layers: int = 2) -> State:
    shapes = {"input_embed_fn.weight": (target.vocab_size, HIDDEN)}
    if prefix:
        inner = "prefix_embeding_layer"
        shapes |= {f"{inner}.embed_tokens.weight": (target.vocab_size, HIDDEN), f"{inner}.norm.weight": (HIDDEN,)}
        shapes |= _layer(f"{inner}.layers.0", input_norm=True)
        shapes[f"{inner}.layers.0.self_attn.rotary_emb.inv_freq"] = (HIDDEN // HEADS // 2,)
    for head in range(heads):
        for layer in range(layers):
            name = f"hydra_mlp.{head}.{2 * layer + 1 if prefix else layer}"
            if layer == 0 and grounded:
                shapes |= _linear(f"{name}.linear", HIDDEN, (2 + head) * HIDDEN)
                shapes |= _linear(f"{name}.res_connection", HIDDEN, (2 + head) * HIDDEN)
            else:
                shapes |= _linear(f"{name}.linear", HIDDEN, HIDDEN)
        shapes |= _linear(f"hydra_lm_head.{head}{'.1' if prefix else ''}", target.vocab_size, HIDDEN)
    return _random(shapes, 3)


def hydra_config(*, prefix: bool, grounded: bool = True, heads: int = 3, layers: int = 2) -> dict:
    return {
        "base_model_name_or_path": "somewhere/else",
        "grounded_heads": grounded,
        "hidden_state_offset": 0,
        "hydra_head_arch": "prefix-mlp" if prefix else "mlp",
        "hydra_num_heads": heads,
        "hydra_num_layers": layers,
    }


def write_layout(layout: str, folder: Path, target: Target) -> tuple[Path, State]:
    """Write one of `LAYOUTS`; return the weights' path and the tensors in it."""
    file, state, config = LAYOUTS[layout](target)
    return write(folder, file, state, config) / file, state


LAYOUTS = {
    "gumiho": lambda target: ("pytorch_model.bin", gumiho_state(target), None),
    "gumiho-wrapped": lambda target: ("pytorch_model.bin", gumiho_state(target, spelling="mlp.mlp."), None),
    "gumiho-safetensors": lambda target: ("model.safetensors", gumiho_state(target), None),
    "gumiho-one-step": lambda target: ("pytorch_model.bin", gumiho_state(target, window=1), None),
    "eagle": lambda target: ("pytorch_model.bin", serial_state(target, layers=1, bias=True), eagle_config(target)),
    "eagle-no-bias": lambda target: (
        "model.safetensors",
        serial_state(target, layers=1, bias=False),
        eagle_config(target, bias=False),
    ),
    "medusa": lambda target: ("medusa_lm_head.pt", medusa_state(target), medusa_config()),
    "medusa-deep": lambda target: ("medusa_lm_head.safetensors", medusa_state(target, layers=2), medusa_config()),
    "medusa-shared": lambda target: ("medusa_lm_head.safetensors", medusa_state(target, own=False), medusa_config()),
    "hydra": lambda target: ("hydra_lm_head.pt", hydra_state(target, prefix=False), hydra_config(prefix=False)),
    "hydra++": lambda target: ("hydra_lm_head.pt", hydra_state(target, prefix=True), hydra_config(prefix=True)),
    "hydra-ungrounded": lambda target: (
        "hydra_lm_head.pt",
        hydra_state(target, prefix=False, grounded=False),
        hydra_config(prefix=False, grounded=False),
    ),
}
