from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gumiho_theory import CostProfile, InputError

PROFILE = CostProfile(
    target="tiny",
    drafter="tiny:gumiho",
    device="cpu",
    dtype="float32",
    baseline_seconds=0.010,
    verify_nodes=(1, 8, 16),
    verify_seconds=(0.010, 0.012, 0.020),
    draft_serial_seconds=0.001,
    draft_parallel_seconds=0.002,
    serial_steps=2,
    other_seconds=0.0005,
)


def test_json_and_file_lead_back_to_the_same_profile(tmp_path: Path) -> None:
    assert CostProfile.from_json(json.loads(json.dumps(PROFILE.to_json()))) == PROFILE
    PROFILE.write(tmp_path / "p.json")
    assert CostProfile.read(tmp_path / "p.json") == PROFILE
    assert PROFILE.to_json()["schema"] == "gumiho.cost_profile/1"


def test_unknown_keys_of_a_later_minor_version_are_ignored() -> None:
    assert CostProfile.from_json({**PROFILE.to_json(), "schema": "gumiho.cost_profile/1.2", "watts": 3}) == PROFILE


def test_verification_time_is_linear_between_measured_points_only() -> None:
    assert PROFILE.verify_at(8) == 0.012
    assert PROFILE.verify_at(12) == pytest.approx(0.016)
    for nodes in (0, 17, float("nan")):
        with pytest.raises(InputError, match="1 to 16, as measured"):
            PROFILE.verify_at(nodes)


@pytest.mark.parametrize(("depth", "milliseconds"), [(0, 0), (1, 1), (2, 2), (3, 4), (7, 4)])
def test_parallel_heads_cost_the_same_at_every_depth_behind_the_serial_steps(depth: int, milliseconds: float) -> None:
    assert PROFILE.draft_seconds(depth) == pytest.approx(milliseconds / 1000)


@pytest.mark.parametrize(("depth", "milliseconds"), [(0, 0), (1, 6), (2, 7), (3, 9), (7, 9)])
def test_what_any_draft_costs_comes_once_on_top_of_its_steps(depth: int, milliseconds: float) -> None:
    first = replace(PROFILE, draft_fixed_seconds=0.005)
    assert first.draft_seconds(depth) == pytest.approx(milliseconds / 1000)
    serial = replace(first, draft_parallel_seconds=0.0)
    assert serial.draft_seconds(depth) == pytest.approx(depth * 0.001 + (0.005 if depth else 0.0))


def test_a_profile_without_the_cost_of_any_draft_is_read_as_one_that_spreads_it() -> None:
    bare = {name: value for name, value in PROFILE.to_json().items() if name != "draft_fixed_seconds"}
    assert CostProfile.from_json(bare) == PROFILE


def test_without_parallel_heads_every_depth_is_a_serial_step() -> None:
    serial = replace(PROFILE, draft_parallel_seconds=0.0)
    assert serial.draft_seconds(7) == pytest.approx(0.007)


def test_speedup_is_tau_plain_steps_for_the_time_of_a_cycle() -> None:
    cycle = 0.002 + 0.002 + 0.012 + 0.0005
    assert PROFILE.cycle_seconds(7, 8) == pytest.approx(cycle)
    assert PROFILE.speedup(3.3, 7, 8) == pytest.approx(3.3 * 0.010 / cycle)


@pytest.mark.parametrize("tau", [0.9, 8.1, float("nan")])
def test_a_tau_that_the_depth_cannot_give_is_refused(tau: float) -> None:
    with pytest.raises(InputError, match="tau"):
        PROFILE.speedup(tau, 7, 8)


def test_a_negative_depth_is_refused() -> None:
    with pytest.raises(InputError, match="depth"):
        PROFILE.cycle_seconds(-1, 8)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("target", 3),
        ("baseline_seconds", 0),
        ("baseline_seconds", float("nan")),
        ("baseline_seconds", "fast"),
        ("draft_serial_seconds", -1),
        ("draft_parallel_seconds", True),
        ("draft_fixed_seconds", -1),
        ("draft_fixed_seconds", 1e308),  # sums of times stay finite
        ("baseline_seconds", 1e-300),  # and their ratios
        ("head_seconds", 10**400),
        ("serial_layers", 10**400),
        ("parallel_heads", 10**7),
        ("other_seconds", float("inf")),
        ("serial_steps", 1.5),
        ("serial_steps", -1),
        ("serial_steps", 10**400),
        ("verify_nodes", [1, 2, 10**400]),
        ("verify_nodes", [1, 1, 2]),
        ("verify_nodes", [0, 1, 2]),
        ("verify_nodes", [1, 2]),
        ("verify_nodes", []),
        ("verify_nodes", "1,2,3"),
        ("verify_seconds", [1, 1, 0]),
        ("verify_seconds", [1, 1, None]),
    ],
)
def test_a_bad_value_is_refused_by_the_name_of_its_field(tmp_path: Path, field: str, value: object) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps({**PROFILE.to_json(), field: value}))
    with pytest.raises(InputError) as caught:
        CostProfile.read(path)
    assert str(path) in str(caught.value)
    # NaN and infinity are stopped as JSON already, before the field is looked at.
    assert field in str(caught.value) or "is not JSON" in str(caught.value)


def test_a_missing_key_and_another_schema_are_refused() -> None:
    data = PROFILE.to_json()
    with pytest.raises(InputError, match="schema"):
        CostProfile.from_json({**data, "schema": "gumiho.cost_profile/2"})
    del data["device"]
    with pytest.raises(InputError, match="device"):
        CostProfile.from_json(data)


DETAILED = replace(
    PROFILE,
    serial_layers=2,
    layer_seconds=0.0004,
    parallel_heads=5,
    head_seconds=0.0001,
    relative_error=0.03,
    estimated=("verify_seconds", "head_seconds"),
)


def test_a_file_without_the_later_keys_is_read_and_one_with_them_leads_back(tmp_path: Path) -> None:
    later = ("serial_layers", "layer_seconds", "parallel_heads", "head_seconds", "relative_error", "estimated")
    old = {key: value for key, value in PROFILE.to_json().items() if key not in later}
    assert CostProfile.from_json(old) == PROFILE
    DETAILED.write(tmp_path / "p.json")
    assert CostProfile.read(tmp_path / "p.json") == DETAILED


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("serial_layers", -1),
        ("serial_layers", True),
        ("parallel_heads", 1.5),
        ("layer_seconds", -0.1),
        ("head_seconds", "fast"),
        ("relative_error", -0.1),
        ("estimated", "verify_seconds"),
        ("estimated", ["serial_steps"]),
        ("estimated", [["verify_seconds"]]),
    ],
)
def test_a_bad_later_value_is_refused_by_the_name_of_its_field(field: str, value: object) -> None:
    with pytest.raises(InputError) as caught:
        CostProfile.from_json({**DETAILED.to_json(), field: value})
    assert caught.value.place == field
