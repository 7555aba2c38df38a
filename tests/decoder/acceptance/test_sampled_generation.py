"""End to end at temperature above 0: the output's law is the target's, whatever was drafted and however."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy import stats

from fakes import FakeTokenizer, random_drafter
from gumiho_decoder.config import GenerationConfig
from gumiho_decoder.drafters.ngram import NgramDrafter
from gumiho_decoder.loop import generate, plain
from gumiho_decoder.target import Target
from gumiho_theory import InputError, Structure
from targets import model_of

VOCAB, LENGTH, RUNS, PROMPT = 5, 3, 1200, [1, 3, 0, 2, 1, 3]
STATIC = "static:[[1],[2],[3],[1,1],[1,2],[2,1]]"


@pytest.fixture(scope="module")
def small() -> Target:
    model = model_of("llama", 4, vocab_size=VOCAB, num_hidden_layers=1, initializer_range=0.6)
    return Target(model, FakeTokenizer(), "small")


def law(target: Target, config: GenerationConfig) -> dict[tuple[int, ...], float]:
    """The target's own law over outputs, by reading every text anew."""
    texts = torch.tensor([[*PROMPT, *tail] for tail in itertools.product(range(VOCAB), repeat=LENGTH)])
    p = config.warp(target.model(texts).logits.double()).numpy()
    probabilities = {}
    for text, rows in zip(texts.tolist(), p, strict=True):
        at = range(len(PROMPT), len(text))
        probabilities[tuple(text[len(PROMPT) :])] = float(np.prod([rows[i - 1, text[i]] for i in at]))
    assert sum(probabilities.values()) == pytest.approx(1.0)
    return probabilities


def p_value(target: Target, drafter, **settings) -> float:
    config = GenerationConfig(LENGTH, **settings)
    expected = law(target, config)
    counts = dict.fromkeys(expected, 0)
    for seed in range(RUNS):
        asked = GenerationConfig(LENGTH, seed=seed, **settings)
        made = plain(target, PROMPT, asked) if drafter is None else generate(target, drafter, PROMPT, asked)
        counts[made.token_ids] += 1
    assert all(expected[text] > 0 for text, count in counts.items() if count)
    common = [text for text in expected if expected[text] * RUNS >= 5]
    seen = [*(counts[text] for text in common), RUNS - sum(counts[text] for text in common)]
    wanted = [*(RUNS * expected[text] for text in common), RUNS * (1 - sum(expected[text] for text in common))]
    if wanted[-1] < 1e-9:
        seen, wanted = seen[:-1], wanted[:-1]
    return stats.chisquare(seen, wanted, sum_check=False).pvalue


@pytest.mark.parametrize(
    ("structure", "candidates", "warp"),
    [
        ("chain:2", "top", {"temperature": 1.0}),
        ("chain:2", "sampled", {"temperature": 1.3}),
        (STATIC, "sampled", {"temperature": 1.0}),
        (STATIC, "top", {"temperature": 0.8, "top_k": 4}),
        ("tree:total=7,top_k=3,depth=2,mlp_topk=3", "top", {"temperature": 1.5, "top_p": 0.9}),
    ],
)
def test_a_speculative_output_has_the_targets_law(structure, candidates, warp, small):
    drafter = random_drafter(small, serial_steps=2, parallel_heads=0, serial_layers=1)
    assert p_value(small, drafter, structure=Structure.parse(structure), candidates=candidates, **warp) > 1e-5


def test_sampled_candidates_of_prompt_lookup_keep_the_law_too(small):
    drafter = NgramDrafter(small)
    settings = {"structure": Structure.parse(STATIC), "candidates": "sampled", "temperature": 1.0}
    assert p_value(small, drafter, **settings) > 1e-5


def test_plain_sampling_has_the_targets_law(small):
    assert p_value(small, None, temperature=1.0, top_k=3) > 1e-5


def test_typical_acceptance_does_not_keep_the_law_and_says_so(small):
    """The same check catches a rule that is known to be wrong."""
    drafter = random_drafter(small, serial_steps=2, parallel_heads=0, serial_layers=1)
    settings = {"structure": Structure.parse("chain:2"), "acceptance": "typical", "temperature": 1.0}
    assert "lossy" in GenerationConfig(4, **settings).mode
    assert p_value(small, drafter, **settings) < 1e-9


@pytest.mark.parametrize("candidates", ["top", "sampled"])
def test_the_same_seed_gives_the_same_output_and_another_seed_another(candidates, target, prompt):
    drafter = random_drafter(target)
    made = [
        generate(
            target,
            drafter,
            prompt,
            GenerationConfig(20, Structure.parse("chain:3"), temperature=2.0, seed=seed, candidates=candidates),
        ).token_ids
        for seed in (5, 5, 6)
    ]
    assert made[0] == made[1] != made[2]


def test_temperature_zero_is_greedy_whatever_else_is_set(target, prompt):
    config = GenerationConfig(20, temperature=0.0, top_k=1, top_p=0.1, seed=9)
    assert (
        generate(target, random_drafter(target), prompt, config).token_ids
        == plain(target, prompt, GenerationConfig(20)).token_ids
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"candidates": "sampled"}, "temperature 0"),
        ({"acceptance": "typical"}, "temperature 0"),
        ({"candidates": "sampled", "temperature": 1.0, "structure": "tree:total=9"}, "sampled"),
        ({"candidates": "best"}, "'best'"),
        ({"temperature": -1.0}, "-1"),
        ({"temperature": float("nan")}, "nan"),
        ({"temperature": 1.0, "top_p": 0.0}, "top_p"),
        ({"temperature": 1.0, "top_k": 0}, "top_k"),
        ({"seed": -1}, "seed"),
        ({"stop_strings": ("",)}, "stop_strings"),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(settings, words):
    settings = {k: Structure.parse(v) if k == "structure" else v for k, v in settings.items()}
    with pytest.raises(InputError, match=words):
        GenerationConfig(4, **settings)
