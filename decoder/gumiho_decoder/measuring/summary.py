"""What the outputs of a run say, summed up: tokens a second, speedups, losslessness, repetition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from gumiho_decoder.cycle import Generation
from gumiho_decoder.measuring.lossless import count_prompts
from gumiho_decoder.measuring.resampling import speedup
from gumiho_decoder.measuring.runs import Output


def summarize(outputs: Sequence[Output]) -> dict[str, Any]:
    """Return the keys of `gumiho decode --json` that do not come from the trace."""
    rates = speed(outputs)
    return {
        "new_tokens": sum(len(o.speculative.token_ids) for o in outputs),
        "tokens_per_second": rates["tokens_per_second"],
        "baseline_tokens_per_second": rates["plain_tokens_per_second"],
        "speedup": rates["plain_speedup"],
        "speedup_ci": rates["plain_speedup_ci"],
        "lossless": lossless(outputs),
        "departures": departures(outputs),
    }


def speed(outputs: Sequence[Output]) -> dict[str, Any]:
    """Return tokens per second and speedups: ratios of whole wall times, prefill included.

    Returns dict: `tokens_per_second`; for `plain` and `library` also `…_tokens_per_second`, `…_speedup` and
    `…_speedup_ci`, None where not measured. The interval (95 %, prompts resampled; None for a single prompt) covers how
    prompts differ, not what else the machine was doing.
    """
    result: dict[str, Any] = {"tokens_per_second": _rate([o.speculative for o in outputs])}
    for name in ("plain", "library"):
        pairs = [(o, beside) for o in outputs if (beside := getattr(o, name)) is not None]
        sizes = [(*_size(o.speculative), *_size(beside)) for o, beside in pairs]
        ratio, limits = speedup([o.prompt_id for o, _ in pairs], sizes)
        result[f"{name}_tokens_per_second"] = _rate([beside for _, beside in pairs]) if pairs else None
        result[f"{name}_speedup"] = ratio
        result[f"{name}_speedup_ci"] = None if limits is None else list(limits)
    return result


def lossless(outputs: Sequence[Output]) -> dict[str, int]:
    """Return how many prompts were checked, equal, tied, different; a prompt is as good as its worst turn."""
    return count_prompts((o.prompt_id, o.comparison and o.comparison.verdict) for o in outputs)


def departures(outputs: Sequence[Output]) -> list[dict[str, Any]]:
    """Return where outputs leave plain decoding: the fields of their `Comparison`s, by prompt and turn."""
    return [
        {"prompt_id": o.prompt_id, "turn": o.turn, **asdict(o.comparison)}
        for o in outputs
        if o.comparison is not None and o.comparison.verdict != "equal"
    ]


def repeated_share(outputs: Sequence[Output], n: int = 4) -> float | None:
    """Return the share of n-grams that occurred before in the same output; None without any."""
    seen = repeated = 0
    for output in outputs:
        ids = output.speculative.token_ids
        grams = [ids[i : i + n] for i in range(len(ids) - n + 1)]
        seen += len(grams)
        repeated += len(grams) - len(set(grams))
    return repeated / seen if seen else None


def _size(made: Generation) -> tuple[int, float]:
    return len(made.token_ids), made.seconds


def _rate(made: Sequence[Generation]) -> float:
    return sum(len(m.token_ids) for m in made) / sum(m.seconds for m in made)
