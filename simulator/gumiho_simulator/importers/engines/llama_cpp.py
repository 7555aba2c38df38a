"""llama.cpp's log lines of drafting, by request and by drafting implementation."""

from __future__ import annotations

import re

from gumiho_simulator.importers.reading import Entry, Importer, Malformed, Tally
from gumiho_simulator.importers.reading.base import digits, has, mean_fits
from gumiho_simulator.importers.reading.rounded import cycles_of, half_unit
from gumiho_theory.rates import MAX_DEPTH

_REQUEST = re.compile(
    r"draft acceptance(?: rate)?\s*=\s*[\d.]+\s*\(\s*(?P<accepted>\d+) accepted /\s*(?P<drafted>\d+) generated\)"
    r"(?:,\s*mean (?:acceptance )?len(?:gth)?\s*=\s*(?P<mean>\d+(?:\.\d+)?))?"
    r"(?:,\s*acceptance rate per position\s*=\s*\((?P<rates>[\d., ]*)\))?"
)
_STATISTICS = re.compile(
    r"statistics\s+(?P<name>[\w.-]+):.*?#calls\(b,g,a\)\s*=\s*\d+\s+\d+\s+(?P<calls>\d+),"
    r".*?#gen drafts\s*=\s*(?P<drafts>\d+),.*?#acc tokens\s*=\s*(?P<accepted>\d+)"
    r"(?:,\s*#mean acc len\s*=\s*(?P<mean>\d+(?:\.\d+)?))?(?:,\s*#acc rate/pos\s*=\s*\((?P<rates>[\d., ]*)\))?"
)
_MARKS = ("draft acceptance", "#acc tokens")
_TIMINGS = ("draft_n", "draft_n_accepted")
_HALF_RATE = 0.0005
_MOST_IMPLEMENTATIONS = 1_000


class LlamaCpp(Importer):
    """Requests, each a group; without means in their lines, implementations.

    Means include the bonus token. Rates by position are survival rates over verified drafts and end at the
    longest one accepted. Statistics of an implementation run since the start: the last line of each counts,
    over the drafts that were verified.
    """

    name = "llama-cpp"

    def __init__(self) -> None:
        self._requests = 0
        self._statistics: dict[str, tuple[int, re.Match[str]]] = {}

    @staticmethod
    def recognizes(entry: Entry) -> bool:
        """Whether the line reports drafting, or the object holds a response's timings."""
        if entry.value is not None:
            return has(entry.value, *_TIMINGS)
        return any(pattern.search(entry.text) for pattern in (_REQUEST, _STATISTICS))

    def add(self, entry: Entry, tally: Tally) -> None:
        """Count a request, or keep an implementation's latest statistics."""
        if entry.value is not None:
            if has(entry.value, *_TIMINGS):
                tally.cycles_unknown(entry.number, "drafted and accepted tokens of a response's timings")
            return
        if match := _STATISTICS.search(entry.text):
            if match["name"] not in self._statistics and len(self._statistics) >= _MOST_IMPLEMENTATIONS:
                raise Malformed(f"more than {_MOST_IMPLEMENTATIONS} drafting implementations")
            self._statistics[match["name"]] = (entry.number, match)
        elif match := _REQUEST.search(entry.text):
            self._request(entry.number, match, tally)
        elif any(mark in entry.text for mark in _MARKS):
            raise Malformed("no line of drafting that this reader knows")

    def _request(self, at: int, match: re.Match[str], tally: Tally) -> None:
        accepted, drafted = (digits(match[key], key) for key in ("accepted", "drafted"))
        if not drafted:
            tally.nothing_drafted(at)
            return
        if match["mean"] is None:
            tally.cycles_unknown(at, f"{accepted} of {drafted} drafted tokens accepted")
            return
        mean, half, rates = float(match["mean"]), half_unit(match["mean"]), _rates(match["rates"])
        cycles, exact = cycles_of(accepted, drafted, mean, half, rates, _HALF_RATE)
        if not cycles:
            rates = []
            cycles, exact = cycles_of(accepted, drafted, mean, half)
        if not cycles:
            raise Malformed("mean and accepted tokens contradict one another")
        if not exact:
            tally.warn("the number of cycles is known to within rounding only", at)
        self._requests += 1
        tally.rounded(f"request {self._requests}", cycles, accepted, rates, _HALF_RATE, deeper=True)

    def finish(self, tally: Tally) -> None:
        """Count implementations where no request could be."""
        if self._requests:
            return
        for name, (at, match) in self._statistics.items():
            accepted = digits(match["accepted"], "#acc tokens")
            if match["mean"] is None:
                if int(match["drafts"][:20]):
                    tally.cycles_unknown(at, f"{accepted} accepted tokens of {name}")
                else:
                    tally.nothing_drafted(at)
                continue
            # Drafts that were thrown away unverified are generated, but no cycles.
            known = (int(match[key][:20]) for key in ("calls", "drafts"))
            mean = float(match["mean"])
            cycles = next((n for n in known if n and mean_fits(mean, accepted, n)), 0)
            if cycles:
                tally.rounded(name, cycles, accepted, _rates(match["rates"]), _HALF_RATE, deeper=True)
            else:
                tally.bad(at, "mean and accepted tokens contradict one another")


def _rates(listed: str | None) -> list[float]:
    try:
        return [float(rate) for rate in (listed or "").split(",")[:MAX_DEPTH] if rate.strip()]
    except ValueError:
        raise Malformed("rates that are no numbers") from None
