"""TensorRT-LLM: statistics of iterations; the benchmark's report gives percentiles alone."""

from __future__ import annotations

from gumiho_simulator.importers.reading import Entry, Importer, Malformed, Tally
from gumiho_simulator.importers.reading.base import count, find, has, json_object, mean_fits, number

_ITERATION, _REPORT = "specDecodingStats", "acceptance_length_percentiles"
_CYCLES, _ACCEPTED = "numRequestsWithDraftTokens", "numAcceptedTokens"


class TensorRtLlm(Importer):
    """Iterations, each a group: requests with a draft are its cycles. No positions, bonus excluded."""

    name = "tensorrt-llm"
    clusters = "iterations"

    @staticmethod
    def recognizes(entry: Entry) -> bool:
        """Whether the object holds either."""
        return has(entry.value, _ITERATION) or has(entry.value, _CYCLES) or has(entry.value, _REPORT)

    def add(self, entry: Entry, tally: Tally) -> None:
        """Count one iteration."""
        value = json_object(entry)
        for one in find(value, _REPORT):
            average = one[_REPORT].get("average") if isinstance(one[_REPORT], dict) else None
            mean = number(average, f"average of {_REPORT}")
            tally.cycles_unknown(entry.number, f"tau {mean:g}, bonus included")
        read = []
        for one in find(value, _CYCLES, _ACCEPTED):
            cycles, accepted = count(one[_CYCLES], _CYCLES), count(one[_ACCEPTED], _ACCEPTED)
            if not cycles:
                tally.nothing_drafted(entry.number)
                continue
            if "numDraftTokens" in one and accepted > count(one["numDraftTokens"], "numDraftTokens"):
                raise Malformed(f"{accepted} accepted of {one['numDraftTokens']} drafted tokens")
            length = one.get("acceptanceLength")
            if length is not None and not mean_fits(number(length, "acceptanceLength"), accepted, cycles):
                tally.warn("acceptanceLength contradicts the counts, which outrank it", entry.number)
            read.append((cycles, accepted))
        for cycles, accepted in read:
            tally.totals(f"iteration {entry.number}", cycles, accepted)
