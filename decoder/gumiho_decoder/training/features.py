"""The frozen target's hidden states of training blocks: computed as they are needed, or kept on disk."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gumiho_decoder.drafters.files.fingerprint import fingerprint
from gumiho_decoder.drafters.files.own_format import safetensors_shapes
from gumiho_decoder.target import Target
from gumiho_theory import InputError
from gumiho_theory.files import read_json, reason, write_json

DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32}
_SCHEMA = "gumiho.features/1"
_SHARD_BYTES = 2**28
_MOST_OPEN = 256  # shards: systems limit the open files of a process
_READ_AT_ONCE = 8  # blocks of one forward


@torch.no_grad()
def read_features(target: Target, tokens: torch.Tensor) -> torch.Tensor:
    """Return the target's last hidden state of every token, (batch, length) -> (batch, length, H), float32.

    Every row is read alone: what follows a token, padding too, changes nothing for it.
    """
    out = target.model(input_ids=tokens.to(target.device), output_hidden_states=True, logits_to_keep=1, use_cache=False)
    return out.hidden_states[-1].to(target.head_device, torch.float32)


def data_fingerprint(tokens: NDArray[Any], mask: NDArray[np.bool_]) -> str:
    """Return the SHA-256 of blocks, (n, length) each, whatever integer type holds the tokens."""
    digest = hashlib.sha256(f"{tokens.shape}".encode())
    for first in range(0, len(tokens), 4096):
        digest.update(np.ascontiguousarray(tokens[first : first + 4096], dtype="<u4"))
        digest.update(np.ascontiguousarray(mask[first : first + 4096], dtype=np.uint8))
    return digest.hexdigest()


def cache_bytes(blocks: int, length: int, hidden_size: int, dtype: str = "bfloat16") -> int:
    """Return how many bytes a cache takes on disk, headers apart: features, tokens (int32) and mask."""
    return blocks * length * (hidden_size * DTYPES[dtype].itemsize + 5)


class FeatureCache:
    """The features of all blocks, in shards of safetensors: `features` (n, length, H), `tokens` int32, `mask` bool.

    `index.json` says whose features they are, of which data, and, last of all, that the cache is complete. A shard that
    is there is not made again: a cache that was cut short is taken up where it stopped.

    Parameters
    ----------
    folder : path
    target : Target
    tokens : integer array, shape (n, length)
    mask : bool array, shape (n, length)
    dtype : str
        `bfloat16` or `float32`.
    shard_rows : int, optional
        Blocks of a shard; else as many as make a quarter of a GiB.

    Raises
    ------
    InputError
        The folder holds the features of another target, of other data, in another dtype or otherwise cut; named.
    """

    def __init__(
        self,
        folder: Path,
        target: Target,
        tokens: NDArray[Any],
        mask: NDArray[np.bool_],
        dtype: str = "bfloat16",
        shard_rows: int | None = None,
    ) -> None:
        if dtype not in DTYPES:
            raise InputError("feature cache, dtype", repr(dtype), ", ".join(DTYPES))
        self.folder, self._target, self._tokens, self._mask, self.dtype = folder, target, tokens, mask, dtype
        blocks, length = tokens.shape
        one = cache_bytes(1, length, target.hidden_size, dtype)
        self._shard_rows = shard_rows or max(1, _SHARD_BYTES // one)
        self._about = {
            "schema": _SCHEMA,
            "target": fingerprint(target.model),
            "data": data_fingerprint(tokens, mask),
            "dtype": dtype,
            "blocks": blocks,
            "length": length,
            "hidden_size": target.hidden_size,
            "shard_rows": self._shard_rows,
        }
        self._names = [f"features-{i:05d}.safetensors" for i in range(-(-blocks // self._shard_rows))]
        self._open: dict[int, Any] = {}
        self._check_index()

    @property
    def bytes(self) -> int:
        """Bytes that the whole cache takes on disk."""
        return cache_bytes(*self._tokens.shape, self._target.hidden_size, self.dtype)

    @property
    def complete(self) -> bool:
        """Whether the index says that every block's features are there."""
        return bool(self._check_index().get("complete"))

    def make(self, progress: Callable[[int], None] | None = None, *, rank: int = 0, processes: int = 1) -> None:
        """Write what is missing; `progress` gets the blocks done so far.

        Several processes each write their share, and wait for the others'; they need one folder.

        Raises InputError: Too little room on the disk, or a shard that is there and is not of this cache.
        """
        if not self.complete:
            if rank == 0:
                self._check_room()
                self._write_index(complete=False)
            else:
                self._wait(lambda: (self.folder / "index.json").exists())
            for i in range(rank, len(self._names), processes):
                if (self.folder / self._names[i]).exists():
                    self._check_shard(i)
                else:
                    self._write_shard(i)
                if progress is not None:
                    progress(min((i + 1) * self._shard_rows, len(self._tokens)))
            if rank == 0:
                self._wait(lambda: all((self.folder / name).exists() for name in self._names))
                for i in range(len(self._names)):
                    self._check_shard(i)
                self._write_index(complete=True)
            else:
                self._wait(lambda: self.complete)
        self.check()

    def check(self) -> None:
        """Make sure that the cache is whole.

        Raises InputError: It was never finished, or a shard is missing, cut short, or another cache's; named.
        """
        if not self.complete:
            raise InputError(str(self.folder / "index.json"), "a cache that was never finished", "a complete one")
        for i in range(len(self._names)):
            self._check_shard(i)

    def features(self, rows: Sequence[int]) -> torch.Tensor:
        """Return the features of blocks, (len(rows), length, H), float32, on the host."""
        parts = []
        for row in rows:
            shard, within = divmod(int(row), self._shard_rows)
            if shard not in self._open:
                if len(self._open) >= _MOST_OPEN:
                    self._open.clear()
                self._open[shard] = self._read(shard).__enter__()  # stays mapped: a step reads from many shards
            parts.append(self._open[shard].get_slice("features")[within])
        return torch.stack(parts).float()

    def _read(self, shard: int) -> Any:
        from safetensors import safe_open

        return safe_open(self.folder / self._names[shard], framework="pt")

    def _rows(self, shard: int) -> slice:
        return slice(shard * self._shard_rows, min((shard + 1) * self._shard_rows, len(self._tokens)))

    def _write_shard(self, shard: int) -> None:
        from safetensors.torch import save_file

        rows = self._rows(shard)
        tokens = torch.from_numpy(self._tokens[rows].astype(np.int64))
        kept = DTYPES[self.dtype]
        features = [read_features(self._target, part).to("cpu", kept) for part in tokens.split(_READ_AT_ONCE)]
        tensors = {
            "features": torch.cat(features),
            "tokens": tokens.to(torch.int32),
            "mask": torch.from_numpy(np.array(self._mask[rows])),
        }
        path = self.folder / self._names[shard]
        part = path.with_suffix(".part")
        try:
            save_file(tensors, part, metadata=self._of_shard(shard))
            with part.open("rb+") as file:
                os.fsync(file.fileno())
            os.replace(part, path)
        except OSError as error:
            raise InputError(str(path), reason(error), "a file that can be written") from error

    def _check_shard(self, shard: int) -> None:
        path = self.folder / self._names[shard]
        if not path.exists():
            raise InputError(str(path), "no such shard", f"the features of blocks {self._rows(shard).start} on")
        found = safetensors_shapes(path)  # refuses a file that is shorter than its header says
        rows = self._rows(shard)
        count, length = rows.stop - rows.start, self._tokens.shape[1]
        wanted = {"features": (count, length, self._target.hidden_size), "tokens": (count, length)}
        wanted["mask"] = (count, length)
        with self._read(shard) as file:
            about = file.metadata() or {}
            if found != wanted or about != self._of_shard(shard):
                same = "shape" if found == wanted else f"shapes {found}"
                raise InputError(str(path), f"a shard of another cache ({same})", f"{wanted}, as index.json says")
            if not np.array_equal(file.get_tensor("tokens").numpy(), self._tokens[rows]):
                raise InputError(str(path), "other tokens", "those of the data, as index.json says")

    def _of_shard(self, shard: int) -> dict[str, str]:
        return {"format": "pt", "shard": str(shard), **{k: str(self._about[k]) for k in ("target", "data", "dtype")}}

    def _check_index(self) -> dict[str, Any]:
        """Return the index, if there is one."""
        path = self.folder / "index.json"
        if not path.exists():
            return {}
        index = read_json(path)
        for name, wanted in self._about.items():
            if index.get(name) != wanted:
                raise InputError(f"{path}, {name}", repr(index.get(name)), f"{wanted!r} (or another folder)")
        if not isinstance(index.get("complete"), bool) or index.get("shards") != self._names:
            raise InputError(f"{path}, shards", "another list, or no word on completeness", f"{len(self._names)} names")
        return index

    def _write_index(self, *, complete: bool) -> None:
        write_json(self.folder / "index.json", {**self._about, "shards": self._names, "complete": complete})

    def _check_room(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            there = sum(file.stat().st_size for file in self.folder.glob("features-*.safetensors"))
            free = shutil.disk_usage(self.folder).free
        except OSError as error:
            raise InputError(str(self.folder), reason(error), "a folder that can be written") from error
        if (needed := self.bytes - there) > free:
            raise InputError(
                str(self.folder), f"{free / 2**30:.1f} GiB free", f"{needed / 2**30:.1f} GiB for the features"
            )

    @staticmethod
    def _wait(done: Callable[[], bool]) -> None:
        while not done():
            time.sleep(0.2)
