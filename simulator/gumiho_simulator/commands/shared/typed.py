"""Numbers as people type them, decimals and fractions read exactly, and errors that name the option typed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

from gumiho_theory import InputError
from gumiho_theory.theorem.exact import to_exact

_LONGEST = 512  # of a chain


def parse_numbers(place: str, text: str) -> list[Fraction]:
    """Read comma-separated decimals and fractions.

    `place`: What an error names. `text`: Such as "0.81, 3/4"; at most 512 numbers, none negative. Returns the exact
    values. Raises InputError: Text that is no such list; the message gives the position, counted from 1.
    """
    numbers = list(to_exact(text, place))
    for position, number in enumerate(numbers, start=1):
        if number < 0:
            raise InputError(f"{place}, position {position}", float(number), "a number of at least 0")
    return numbers


def parse_rates(place: str, text: str) -> list[Fraction]:
    """Read comma-separated rates: `parse_numbers`, none above 1."""
    numbers = parse_numbers(place, text)
    for position, number in enumerate(numbers, start=1):
        if number > 1:
            raise InputError(f"{place}, position {position}", float(number), "a rate in [0, 1]")
    return numbers


def parse_lengths(place: str, text: str) -> list[int]:
    """Read comma-separated lengths of chains: `parse_numbers`, whole and at most 512."""
    numbers = parse_numbers(place, text)
    for position, number in enumerate(numbers, start=1):
        if number.denominator != 1 or number > _LONGEST:
            raise InputError(f"{place}, position {position}", str(number), f"a whole number up to {_LONGEST}")
    return [int(number) for number in numbers]


def parse_time(place: str, text: str) -> Fraction:
    """Read one time in milliseconds: `parse_numbers`, just one."""
    numbers = parse_numbers(place, text)
    if len(numbers) != 1:
        raise InputError(place, f"{len(numbers)} numbers", "one time in milliseconds")
    return numbers[0]


@contextmanager
def named_as_options(*names: str) -> Iterator[None]:
    """Let an InputError name what was typed, ``--draft-ms``, where a function names its parameter, ``draft_ms``."""
    try:
        yield
    except InputError as error:
        said = [error.place, error.found, error.wanted]
        for name in names:
            said = [part.replace(name, f"--{name.replace('_', '-')}") for part in said]
        raise InputError(*said) from None
