"""Estimated profiles: against published times, their limits in batch and context, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumiho_simulator.costs.accelerators import ACCELERATORS, accelerator
from gumiho_simulator.costs.roofline import METHODS, Setting, forward_seconds, roofline_profile
from gumiho_simulator.costs.shapes import SHAPES, model_shape
from gumiho_theory import CostProfile, InputError

LLAMA3 = SHAPES["llama3-8b"]
H100 = accelerator("H100")


@pytest.mark.parametrize(
    ("name", "billions"),
    [("vicuna-7b", 6.74), ("llama2-13b", 13.02), ("llama2-70b", 68.98), ("llama3-8b", 8.03), ("llama3-70b", 70.55)],
)
def test_shapes_have_as_many_weights_as_published(name: str, billions: float) -> None:
    shape = SHAPES[name]
    whole = shape.step_weights + shape.head_weights
    assert whole / 1e9 == pytest.approx(billions, rel=0.001)


def test_a_published_step_and_its_growth_with_the_context_are_met() -> None:
    # SpecDecode-Bench, Llama-3.1-8B on an H100: 5.886 ms, and 3.93e-5 ms for each token of keys and values.
    short, long = (forward_seconds(LLAMA3, 1, Setting(H100, 1, context)) for context in (0, 10_000))
    assert 1000 * short == pytest.approx(5.886, rel=0.01)
    assert 1000 * (long - short) / 10_000 == pytest.approx(3.93e-5, rel=0.01)


def test_small_batches_wait_for_memory_and_large_ones_for_arithmetic() -> None:
    few, more = (forward_seconds(LLAMA3, nodes, Setting(H100, 1, 0)) for nodes in (1, 64))
    assert more < 1.01 * few
    half, full = (forward_seconds(LLAMA3, 64, Setting(H100, batch, 0)) for batch in (64, 128))
    assert full == pytest.approx(2 * half, rel=0.03)


@given(st.integers(1, 256), st.integers(1, 2048), st.integers(1, 64), st.sampled_from(sorted(ACCELERATORS)))
def test_more_tokens_or_a_longer_context_never_take_less_time(batch: int, context: int, nodes: int, name: str) -> None:
    def seconds(nodes: int, batch: int, context: int) -> float:
        return forward_seconds(LLAMA3, nodes, Setting(accelerator(name), batch, context))

    least = seconds(nodes, batch, context)
    assert least <= seconds(nodes + 1, batch, context)
    assert least <= seconds(nodes, batch + 1, context)
    assert least <= seconds(nodes, batch, context + 1)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_a_profile_whose_times_are_all_marked_estimated(method: str, tmp_path: Path) -> None:
    draft = SHAPES["llama-68m"] if method == "draft-model" else None
    profile = roofline_profile(SHAPES["vicuna-7b"], method, Setting(accelerator("A100")), draft_shape=draft)
    profile.write(tmp_path / "p.json")
    assert CostProfile.read(tmp_path / "p.json") == profile
    named = {"baseline_seconds", "verify_seconds", "other_seconds", "draft_serial_seconds", "draft_parallel_seconds"}
    assert named <= set(profile.estimated)
    assert profile.baseline_seconds == profile.verify_at(1)
    assert profile.cycle_seconds(5, 16) > profile.verify_at(16)


def test_gumiho_drafts_seven_positions_in_less_time_than_eagle() -> None:
    gumiho, eagle = (roofline_profile(SHAPES["vicuna-7b"], method, Setting(H100)) for method in ("gumiho", "eagle"))
    assert gumiho.draft_seconds(7) < eagle.draft_seconds(7)
    assert gumiho.serial_steps == 2
    # One layer more or less is what the profile says it is.
    deeper = roofline_profile(SHAPES["vicuna-7b"], "gumiho", Setting(H100), serial_layers=3)
    assert gumiho.layer_seconds is not None
    assert deeper.draft_serial_seconds - gumiho.draft_serial_seconds == pytest.approx(gumiho.layer_seconds)
    wider = roofline_profile(SHAPES["vicuna-7b"], "gumiho", Setting(H100), parallel_heads=6)
    assert gumiho.head_seconds is not None
    assert wider.draft_parallel_seconds - gumiho.draft_parallel_seconds == pytest.approx(gumiho.head_seconds)


def test_speculation_stops_paying_in_large_batches() -> None:
    one, many = (roofline_profile(LLAMA3, "eagle", Setting(H100, batch, 512)) for batch in (1, 128))
    assert one.speedup(4.0, 5, 64) > 2
    assert many.speedup(4.0, 5, 64) < 1


def test_names_are_taken_in_any_case_and_spelling() -> None:
    assert accelerator("rtx4090") is accelerator("RTX 4090") is ACCELERATORS["RTX 4090"]


CONFIG = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 256,
}


def test_a_config_file_gives_a_shape(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**CONFIG, "num_key_value_heads": 2, "model_type": "llama"}))
    shape = model_shape(path, 0.5)
    assert (shape.head_dim, shape.key_value_heads, shape.weight_bytes) == (16, 2, 0.5)
    # q and o are 64 x 64, k and v 64 x 32; three MLP matrices.
    assert shape.layer_weights == 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"hidden_size": None}, "hidden_size"),
        ({"hidden_size": 0}, "hidden_size"),
        ({"vocab_size": True}, "vocab_size"),
        ({"vocab_size": 1e3}, "vocab_size"),
        ({"num_key_value_heads": 3}, "num_key_value_heads"),
        ({"num_attention_heads": 5}, "num_attention_heads"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers"),
    ],
)
def test_a_bad_config_is_refused_by_file_and_field(tmp_path: Path, change: dict[str, Any], place: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**CONFIG, **change}))
    with pytest.raises(InputError) as caught:
        model_shape(path)
    assert caught.value.place == f"{path}: {place}"


def test_what_cannot_be_estimated_is_refused() -> None:
    setting = Setting(H100)
    for call, place in (
        (lambda: model_shape("vicuna-8b"), "shape"),
        (lambda: model_shape("vicuna-7b", 0.0), "weight bytes"),
        (lambda: accelerator("H900"), "accelerator"),
        (lambda: Setting(H100, 0), "batch"),
        (lambda: Setting(H100, 1, -1), "context"),
        (lambda: roofline_profile(LLAMA3, "lookahead", setting), "method"),
        (lambda: roofline_profile(LLAMA3, "draft-model", setting), "method draft-model"),
        (lambda: roofline_profile(LLAMA3, "eagle", setting, draft_shape=LLAMA3), "method eagle"),
        (lambda: roofline_profile(LLAMA3, "gumiho", setting, serial_steps=0), "serial steps"),
        (lambda: roofline_profile(SHAPES["llama2-70b"], "eagle", setting), "roofline"),
        (lambda: roofline_profile(LLAMA3, "eagle", Setting(H100, 1024, 4096)), "roofline"),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert caught.value.place == place
