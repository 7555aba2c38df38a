"""SpecForge's benchmark reports."""

from __future__ import annotations

from gumiho_simulator.importers.reading import Entry, Importer, Malformed, Tally
from gumiho_simulator.importers.reading.base import count, find, has, json_object

_KEYS = ("spec_verify_count", "output_tokens")


class SpecForge(Importer):
    """Tasks, each a group, by SGLang's convention; the average that is reported is macro and not used."""

    name = "specforge"

    @staticmethod
    def recognizes(entry: Entry) -> bool:
        """Whether the object counts verifications."""
        return has(entry.value, *_KEYS)

    def add(self, entry: Entry, tally: Tally) -> None:
        """Count the tasks of one report."""
        read = []
        for index, one in enumerate(find(json_object(entry), *_KEYS), start=1):
            if not one[_KEYS[0]]:
                tally.nothing_drafted(entry.number)
                continue
            cycles, tokens = (count(one[key], key) for key in _KEYS)
            if tokens < cycles:
                raise Malformed(f"{tokens} tokens in {cycles} cycles")
            read.append((f"report {entry.number}, task {index}", cycles, tokens - cycles))
        for name, cycles, accepted in read:
            tally.totals(name, cycles, accepted)
            tally.warn(
                "tau is output_tokens / spec_verify_count: it may count the token of each request's prefill, "
                "which belongs to no cycle",
                entry.number,
            )
