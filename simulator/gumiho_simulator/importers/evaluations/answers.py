"""Answer files of EAGLE, Medusa and Hydra: ``idxs`` and ``new_tokens`` by turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gumiho_simulator.importers.reading import Entry, Importer, Malformed, Tally
from gumiho_simulator.importers.reading.base import counts

_FAILED = "ERROR"  # the text of a turn that failed; its numbers repeat the turn before


class Answers(Importer):
    """Questions, each a group, both turns and all choices together.

    ``idxs`` holds the 0-based index of the last cycle, so a turn had one cycle more; ``new_tokens`` includes
    the bonus tokens, and tokens behind the end of text.
    """

    name = "eagle"
    clusters = "questions"

    @staticmethod
    def recognizes(entry: Entry) -> bool:
        """Whether the object is an answer with the last cycle's index and no list of lengths."""
        keys = choice_keys(entry)
        return {"idxs", "new_tokens"} <= keys and not {"accept_length", "accept_lengths"} & keys

    def add(self, entry: Entry, tally: Tally) -> None:
        """Count one question."""
        cycles = accepted = 0
        for choice in choices(entry):
            steps, tokens = counts(choice.get("idxs"), "idxs"), counts(choice.get("new_tokens"), "new_tokens")
            if len(steps) != len(tokens):
                raise Malformed("idxs and new_tokens of different length")
            for turn, (last, new) in enumerate(zip(steps, tokens, strict=True)):
                if failed(choice, turn):
                    tally.warn("turns that failed repeat the numbers of the one before: left out", entry.number)
                    continue
                if new < last + 1:
                    raise Malformed(f"{new} tokens in {last + 1} cycles")
                cycles, accepted = cycles + last + 1, accepted + new - last - 1
            if "alpha" in choice:
                tally.warn("alpha covers the last turn only: left out, so there are no positions")
        if cycles:
            tally.totals(question(entry), cycles, accepted)


def choices(entry: Entry) -> Iterator[dict[str, Any]]:
    """Yield an answer's choices; `Malformed` where it has none, or one that is no object."""
    listed = (entry.value or {}).get("choices")
    if not isinstance(listed, list) or not listed or not all(isinstance(one, dict) for one in listed):
        raise Malformed("no answer with choices")
    yield from listed


def choice_keys(entry: Entry) -> set[str]:
    """Return the keys of an answer's first choice; none where the entry is no answer."""
    try:
        return set(next(choices(entry)))
    except Malformed:
        return set()


def question(entry: Entry) -> str:
    """Return the name of an answer's question."""
    identity = (entry.value or {}).get("question_id")
    return str(identity) if isinstance(identity, int | str) else f"line {entry.number}"


def failed(choice: dict[str, Any], turn: int) -> bool:
    """Whether a turn ended in an error."""
    texts = choice.get("turns")
    return isinstance(texts, list) and turn < len(texts) and texts[turn] == _FAILED
