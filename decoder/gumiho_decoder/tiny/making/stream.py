"""Text to training blocks: a byte-level BPE tokenizer, one flat token stream, random blocks of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

END_OF_TEXT = "<|endoftext|>"


def train_tokenizer(texts: Iterable[str], vocab_size: int):
    """Train a byte-level BPE tokenizer; `<|endoftext|>` (id 0) ends a document."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=END_OF_TEXT, clean_up_tokenization_spaces=False
    )


def token_stream(tokenizer, texts: Iterable[str]) -> NDArray[np.uint16]:
    """Return all texts as one stream of token ids, each text followed by the end-of-text token. Shape [tokens]."""
    end = tokenizer.eos_token_id
    parts = [np.asarray([*tokenizer(text)["input_ids"], end], dtype=np.uint16) for text in texts]
    return np.concatenate(parts)


def save_stream(path: Path, stream: NDArray[np.uint16]) -> None:
    """Write a token stream as .npy."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, stream)


def load_stream(path: Path) -> NDArray[np.uint16]:
    """Map a token stream from disk, without unpickling."""
    return np.load(path, mmap_mode="r", allow_pickle=False)


class Blocks:
    """Random blocks of a token stream, chosen by (seed, step) alone, so that a resumed run sees the same data.

    Each epoch visits every block of `length` once, in its own random order and from its own random offset.
    """

    def __init__(self, stream: NDArray[np.uint16], length: int, batch: int, seed: int) -> None:
        self.stream, self.length, self.batch, self.seed = stream, length, batch, seed
        self.per_epoch = (len(stream) - length) // length

    def __call__(self, step: int) -> torch.Tensor:
        """Return the batch of `step`, int64 [batch, length]."""
        first = step * self.batch
        rows = [self._block(index) for index in range(first, first + self.batch)]
        return torch.from_numpy(np.stack(rows).astype(np.int64))

    def _block(self, index: int) -> NDArray[np.uint16]:
        epoch, within = divmod(index, self.per_epoch)
        order, offset = self._order(epoch)
        start = int(order[within]) * self.length + offset
        return self.stream[start : start + self.length]

    def _order(self, epoch: int) -> tuple[NDArray[np.int64], int]:
        if getattr(self, "_epoch", None) != epoch:
            rng = np.random.default_rng((self.seed, epoch))
            self._epoch, self._cached = epoch, (rng.permutation(self.per_epoch), int(rng.integers(self.length)))
        return self._cached


def evenly(stream: NDArray[np.uint16], length: int, count: int) -> torch.Tensor:
    """Return `count` blocks spread evenly over the stream, int64 [count, length]: a fixed held-out sample."""
    starts: Sequence[int] = np.linspace(0, len(stream) - length, count, dtype=np.int64).tolist()
    return torch.from_numpy(np.stack([stream[s : s + length] for s in starts]).astype(np.int64))
