"""Typical acceptance is Medusa's rule: slow twin over root-to-leaf paths; and it is lossy."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import enumerate_verifier as ev
from enumerate_verifier import Table
from gumiho_decoder.acceptance.sampling import draw
from gumiho_decoder.acceptance.typical import TypicalAcceptance, verify_typical
from gumiho_theory import InputError


def plain_typical(tokens, parents, p, rule: TypicalAcceptance) -> set[int]:
    """As the released rule goes: every root-to-leaf path, its accepted length, then the likelihood of the longest.

    Several nodes where likelihoods differ by no more than the order of summing them does.
    """
    routes = []
    for leaf in (node for node, below in enumerate(ev.children(parents)) if not below):
        route = [leaf]
        while route[0]:
            route.insert(0, parents[route[0]])
        accepted = [0]
        for node in route[1:]:
            law = p[parents[node]]
            entropy = -sum(x * math.log(x) for x in law if x > 0)
            if not law[tokens[node]] > min(rule.epsilon, rule.delta * math.exp(-entropy)):
                break
            accepted.append(node)
        likelihood = sum(math.log(p[parents[node]][tokens[node]]) for node in accepted[1:])
        routes.append((len(accepted), likelihood, accepted[-1]))
    longest = max(length for length, _, _ in routes)
    best = max(likelihood for length, likelihood, _ in routes if length == longest)
    return {node for length, likelihood, node in routes if length == longest and likelihood >= best - 1e-9}


def verify(tokens, parents, p, rule=None, random=None):
    layout = torch.tensor(parents), *ev.layout(parents)
    rule, random = rule or TypicalAcceptance(), random or torch.Generator().manual_seed(0)
    node, bonus = verify_typical(torch.tensor(tokens), *layout, torch.as_tensor(p), rule, random)
    return int(node), int(bonus)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 14),
    st.integers(2, 7),
    st.sampled_from([(0.3, 0.09), (0.3, 1.0), (0.1, 0.5), (0.0, 0.0), (1.0, 2.0)]),
)
@settings(max_examples=150, deadline=None)
def test_the_accepted_node_is_the_slow_twins(seed, nodes, vocab, constants):
    rng = np.random.default_rng(seed)
    parents = ev.random_parents(rng, nodes, 4, min(4, vocab))
    p = Table.random(rng, vocab, 1, 0.2).levels[1][rng.integers(0, vocab, len(parents))]
    tokens = [0] * len(parents)
    for below in ev.children(parents):
        for child, token in zip(below, rng.permutation(vocab), strict=False):
            tokens[child] = int(token)
    rule = TypicalAcceptance(*constants)
    assert verify(tokens, parents, p, rule)[0] in plain_typical(tokens, parents, p, rule)


def test_a_token_must_exceed_the_lower_of_epsilon_and_delta_exp_minus_entropy():
    """A sure law asks for at most epsilon, an even one for delta / V: strictly more, both times."""
    rule = TypicalAcceptance(epsilon=0.25, delta=1.0)
    p = torch.tensor([[0.25, 0.25, 0.25, 0.25], [0.0, 1.0, 0.0, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(rule.threshold(p), torch.tensor([0.25, 0.25], dtype=torch.float64))
    torch.testing.assert_close(TypicalAcceptance().threshold(p), torch.tensor([0.09 / 4, 0.09], dtype=torch.float64))
    even = p[[0, 0]]
    assert verify([0, 2], [-1, 0], even, TypicalAcceptance(1.0, 0.999))[0] == 1
    assert verify([0, 2], [-1, 0], even, TypicalAcceptance(1.0, 1.001))[0] == 0
    assert verify([0, 1], [-1, 0], p[[1, 0]], TypicalAcceptance(1.0, 1.0))[0] == 0  # 1 does not exceed 1


def test_the_released_constants_are_the_defaults():
    assert (TypicalAcceptance().epsilon, TypicalAcceptance().delta) == (0.3, 0.09)


def test_the_longest_path_wins_and_of_several_the_likeliest():
    """Nodes 1 and 2 below the root, 3 below 1, 4 below 2."""
    parents, tokens = [-1, 0, 0, 1, 2], [0, 1, 2, 1, 2]
    p = np.array([[0.0, 0.8, 0.2], [0.0, 0.3, 0.7], [0.4, 0.0, 0.6], [1.0, 0, 0], [1.0, 0, 0]])
    assert verify(tokens, parents, p)[0] == 3  # 0.8 * 0.3 > 0.2 * 0.6
    p[0] = [0.0, 0.5, 0.5]
    assert verify(tokens, parents, p)[0] == 4  # 0.5 * 0.6 is more than 0.5 * 0.3
    p[2] = [1.0, 0.0, 0.0]
    assert verify(tokens, parents, p)[0] == 3  # the longer one, whatever it is worth


def test_a_refused_path_does_not_win_by_its_likelihood():
    """0.45 misses exp(-H) of a law of two tokens, where 0.35 passes that of three; 0.45 * 0.45 > 0.4 * 0.35."""
    p = [[0.15, 0.4, 0.45], [0.4, 0.35, 0.25], [0.55, 0.45, 0.0], [1.0, 0, 0], [1.0, 0, 0]]
    assert verify([0, 1, 2, 1, 1], [-1, 0, 0, 1, 2], p, TypicalAcceptance(1.0, 1.0))[0] == 3


def test_what_the_target_cannot_emit_is_never_accepted():
    p = [[0.0, 1.0], [1.0, 0.0]]
    assert verify([0, 0], [-1, 0], p, TypicalAcceptance(0.0, 0.0)) == (0, 1)
    assert verify([0, 1], [-1, 0], p, TypicalAcceptance(0.0, 0.0)) == (1, 0)


def test_the_bonus_token_is_drawn_from_the_law_behind_the_accepted_node():
    p = torch.tensor([[0.1, 0.9, 0.0], [0.2, 0.3, 0.5]])
    random, same = (torch.Generator().manual_seed(3) for _ in range(2))
    for _ in range(50):
        bonus = draw(p[1], torch.rand((), generator=same, dtype=torch.float64))
        assert verify([0, 1], [-1, 0], p, random=random) == (1, int(bonus))


def test_the_rule_is_lossy():
    """A typical candidate is always taken: the output's law is not the target's."""
    p = [[0.5, 0.5], [0.5, 0.5]]
    assert all(verify([0, 1], [-1, 0], p, random=torch.Generator().manual_seed(i))[0] == 1 for i in range(50))


def test_nothing_waits_for_the_device(monkeypatch):
    """On tensors without data, reading a value fails."""
    meta, rand = partial(torch.empty, device="meta"), torch.rand
    monkeypatch.setattr(torch, "rand", lambda *size, generator, **kind: rand(*size, **kind))  # meta has no generator
    tokens, depths = (meta(4, dtype=torch.int64) for _ in range(2))
    tree = tokens, torch.tensor([-1, 0, 0, 1]), meta(4, 4, dtype=torch.bool), depths
    node, bonus = verify_typical(*tree, meta(4, 7), TypicalAcceptance(), torch.Generator())
    assert (node.shape, node.dtype, bonus.shape, bonus.dtype) == ((), torch.int64, (), torch.int64)


@pytest.mark.parametrize("epsilon", [-0.1, 1.1, math.nan, "0.3", True])
def test_a_bad_epsilon_is_refused(epsilon):
    with pytest.raises(InputError, match="epsilon"):
        TypicalAcceptance(epsilon=epsilon)


@pytest.mark.parametrize("delta", [-0.1, math.inf, math.nan, None])
def test_a_bad_delta_is_refused(delta):
    with pytest.raises(InputError, match="delta"):
        TypicalAcceptance(delta=delta)


def test_shapes_that_do_not_fit_are_named():
    with pytest.raises(InputError, match="shape"):
        verify([0, 1], [-1, 0], torch.ones(3, 4))
