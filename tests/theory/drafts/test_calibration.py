from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumiho_theory import InputError, IsotonicMap, ScoreCalibration, TemperatureMap
from gumiho_theory.drafts.calibration import MAX_KNOTS

FINGERPRINT = "0123456789abcdef" * 4
CALIBRATION = ScoreCalibration(
    "tiny:gumiho",
    FINGERPRINT,
    (TemperatureMap(1.75), IsotonicMap((0.0, 0.25, 1.0), (0.0, 0.5, 0.75))),
    {"log": "every.parquet", "rows": 1200},
)

unit = st.floats(0, 1)


@st.composite
def isotonic_maps(draw: st.DrawFn) -> IsotonicMap:
    knots = sorted(draw(st.sets(unit, min_size=2, max_size=12)))
    values = sorted(draw(st.lists(unit, min_size=len(knots), max_size=len(knots))))
    return IsotonicMap(tuple(knots), tuple(values))


temperature_maps = st.builds(TemperatureMap, st.floats(0, 100, exclude_min=True))
calibrations = st.builds(
    ScoreCalibration,
    st.text(max_size=20),
    st.text("0123456789abcdef", min_size=64, max_size=64),
    st.lists(isotonic_maps() | temperature_maps, min_size=1, max_size=5).map(tuple),
    st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=5), max_size=3),
)


@given(calibrations)
def test_json_and_file_lead_back_to_the_same_calibration(
    tmp_path_factory: pytest.TempPathFactory, calibration: ScoreCalibration
) -> None:
    assert ScoreCalibration.from_json(json.loads(json.dumps(calibration.to_json()))) == calibration
    path = tmp_path_factory.mktemp("calibration") / "c.json"
    calibration.write(path)
    assert ScoreCalibration.read(path) == calibration


def test_the_file_is_of_the_written_form() -> None:
    assert CALIBRATION.to_json() == {
        "schema": "gumiho.calibration/1",
        "drafter": {"name": "tiny:gumiho", "fingerprint": FINGERPRINT},
        "maps": [
            {"depth": 1, "kind": "temperature", "beta": 1.75},
            {"depth": 2, "kind": "isotonic", "draft": [0.0, 0.25, 1.0], "acceptance": [0.0, 0.5, 0.75]},
        ],
        "provenance": {"log": "every.parquet", "rows": 1200},
    }


def test_unknown_keys_of_a_later_minor_version_are_ignored() -> None:
    data = json.loads(json.dumps({**CALIBRATION.to_json(), "schema": "gumiho.calibration/1.3", "error": 0.1}))
    data["drafter"]["layers"] = 2
    data["maps"][0]["error"] = 0.1
    assert ScoreCalibration.from_json(data) == CALIBRATION
    del data["provenance"]
    assert ScoreCalibration.from_json(data).provenance == {}


def test_depths_beyond_the_last_map_use_the_last() -> None:
    first, last = CALIBRATION.maps
    assert [CALIBRATION.at(depth) for depth in (1, 2, 3, 500)] == [first, last, last, last]


@pytest.mark.parametrize("depth", [0, -1, True, 1.0, None])
def test_depths_count_from_1(depth: Any) -> None:
    with pytest.raises(InputError, match="^depth: "):
        CALIBRATION.at(depth)


def test_another_drafters_calibration_is_refused_by_both_fingerprints() -> None:
    CALIBRATION.check_drafter(FINGERPRINT)
    other = "f" * 64
    with pytest.raises(InputError) as caught:
        CALIBRATION.check_drafter(other)
    assert caught.value.place == "calibration, drafter"
    assert FINGERPRINT[:12] in caught.value.found and "tiny:gumiho" in caught.value.found
    assert other[:12] in caught.value.wanted


log_probabilities = st.lists(st.one_of(st.just(-np.inf), st.floats(-50, 0)), min_size=1, max_size=6).filter(
    lambda row: max(row) > -np.inf
)


@given(log_probabilities, st.floats(0.01, 100))
def test_a_temperature_raises_each_probability_to_beta_and_normalises(row: list[float], beta: float) -> None:
    top = max(row)
    powers = [np.exp(value - top) ** beta for value in row]
    expected = [power / sum(powers) for power in powers]
    assert TemperatureMap(beta)(row) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@given(log_probabilities, st.floats(0.01, 100), st.floats(-5, 5))
def test_acceptance_by_temperature_is_a_distribution_whatever_constant_is_added(
    row: list[float], beta: float, shift: float
) -> None:
    acceptance = TemperatureMap(beta)(row)
    assert acceptance.sum() == pytest.approx(1.0) and (acceptance >= 0).all()
    assert TemperatureMap(beta)(np.array(row) + shift) == pytest.approx(acceptance, rel=1e-9, abs=1e-12)
    assert (acceptance[np.isneginf(row)] == 0).all()


def test_a_temperature_acts_on_each_row_of_a_batch_and_in_float64() -> None:
    rows = np.log(np.random.default_rng(0).dirichlet(np.ones(7), size=(3, 4)))
    acceptance = TemperatureMap(2.5)(rows.astype(np.float32))
    assert acceptance.shape == (3, 4, 7) and acceptance.dtype == np.float64
    for index in np.ndindex(3, 4):
        assert acceptance[index] == pytest.approx(TemperatureMap(2.5)(rows[index]), rel=1e-5)
    assert TemperatureMap(1.0)(rows) == pytest.approx(np.exp(rows))


def test_beta_above_1_sharpens_and_below_1_flattens() -> None:
    log_q = np.log([0.5, 0.3, 0.2])
    assert TemperatureMap(2.0)(log_q)[0] > 0.5 > TemperatureMap(0.5)(log_q)[0] > 1 / 3


def test_rows_of_enormous_spread_still_give_probabilities() -> None:
    assert TemperatureMap(100.0)([1e308, -1e308, 0.0]).tolist() == [1.0, 0.0, 0.0]
    assert TemperatureMap(5e-324)([0.0, -1e308]).tolist() == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize(
    "log_q", [[0.0, np.nan], [0.0, np.inf], [-np.inf, -np.inf], [[0.0, -1.0], [np.nan, 0.0]], [], 0.0], ids=repr
)
def test_rows_that_are_no_log_probabilities_are_refused(log_q: Any) -> None:
    with pytest.raises(InputError, match="^log q: "):
        TemperatureMap(1.5)(log_q)


@given(isotonic_maps(), st.lists(unit, max_size=20))
def test_an_isotonic_map_never_falls_keeps_its_knots_and_its_range(one: IsotonicMap, values: list[float]) -> None:
    q = np.sort(np.array([*values, *one.draft]))
    acceptance = one(q)
    assert (np.diff(acceptance) >= 0).all()
    assert one.acceptance[0] <= acceptance[0] and acceptance[-1] <= one.acceptance[-1]
    assert one(one.draft).tolist() == list(one.acceptance)


def between(one: IsotonicMap, q: float) -> float:
    """The map by plain loops: the end's value outside the knots, a straight line between two of them."""
    if q <= one.draft[0]:
        return one.acceptance[0]
    for left, right, low, high in zip(one.draft, one.draft[1:], one.acceptance, one.acceptance[1:], strict=False):
        if q <= right:
            return low + (high - low) * ((q - left) / (right - left))
    return one.acceptance[-1]


@given(isotonic_maps(), st.lists(unit, min_size=1, max_size=20))
def test_an_isotonic_map_is_linear_between_knots_and_constant_outside(one: IsotonicMap, values: list[float]) -> None:
    assert one(values) == pytest.approx([between(one, q) for q in values], abs=1e-12)


def test_an_isotonic_map_agrees_with_numpys_interpolation_in_any_shape() -> None:
    rng = np.random.default_rng(1)
    knots, values = np.sort(rng.random(50)), np.sort(rng.random(50))
    one = IsotonicMap(tuple(knots.tolist()), tuple(values.tolist()))
    q = rng.random((4, 5, 6))
    assert one(q).shape == (4, 5, 6)
    assert one(q) == pytest.approx(np.interp(q, knots, values), abs=1e-12)
    assert float(one(0.5)) == pytest.approx(np.interp(0.5, knots, values))
    assert one([]).shape == (0,)


def test_knots_that_nearly_touch_do_not_overflow() -> None:
    one = IsotonicMap((0.0, 4e-323, 1.0), (0.0, 1.0, 1.0))
    assert one([0.0, 2e-323, 4e-323]).tolist() == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("q", [-1e-9, 1 + 1e-9, np.nan, [0.5, np.inf]], ids=repr)
def test_draft_probabilities_outside_the_unit_interval_are_refused(q: Any) -> None:
    with pytest.raises(InputError, match="^q_draft: "):
        CALIBRATION.at(2)(q)


@pytest.mark.parametrize("beta", [0, 0.0, -1.0, 100.001, float("nan"), float("inf"), "1", None, True, 10**400])
def test_beta_is_a_finite_number_above_0_and_at_most_100(beta: Any) -> None:
    with pytest.raises(InputError, match="^beta: "):
        TemperatureMap(beta)


def test_whole_numbers_are_kept_as_floats() -> None:
    assert repr(TemperatureMap(2)) == "TemperatureMap(beta=2.0)"
    assert repr(IsotonicMap([0, 1], [0, 1])) == "IsotonicMap(draft=(0.0, 1.0), acceptance=(0.0, 1.0))"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("draft", "acceptance", "place"),
    [
        ((0.0,), (0.5,), "draft"),
        ((), (), "draft"),
        (None, (0.0, 1.0), "draft"),
        ("01", (0.0, 1.0), "draft"),
        ((0.0, 1.0), 0.5, "acceptance"),
        ((0.0, 1.0), (0.0, 0.5, 1.0), "acceptance"),
        ((0.0, 0.5, 0.5), (0.0, 0.5, 1.0), "draft, knot 3"),
        ((0.5, 0.25), (0.0, 1.0), "draft, knot 2"),
        ((-0.1, 1.0), (0.0, 1.0), "draft, knot 1"),
        ((0.0, 1.1), (0.0, 1.0), "draft, knot 2"),
        ((0.0, float("nan")), (0.0, 1.0), "draft, knot 2"),
        ((0.0, True), (0.0, 1.0), "draft, knot 2"),
        ((0.0, 1.0), (0.5, 0.25), "acceptance, knot 2"),
        ((0.0, 1.0), (0.5, 1.5), "acceptance, knot 2"),
        ((0.0, 1.0), (None, 1.0), "acceptance, knot 1"),
    ],
)
def test_knots_that_are_no_map_are_refused_by_name(draft: Any, acceptance: Any, place: str) -> None:
    with pytest.raises(InputError) as caught:
        IsotonicMap(draft, acceptance)
    assert caught.value.place == place


def test_the_number_of_knots_is_bounded() -> None:
    knots = tuple((np.arange(MAX_KNOTS + 1) / MAX_KNOTS).tolist())
    assert len(IsotonicMap(knots[1:], knots[1:]).draft) == MAX_KNOTS
    with pytest.raises(InputError, match=f"^draft: found {MAX_KNOTS + 1} values"):
        IsotonicMap(knots, knots)


TEMPERATURE = {"depth": 1, "kind": "temperature", "beta": 1.5}
ISOTONIC = {"depth": 1, "kind": "isotonic", "draft": [0, 1], "acceptance": [0, 1]}


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"schema": "gumiho.calibration/2"}, "schema"),
        ({"schema": "gumiho.cost_profile/1"}, "schema"),
        ({"schema": None}, "schema"),
        ({"drafter": None}, "drafter"),
        ({"drafter": "tiny"}, "drafter"),
        ({"drafter": {"fingerprint": FINGERPRINT}}, "drafter, name"),
        ({"drafter": {"name": "tiny"}}, "drafter, fingerprint"),
        ({"drafter": {"name": "tiny", "fingerprint": FINGERPRINT[:-1]}}, "drafter, fingerprint"),
        ({"drafter": {"name": "tiny", "fingerprint": FINGERPRINT.upper()}}, "drafter, fingerprint"),
        ({"drafter": {"name": "tiny", "fingerprint": FINGERPRINT + "\n"}}, "drafter, fingerprint"),
        ({"maps": None}, "maps"),
        ({"maps": {"1": TEMPERATURE}}, "maps"),
        ({"maps": []}, "maps"),
        ({"maps": [3]}, "maps, depth 1"),
        ({"maps": [{**TEMPERATURE, "depth": 2}]}, "maps, depth 1, depth"),
        ({"maps": [{**TEMPERATURE, "depth": True}]}, "maps, depth 1, depth"),
        ({"maps": [{**TEMPERATURE, "depth": 1.0}]}, "maps, depth 1, depth"),
        ({"maps": [TEMPERATURE, TEMPERATURE]}, "maps, depth 2, depth"),
        ({"maps": [TEMPERATURE, {**TEMPERATURE, "depth": 3}]}, "maps, depth 2, depth"),
        ({"maps": [{**TEMPERATURE, "kind": "platt"}]}, "maps, depth 1, kind"),
        ({"maps": [{"depth": 1, "beta": 1.5}]}, "maps, depth 1, kind"),
        ({"maps": [{"depth": 1, "kind": "temperature"}]}, "maps, depth 1: beta"),
        ({"maps": [{**TEMPERATURE, "beta": 0}]}, "maps, depth 1: beta"),
        ({"maps": [TEMPERATURE, {**ISOTONIC, "depth": 2, "draft": [0]}]}, "maps, depth 2: draft"),
        ({"maps": [{**ISOTONIC, "acceptance": [1, 0]}]}, "maps, depth 1: acceptance, knot 2"),
        ({"maps": [{**TEMPERATURE, "depth": depth} for depth in range(1, 514)]}, "maps"),
        ({"provenance": []}, "provenance"),
        ({"provenance": None}, "provenance"),
    ],
)
def test_a_bad_value_is_refused_by_its_file_and_the_name_of_its_field(
    tmp_path: Path, changes: dict[str, Any], place: str
) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps({**CALIBRATION.to_json(), **changes}))
    with pytest.raises(InputError) as caught:
        ScoreCalibration.read(path)
    assert caught.value.place == f"{path}: {place}"


@pytest.mark.parametrize("content", [b"", b"[]", b'{"maps": [NaN]}', b"\xff"])
def test_a_file_that_is_no_json_object_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"c\.json: found"):
        ScoreCalibration.read(path)


def test_maps_are_maps_and_provenance_is_json(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="maps, depth 2"):
        ScoreCalibration("tiny", FINGERPRINT, (TemperatureMap(1.0), 1.0))  # type: ignore[arg-type]
    unwritable = ScoreCalibration("tiny", FINGERPRINT, (TemperatureMap(1.0),), {"error": float("nan")})
    with pytest.raises(InputError, match=r"c\.json"):
        unwritable.write(tmp_path / "c.json")
    assert not (tmp_path / "c.json").exists()
