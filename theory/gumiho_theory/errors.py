"""The one error that bad input raises, whatever part of the toolkit reads it."""

from __future__ import annotations

_LONGEST = 200


def _one_line(value: object) -> str:
    text = " ".join("".join(c if c.isprintable() else " " for c in str(value)).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


class InputError(ValueError):
    """Input that cannot be used: a file, a field, a command-line value, an argument.

    Parameters
    ----------
    place : object
        Where the value stands: a file, line, field or argument name.
    found : object
        What was found there.
    wanted : object
        What would have been accepted.

    Attributes
    ----------
    place, found, wanted : str
        The three parts, each on one line and shortened to about 200 characters,
        since the values come from files that can hold anything.
    """

    def __init__(self, place: object, found: object, wanted: object) -> None:
        self.place = _one_line(place)
        self.found = _one_line(found)
        self.wanted = _one_line(wanted)
        super().__init__(self.place, self.found, self.wanted)

    def __str__(self) -> str:
        """Return ``place: found X, wanted Y`` on one line."""
        return f"{self.place}: found {self.found}, wanted {self.wanted}"

    def within(self, place: object) -> InputError:
        """Return the same error with an outer place (such as the file's path) put before its own."""
        # Shortened apart: a long path must not push the row and the column out of the message.
        outer = InputError(place, self.found, self.wanted)
        outer.place = f"{outer.place}: {self.place}"
        outer.args = (outer.place, outer.found, outer.wanted)
        return outer
