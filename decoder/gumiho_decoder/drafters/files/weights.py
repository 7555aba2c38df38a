"""Weight files of strangers: shapes first, tensors one by one, nothing run and nothing allocated on their word."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from gumiho_decoder.drafters.files.own_format import FLOATS, finite, safetensors_shapes
from gumiho_theory import InputError

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Weights:
    """Tensors of a file: shapes at once, contents one by one."""

    path: Path
    shapes: dict[str, Shape]
    tensor: Callable[[str], torch.Tensor]

    def read(self, name: str) -> torch.Tensor:
        """Return a tensor, float32."""
        tensor = self.tensor(name)
        if tensor.dtype not in FLOATS:
            raise InputError(f"{self.path}, tensor {name}", tensor.dtype, "float32, float16 or bfloat16")
        return finite(str(self.path), {name: tensor})[name].detach().float()


def open_weights(folder: Path, files: tuple[str, str]) -> Weights | None:
    """Open the first of the files that is there: safetensors before pickle."""
    safe, pickled = (folder / file for file in files)
    if safe.is_file():
        from safetensors import safe_open

        shapes = safetensors_shapes(safe)
        return Weights(safe, shapes, safe_open(safe, framework="pt").get_tensor)
    if pickled.is_file():
        state = _unpickled(pickled)
        return Weights(pickled, {name: tuple(tensor.shape) for name, tensor in state.items()}, state.__getitem__)
    return None


def _unpickled(path: Path) -> dict[str, torch.Tensor]:
    """Map what torch.save wrote into memory, running nothing that it holds."""
    wanted = "a state dict of tensors, as torch.save writes it"
    try:
        # torch.save never compresses: an archive that does could be small and its contents without bound. The older
        # format, no archive, cannot be mapped: its storages would be allocated as large as the file says.
        with zipfile.ZipFile(path) as archive:
            compressed = any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist())
        if compressed:
            raise ValueError("a compressed archive")
        state = torch.load(path, map_location="cpu", mmap=True, weights_only=True)
    except Exception as error:  # a stranger's bytes can make the reader fail in any way
        raise InputError(str(path), f"{type(error).__name__}: {error}", wanted) from error
    if not isinstance(state, dict):
        raise InputError(str(path), f"a {type(state).__name__}", wanted)
    for name, tensor in state.items():
        if not isinstance(name, str) or type(tensor) not in (torch.Tensor, nn.Parameter):
            raise InputError(f"{path}, {name!r}", f"a {type(tensor).__name__}", wanted)
        if tensor.layout != torch.strided or tensor.device.type != "cpu":
            raise InputError(f"{path}, tensor {name}", f"{tensor.layout} on {tensor.device}", "a dense tensor")
    return state
