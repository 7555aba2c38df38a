"""gpt-fast's output: shares of accepted lengths, of an unknown number of cycles."""

from __future__ import annotations

import re

from gumiho_simulator.importers.reading import Entry, Importer, Malformed, Tally

_ROUNDING = 0.005  # of each share, printed with two digits at the least
_SHARES = re.compile(r"Acceptance probs:\s*\[([^\]]*)\]")


class GptFast(Importer):
    """Shares of L = 0, 1, ..., bonus excluded: rates, but no counts."""

    name = "gpt-fast"

    @staticmethod
    def recognizes(entry: Entry) -> bool:
        """Whether the line prints the shares."""
        return entry.value is None and _SHARES.search(entry.text) is not None

    def add(self, entry: Entry, tally: Tally) -> None:
        """Say what rates the shares are."""
        match = _SHARES.search(entry.text)
        if match is None:
            return
        try:
            shares = [float(share) for share in match[1].split(",")]
        except ValueError:
            raise Malformed("shares that are no numbers") from None
        for place, share in enumerate(shares):
            if not 0 <= share <= 1:  # neither does nan
                raise Malformed(f"share of L = {place} is {share:g}, not from 0 to 1")
        if abs(sum(shares) - 1) > _ROUNDING * len(shares):
            raise Malformed(f"shares sum to {sum(shares):.4g}, not to 1")
        survival = [sum(shares[i:]) for i in range(1, len(shares))]
        rates = ",".join(f"{rate:.4g}" for rate in survival)
        tally.cycles_unknown(entry.number, f"tau {1 + sum(survival):.4g}, bonus included, survival rates {rates}")
