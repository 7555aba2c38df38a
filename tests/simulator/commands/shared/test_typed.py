"""Numbers from the command line: read exactly, or refused with their position."""

from __future__ import annotations

from fractions import Fraction

import pytest

from gumiho_simulator.commands.shared.typed import named_as_options, parse_numbers, parse_rates
from gumiho_theory import InputError


def test_decimals_and_fractions_are_read_exactly() -> None:
    assert parse_numbers("x", "0.81, 3/4,1,.5,0.3/0003") == [
        Fraction(81, 100),
        Fraction(3, 4),
        Fraction(1),
        Fraction(1, 2),
        Fraction(1, 10),
    ]


@pytest.mark.parametrize(
    "text", ["", "0.5,,0.5", "a", "1e5", "-0.1", "nan", "inf", "1/0", "0x1", "1_0", "٣", "0.5;0.4"]
)
def test_anything_else_is_refused_with_its_position(text: str) -> None:
    with pytest.raises(InputError, match=r"--rates, position \d: found"):
        parse_numbers("--rates", text)


def test_a_million_numbers_are_refused_without_reading_them() -> None:
    with pytest.raises(InputError, match="at most 512"):
        parse_numbers("--rates", ",".join(["0.5"] * 513))


def test_a_rate_above_one_is_refused_with_its_position() -> None:
    with pytest.raises(InputError, match=r"position 2: found 1\.2"):
        parse_rates("--rates", "0.5,1.2")


def test_an_error_names_the_option_and_not_the_parameter() -> None:
    with pytest.raises(InputError) as caught, named_as_options("draft_ms", "verify_ms"):
        raise InputError("draft_ms", "no verify_ms", "both")
    assert str(caught.value) == "--draft-ms: found no --verify-ms, wanted both"
