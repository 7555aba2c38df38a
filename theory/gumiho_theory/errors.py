"""The one error that bad input raises, whatever part of the toolkit reads it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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


@contextmanager
def within(place: object) -> Iterator[None]:
    """Put an outer place, such as a file's path, before that of any InputError raised inside."""
    try:
        yield
    except InputError as error:
        raise error.within(place) from None


def check_integer(place: object, value: object, low: int, high: int | None = None) -> None:
    """Refuse, by InputError, what is no integer from `low` to `high` (None: without an upper end); bool is none."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < low or (high is not None and value > high):  # type: ignore[operator]
        wanted = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise InputError(place, repr(value), f"an integer {wanted}")
