from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumiho_theory import InputError


def test_message_names_place_found_and_wanted() -> None:
    error = InputError("rates, position 2", 1.5, "a rate in [0, 1]")
    assert str(error) == "rates, position 2: found 1.5, wanted a rate in [0, 1]"
    assert (error.place, error.found, error.wanted) == ("rates, position 2", "1.5", "a rate in [0, 1]")
    assert isinstance(error, ValueError)


@given(st.text(max_size=2000), st.text(max_size=2000))
def test_message_is_one_short_printable_line_whatever_was_found(place: str, found: str) -> None:
    text = str(InputError(place, found, "anything"))
    assert len(text.splitlines()) == 1
    assert text.isprintable()
    assert len(text) < 450


def test_outer_place_goes_first_and_keeps_the_inner_one_even_after_a_long_path() -> None:
    error = InputError("row 3, column nodes", 1, "more").within("x" * 1000)
    assert str(error).startswith("xxx")
    assert str(error).endswith("...: row 3, column nodes: found 1, wanted more")


def test_error_survives_pickling_between_processes() -> None:
    error = pickle.loads(pickle.dumps(InputError("file", "nothing", "something")))
    assert isinstance(error, InputError)
    assert str(error) == "file: found nothing, wanted something"


def test_error_can_be_raised_and_caught_as_value_error() -> None:
    with pytest.raises(ValueError, match="found b"):
        raise InputError("a", "b", "c")
