"""The trained part of the Gumiho drafter: a serial Transformer, and parallel MLP heads behind it.

Li et al., "Gumiho: A Hybrid Architecture to Prioritize Early Tokens in Speculative Decoding" (ICML 2025), section 3.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import nn

from gumiho_theory import InputError
from gumiho_theory.files import read_json

CONFIG_BYTES = 1 << 20


@dataclass(frozen=True)
class GumihoConfig:
    """Shape of a Gumiho drafter.

    Attributes
    ----------
    hidden_size, intermediate_size, heads, key_value_heads, vocab_size, positions : int
        As the target's.
    rope_theta, norm_eps : float
        Base of the rotary embedding; epsilon of the norms.
    serial_steps : int
        Early draft positions, one run of the Transformer each.
    serial_layers : int
        Layers of that Transformer.
    parallel_heads : int
        Later draft positions, one MLP head each, all run at once.
    head_blocks : int
        Residual blocks of a head.
    """

    hidden_size: int
    intermediate_size: int
    heads: int
    key_value_heads: int
    vocab_size: int
    positions: int
    rope_theta: float = 10000.0
    norm_eps: float = 1e-6
    serial_steps: int = 2
    serial_layers: int = 2
    parallel_heads: int = 5
    head_blocks: int = 5

    @property
    def depth(self) -> int:
        """Draft positions in all."""
        return self.serial_steps + self.parallel_heads

    @property
    def window(self) -> int:
        """Serial inputs that a head reads: the last two, or the only one."""
        return min(2, self.serial_steps)

    @classmethod
    def for_target(cls, target, **changes) -> GumihoConfig:
        """Return the configuration whose shapes are the target's (a `Target`)."""
        config = target.config
        rope = getattr(config, "rope_parameters", None) or {}
        shapes = dict(
            hidden_size=config.hidden_size,
            intermediate_size=config.intermediate_size,
            heads=config.num_attention_heads,
            key_value_heads=config.num_key_value_heads,
            vocab_size=target.vocab_size,
            positions=target.positions,
            rope_theta=float(rope.get("rope_theta", 10000.0)),
            norm_eps=float(config.rms_norm_eps),
        )
        return cls(**{**shapes, **changes})


class ParallelHeads(nn.ModuleList):
    """P heads on the same input: Linear (window x H -> H) + SiLU, then blocks x + SiLU(Linear(x)).

    All weights start at zero, as released.
    """

    def __init__(self, config: GumihoConfig) -> None:
        hidden = config.hidden_size
        widths = [config.window * hidden, *[hidden] * config.head_blocks]
        super().__init__(
            nn.ModuleList(nn.Linear(width, hidden) for width in widths) for _ in range(config.parallel_heads)
        )
        for head in self:
            for linear in head:
                nn.init.zeros_(linear.weight)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Map (..., window x H) to (P, ..., H)."""
        outputs = []
        for enter, *blocks in self:
            x = nn.functional.silu(enter(inputs))
            for linear in blocks:
                x = x + nn.functional.silu(linear(x))
            outputs.append(x)
        return torch.stack(outputs)


class StackedHeads:
    """The same function as `ParallelHeads`, for drafting: one batched product a layer instead of P small ones."""

    def __init__(self, heads: ParallelHeads) -> None:
        layers = [[head[layer] for head in heads] for layer in range(len(heads[0]))]
        self._weights = [torch.stack([linear.weight.T for linear in layer]) for layer in layers]
        self._biases = [torch.stack([linear.bias for linear in layer])[:, None] for layer in layers]

    def __call__(self, inputs: torch.Tensor) -> torch.Tensor:
        """Map (rows, window x H) to (P, rows, H)."""
        x = inputs.expand(len(self._weights[0]), -1, -1)
        x = nn.functional.silu(torch.baddbmm(self._biases[0], x, self._weights[0]))
        for weight, bias in zip(self._weights[1:], self._biases[1:], strict=True):
            x = x + nn.functional.silu(torch.baddbmm(bias, x, weight))
        return x


class GumihoModel(nn.Module):
    """The trained part: FC, serial Transformer, parallel heads. Embedding and lm_head stay the target's, frozen."""

    def __init__(self, config: GumihoConfig) -> None:
        super().__init__()
        from transformers import LlamaConfig, LlamaModel

        self.config = config
        self.fc = nn.Linear(2 * config.hidden_size, config.hidden_size)
        self.serial = LlamaModel(
            LlamaConfig(
                vocab_size=1,
                hidden_size=config.hidden_size,
                intermediate_size=config.intermediate_size,
                num_hidden_layers=config.serial_layers,
                num_attention_heads=config.heads,
                num_key_value_heads=config.key_value_heads,
                max_position_embeddings=config.positions,
                rms_norm_eps=config.norm_eps,
                rope_parameters={"rope_type": "default", "rope_theta": config.rope_theta},
                bos_token_id=None,
                eos_token_id=None,
                pad_token_id=None,
            )
        )
        # As in EAGLE: the first layer has no input norm, and the output is a feature, not normed again.
        self.serial.embed_tokens = None
        self.serial.norm = nn.Identity()
        self.serial.layers[0].input_layernorm = nn.Identity()
        self.heads = ParallelHeads(config) if config.parallel_heads else None

    def combine(self, embedded: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        """FC of the next token's embedding and the feature before it: (..., H), (..., H) -> (..., H)."""
        return self.fc(torch.cat([embedded, features], dim=-1))

    def save_pretrained(self, folder: Path, dtype: torch.dtype | None = None, **record: object) -> None:
        """Write config.json (with `record` beside the shapes) and model.safetensors, in `dtype` if given."""
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        tensors = {k: v.detach().to("cpu", dtype or v.dtype).contiguous() for k, v in self.state_dict().items()}
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        text = json.dumps({"method": "gumiho", **asdict(self.config), **record}, indent=1)
        (folder / "config.json").write_text(text + "\n", encoding="utf-8")

    @classmethod
    def from_pretrained(cls, folder: Path) -> GumihoModel:
        """Read what `save_pretrained` wrote; float32.

        Raises
        ------
        InputError
            A file is missing or unreadable, or a tensor is missing, unexpected or of another shape: named.
        """
        from safetensors import SafetensorError, safe_open
        from safetensors.torch import load_file

        config = read_config(folder)
        with torch.device("meta"):  # shapes only: nothing is allocated before they are known to be the file's
            wanted = {name: tuple(tensor.shape) for name, tensor in cls(config).state_dict().items()}
        weights = folder / "model.safetensors"
        try:
            with safe_open(weights, framework="pt") as file:
                shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
        except (OSError, SafetensorError) as error:
            raise InputError(str(weights), str(error), "a safetensors file") from error
        for name in sorted(wanted.keys() | shapes.keys()):
            found, expected = shapes.get(name, "nothing"), wanted.get(name, "no such tensor")
            if found != expected:
                raise InputError(f"{weights}, tensor {name}", found, expected)
        tensors = load_file(weights)
        for name, tensor in tensors.items():
            if not tensor.isfinite().all():
                raise InputError(f"{weights}, tensor {name}", "nan or infinity", "finite weights")
        model = cls(config)
        model.load_state_dict(tensors)
        return model


def read_config(folder: Path) -> GumihoConfig:
    """Read the drafter's config.json: unknown keys are the card's; shapes that are missing or absurd are an error."""
    path = folder / "config.json"
    record = read_json(path, CONFIG_BYTES)
    if record.get("method") != "gumiho":
        raise InputError(f"{path}, method", repr(record.get("method")), "'gumiho'")
    values: dict[str, int | float] = {}
    for name, (low, high) in _BOUNDS.items():
        value = record.get(name)
        kinds = (int, float) if isinstance(low, float) else (int,)
        if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
            raise InputError(f"{path}, {name}", repr(value), f"a number from {low} to {high}")
        values[name] = float(value) if isinstance(low, float) else value
    config = GumihoConfig(**values)
    for name, whole in (("heads", config.hidden_size), ("key_value_heads", config.heads)):
        if whole % getattr(config, name):
            raise InputError(f"{path}, {name}", getattr(config, name), f"a divisor of {whole}")
    return config


# What each field may be; a float where the bounds are floats. Wide enough for any model there is, narrow enough that a
# stranger's file cannot ask for the machine's whole memory by its shape alone.
_BOUNDS: dict[str, tuple[int, int] | tuple[float, float]] = {
    "hidden_size": (1, 65536),
    "intermediate_size": (1, 1 << 20),
    "heads": (1, 1024),
    "key_value_heads": (1, 1024),
    "vocab_size": (1, 1 << 24),
    "positions": (1, 1 << 30),
    "rope_theta": (1.0, 1e12),
    "norm_eps": (1e-20, 1.0),
    "serial_steps": (1, 64),
    "serial_layers": (1, 64),
    "parallel_heads": (0, 64),
    "head_blocks": (0, 64),
}
