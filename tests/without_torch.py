"""Run pytest where torch, transformers and their kin cannot be imported: what is tested here must work without them."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder

import pytest

BLOCKED = frozenset({"torch", "transformers", "accelerate", "safetensors", "tokenizers"})


class Block(MetaPathFinder):
    """Refuse the blocked packages, as if they were not installed."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r} (blocked)", name=name)


if __name__ == "__main__":
    sys.exit(pytest.main(["-q", "-n", "2", "-p", "without_torch", *sys.argv[1:]]))
# Loaded as a plugin, in the first process and in each worker, before any test is:
sys.meta_path.insert(0, Block())
