"""The result of ``vllm bench serve``."""

from __future__ import annotations

from gumiho_simulator.importers.reading import Entry, Importer, Malformed, Tally
from gumiho_simulator.importers.reading.base import SHORTER, count, json_object, number
from gumiho_theory.rates import MAX_DEPTH

_PREFIX = "spec_decode_"
_RATES = f"{_PREFIX}per_position_acceptance_rates"
_HALF = 5e-5  # results are copied with four digits or more


class VllmBench(Importer):
    """One run, one group: counts of the benchmark's own window.

    The acceptance length includes the bonus token, the acceptance rate is in percent, per-position rates are
    survival rates.
    """

    name = "vllm-bench"
    clusters = "runs"

    @staticmethod
    def recognizes(entry: Entry) -> bool:
        """Whether the object has the run's drafting statistics."""
        value = entry.value or {}
        return any(f"{_PREFIX}{key}" in value for key in ("acceptance_length", "num_drafts"))

    def add(self, entry: Entry, tally: Tally) -> None:
        """Count one run."""
        value = json_object(entry)
        if not self.recognizes(entry):
            tally.warn("runs without drafting statistics: passed over", entry.number)
            return
        if value.get(f"{_PREFIX}num_drafts") is None:
            length = number(value.get(f"{_PREFIX}acceptance_length"), f"{_PREFIX}acceptance_length")
            tally.cycles_unknown(entry.number, f"tau {length:g}, bonus included")
            return
        cycles = count(value[f"{_PREFIX}num_drafts"], f"{_PREFIX}num_drafts")
        if not cycles:
            tally.nothing_drafted(entry.number)
            return
        total = count(value.get(f"{_PREFIX}accepted_tokens"), f"{_PREFIX}accepted_tokens")
        rates = value.get(_RATES) or []
        if not isinstance(rates, list) or len(rates) > MAX_DEPTH:
            raise Malformed(f"{_RATES} is no list of rates")
        drafted = count(value.get(f"{_PREFIX}draft_tokens", 0), f"{_PREFIX}draft_tokens")
        survival = [number(rate, _RATES) for rate in rates]
        accepted = tally.rounded(f"run {entry.number}", cycles, total, survival, _HALF)
        if rates and accepted is None:
            tally.warn("per-position rates contradict the counts: positions left out", entry.number)
        elif 0 < drafted < cycles * len(rates):
            tally.warn(SHORTER, entry.number)
