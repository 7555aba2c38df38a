"""Answer files that list every cycle's length: Spec-Bench and HASS."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from gumiho_simulator.importers.evaluations.answers import choice_keys, choices, failed, question
from gumiho_simulator.importers.reading import Entry, Importer, Malformed, Tally
from gumiho_simulator.importers.reading.base import counts, lengths


class RoundLengths(Importer):
    """Questions, each a prompt, and their cycles in order.

    Draft depths are not listed; the lists run flat over the turns and are cut by the number of cycles.
    """

    lengths_key: ClassVar[str]
    bonus: ClassVar[int]

    @abstractmethod
    def steps(self, choice: dict[str, Any]) -> list[int]:
        """Return the number of cycles of each turn; [] where it is not listed."""

    def add(self, entry: Entry, tally: Tally) -> None:
        """Take the cycles of one question, or their sums where they are not listed."""
        listed: list[list[int]] = []
        summed: list[tuple[int, int]] = []
        for choice in choices(entry):
            steps = self.steps(choice)
            dropped = {turn for turn in range(len(steps)) if failed(choice, turn)}
            if self.lengths_key in choice:
                found = lengths(choice[self.lengths_key], self.lengths_key, self.bonus)
                turns = _cut(found, steps)
                if turns is None and dropped:
                    raise Malformed("a failed turn that cannot be told from the others")
                if turns is None and steps:
                    tally.warn("cycles do not split into turns as counted: taken as one turn", entry.number)
                listed += [turn for at, turn in enumerate(turns or [found]) if at not in dropped]
            else:
                tokens = counts(choice.get("new_tokens"), "new_tokens")
                if not steps or len(steps) != len(tokens) or any(b < a for a, b in zip(steps, tokens, strict=True)):
                    raise Malformed("neither a list of lengths nor cycles and tokens of each turn")
                pairs = enumerate(zip(steps, tokens, strict=True))
                summed += [(cycles, new - cycles) for turn, (cycles, new) in pairs if turn not in dropped]
            if dropped:
                tally.warn("turns that failed repeat the numbers of the one before: left out", entry.number)
        category = (entry.value or {}).get("category")
        for turn in listed:
            tally.turn(question(entry), category if isinstance(category, str) else None, turn, None)
        for cycles, accepted in summed:
            tally.totals(question(entry), cycles, accepted)


class SpecBench(RoundLengths):
    """Spec-Bench: ``accept_lengths`` includes the bonus token (plain decoding lists ones)."""

    name = "spec-bench"
    clusters = "questions"
    lengths_key = "accept_lengths"
    bonus = 1

    @staticmethod
    def recognizes(entry: Entry) -> bool:
        """Whether the object is one of its answers."""
        return bool({"accept_lengths", "decoding_steps"} & choice_keys(entry))

    def steps(self, choice: dict[str, Any]) -> list[int]:
        """Return ``decoding_steps``."""
        return counts(choice.get("decoding_steps", []), "decoding_steps")


class Hass(RoundLengths):
    """HASS: ``accept_length`` excludes the bonus token, ``idxs`` are EAGLE's."""

    name = "hass"
    clusters = "questions"
    lengths_key = "accept_length"
    bonus = 0

    @staticmethod
    def recognizes(entry: Entry) -> bool:
        """Whether the object is one of its answers."""
        keys = choice_keys(entry)
        return "accept_length" in keys and "decoding_steps" not in keys

    def steps(self, choice: dict[str, Any]) -> list[int]:
        """Return the cycles of each turn, one more than the last index."""
        return [last + 1 for last in counts(choice.get("idxs", []), "idxs")]


def _cut(found: list[int], steps: list[int]) -> list[list[int]] | None:
    """Cut a flat list into turns; None where the counts do not sum to it."""
    # Some drafters (token recycling) leave out the step that ends a turn.
    for more in (0, 1):
        sizes = [step + more for step in steps]
        if steps and sum(sizes) == len(found):
            ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
            return [found[end - size : end] for end, size in zip(ends, sizes, strict=True)]
    return None
