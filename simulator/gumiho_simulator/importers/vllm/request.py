"""vLLM's responses with per-request statistics (``--per-request-spec-decode-metrics``)."""

from __future__ import annotations

from typing import Any

from gumiho_simulator.importers.reading import Entry, Importer, Malformed, Tally
from gumiho_simulator.importers.reading.base import (
    SHORTER,
    count,
    counts,
    find,
    has,
    histogram,
    json_object,
    length_of,
    mean_fits,
    number,
)
from gumiho_theory.rates import MAX_DEPTH

_HISTOGRAM, _STEPS = "acceptance_histogram", "per_step_accepted"
_BY_LENGTH = "acceptance_histogram_by_draft_length"


class VllmRequest(Importer):
    """Requests, each a group; of detailed statistics every cycle is kept.

    The histogram counts cycles by accepted draft tokens, bonus excluded. In the order of rank: steps, the
    histogram by draft length, the histogram, then counts; a reported mean only checks them.
    """

    name = "vllm-request"
    clusters = "requests"

    @staticmethod
    def recognizes(entry: Entry) -> bool:
        """Whether the object holds statistics of a request."""
        return has(entry.value, _HISTOGRAM, "num_spec_steps") or has(entry.value, _STEPS, "per_step_drafted")

    def add(self, entry: Entry, tally: Tally) -> None:
        """Count the statistics of one response (one each for several choices)."""
        value = json_object(entry)
        found = [one for key in (_HISTOGRAM, _STEPS, "num_spec_steps") for one in find(value, key)]
        # An object with several of the keys was found as often.
        every = list({id(one): one for one in found}.values())
        if not every:
            tally.warn("requests without statistics (drafting off, or several choices): passed over", entry.number)
        identity = value.get("id") or value.get("request_id")
        name = identity if isinstance(identity, str) else f"request {entry.number}"
        for one in every:
            try:
                _add(one, name, entry.number, tally)
            except Malformed as problem:
                tally.bad(entry.number, str(problem))


def _add(one: dict[str, Any], name: str, at: int, tally: Tally) -> None:
    if one.get(_STEPS) is not None and one.get("per_step_drafted") is not None:
        accepted, drafted = counts(one[_STEPS], _STEPS), counts(one["per_step_drafted"], "per_step_drafted")
        if len(accepted) != len(drafted) or any(a > d for a, d in zip(accepted, drafted, strict=True)):
            raise Malformed("per_step_accepted and per_step_drafted do not belong together")
        if max(drafted, default=0) > MAX_DEPTH:
            raise Malformed(f"a draft of {max(drafted)} tokens")
        kept = [(a, d) for a, d in zip(accepted, drafted, strict=True) if d]
        if not kept:
            tally.nothing_drafted(at)
            return
        if len(kept) < len(drafted):
            tally.warn("steps without a draft are no cycles: left out", at)
        _check(one, len(accepted), sum(accepted), at, tally)
        tally.turn(name, None, [a for a, _ in kept], [d for _, d in kept])
        return
    if one.get(_HISTOGRAM) is None:
        cycles = count(one.get("num_spec_steps"), "num_spec_steps")
        total = count(one.get("num_accepted_draft_tokens"), "num_accepted_draft_tokens")
        limits = [(one.get("num_draft_tokens"), 1), (one.get("num_spec_tokens"), cycles)]
        for limit, times in limits:
            if limit is not None and total > count(limit, "tokens drafted") * times:
                raise Malformed(f"{total} tokens accepted of {limit * times} drafted")
        if not cycles:
            tally.nothing_drafted(at)
        else:
            tally.totals(name, cycles, total)
        return
    cycles_by_length = histogram(one[_HISTOGRAM], _HISTOGRAM)
    cycles = sum(cycles_by_length)
    if not cycles:
        tally.nothing_drafted(at)
        return
    deepest = one.get("num_spec_tokens")
    depth = len(cycles_by_length) - 1 if deepest is None else min(count(deepest, "num_spec_tokens"), MAX_DEPTH)
    tokens = one.get("num_draft_tokens")
    shorter = tokens is not None and count(tokens, "num_draft_tokens") < cycles * depth
    by_length = _by_length(one.get(_BY_LENGTH), cycles_by_length)
    _check(one, cycles, sum(i * n for i, n in enumerate(cycles_by_length)), at, tally)
    if by_length is not None:
        for length, buckets in by_length.items():
            tally.histogram(name, buckets, length)
        return
    tally.histogram(name, cycles_by_length, max(depth, len(cycles_by_length) - 1))
    if shorter:
        tally.warn(SHORTER, at)


def _by_length(value: Any, pooled: list[int]) -> dict[int, list[int]] | None:
    """Return histograms by draft length, or None where they are missing or do not sum to the pooled one."""
    if not isinstance(value, dict | list):
        return None
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    made: dict[int, list[int]] = {}
    for key, buckets in pairs:
        length = length_of(str(key), _BY_LENGTH)
        if buckets:
            made[length] = histogram(buckets, _BY_LENGTH)
    sums = [sum(one[i] for one in made.values() if i < len(one)) for i in range(len(pooled))]
    fits = all(length <= MAX_DEPTH and not any(one[length + 1 :]) for length, one in made.items())
    return made if fits and sums == pooled else None


def _check(one: dict[str, Any], cycles: int, total: int, at: int, tally: Tally) -> None:
    for key, value in (("num_spec_steps", cycles), ("num_accepted_draft_tokens", total)):
        if one.get(key) is not None and one[key] != value:
            tally.warn(f"{key} contradicts the histogram or steps, which outrank it", at)
    mean = one.get("mean_acceptance_length")
    if mean is not None and not mean_fits(number(mean, "mean_acceptance_length"), total, cycles):
        tally.warn("the reported mean contradicts the histogram or steps, which outrank it", at)
