"""What tells one drafter's weights from another's: a calibration belongs to them."""

from __future__ import annotations

import hashlib

import torch


def fingerprint(module: torch.nn.Module) -> str:
    """Return the SHA-256 over a state dict's sorted names, dtypes, shapes and bytes; the same on every device."""
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()
