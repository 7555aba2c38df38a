"""A frozen causal LM: prefill, verify a draft tree in one forward, keep exactly the accepted path.

Only the public interface of transformers is used: a boolean 4-D attention mask, position ids and a `DynamicCache`.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gumiho_decoder.draft import Drafter
from gumiho_theory import InputError


@dataclass(frozen=True)
class Verified:
    """What one forward of the target says about its rows.

    Attributes
    ----------
    logits : Tensor, shape (rows, vocabulary)
        Next-token logits behind each row, float32.
    features : Tensor, shape (rows, hidden)
        Last hidden state of each row, after the final norm: the lm_head's input, which drafters read.
    """

    logits: torch.Tensor
    features: torch.Tensor


def cache_keyword(model: torch.nn.Module) -> str:
    """Return the name under which this model's `forward` takes a cache: it changed within transformers 5."""
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


class Target:
    """A causal LM of transformers with its tokenizer, and the cache of one sequence.

    Attributes
    ----------
    model : transformers.PreTrainedModel
    tokenizer : transformers.PreTrainedTokenizerBase
    name : str
        What it was loaded from, for the records.
    """

    def __init__(self, model, tokenizer, name: str) -> None:
        self.model = model.eval().requires_grad_(False)
        self.tokenizer = tokenizer
        self.name = name
        self.config = model.config.get_text_config()
        self.cache = None
        self._cache_keyword = cache_keyword(model)
        self._softcap = getattr(self.config, "final_logit_softcapping", None)
        self._scale = getattr(self.config, "logit_scale", None) or 1 / (
            getattr(self.config, "logits_scaling", None) or 1
        )
        self._feature_gap = 0.0

    @property
    def device(self) -> torch.device:
        """Where the model's first weights are."""
        return self.model.device

    @property
    def dtype(self) -> torch.dtype:
        """Of the weights."""
        return self.model.dtype

    @property
    def head_device(self) -> torch.device:
        """Where the lm_head is, and so the features, the logits and a drafter; differs when layers are spread."""
        return self.model.get_output_embeddings().weight.device

    @property
    def hidden_size(self) -> int:
        """Width H of the features: of the lm_head's input."""
        return self.model.get_output_embeddings().weight.shape[1]

    @property
    def vocab_size(self) -> int:
        """Rows of the lm_head."""
        return self.model.get_output_embeddings().weight.shape[0]

    @property
    def positions(self) -> int:
        """Most tokens a sequence may hold."""
        positions = getattr(self.config, "max_position_embeddings", None)
        if not isinstance(positions, int):
            raise InputError(f"target {self.name!r}", f"max_position_embeddings {positions}", "a number of positions")
        return positions

    def positions_with(self, drafter: Drafter) -> int:
        """Return the most tokens a sequence may hold where this drafter drafts."""
        return min(self.positions, drafter.positions or self.positions)

    @property
    def eos_token_ids(self) -> frozenset[int]:
        """Tokens that end an output, as `generate` would take them."""
        ids = self.model.generation_config.eos_token_id
        if ids is None:
            return frozenset()
        return frozenset([ids] if isinstance(ids, int) else ids)

    @property
    def length(self) -> int:
        """Tokens whose keys and values are in the cache."""
        return 0 if self.cache is None else self.cache.get_seq_length()

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the frozen embedding of tokens, (...) -> (..., H), on the head's device."""
        table = self.model.get_input_embeddings()
        return table(tokens.to(table.weight.device)).to(self.head_device)

    def log_probabilities(self, features: torch.Tensor) -> torch.Tensor:
        """Read features, (..., H), through the frozen lm_head: log-probabilities, (..., V), float32."""
        logits = self.model.get_output_embeddings()(features).float() * self._scale
        if self._softcap is not None:
            logits = self._softcap * torch.tanh(logits / self._softcap)
        # Heads whose weights overflow say nothing: without candidates a draft is poor, with nan it would be no tree.
        log_p = torch.log_softmax(logits, dim=-1)
        return log_p.masked_fill(log_p.isnan(), -torch.inf)

    def note_features(self, gap: float) -> None:
        """Note by how much the logits differ that the lm_head makes of the features; rounding apart, 0."""
        self._feature_gap = gap

    def check_fit(self, drafter: str, hidden_size: int, vocab_size: int) -> None:
        """Refuse heads that were made for a target of another shape.

        Raises
        ------
        InputError
            Hidden size or vocabulary differ; or this target's features are not what its lm_head reads.
        """
        for field, found, wanted in (
            ("hidden_size", hidden_size, self.hidden_size),
            ("vocab_size", vocab_size, self.vocab_size),
        ):
            if found != wanted:
                raise InputError(f"drafter {drafter!r}, {field}", found, f"{wanted}, as target {self.name!r} has")
        if self._feature_gap > _TREE_TOLERANCE[self.dtype]:
            found = f"a last hidden state that its lm_head reads as other logits (by {self._feature_gap:.2g})"
            raise InputError(
                f"target {self.name!r}", found, f"features for drafter {drafter!r} (or: ngram, draft-model:…)"
            )

    def encode(self, prompt: str) -> list[int]:
        """Return the prompt's token ids, as the tokenizer makes them."""
        return self.tokenizer(prompt)["input_ids"]

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of token ids, special tokens left out."""
        return self.tokenizer.decode(tokens, skip_special_tokens=True)

    def prefill(self, tokens: Sequence[int]) -> Verified:
        """Start a sequence: read the prompt, keep its keys and values.

        Returns
        -------
        Verified
            `logits` of the last token only (1 row), `features` of every token (one row each).

        Raises
        ------
        InputError
            No token, or more tokens than the model has positions.
        """
        from transformers import DynamicCache

        if not 1 <= len(tokens) <= self.positions:
            raise InputError("prompt", f"{len(tokens)} tokens", f"1 to {self.positions}")
        self.cache = DynamicCache(config=self.model.config)
        ids = torch.tensor([list(tokens)], device=self.device)
        out = self._forward(input_ids=ids, output_hidden_states=True, logits_to_keep=1)
        return self._verified(out)

    def verify(self, tokens: torch.Tensor, ancestors: torch.Tensor, depths: torch.Tensor) -> Verified:
        """Read all nodes of a draft tree at once, each seeing the verified text and its own ancestors only.

        Parameters
        ----------
        tokens : Tensor, shape (nodes,)
            Node tokens; node 0 is the root, the last verified token, whose keys and values are not in the cache yet.
        ancestors : bool Tensor, shape (nodes, nodes)
            True where the column's node is the row's ancestor or the row itself.
        depths : Tensor, shape (nodes,)
            Distance from the root.

        Returns
        -------
        Verified
            One row a node.
        """
        past, nodes = self.length, len(tokens)
        mask = torch.ones(1, 1, nodes, past + nodes, dtype=torch.bool, device=self.device)
        mask[0, 0, :, past:] = ancestors.to(self.device)
        out = self._forward(
            input_ids=tokens[None].to(self.device),
            attention_mask=mask,
            position_ids=(past + depths)[None].to(self.device),
            output_hidden_states=True,
        )
        return self._verified(out)

    def keep(self, nodes: int, path: Sequence[int], at: torch.Tensor) -> None:
        """Of the `nodes` rows just verified keep those of `path` (root first, ascending), and forget the others.

        `at` is the same path as an int64 Tensor, on any device.
        """
        start = self.length - nodes
        if list(path) != list(range(len(path))):
            rows = at + start
            for layer in self.cache.layers:
                for states in (layer.keys, layer.values):
                    # Layers may live on several devices; the gather copies before the write, so overlap is safe.
                    states[:, :, start : start + len(path)] = states[:, :, rows.to(states.device)]
        self.cache.crop(len(path) - nodes)  # a number below 0: that many from the end

    def step(self, token: int) -> torch.Tensor:
        """Plain decoding: read one token, return the next-token logits, shape (vocabulary,), float32."""
        ids = torch.tensor([[token]], device=self.device)
        return self._forward(input_ids=ids).logits[0, -1].float().to(self.head_device)

    def _verified(self, out) -> Verified:
        # Spread over devices, a model may return its outputs where its inputs were.
        logits, features = out.logits[0].float(), out.hidden_states[-1][0]
        return Verified(logits.to(self.head_device), features.to(self.head_device))

    def _forward(self, **arguments):
        return self.model(**arguments, **{self._cache_keyword: self.cache}, use_cache=True)


MAX_LAYERS = 4096
DTYPES = ("float32", "bfloat16", "float16")


def check_device(device: str, dtype: str) -> None:
    """Refuse, with an InputError, a dtype that is not decoded in and a device that is not there."""
    if dtype not in DTYPES:
        raise InputError("--dtype", repr(dtype), ", ".join(DTYPES))
    try:
        if device != "auto":
            torch.zeros(1, device=device).item()  # a device of no memory, such as meta, has no item
    except (RuntimeError, AssertionError, ImportError) as error:
        raise InputError("--device", repr(device), "cpu, auto, or an accelerator that this machine has") from error


def load_target(name: str, device: str = "cpu", dtype: str = "float32", device_map: Any = None) -> Target:
    """Load a target: `tiny` (embedded), a Hugging Face folder or id.

    Parameters
    ----------
    name : str
    device : str
        Where the whole model goes; `auto` spreads it over all devices there are.
    dtype : str
        Name of a torch dtype.
    device_map : optional
        As `from_pretrained` takes it, instead of `device`: layers spread over devices.

    Raises
    ------
    InputError
        Nothing loadable there, or a model kind whose cache cannot hold a draft tree.
    """
    import transformers
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, DynamicCache
    from transformers.cache_utils import DynamicLayer

    from gumiho_decoder.embedded import embedded

    transformers.utils.logging.disable_progress_bar()  # what loads is named if it fails; stderr is for that
    path = embedded("target") if name == "tiny" else name
    spread = "auto" if device == "auto" else device_map
    settings = {"dtype": getattr(torch, dtype), "device_map": spread, "output_loading_info": True}
    try:
        # A stranger's folder may name code of its own, which is not run.
        config = AutoConfig.from_pretrained(path, trust_remote_code=False)
        layers = getattr(config.get_text_config(), "num_hidden_layers", 0)
        if isinstance(layers, int) and layers > MAX_LAYERS:  # building them would not end
            raise ValueError(f"num_hidden_layers {layers}, above {MAX_LAYERS}")
        tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=False)
        model, report = AutoModelForCausalLM.from_pretrained(path, trust_remote_code=False, **settings)
        kinds = {type(layer) for layer in DynamicCache(config=model.config).layers}
    except Exception as error:  # a stranger's folder can make the library fail in any way
        found = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        raise InputError(f"target {name!r}", found, "a causal LM's folder or id, or 'tiny'") from error
    if report["missing_keys"]:  # they would be random numbers
        missing = sorted(report["missing_keys"])
        found = f"no tensor {missing[0]}" + (f" nor {len(missing) - 1} others" if len(missing) > 1 else "")
        raise InputError(f"target {name!r}", found, "all of the model's tensors")
    # Only a layer that keeps every token's keys and values can be cut back to an accepted path.
    if kinds != {DynamicLayer}:
        found = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise InputError(f"target {name!r}", f"cache layers of kind {found}", "full attention (DynamicLayer) in all")
    # Such embeddings change for the whole text once it grows long: keys in the cache would no longer be what one
    # forward over the text gives, and a block of drafts would not see what plain decoding sees.
    rope = (getattr(model.config.get_text_config(), "rope_parameters", None) or {}).get("rope_type")
    if rope in {"longrope", "dynamic"}:
        raise InputError(f"target {name!r}", f"rotary embeddings of type {rope}", "such as do not change with length")
    target = Target(model if spread is not None else model.to(device), tokenizer, name)
    check_tree_attention(target)
    return target


# A tree's logits may differ from a path's by rounding; a mask that is not honoured moves them by tenths and more.
_TREE_TOLERANCE = {torch.float32: 1e-2, torch.float16: 0.1, torch.bfloat16: 0.5}


@torch.inference_mode()
def check_tree_attention(target: Target) -> None:
    """Read a small tree in one forward and path by path, and compare.

    Raises
    ------
    InputError
        The model cannot read a tree, or reads it wrongly: attention that does not take a boolean mask (eager), or
        positions that it makes up itself.
    """
    place = f"target {target.name!r}"
    wanted = "a causal LM that reads a draft tree as its paths (attention of kind sdpa, position ids)"
    try:
        ids = [i % target.vocab_size for i in range(1, 12)]
        prompt, tokens = ids[:5], ids[5:10]
        paths = [[0], [0, 1], [0, 2], [0, 1, 3], [0, 2, 4]]
        expected = torch.stack([target.prefill(prompt + [tokens[i] for i in path]).logits[-1] for path in paths])
        mask = torch.tensor([[column in path for column in range(5)] for path in paths], device=target.device)
        depths = torch.tensor([len(path) - 1 for path in paths], device=target.device)
        target.prefill(prompt)
        read = target.verify(torch.tensor(tokens, device=target.device), mask, depths)
        gap = float((read.logits - expected).abs().max())
        target.cache = None
        again = target.log_probabilities(read.features)
        target.note_features(float((again - read.logits.log_softmax(-1)).abs().max()))
    except InputError:
        raise  # it is a ValueError too, and says already what is wrong
    except (AttributeError, IndexError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(place, f"{type(error).__name__}: {error}", wanted) from error
    scale = max(1.0, float(expected.abs().max()) / 10)
    if not gap <= _TREE_TOLERANCE[target.dtype] * scale:
        raise InputError(place, f"logits that differ by {gap:.2g} between tree and path", wanted)
