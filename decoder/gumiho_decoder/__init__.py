"""The reference decoder: Hugging Face targets, Gumiho drafters, exact verification, traces.

Names and rooms are imported when they are first asked for, so that the command line starts without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gumiho_decoder.config import GenerationConfig
    from gumiho_decoder.drafters import load_drafter
    from gumiho_decoder.embedded import PROMPTS
    from gumiho_decoder.logging import Recorder
    from gumiho_decoder.loop import generate, plain
    from gumiho_decoder.measuring import choose, compare, read_prompts
    from gumiho_decoder.target import load_target

_HOME = {
    "GenerationConfig": "config",
    "PROMPTS": "embedded",
    "Recorder": "logging",
    "choose": "measuring",
    "compare": "measuring",
    "generate": "loop",
    "load_drafter": "drafters",
    "load_target": "target",
    "plain": "loop",
    "read_prompts": "measuring",
}
_ROOMS = ("acceptance", "drafters", "logging", "measuring", "training")

__all__ = [
    "PROMPTS",
    "GenerationConfig",
    "Recorder",
    "choose",
    "compare",
    "generate",
    "load_drafter",
    "load_target",
    "plain",
    "read_prompts",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, *_ROOMS])
