"""Documents as rows of tokens of one length, with a mask of those that count; their split, their order, their file."""

from __future__ import annotations

import zipfile
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gumiho_decoder.training.texts.chat import ChatTokens
from gumiho_decoder.training.texts.documents import Document, Report
from gumiho_theory import InputError
from gumiho_theory.files import reason, write_atomically

HELDOUT_SHARE = 0.02
BY_PLACE = "rows held out by place, there being too few documents to hold one out"
# Characters of a text that a tokenizer gets at once: it takes a hundred times their room, and keeps some of much.
_PART = 1 << 16


@dataclass(frozen=True)
class TokenBlocks:
    """Rows of tokens.

    Attributes
    ----------
    tokens : uint32 ndarray, shape (n, length)
        Behind the end of a conversation, or of the last text: 0. Attention is causal, so nothing before sees it.
    mask : bool ndarray, shape (n, length)
        True where the token's prediction counts: the tokens of texts and of assistants, with those that end them.
    """

    tokens: NDArray[np.uint32]
    mask: NDArray[np.bool_]

    def __post_init__(self) -> None:
        for name, value, dtype in (("tokens", self.tokens, np.uint32), ("mask", self.mask, np.bool_)):
            if value.dtype != dtype or value.ndim != 2 or value.shape != self.tokens.shape:
                found = f"{value.dtype}, shape {value.shape}"
                raise InputError(name, found, f"{np.dtype(dtype)}, shape (n, length), the same for both")

    def __len__(self) -> int:
        return len(self.tokens)

    def save(self, path: Path) -> None:
        """Write an .npz."""
        write_atomically(path, lambda file: np.savez(file, tokens=self.tokens, mask=self.mask))

    @classmethod
    def load(cls, path: Path) -> TokenBlocks:
        """Read what `save` wrote.

        Raises InputError: Not readable as such; nothing is unpickled.
        """
        wanted = "an .npz of token blocks"
        try:
            with open(path, "rb") as file:
                arrays = np.load(file, allow_pickle=False)
                if not isinstance(arrays, np.lib.npyio.NpzFile):
                    raise ValueError("one array alone")
                return cls(arrays["tokens"], arrays["mask"])
        except InputError as error:
            raise error.within(path) from error
        except OSError as error:
            raise InputError(path, reason(error), wanted) from error
        except (KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise InputError(path, error, wanted) from error


def make_blocks(documents: Iterable[Document], tokenizer, length: int, report: Report) -> TokenBlocks:
    """Return all documents as rows; see `split_blocks`."""
    return split_blocks(documents, tokenizer, length, report, heldout_share=0.0)[0]


def split_blocks(
    documents: Iterable[Document], tokenizer, length: int, report: Report, heldout_share: float = HELDOUT_SHARE
) -> tuple[TokenBlocks, TokenBlocks]:
    """Return the rows to train on and those held out.

    Texts, an end-of-text token behind each, are joined and cut into rows; only the last row has an end that is empty.
    Each conversation has its row, cut where it is longer. No row is without anything to predict. A document is held
    out by its own hash, so that it, and a copy of it, is never on both sides. Only where that leaves a side with next
    to nothing (few documents: one file of text is one document) the last rows are held out, and `report` says so.

    `documents`: Read once; only tokens are kept, 5 bytes each. `length`: Tokens of a row, at least 2. `report`: What
    was done is counted here, and what was cut or left out. `heldout_share`: In [0, 1). Raises InputError: No token that
    counts, or too few to hold any out.
    """
    if length < 2:
        raise InputError("length", length, "at least 2 tokens")
    if not 0 <= heldout_share < 1:
        raise InputError("heldout_share", heldout_share, "0 to 1, without 1")
    encoder = _Encoder(tokenizer, length, report)
    train, heldout = _Rows(length), _Rows(length)
    for number, document in enumerate(documents, 1):
        encoder.add(heldout if is_heldout(document, heldout_share) else train, document, f"document {number}")
    sides = train.finish(), heldout.finish()
    count = sum(map(len, sides))
    if not count:
        listed = ", ".join(f"{what}: {times}" for what, times in report.counts.items()) or "no document"
        raise InputError("training data", f"no token that counts ({listed})", "texts, or answers of an assistant")
    if heldout_share == 0 or 0 < len(sides[1]) <= count / 2:
        return sides
    if count == 1:
        raise InputError("training data", f"one row of {length} tokens", "at least 2 rows: one is held out")
    tokens, mask = _joined([side.tokens for side in sides]), _joined([side.mask for side in sides])
    first = count - max(1, round(heldout_share * count))
    report.note(BY_PLACE, f"rows {first + 1} to {count}")
    return TokenBlocks(tokens[:first], mask[:first]), TokenBlocks(tokens[first:], mask[first:])


def _joined(parts: list[NDArray]) -> NDArray:
    """Return the rows of all parts, without a copy where one has them all."""
    full = [part for part in parts if len(part)]
    return full[0] if len(full) == 1 else np.concatenate(full)


def is_heldout(document: Document, share: float) -> bool:
    """Return whether a document is held out: so is a share of all documents, always the same ones."""
    return int.from_bytes(document.sha256[:8]) < share * 2**64


class _Rows:
    """Rows being made; `array` and `bytearray` grow in place and lend their memory to numpy in the end."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.tokens, self.mask = array("I"), bytearray()
        self.rest = np.zeros(0, dtype=np.uint32), np.zeros(0, dtype=bool)

    def join(self, ids: NDArray[np.uint32], mask: NDArray[np.bool_]) -> None:
        """Add tokens behind those of the text before."""
        ids, mask = np.concatenate([self.rest[0], ids]), np.concatenate([self.rest[1], mask])
        full = len(ids) // self.length * self.length
        self._append(ids[:full], mask[:full])
        self.rest = ids[full:], mask[full:]

    def row(self, ids: NDArray[np.uint32], mask: NDArray[np.bool_]) -> None:
        """Add a row of its own, its end left empty."""
        short = (0, self.length - len(ids))
        self._append(np.pad(ids, short), np.pad(mask, short))

    def finish(self) -> TokenBlocks:
        """Return all rows."""
        if self.rest[1][1:].any():
            self.row(*self.rest)
        shape = (-1, self.length)
        tokens = np.frombuffer(self.tokens, dtype=np.uint32) if self.tokens else np.zeros(0, dtype=np.uint32)
        mask = np.frombuffer(self.mask, dtype=bool) if self.mask else np.zeros(0, dtype=bool)
        return TokenBlocks(tokens.reshape(shape), mask.reshape(shape))

    def _append(self, ids: NDArray[np.uint32], mask: NDArray[np.bool_]) -> None:
        self.tokens.frombytes(ids.tobytes())
        self.mask += mask.tobytes()


class _Encoder:
    """Makes rows of documents and counts what it does."""

    def __init__(self, tokenizer, length: int, report: Report) -> None:
        self.tokenizer, self.length, self.report = tokenizer, length, report
        bos = tokenizer.bos_token_id
        self._begin = [bos] if bos is not None and tokenizer("")["input_ids"][:1] == [bos] else []
        self._chat: ChatTokens | None = None

    def add(self, rows: _Rows, document: Document, place: str) -> None:
        """Add a document's tokens to rows."""
        if document.turns[0].role == "text":
            self._text(rows, document.turns[0].content)
            self.report.note("text", place)
        else:
            self._conversation(rows, document, place)

    def _text(self, rows: _Rows, content: str) -> None:
        # A beginning that the tokenizer would add to any text is not the text's own.
        rows.join(np.array(self._begin, dtype=np.uint32), np.zeros(len(self._begin), dtype=bool))
        for part in _parts(content):
            ids = self.tokenizer(part, add_special_tokens=False, verbose=False)["input_ids"]
            rows.join(np.array(ids, dtype=np.uint32), np.ones(len(ids), dtype=bool))
        if self.tokenizer.eos_token_id is not None:
            rows.join(np.array([self.tokenizer.eos_token_id], dtype=np.uint32), np.ones(1, dtype=bool))

    def _conversation(self, rows: _Rows, document: Document, place: str) -> None:
        self._chat = self._chat or ChatTokens(self.tokenizer, self.length)
        chat = self._chat(document.turns)
        if chat.note is not None:
            self.report.note(chat.note, place)
        ids, mask = chat.ids[: self.length], chat.mask[: self.length]
        # Nothing stands before a row's first token that could predict it.
        if not mask[1:].any():
            if chat.ids:
                self.report.note(f"left out: nothing of an assistant within {self.length} tokens", place)
            return
        if len(chat.ids) > self.length:
            self.report.note(f"conversation cut at {self.length} tokens", place)
        self.report.note("conversation", place)
        rows.row(np.array(ids, dtype=np.uint32), mask)


def _parts(content: str) -> Iterator[str]:
    """Yield a text in parts of about _PART characters, cut behind a line where there is one."""
    start = 0
    while start < len(content):
        end = start + _PART
        if end < len(content):
            end = content.rfind("\n", start, end) + 1 or end
        yield content[start:end]
        start = end


class Order:
    """Which rows are read at which step: all once in each epoch, in a random order of its own.

    It follows from the step alone, so that a resumed run goes on where it stopped; a batch may reach over the end of
    an epoch. Several processes read a slice each of the batch that one process would read.

    Parameters
    ----------
    n : int
        Rows there are.
    batch : int
        Rows of a step, of all processes together.
    seed : int

    Raises
    ------
    InputError
        No rows, or no batch.
    """

    def __init__(self, n: int, batch: int, seed: int) -> None:
        for name, value in (("rows", n), ("batch", batch)):
            if value < 1:
                raise InputError(name, value, "at least 1")
        self.n, self.batch, self.seed = n, batch, seed
        self._cached = -1, np.zeros(0, dtype=np.int64)

    def __call__(self, step: int, process: int = 0, world: int = 1) -> NDArray[np.int64]:
        """Return a process's rows of step `step`, int64 (batch / world,)."""
        if self.batch % world:
            raise InputError("batch", self.batch, f"a multiple of the number of processes, {world}")
        share = self.batch // world
        first = step * self.batch + process * share
        return np.array([self._permutation(i // self.n)[i % self.n] for i in range(first, first + share)])

    def _permutation(self, epoch: int) -> NDArray[np.int64]:
        if self._cached[0] != epoch:
            self._cached = epoch, np.random.default_rng((self.seed, epoch)).permutation(self.n)
        return self._cached[1]
