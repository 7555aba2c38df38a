from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumiho_theory import InputError
from gumiho_theory.errors import check_integer, within


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


def test_what_is_raised_inside_gets_the_outer_place_and_everything_else_passes() -> None:
    with pytest.raises(InputError, match=r"^file: row 3: found 1, wanted 2$"), within("file"):
        raise InputError("row 3", 1, 2)
    with pytest.raises(KeyError), within("file"):
        raise KeyError("row 3")


@pytest.mark.parametrize("value", [True, 1.0, "1", None, 0, 4])
def test_integers_are_checked_for_type_and_range(value: object) -> None:
    check_integer("depth", 1, 1, 3)
    check_integer("depth", 10**30, 1)
    with pytest.raises(InputError, match=r"^depth: found .*, wanted an integer from 1 to 3$"):
        check_integer("depth", value, 1, 3)
