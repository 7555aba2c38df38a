"""The reference decoder: Hugging Face targets, Gumiho drafters, exact verification, traces.

Names are imported when they are first asked for, so that the command line starts without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gumiho_decoder.config import GenerationConfig
    from gumiho_decoder.drafters.load import load_drafter
    from gumiho_decoder.loop import generate, plain
    from gumiho_decoder.recorder import Recorder
    from gumiho_decoder.target import load_target

_HOME = {
    "GenerationConfig": "config",
    "Recorder": "recorder",
    "generate": "loop",
    "load_drafter": "drafters.load",
    "load_target": "target",
    "plain": "loop",
}

__all__ = ["GenerationConfig", "Recorder", "generate", "load_drafter", "load_target", "plain"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
