"""A drafter's own format: a folder with config.json and model.safetensors."""

from __future__ import annotations

import json
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import torch
from torch import nn

from gumiho_theory import InputError
from gumiho_theory.files import read_json, reason, write_atomically

CONFIG_BYTES = 1 << 20
FLOATS = (torch.float16, torch.bfloat16, torch.float32)

M = TypeVar("M", bound=nn.Module)


def save_pretrained(
    model: nn.Module, method: str, folder: Path, dtype: torch.dtype | None = None, **record: object
) -> None:
    """Write config.json (`record` beside the shapes) and model.safetensors, in `dtype` if given.

    Each file appears whole or not at all; the weights first, so that a folder with a config is complete.
    """
    from safetensors.torch import save

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(str(folder), reason(error), "a folder that can be made and written") from error
    tensors = {k: v.detach().to("cpu", dtype or v.dtype).contiguous() for k, v in model.state_dict().items()}
    data = save(tensors, metadata={"format": "pt"})
    write_atomically(folder / "model.safetensors", lambda file: file.write(data))
    text = json.dumps({"method": method, **asdict(model.config), **record}, indent=1) + "\n"
    write_atomically(folder / "config.json", lambda file: file.write(text.encode()))


def load_pretrained(folder: Path, method: str, config_class: type, model_class: type[M]) -> M:
    """Read what `save_pretrained` wrote; float32.

    Raises InputError: A file is missing or unreadable, or a tensor is missing, unexpected or of another shape: named.
    """
    config = read_config(folder, method, config_class)
    weights = folder / "model.safetensors"
    shapes = safetensors_shapes(weights)
    check_shapes(str(weights), shapes, model_shapes(model_class, config))
    from safetensors.torch import load_file

    tensors = load_file(weights)
    for name, tensor in tensors.items():
        if tensor.dtype not in FLOATS:
            wanted = ", ".join(str(dtype).removeprefix("torch.") for dtype in FLOATS)
            raise InputError(f"{weights}, tensor {name}", str(tensor.dtype).removeprefix("torch."), wanted)
    model = model_class(config)
    model.load_state_dict(finite(str(weights), tensors))
    return model


class OwnFormat:
    """Of a model that is kept in this format: a folder of its method, with its configuration's shapes."""

    method: ClassVar[str]
    config_class: ClassVar[type]

    def save_pretrained(self, folder: Path, dtype: torch.dtype | None = None, **record: object) -> None:
        """Write config.json (with `record` beside the shapes) and model.safetensors, in `dtype` if given."""
        save_pretrained(self, self.method, folder, dtype, **record)

    @classmethod
    def from_pretrained(cls, folder: Path) -> Self:
        """Read what `save_pretrained` wrote; float32. InputError names the file, and the field or tensor."""
        return load_pretrained(folder, cls.method, cls.config_class, cls)


def read_config(folder: Path, method: str, config_class: type) -> Any:
    """Read a drafter's config.json: unknown keys are the card's; shapes that are missing or absurd are an error."""
    path = folder / "config.json"
    record = read_json(path, CONFIG_BYTES)
    if record.get("method") != method:
        raise InputError(f"{path}, method", repr(record.get("method")), repr(method))
    values: dict[str, int | float | bool] = {}
    for field in fields(config_class):
        value = record.get(field.name)
        if field.name not in config_class.BOUNDS:  # a switch, which older files may lack
            if field.default is MISSING or field.name in record:
                if not isinstance(value, bool):
                    raise InputError(f"{path}, {field.name}", repr(value), "true or false")
                values[field.name] = value
            continue
        low, high = config_class.BOUNDS[field.name]
        kinds = (int, float) if isinstance(low, float) else (int,)
        if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
            raise InputError(f"{path}, {field.name}", repr(value), f"a number from {low} to {high}")
        values[field.name] = float(value) if isinstance(low, float) else value
    try:
        return config_class(**values)
    except InputError as error:
        raise error.within(path) from None


def model_shapes(model_class: type[nn.Module], config: Any) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a model's tensors without allocating them."""
    with torch.device("meta"):
        return {name: tuple(tensor.shape) for name, tensor in model_class(config).state_dict().items()}


def safetensors_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a safetensors file's tensors, from its header alone."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise InputError(str(path), str(error), "a safetensors file") from error


def check_shapes(place: str, found: dict[str, tuple[int, ...]], wanted: dict[str, tuple[int, ...]]) -> None:
    """Name the first tensor that is missing, not expected, or of another shape."""
    for name in sorted(wanted.keys() | found.keys()):
        here, there = found.get(name, "nothing"), wanted.get(name, "no such tensor")
        if here != there:
            raise InputError(f"{place}, tensor {name}", here, there)


def finite(place: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the tensors; name the first that holds nan or infinity."""
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise InputError(f"{place}, tensor {name}", "nan or infinity", "finite weights")
    return tensors
