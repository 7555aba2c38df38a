"""vLLM's Prometheus text (``/metrics``), and llama.cpp's, which uses the same names."""

from __future__ import annotations

import re

from gumiho_simulator.importers.reading import Entry, Importer, Malformed, Tally
from gumiho_simulator.importers.reading.base import SHORTER, count
from gumiho_theory.rates import MAX_DEPTH

# Matched to the end of the name: num_accepted_tokens is how the per-position series begins, too, and _created
# series hold times.
_SAMPLE = re.compile(
    r"(?:vllm|llamacpp):spec_decode_num_"
    r"(?P<series>drafts|draft_tokens|accepted_tokens|accepted_tokens_per_pos)(?:_total)?"
    r"(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)(?:\s+-?\d+)?"
)
_NAME = re.compile(r"(?:vllm|llamacpp):spec_decode_num_(?!\w*_created)")
_MOST_ENGINES = 10_000
_LABEL = re.compile(r'\s*([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"\s*(?:,|$)')


class VllmMetrics(Importer):
    """Counters since the server's start; an engine is a group.

    Accepted tokens exclude the bonus token, positions count from 0, and a position's counter divided by the
    drafts is a survival rate.
    """

    name = "vllm-metrics"
    clusters = "engines"

    def __init__(self) -> None:
        self._engines: dict[str, dict[str, int]] = {}
        self._accepted: dict[str, dict[int, int]] = {}
        self._runs = 0

    @staticmethod
    def recognizes(entry: Entry) -> bool:
        """Whether the line is a sample of a drafting counter."""
        return _SAMPLE.fullmatch(entry.text) is not None

    def add(self, entry: Entry, tally: Tally) -> None:
        """Take a sample; a later one of the same series replaces it, since counters only grow."""
        match = _SAMPLE.fullmatch(entry.text)
        if match is None:
            if _NAME.match(entry.text):
                raise Malformed("a drafting counter that is no Prometheus sample")
            return
        labels = dict(_LABEL.findall(match["labels"] or ""))
        try:
            value = count(float(match["value"]), match["series"])
        except ValueError:
            raise Malformed(f"{match['value'][:40]} is no number") from None
        position = labels.pop("position", None)
        group = _group(labels)
        if group not in self._engines and len(self._engines) >= _MOST_ENGINES:
            raise Malformed(f"more than {_MOST_ENGINES} engines")
        if match["series"] != "accepted_tokens_per_pos":
            series, key = self._engines.setdefault(group, {}), match["series"]
            if key == "drafts" and key in series:
                if value < series[key]:
                    tally.warn("a counter fell, so the server restarted: each run is a group of its own", entry.number)
                    self._runs += 1
                    run = f"{group}, run {self._runs}"
                    self._engines[run] = self._engines.pop(group)
                    self._accepted[run] = self._accepted.pop(group, {})
                    series = self._engines[group] = {}
                self._accepted.pop(group, None)  # those of the scrape before, of which some may be gone
            if key in series:
                tally.warn("several scrapes in one file: the last counts, since counters add up", entry.number)
            series[key] = value
            return
        if position is None or not re.fullmatch("[0-9]{1,3}", position) or int(position) >= MAX_DEPTH:
            raise Malformed("a per-position counter without a usable position")
        self._engines.setdefault(group, {})
        self._accepted.setdefault(group, {})[int(position)] = value

    def finish(self, tally: Tally) -> None:
        """Count each engine."""
        for group, series in self._engines.items():
            if "drafts" not in series:
                tally.warn(f"{group} has no counter of drafts: left out")
                continue
            drafts, by_position = series["drafts"], self._accepted.get(group, {})
            accepted = [by_position.get(i, 0) for i in range(max(by_position, default=-1) + 1)]
            total = series.get("accepted_tokens", sum(accepted))
            if drafts == 0:
                tally.warn(f"{group} drafted nothing: no data")
            if not accepted and drafts:
                tally.totals(group, drafts, total)
                continue
            if len(accepted) != len(by_position) or any(
                b > a for a, b in zip([drafts, *accepted], accepted, strict=False)
            ):
                tally.warn(f"{group}: positions are missing or accept more than the ones before: positions left out")
                tally.totals(group, drafts, total)
                continue
            if sum(accepted) != total:
                tally.warn(
                    f"{group}: positions sum to {sum(accepted)} accepted tokens, the total says {total}: "
                    "positions outrank it"
                )
            if 0 < series.get("draft_tokens", 0) < drafts * len(accepted):
                tally.warn(f"{group}: {SHORTER}")
            tally.survivors(group, drafts, accepted)


def _group(labels: dict[str, str]) -> str:
    """Name the engine, and the model or host where one is named."""
    parts = [f"engine {labels['engine']}"] if "engine" in labels else []
    parts += [f"{key} {value}" for key, value in sorted(labels.items()) if key != "engine"]
    return ", ".join(parts) or "server"
