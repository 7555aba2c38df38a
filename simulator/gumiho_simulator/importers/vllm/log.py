"""vLLM's log lines ``SpecDecoding metrics: ...``, one an interval."""

from __future__ import annotations

import re

from gumiho_simulator.importers.reading import Entry, Importer, Malformed, Tally
from gumiho_simulator.importers.reading.base import SHORTER, digits
from gumiho_simulator.importers.reading.rounded import cycles_of, half_unit
from gumiho_theory.rates import MAX_DEPTH

_MARK = "SpecDecoding metrics:"
_NUMBER = r"\d+(?:\.\d+)?"
# Each by its own name: builds differ in the order of the fields and add others.
_MEAN = re.compile(rf"[Mm]ean acceptance length:\s*({_NUMBER})")
_ACCEPTED = re.compile(r"\bAccepted:\s*(\d+)")
_DRAFTED = re.compile(r"\bDrafted:\s*(\d+)")
_RATES = re.compile(rf"Per-position acceptance rate:\s*({_NUMBER}(?:\s*,\s*{_NUMBER})*)")


class VllmLog(Importer):
    """Intervals, each a group: counters start again at 0 after every line.

    The mean includes the bonus token; per-position rates are survival rates. Both are rounded, accepted and
    drafted tokens are not: the number of cycles is the one that all of them allow.
    """

    name = "vllm-log"
    clusters = "intervals"

    @staticmethod
    def recognizes(entry: Entry) -> bool:
        """Whether the line is vLLM's."""
        return entry.value is None and _MARK in entry.text

    def add(self, entry: Entry, tally: Tally) -> None:
        """Count one interval."""
        text = entry.text.partition(_MARK)[2]
        if not text:
            return
        accepted, drafted = _ACCEPTED.search(text), _DRAFTED.search(text)
        if accepted is None or drafted is None:
            raise Malformed("no accepted and drafted tokens")
        hits, drafts = digits(accepted[1], "Accepted"), digits(drafted[1], "Drafted")
        if hits > drafts:
            raise Malformed(f"{hits} of {drafts} drafted tokens accepted")
        if drafts == 0:
            tally.nothing_drafted(entry.number)
            return
        mean, listed = _MEAN.search(text), _RATES.search(text)
        printed = [rate.strip() for rate in listed[1].split(",")] if listed else []
        rates, rate_half = [float(rate) for rate in printed], max(map(half_unit, printed), default=0.0)
        if len(rates) > MAX_DEPTH:
            raise Malformed(f"{len(rates)} positions")
        if mean is None:
            tally.cycles_unknown(entry.number, f"{hits} of {drafts} drafted tokens accepted")
            return
        cycles, exact = cycles_of(
            hits, drafts, float(mean[1]), half_unit(mean[1]), rates, rate_half, len(rates) or None
        )
        if not cycles:
            raise Malformed("mean, rates and accepted tokens contradict one another")
        if not exact:
            tally.warn("the number of cycles is known to within rounding only", entry.number)
        if rates and drafts < cycles * len(rates):
            tally.warn(SHORTER, entry.number)
        tally.rounded(f"interval {entry.number}", cycles, hits, rates, rate_half)
