"""Times of a cycle, without making the host wait for the device."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch


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
