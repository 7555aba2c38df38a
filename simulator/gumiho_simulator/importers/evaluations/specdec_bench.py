"""NVIDIA's specdec_bench (SPEED-Bench): acceptance statistics and speculation profiles."""

from __future__ import annotations

from typing import Any

from gumiho_simulator.importers.reading import Entry, Importer, Tally
from gumiho_simulator.importers.reading.base import find, has, histogram, json_object, mean_fits, number
from gumiho_theory.rates import MAX_DEPTH

# The statistics, then the profile made from them; the mean beside each.
_HISTOGRAMS = {"Acceptance_Length_Histogram": "Average_AL", "acceptance_length_histogram": "mean_accept_length"}
_RATES = "marginal_accept_rates"


class SpecdecBench(Importer):
    """Runs, each a group: a histogram keyed by emitted tokens, bonus included; a missing key is an empty bucket.

    The rates beside it are those of the keys that occur and go wrong at an empty bucket: they are not read.
    The average is one over requests (macro) and only checked.
    """

    name = "specdec-bench"

    @staticmethod
    def recognizes(entry: Entry) -> bool:
        """Whether the object holds such a histogram or profile."""
        return any(has(entry.value, key) for key in _HISTOGRAMS) or has(entry.value, _RATES, "mean_accept_length")

    def add(self, entry: Entry, tally: Tally) -> None:
        """Count the histograms of one file."""
        value = json_object(entry)
        read: list[tuple[list[int], float | None, dict[str, Any]]] = []
        for key, mean_key in _HISTOGRAMS.items():
            for one in find(value, key):
                cycles = histogram(one[key], key, first=1)
                mean = None if one.get(mean_key) is None else number(one[mean_key], mean_key)
                if sum(cycles):
                    read.append((cycles, mean, one))
                else:
                    tally.nothing_drafted(entry.number)
        if not read:
            for one in find(value, _RATES, "mean_accept_length"):
                mean = number(one["mean_accept_length"], "mean_accept_length")
                tally.cycles_unknown(entry.number, f"tau {mean:g}, bonus included")
        for index, (cycles, mean, one) in enumerate(read, start=1):
            name = f"run {entry.number}" + (f".{index}" if len(read) > 1 else "")
            total = sum(length * times for length, times in enumerate(cycles))
            if mean is not None and not mean_fits(mean, total, sum(cycles)):
                tally.warn(
                    "the reported mean (over requests) differs from the histogram, which outranks it", entry.number
                )
            # Positions mean nothing where blocks are accepted as a whole.
            if one.get("vectors_unavailable_reason"):
                tally.totals(name, sum(cycles), total)
                continue
            depth = one.get("num_speculative_tokens")
            known = isinstance(depth, int) and not isinstance(depth, bool) and len(cycles) - 1 <= depth <= MAX_DEPTH
            tally.histogram(name, cycles, depth if known else None)
