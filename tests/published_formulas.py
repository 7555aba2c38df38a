"""The published heads written out from their papers' formulas on the published tensors: no cache, no batch, float64."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gumiho_decoder.target import Target
from published import GROUPS, HEADS, HIDDEN, State

SIZE = HIDDEN // HEADS


class Formulas:
    """Log q behind a path, of one checkpoint.

    Parameters
    ----------
    state : dict
        The published tensors.
    theta, eps : float
        Base of the rotary embedding; epsilon of the norms.
    """

    def __init__(self, state: State, target: Target, theta: float, eps: float) -> None:
        self.state = {name: tensor.double() for name, tensor in state.items()}
        self.table = target.model.get_input_embeddings().weight.double()
        self.head = target.model.get_output_embeddings().weight.double()
        self.theta, self.eps = theta, eps

    def linear(self, name: str, x: torch.Tensor) -> torch.Tensor:
        y = x @ self.state[f"{name}.weight"].T
        return y + self.state[f"{name}.bias"] if f"{name}.bias" in self.state else y

    def norm(self, name: str, x: torch.Tensor) -> torch.Tensor:
        return x / (x.pow(2).mean(-1, keepdim=True) + self.eps).sqrt() * self.state[f"{name}.weight"]

    def turned(self, x: torch.Tensor) -> torch.Tensor:
        """Rotary embedding: coordinate i and i + SIZE/2 of row t turn by t / theta^(2i / SIZE)."""
        half = SIZE // 2
        angle = torch.arange(len(x))[:, None] / self.theta ** (torch.arange(half).double() * 2 / SIZE)
        a, b = x[:, :half], x[:, half:]
        return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], dim=1)

    def layer(self, name: str, x: torch.Tensor) -> torch.Tensor:
        """One LLaMA layer over rows 0..n-1, causal; with the input norm where the checkpoint has one."""
        y = self.norm(f"{name}.input_layernorm", x) if f"{name}.input_layernorm.weight" in self.state else x
        q, k, v = (self.linear(f"{name}.self_attn.{part}_proj", y) for part in "qkv")
        out = []
        for head in range(HEADS):
            group = head // (HEADS // GROUPS)
            mine, its = slice(head * SIZE, (head + 1) * SIZE), slice(group * SIZE, (group + 1) * SIZE)
            scores = self.turned(q[:, mine]) @ self.turned(k[:, its]).T / SIZE**0.5
            causal = torch.ones_like(scores).tril().bool()
            out.append(scores.masked_fill(~causal, -torch.inf).softmax(-1) @ v[:, its])
        x = x + self.linear(f"{name}.self_attn.o_proj", torch.cat(out, dim=1))
        y = self.norm(f"{name}.post_attention_layernorm", x)
        gate = torch.nn.functional.silu(self.linear(f"{name}.mlp.gate_proj", y))
        return x + self.linear(f"{name}.mlp.down_proj", gate * self.linear(f"{name}.mlp.up_proj", y))

    def pairs(self, tokens: Sequence[int], features: torch.Tensor) -> torch.Tensor:
        """What the serial Transformer reads: FC of token t + 1 and feature t."""
        embedded = self.table[torch.tensor(tokens[1 : len(features) + 1])]
        return self.linear("fc", torch.cat([embedded, features], dim=1))

    def serial(self, tokens: Sequence[int], features: torch.Tensor, steps: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Features extended by `steps` predicted ones, and the pairs that they were predicted from."""
        known = features.double()
        for _ in range(steps):
            x = pairs = self.pairs(tokens, known)
            layers = {name.split(".")[1] for name in self.state if name.startswith("layers.")}
            for layer in range(len(layers)):
                x = self.layer(f"layers.{layer}", x)
            known = torch.cat([known, x[-1:]])
        return known, pairs

    def eagle(self, tokens: Sequence[int], features: torch.Tensor, path: Sequence[int]) -> torch.Tensor:
        known, _ = self.serial([*tokens, *path], features, len(path) + 1)
        return torch.log_softmax(known[-1] @ self.head.T, -1).float()

    def gumiho(self, tokens, features, path, *, steps: int, spelling: str = "mlp.") -> torch.Tensor:
        if len(path) < steps:
            return self.eagle(tokens, features, path)
        text = [*tokens, *path[:steps]]
        known, _ = self.serial(text, features, steps)
        window = self.pairs(text, known)[-min(2, steps) :].flatten()
        name = f"{spelling}{len(path) - steps}"
        x = torch.nn.functional.silu(self.linear(f"{name}.0.linear", window))
        for block in range(1, sum(key.startswith(f"{name}.") and key.endswith("weight") for key in self.state)):
            x = x + torch.nn.functional.silu(self.linear(f"{name}.{block}.linear", x))
        return torch.log_softmax(x @ self.head.T, -1).float()

    def medusa(self, tokens, features, path) -> torch.Tensor:
        x, block, name = features[-1].double(), 0, f"{len(path)}"
        while f"{name}.{block}.linear.weight" in self.state:
            x = x + torch.nn.functional.silu(self.linear(f"{name}.{block}.linear", x))
            block += 1
        return torch.log_softmax(x @ self.state.get(f"{name}.{block}.weight", self.head).T, -1).float()

    def hydra(self, tokens, features, path) -> torch.Tensor:
        seen, inner = features.double(), "prefix_embeding_layer"
        if prefix := f"{inner}.norm.weight" in self.state:
            seen = self.norm(f"{inner}.norm", self.layer(f"{inner}.layers.0", seen))
        x, name = seen[-1], f"hydra_mlp.{len(path)}"
        if any("res_connection" in key for key in self.state):
            x = torch.cat([x, *self.table[torch.tensor([tokens[-1], *path])]])
        for block in sorted({key.split(".")[2] for key in self.state if key.startswith(f"{name}.")}):
            wide = f"{name}.{block}.res_connection.weight" in self.state
            skip = self.linear(f"{name}.{block}.res_connection", x) if wide else x
            x = skip + torch.nn.functional.silu(self.linear(f"{name}.{block}.linear", x))
        logits = self.linear(f"hydra_lm_head.{len(path)}{'.1' if prefix else ''}", x)
        return torch.log_softmax(logits, -1).float()
