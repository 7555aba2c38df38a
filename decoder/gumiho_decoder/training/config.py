"""How a drafter is trained: every setting in one place, with each method's published values as defaults."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from gumiho_theory import InputError

_PLACE = "training"
_EAGLE = dict(epochs=20.0, batch=4, rate=2e-4, weight_decay=0.01, regression=1.0, cross_entropy=0.1, noise=0.2)
_HEADS = dict(betas=(0.9, 0.999), clip=1.0, schedule="cosine")

DEFAULTS: dict[str, dict[str, Any]] = {
    # Gumiho (arXiv 2503.10135) and its released training program (AMD-AIG-AIMA/Gumiho at 9a1bc87, gumiho/train/
    # main_deepspeed.py with the flags of scripts/train.sh); of EAGLE (arXiv 2401.15077) the same but for the rate.
    "gumiho": _EAGLE
    | dict(serial_steps=2, serial_layers=2, parallel_heads=5, head_blocks=5)
    | dict(head_share=1.0, detach_heads=False, head_weight=1 / 9, head_decay=0.8, head_cross_entropy_from=0.1)
    | dict(head_input="shared"),
    "eagle": _EAGLE | dict(rate=3e-5, serial_layers=1),
    # Medusa-1 (arXiv 2401.10774): later heads, which know less, weigh less.
    "medusa": _HEADS | dict(epochs=1.0, batch=128, rate=1e-3, warmup=0.1, heads=5, layers=1, head_decay=0.8),
    # Hydra++ (arXiv 2402.05109): four blocks a head behind a prefix layer.
    "hydra": _HEADS | dict(epochs=10.0, batch=32, rate=5e-4, weight_decay=0.1, heads=4, layers=4, prefix=True),
    "draft-model": dict(epochs=1.0, batch=32, rate=1e-3, clip=1.0, weight_decay=0.1, schedule="cosine", layers=2),
}
"""What each method takes where nothing else is asked for. A setting that only some methods have is in their row."""

EQUAL_HEADS = dict(head_weight=1.0, head_decay=1.0, head_cross_entropy_from=0.0)
"""Gumiho's parallel heads weighed like its serial part, each of them, from the first step."""

_SHARED = (
    *("method", "steps", "epochs", "length", "batch", "gradient_accumulation", "optimizer", "rate", "betas"),
    *("weight_decay", "clip", "warmup", "schedule", "mixed_precision", "checkpoint_every", "eval_every", "seed"),
)
_CHOICES = {
    "method": tuple(DEFAULTS),
    "optimizer": ("adamw", "muon"),
    "schedule": ("linear", "cosine", "constant"),
    "mixed_precision": ("no", "bf16", "fp16"),
    "head_input": ("shared", "own"),
}
# What a number may be; whole where both bounds are.
_BOUNDS: dict[str, tuple[float, float]] = {
    "steps": (1, 10**9),
    "epochs": (1e-9, 1e6),
    "length": (2, 1 << 20),
    "batch": (1, 1 << 20),
    "gradient_accumulation": (1, 1 << 20),
    "rate": (1e-12, 1e3),
    "muon_rate": (1e-12, 1e3),
    "weight_decay": (0.0, 1.0),
    "clip": (1e-9, 1e9),
    "warmup": (0.0, 0.999),
    "checkpoint_every": (1, 10**9),
    "eval_every": (1, 10**9),
    "seed": (0, 2**31 - 1),
    "serial_steps": (1, 64),
    "serial_layers": (1, 64),
    "parallel_heads": (0, 64),
    "head_blocks": (0, 64),
    "heads": (1, 64),
    "layers": (1, 64),
    "hidden_size": (2, 1 << 16),
    "regression": (0.0, 1e6),
    "cross_entropy": (0.0, 1e6),
    "noise": (0.0, 1e6),
    "head_share": (1e-9, 1.0),
    "head_decay": (1e-9, 1.0),
    "head_weight": (0.0, 1e6),
    "head_cross_entropy_from": (0.0, 1.0),
}
# A resumed run may differ in these: they move no weight, but for rounding.
_FREE = ("gradient_accumulation", "checkpoint_every", "eval_every")


@dataclass(frozen=True)
class TrainConfig:
    """How a drafter is trained; `TrainConfig.of` fills in a method's defaults.

    None: the method has no such setting (or, of `steps` and `epochs`, the other one is given).

    Attributes
    ----------
    method : str
        `gumiho`, `eagle`, `medusa`, `hydra` or `draft-model`.
    steps : int or None
        Optimizer steps in all.
    epochs : float or None
        Instead: times that every block is read.
    length : int
        Tokens of a block.
    batch : int
        Blocks of an optimizer step, over all processes and accumulated parts.
    gradient_accumulation : int
        Parts in which a process reads its blocks of a step, so that they fit in memory; the sums are the same.
    optimizer : str
        `adamw`, or `muon` for hidden matrices with AdamW for the rest (see `training.split_optimizers`).
    rate, muon_rate : float
        Peak learning rates, of AdamW and of Muon.
    betas : (float, float)
        Of AdamW.
    weight_decay, clip : float
        Weight decay; largest gradient norm.
    warmup : float
        Share of the steps over which the rates rise.
    schedule : str
        How they fall after that: `linear` or `cosine` to 0, or `constant`.
    mixed_precision : str
        `no`, `bf16` or `fp16` (accelerators only).
    checkpoint_every, eval_every : int
        Steps between checkpoints, and between measurements on held-out blocks.
    seed : int
        Of weights, noise and order.
    serial_steps, serial_layers, parallel_heads, head_blocks : int or None
        Shape of Gumiho (of EAGLE: `serial_layers`); see `GumihoConfig`.
    heads : int or None
        Medusa's or Hydra's draft positions.
    layers : int or None
        Blocks of each of their heads; layers of a draft model.
    prefix : bool or None
        Whether Hydra has a prefix layer (Hydra++).
    hidden_size : int or None
        Width of a draft model; None: the target's.
    regression, cross_entropy : float or None
        Weights of smooth-L1 and of the soft cross-entropy (Gumiho, EAGLE).
    noise : float or None
        Width of the uniform noise on their input features, so that they learn to read inexact ones.
    head_input : str or None
        `shared`: Gumiho's parallel heads read tokens and features through the serial part's FC, as published; `own`:
        through one of their own.
    head_share : float or None
        Share of positions at which Gumiho's parallel heads are trained in a step, drawn anew each time: their softmaxes
        over the vocabulary cost more than everything else.
    detach_heads : bool or None
        Whether the parallel heads' losses leave Gumiho's serial part alone; as released they train it too.
    head_weight, head_decay : float or None
        Head i (1-based) weighs head_weight * head_decay ** i beside Gumiho's serial part: 1/9 and 0.8 as released, so
        that five heads weigh 0.30 together; 1 and 1 for equal weights. Medusa has the decay alone.
    head_cross_entropy_from : float or None
        Share of the steps after which the soft cross-entropy of Gumiho's heads counts: the released program switches it
        on after two epochs, of the paper's twenty.

    Raises
    ------
    InputError
        A value out of range, one that the method does not have, or two that do not go together; named.
    """

    method: str
    steps: int | None = None
    epochs: float | None = None
    length: int = 2048
    batch: int = 4
    gradient_accumulation: int = 1
    optimizer: str = "adamw"
    rate: float = 2e-4
    muon_rate: float | None = None
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.0
    clip: float = 0.5
    warmup: float = 0.01
    schedule: str = "linear"
    mixed_precision: str = "no"
    checkpoint_every: int = 500
    eval_every: int = 500
    seed: int = 0
    serial_steps: int | None = None
    serial_layers: int | None = None
    parallel_heads: int | None = None
    head_blocks: int | None = None
    heads: int | None = None
    layers: int | None = None
    prefix: bool | None = None
    hidden_size: int | None = None
    regression: float | None = None
    cross_entropy: float | None = None
    noise: float | None = None
    head_input: str | None = None
    head_share: float | None = None
    detach_heads: bool | None = None
    head_decay: float | None = None
    head_weight: float | None = None
    head_cross_entropy_from: float | None = None

    @classmethod
    def of(cls, method: str, **changes: Any) -> TrainConfig:
        """Return the method's defaults with some settings changed; None changes nothing.

        Raises
        ------
        InputError
            See the class; or a setting that there is not.
        """
        _check("method", method)
        changes = {name: value for name, value in changes.items() if value is not None}
        values = DEFAULTS[method] | changes
        if "steps" in changes and "epochs" not in changes:
            values["epochs"] = None
        if changes.get("optimizer") == "muon":
            values.setdefault("muon_rate", 1e-2)
        return cls.from_json({"method": method, **values}, _PLACE)

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            _check(field.name, value)
            if value is not None and field.name not in _settings(self.method, self.optimizer):
                raise _error(field.name, value, f"nothing: {self._whose()} has no such setting")
            if value is None and field.name in _settings(self.method, self.optimizer) - {"hidden_size"} - _LENGTHS:
                raise _error(field.name, None, f"a value: {self._whose()} needs it")
        if (self.steps is None) == (self.epochs is None):
            both = "none" if self.steps is None else f"steps {self.steps} and epochs {self.epochs}"
            raise _error("steps", both, "either steps or epochs")
        if self.batch % self.gradient_accumulation:
            raise _error("gradient_accumulation", self.gradient_accumulation, f"a divisor of batch {self.batch}")
        if self.optimizer == "muon" and self.method == "medusa":
            raise _error("optimizer", "'muon'", "'adamw': Medusa's weights are stacked, none is a matrix")
        if self.optimizer == "muon" and self.mixed_precision == "fp16":
            raise _error("mixed_precision", "'fp16'", "'no' or 'bf16' with optimizer 'muon': one scale, two optimizers")
        if self.length < self.least_length:
            raise _error("length", self.length, f"at least {self.least_length}, for method {self.method} to reach that")

    @property
    def least_length(self) -> int:
        """Tokens that a block needs to have one position for every draft position, in training and when measured."""
        if self.method == "gumiho":
            return self.serial_steps + self.parallel_heads + 2
        return 3 if self.heads is None else self.heads + 2

    def rate_at(self, step: int) -> float:
        """Return the factor on every learning rate at `step` (0-based)."""
        rising = round(self.warmup * self.steps)
        if step < rising:
            return (step + 1) / rising
        left = (self.steps - step) / (self.steps - rising)
        return {"linear": left, "cosine": (1 - math.cos(math.pi * left)) / 2, "constant": 1.0}[self.schedule]

    def over(self, blocks: int) -> TrainConfig:
        """Return the same with its epochs over so many blocks turned into steps."""
        if self.epochs is None:
            return self
        return replace(self, steps=max(1, math.ceil(self.epochs * blocks / self.batch)), epochs=None)

    def check_same(self, other: TrainConfig, place: str) -> None:
        """Refuse to go on with a run that was begun with other settings.

        Raises
        ------
        InputError
            Names the first that differs.
        """
        for field in fields(self):
            found, wanted = getattr(self, field.name), getattr(other, field.name)
            if found != wanted and field.name not in _FREE:
                raise InputError(f"{place}, {field.name}", repr(found), f"{wanted!r}, as the run was begun with")

    def to_json(self) -> dict[str, Any]:
        """Return all settings that the method has."""
        values = {name: value for name, value in asdict(self).items() if value is not None}
        return values | {"betas": list(self.betas)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], place: str) -> TrainConfig:
        """Read what `to_json` made.

        Raises
        ------
        InputError
            A setting is unknown or wrong; `place` is named.
        """
        known = {field.name for field in fields(cls)}
        if unknown := [name for name in data if name not in known]:
            method = data.get("method")
            names = sorted(_settings(method)) if method in DEFAULTS else sorted(known)
            raise InputError(f"{place}, {unknown[0]}", "no such setting", ", ".join(names))
        values = dict(data)
        if values.get("method") == "gumiho" and "head_weight" not in values:
            values |= EQUAL_HEADS  # of a run that was begun before there was this setting
        if values.get("method") == "gumiho":
            values.setdefault("head_input", "shared")
        if isinstance(values.get("betas"), list):
            values["betas"] = tuple(values["betas"])
        _check("method", values.get("method"), place)
        try:
            return cls(**values)
        except InputError as error:
            if place == _PLACE:
                raise
            raise error.within(place) from None

    def _whose(self) -> str:
        return f"method {self.method} with optimizer {self.optimizer}"


_LENGTHS = {"steps", "epochs"}


def _settings(method: str, optimizer: str = "muon") -> set[str]:
    """Return the names of the settings that a method has."""
    own = {"hidden_size"} if method == "draft-model" else set()
    return {*_SHARED, *DEFAULTS[method], *own, *(["muon_rate"] if optimizer == "muon" else [])}


def _check(name: str, value: Any, place: str = _PLACE) -> None:
    """Refuse a value of the wrong kind or out of range; None is judged elsewhere."""
    if name in _CHOICES and not (value is None and name == "head_input"):
        if value not in _CHOICES[name]:
            raise _error(name, repr(value), ", ".join(_CHOICES[name]), place)
    elif name == "betas":
        right = isinstance(value, tuple) and len(value) == 2 and all(isinstance(b, float | int) for b in value)
        if not right or not all(0 <= b < 1 for b in value):
            raise _error(name, repr(value), "two numbers, 0 <= beta < 1", place)
    elif value is None:
        return
    elif name in ("prefix", "detach_heads"):
        if not isinstance(value, bool):
            raise _error(name, repr(value), "true or false", place)
    else:
        low, high = _BOUNDS[name]
        whole = isinstance(low, int) and isinstance(high, int)
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not low <= value <= high:
            kind = "an integer" if whole else "a number"
            raise _error(name, repr(value), f"{kind} from {low:g} to {high:g}", place)


def _error(name: str, found: object, wanted: str, place: str = _PLACE) -> InputError:
    return InputError(f"{place}, {name}", found, wanted)
