"""One cycle and one output as they happened, and their times, taken without making the host wait for the device."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

from gumiho_decoder.acceptance.rules import Accepted
from gumiho_decoder.draft import Draft
from gumiho_decoder.target import Verified


@dataclass(frozen=True)
class Generation:
    """One output.

    Attributes
    ----------
    token_ids : tuple of int
        New tokens, EOS included.
    stop_reason : str
        `eos`, `stop_string`, `length` (max_new_tokens) or `context` (the model's positions are used up).
    seconds : float
        Wall time, prefill included.
    first_seconds : float
        Of it, the time until the first token: prefill.
    beyond : tuple of int
        Tokens that the last cycle verified behind the end of the output.
    """

    token_ids: tuple[int, ...]
    stop_reason: str
    seconds: float
    first_seconds: float = 0.0
    beyond: tuple[int, ...] = ()


@dataclass(frozen=True)
class Mark:
    """A moment: on the host, and on a CUDA device the moment its queue came to."""

    host: float
    event: torch.cuda.Event | None


class Clock:
    """Wall time of a decoding, less what the recording of it took."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._started = time.perf_counter()
        self._aside = 0.0

    def mark(self) -> Mark:
        """Return this moment."""
        event = None
        if self._device.type == "cuda":
            event = torch.cuda.Event(enable_timing=True)
            event.record(torch.cuda.current_stream(self._device))
        return Mark(time.perf_counter(), event)

    def aside(self, since: Mark) -> None:
        """Leave out the time since then."""
        self._aside += time.perf_counter() - since.host

    def seconds(self) -> float:
        """Time in all; on a device the last read has waited for everything that counts."""
        return time.perf_counter() - self._started - self._aside


def between(first: Mark, second: Mark) -> float:
    """Seconds from one mark to the other; on a device both must have been passed."""
    if first.event is None or second.event is None:
        return second.host - first.host
    return first.event.elapsed_time(second.event) / 1000


@dataclass(frozen=True)
class Cycle:
    """One cycle as it happened; what the recorder turns into a trace row.

    Attributes
    ----------
    position : int
        Index of the tree's root in the sequence.
    context : Tensor, shape (tokens, H)
        Features that the drafter took in before this draft: of the prompt, then of the path accepted before.
    path, new : list of int
        Accepted nodes (root first); their tokens and the bonus token.
    accepted : int
        Accepted length, up to an accepted EOS.
    committed : int
        Tokens added to the output.
    censored_at : int or None
        Depth behind which nothing is known: an accepted EOS, or a draft shrunk by the end of the context.
    """

    position: int
    context: torch.Tensor
    draft: Draft
    verified: Verified
    path: list[int]
    new: list[int]
    accepted: int
    committed: int
    censored_at: int | None
    stop_reason: str | None
    draft_seconds: float
    verify_seconds: float
    other_seconds: float

    @property
    def drafted(self) -> int:
        """Deepest position that this draft could have had accepted."""
        return self.draft.depth

    @classmethod
    def of(
        cls,
        position: int,
        context: torch.Tensor,
        draft: Draft,
        verified: Verified,
        kept: Accepted,
        marks: tuple[Mark, Mark, Mark, Mark],
        *,
        stop_ids: frozenset[int],
        cut: bool,
        committed: int,
        stop_reason: str | None,
    ) -> Cycle:
        """Put a cycle together from what the loop holds.

        Parameters
        ----------
        marks : tuple of Mark
            Before the draft, behind it, behind its verification, and at the end.
        stop_ids : frozenset of int
            Tokens that end an output: behind an accepted one nothing is known.
        cut : bool
            Whether the draft was shrunk by the end of the context.
        """
        # The bonus token, last, is no drafted one.
        ended = next((depth for depth, token in enumerate(kept.new[:-1], start=1) if token in stop_ids), None)
        started, drafted, judged, over = marks
        draft_seconds, verify_seconds = between(started, drafted), between(drafted, judged)
        return cls(
            position=position,
            context=context,
            draft=draft,
            verified=verified,
            path=kept.path,
            new=kept.new,
            accepted=len(kept.new) - 1 if ended is None else ended,
            committed=committed,
            censored_at=draft.depth if ended is None and cut else ended,
            stop_reason=stop_reason,
            draft_seconds=draft_seconds,
            verify_seconds=verify_seconds,
            other_seconds=max(0.0, over.host - started.host - draft_seconds - verify_seconds),
        )
