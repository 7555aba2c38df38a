"""SGLang's responses (``meta_info``); its benchmark results and log lines give means alone."""

from __future__ import annotations

import re
from typing import Any

from gumiho_simulator.importers.reading import Entry, Importer, Malformed, Tally
from gumiho_simulator.importers.reading.base import count, find, has, histogram, number

_VERIFIED = "spec_verify_ct"
# Newer name first.
_HISTOGRAMS = ("spec_correct_drafts_histogram", "spec_accept_histogram")
_ACCEPTED = ("spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num")
_LOGGED = re.compile(r"\baccept len: (\d+(?:\.\d+)?)")


class Sglang(Importer):
    """Requests, each a group.

    Histogram and accepted tokens exclude the bonus token. completion_tokens does not tell whether the token
    that prefill yields is among them, so it is read only where nothing else is logged, with a warning.
    """

    name = "sglang"
    clusters = "requests"

    @staticmethod
    def recognizes(entry: Entry) -> bool:
        """Whether the entry holds a request's statistics, or a mean that SGLang prints."""
        if entry.value is None:
            return _LOGGED.search(entry.text) is not None
        mean = entry.value.get("accept_length")
        alone = isinstance(mean, int | float) and not isinstance(mean, bool)
        return has(entry.value, _VERIFIED) or (alone and not has(entry.value, "spec_verify_count"))

    def add(self, entry: Entry, tally: Tally) -> None:
        """Count the requests of one response."""
        if entry.value is None:
            if entry.text.startswith("{"):
                raise Malformed("no JSON object")
            if logged := _LOGGED.search(entry.text):
                tally.cycles_unknown(entry.number, f"a mean accepted length of {logged[1]}")
            return
        found = list(find(entry.value, _VERIFIED))
        if not found and "accept_length" in entry.value and entry.value["accept_length"] is not None:
            mean = number(entry.value["accept_length"], "accept_length")
            tally.cycles_unknown(entry.number, f"a mean accepted length of {mean:g} since the server's start")
        elif not found:
            tally.warn("responses without drafting statistics: passed over", entry.number)
        for one in found:
            try:
                _add(one, entry.number, tally)
            except Malformed as problem:
                tally.bad(entry.number, str(problem))


def _add(one: dict[str, Any], at: int, tally: Tally) -> None:
    cycles = count(one[_VERIFIED], _VERIFIED)
    if not cycles:
        tally.nothing_drafted(at)
        return
    identity = one.get("id")
    name = identity if isinstance(identity, str) else f"request {at}"
    listed = next((one[key] for key in _HISTOGRAMS if one.get(key)), None)
    reported = next((one[key] for key in _ACCEPTED if one.get(key) is not None), None)
    accepted = None if reported is None else count(reported, "accepted draft tokens")
    tokens = None if one.get("completion_tokens") is None else count(one["completion_tokens"], "completion_tokens")
    if listed is not None:
        buckets = histogram(listed, "the histogram")
        total = sum(length * times for length, times in enumerate(buckets))
        if not sum(buckets):
            raise Malformed(f"an empty histogram of {cycles} cycles")
        if sum(buckets) != cycles or accepted not in (None, total):
            tally.warn("the histogram contradicts spec_verify_ct or the accepted tokens and outranks them", at)
        # It grows with what is accepted: how deep the drafts were it does not say.
        tally.histogram(name, buckets, None)
        emitted = sum(buckets) + total
    elif accepted is not None:
        tally.totals(name, cycles, accepted)
        emitted = cycles + accepted
    elif tokens is None or tokens < cycles:
        raise Malformed(f"{tokens} tokens in {cycles} cycles")
    else:
        tally.totals(name, cycles, tokens - cycles)
        tally.warn(
            "tau is completion_tokens / spec_verify_ct: it may count the token of the prefill, which belongs "
            "to no cycle (then one accepted token too many in each request)",
            at,
        )
        return
    if tokens not in (None, emitted):
        tally.warn(
            "completion_tokens differs from the cycles' tokens, by the prefill's token or a cut at the end: not used",
            at,
        )
