"""Sampled verification emits the target's own law, to the last digit; and verifiers that do not are caught."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

import enumerate_verifier as ev
from enumerate_verifier import Table
from gumiho_decoder.acceptance.sampling import Warp, deterministic, draw, sampled, verify_sampled, walk
from gumiho_theory import InputError

seeds = st.integers(0, 2**32 - 1)
quick = settings(max_examples=50, deadline=None)
CHAIN, STAR, TWO_LEVELS, BUSHY = [-1, 0, 1, 2], [-1, 0, 0, 0], [-1, 0, 0, 1, 1, 2], [-1, 0, 0, 0, 1, 1, 2]
# Siblings, depths, zeros in p and q, spread and peaked laws, as many children as tokens.
CASES = [
    # parents, vocabulary, zeros, concentration
    (CHAIN, 3, 0.0, 1.0),
    (STAR, 4, 0.0, 1.0),
    (STAR, 4, 0.4, 0.3),
    (TWO_LEVELS, 3, 0.0, 1.0),
    (TWO_LEVELS, 3, 0.3, 0.5),
    (BUSHY, 3, 0.0, 1.0),
    (BUSHY, 4, 0.5, 1.0),
    ([-1, 0, 1, 0, 3, 1], 3, 0.2, 1.0),  # children of one node need not stand together
]


def rule_deterministic(tokens, parents, p, q):
    return deterministic(tokens, parents, p)


def case(index: int) -> tuple[list[int], Table, Table]:
    parents, vocab, zeros, alpha = CASES[index]
    depth = int(ev.layout(parents)[1].max())
    rng = np.random.default_rng(index)
    return parents, *(Table.random(rng, vocab, depth, zeros, alpha) for _ in range(2))


def gap(rule, parents, target, drafter, draw=ev.without_replacement, seen=None) -> float:
    """Largest distance between the emitted law and the target's, at any sequence."""
    drafts = ev.all_drafts(parents, drafter, draw)
    law = ev.emitted_law(rule, parents, drafts, target, drafter, seen)
    return float(np.abs(law - target.law(len(target.levels))).max())


# ---- exact


@pytest.mark.parametrize("index", range(len(CASES)))
def test_draws_without_replacement_give_the_targets_law(index):
    assert gap(sampled, *case(index)) < 1e-12


@pytest.mark.parametrize("index", range(len(CASES)))
def test_candidates_chosen_without_randomness_give_the_targets_law(index):
    assert gap(rule_deterministic, *case(index), draw=ev.most_probable) < 1e-12


@given(seeds, st.integers(2, 5), st.integers(1, 3), st.integers(1, 10), st.sampled_from([0.0, 0.3, 0.7]))
@quick
def test_any_fixed_tree_gives_the_targets_law(seed, vocab, depth, nodes, zeros):
    rng = np.random.default_rng(seed)
    parents = ev.random_parents(rng, nodes, depth, vocab)
    tokens = [0] * len(parents)
    for below in ev.children(parents):
        for child, token in zip(below, rng.permutation(vocab), strict=False):
            tokens[child] = int(token)
    target = Table.random(rng, vocab, depth, zeros)
    law = ev.emitted_law(rule_deterministic, parents, iter([(tokens, 1.0)]), target, target)
    np.testing.assert_allclose(law, target.law(depth + 1), atol=1e-12)


@given(seeds, st.integers(2, 4), st.integers(1, 3), st.integers(1, 5), st.sampled_from([0.0, 0.3, 0.7]))
@quick
def test_any_drawn_tree_gives_the_targets_law(seed, vocab, depth, nodes, zeros):
    rng = np.random.default_rng(seed)
    parents = ev.random_parents(rng, nodes, depth, min(3, vocab))
    target, drafter = (Table.random(rng, vocab, depth, zeros) for _ in range(2))
    assert gap(sampled, parents, target, drafter) < 1e-12


@pytest.mark.parametrize("parents", [CHAIN, STAR, TWO_LEVELS])
def test_equal_laws_accept_the_first_child_and_stay_exact(parents):
    """p = q: nothing is left to a refusal, and nothing turns into nan."""
    table = Table.random(np.random.default_rng(3), 3, int(ev.layout(parents)[1].max()), 0.3)
    assert gap(sampled, parents, table, table) < 1e-12
    p = torch.tensor([[0.2, 0.5, 0.3]] * 3)
    accept, residual = sampled(torch.tensor([0, 2, 1]), torch.tensor([-1, 0, 0]), p, p)
    assert accept[1] == 1
    assert residual.isfinite().all()


@pytest.mark.parametrize("point_of", ["target", "drafter", "both"])
def test_point_masses_give_the_targets_law(point_of):
    """q exhausted by its first child, p by one token."""
    rng = np.random.default_rng(5)
    spread = [Table.random(rng, 3, 2) for _ in range(2)]
    point = [t.map(lambda level: (level == level.max(-1, keepdims=True)).astype(float)) for t in spread]
    target = point[0] if point_of in ("target", "both") else spread[0]
    drafter = point[1] if point_of in ("drafter", "both") else spread[1]
    assert gap(sampled, BUSHY, target, drafter) < 1e-12
    assert gap(rule_deterministic, BUSHY, target, drafter, draw=ev.most_probable) < 1e-12


def test_a_warped_target_is_verified_against_its_warped_law():
    parents, raw, drafter = case(3)
    target = raw.map(lambda level: Warp(0.7, 2, 0.9)(torch.tensor(level).log()).numpy())
    assert gap(sampled, parents, target, drafter) < 1e-12


@pytest.mark.parametrize("rule", [sampled, rule_deterministic])
@pytest.mark.parametrize("index", [2, 4, 6])
def test_float32_input_gives_the_law_to_its_own_rounding(rule, index):
    draw = ev.without_replacement if rule is sampled else ev.most_probable
    assert gap(lambda t, parents, p, q: rule(t, parents, p.float(), q.float()), *case(index), draw=draw) < 1e-6


# ---- the same check rejects wrong verifiers


def bonus_from_p(p, q, tokens):
    return ev.plain_sampled(p, q, tokens)[0], p


def not_divided(p, q, tokens):
    return [p[token] for token in tokens], ev.plain_deterministic(p, q, tokens)[1]


def children_kept(p, q, tokens):
    return ev.plain_deterministic(p, q, tokens)[0], p


def top_p_on_the_bonus_only(p, q, tokens):
    accept, residual = ev.plain_sampled(p, q, tokens)
    return accept, Warp(1.0, top_p=0.6)(torch.tensor(residual).log()).numpy()


WRONG = {
    "accepted where p > q": (partial(ev.plain_sampled, ratio=False), ev.without_replacement),
    "bonus from p after a refusal": (bonus_from_p, ev.without_replacement),
    # A refused token has p_j < q_j and is gone from p_{j+1}: so these two are one mistake, made in two ways.
    "q not renormalised": (partial(ev.plain_sampled, renormalise=False), ev.without_replacement),
    "as if drawn with replacement": (partial(ev.plain_sampled, remove=False), ev.without_replacement),
    "siblings sorted by q": (ev.plain_sampled, ev.reranked),
    "the least probable sibling dropped": (ev.plain_sampled, ev.pruned),
    "top candidates taken for draws": (ev.plain_sampled, ev.most_probable),
    "not divided by what is left": (not_divided, ev.most_probable),
    "children left in the residual": (children_kept, ev.most_probable),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_verifier_is_caught(name):
    star, draw = WRONG[name]
    assert max(gap(ev.per_node(star), *case(index), draw=draw) for index in range(len(CASES))) > 1e-3


def test_top_p_on_the_bonus_token_only_is_caught():
    def worst(rule, shown):
        gaps = []
        for index in range(len(CASES)):
            parents, raw, drafter = case(index)
            target = raw.map(lambda level: Warp(1.0, top_p=0.6)(torch.tensor(level).log()).numpy())
            gaps.append(gap(rule, parents, target, drafter, seen=raw if shown == "raw" else None))
        return max(gaps)

    assert worst(ev.per_node(top_p_on_the_bonus_only), "raw") > 1e-3
    assert worst(sampled, "warped") < 1e-12


# ---- slow twins


def drafted(seed: int, nodes: int, vocab: int, zeros: float):
    """A random tree with distinct siblings drawn from q, and p, q rows behind its nodes."""
    rng = np.random.default_rng(seed)
    parents = ev.random_parents(rng, nodes, 4, min(4, vocab))
    p, q = (Table.random(rng, vocab, 1, zeros).levels[1] for _ in range(2))
    p, q = (rows[rng.integers(0, vocab, len(parents))] for rows in (p, q))
    tokens = [0] * len(parents)
    for node, below in enumerate(ev.children(parents)):
        order = np.argsort(-(np.log(q[node] + 1e-300) + rng.gumbel(size=vocab)))  # draws without replacement
        for child, token in zip(below, order, strict=False):
            tokens[child] = int(token)
    return tokens, parents, p, q


trees = st.tuples(seeds, st.integers(1, 12), st.integers(2, 6), st.sampled_from([0.0, 0.4]))


@given(trees)
@quick
def test_whole_trees_at_once_equal_plain_loops(tree):
    tokens, parents, p, q = drafted(*tree)
    arguments = torch.tensor(tokens), torch.tensor(parents), torch.tensor(p), torch.tensor(q)
    for rule, star in ((sampled, ev.plain_sampled), (rule_deterministic, ev.plain_deterministic)):
        for found, wanted in zip(rule(*arguments), ev.per_node(star)(*arguments), strict=True):
            torch.testing.assert_close(found, wanted, atol=1e-12, rtol=0)


@given(trees, st.booleans())
@quick
def test_verifying_equals_going_down_node_by_node_with_the_same_uniforms(tree, drawn):
    tokens, parents, p, q = drafted(*tree)
    star = ev.plain_sampled if drawn else ev.plain_deterministic
    arguments = torch.tensor(tokens), torch.tensor(parents), *ev.layout(parents), torch.tensor(p)
    random, same = (torch.Generator().manual_seed(tree[0]) for _ in range(2))
    for _ in range(30):
        node, bonus = verify_sampled(*arguments, torch.tensor(q) if drawn else None, random)
        uniforms = torch.rand(len(tokens) + 1, generator=same, dtype=torch.float64).numpy()
        assert (int(node), int(bonus)) == ev.plain_verify(star, tokens, parents, p, q, uniforms)


def test_the_walk_takes_the_first_willing_sibling_and_stops_where_none_is():
    parents = torch.tensor([-1, 0, 0, 1, 2, 2])
    layout, accept = ev.layout(parents.tolist()), torch.full((6,), 0.5)
    for willing, node in [([], 0), ([2, 3, 5], 5), ([1, 2, 5], 1), ([1, 2, 3, 5], 3), ([4, 5], 0), ([2, 4, 5], 4)]:
        uniforms = torch.ones(6)
        uniforms[willing] = 0.25
        assert int(walk(accept, parents, *layout, uniforms)) == node


@pytest.mark.parametrize("drawn", [True, False])
def test_twenty_thousand_outputs_follow_the_targets_law(drawn):
    """All of it together, drafts drawn anew each time: chi-square over whole sequences."""
    parents, target, drafter = [-1, 0, 0, 1], *(Table.random(np.random.default_rng(8), 3, 2) for _ in range(2))
    tree = torch.tensor(parents), *ev.layout(parents)
    draw = ev.without_replacement if drawn else ev.most_probable
    drafts = list(ev.all_drafts(parents, drafter, draw))
    rng, random = np.random.default_rng(1), torch.Generator().manual_seed(1)
    counts = np.zeros((3, 3, 3))
    chosen = rng.choice(len(drafts), p=np.array([w for _, w in drafts]), size=20_000)
    for index, times in enumerate(np.bincount(chosen, minlength=len(drafts))):
        tokens = drafts[index][0]
        behind = ev.paths(parents, tokens)
        p, q = (torch.tensor(np.array([t.levels[len(b)][b] for b in behind])) for t in (target, drafter))
        as_drafted = torch.tensor(tokens)
        for _ in range(times):
            node, bonus = verify_sampled(as_drafted, *tree, p, q if drawn else None, random)
            out = (*behind[int(node)], int(bonus))
            while len(out) < 3:
                out = (*out, ev.plain_draw(target.levels[len(out)][out], rng.random()))
            counts[out] += 1
    assert chisquare(counts.ravel(), 20_000 * target.law(3).ravel()).pvalue > 1e-6


def test_one_seed_gives_one_result_and_uses_one_uniform_a_node_and_one_more():
    tokens, parents, p, q = drafted(1, 9, 5, 0.0)
    arguments = torch.tensor(tokens), torch.tensor(parents), *ev.layout(parents), torch.tensor(p), torch.tensor(q)
    a, b, c = (torch.Generator().manual_seed(4) for _ in range(3))
    assert [[int(x) for x in verify_sampled(*arguments, a)] for _ in range(20)] == [
        [int(x) for x in verify_sampled(*arguments, b)] for _ in range(20)
    ]
    torch.rand(20 * (len(tokens) + 1), generator=c, dtype=torch.float64)
    assert torch.equal(a.get_state(), c.get_state())


# ---- corners


def test_what_is_left_behind_nearly_all_mass_keeps_its_digits():
    """Siblings carry all but 1e-9 of p, in float32: 1 - sum would be noise."""
    p = torch.tensor([[0.7, 0.3 - 2e-8, 1e-9, 3e-10]] * 4)
    accept, residual = deterministic(torch.tensor([0, 0, 1, 2]), torch.tensor([-1, 0, 0, 0]), p)
    exact = [Fraction(x) for x in p[0].tolist()]
    for node, left in ((1, exact), (2, exact[1:]), (3, exact[2:])):
        assert math.isclose(accept[node], left[0] / sum(left), rel_tol=1e-14)
    assert residual[0].tolist() == [0, 0, 0, 1]


def test_children_that_carry_all_mass_leave_no_refusal_and_no_nan():
    p = torch.tensor([[0.1, 0.2, 0.7, 0.0]] * 5, dtype=torch.float32)
    accept, residual = deterministic(torch.tensor([0, 3, 2, 0, 1]), torch.tensor([-1, 0, 0, 0, 0]), p)
    assert accept[4] == 1
    assert accept[1] == 0
    assert residual[0].tolist() == [0, 0, 0, 0]
    torch.testing.assert_close(residual[1:], p[1:].double() / p[1:].double().sum(-1, keepdim=True))


def test_a_child_that_q_cannot_have_given_is_refused_and_changes_nothing():
    """Behind exhausted q, or simply of probability 0."""
    p, q = torch.tensor([[0.25, 0.25, 0.5]] * 3), torch.tensor([[1.0, 0.0, 0.0]] * 3)
    accept, residual = sampled(torch.tensor([0, 0, 1]), torch.tensor([-1, 0, 0]), p, q)
    assert accept.tolist() == [1, 0.25, 0]
    torch.testing.assert_close(residual[0], torch.tensor([0, 1 / 3, 2 / 3], dtype=torch.float64))
    accept, residual = sampled(torch.tensor([0, 1]), torch.tensor([-1, 0]), p[:2], q[:2])
    assert accept.tolist() == [1, 0]
    assert torch.equal(residual, p[:2].double())


def test_q_behind_childless_nodes_is_not_read_and_no_input_is_changed():
    tokens, parents, p, q = (torch.tensor(x) for x in drafted(2, 9, 5, 0.0))
    wanted = sampled(tokens, parents, p, q)
    leaf = torch.tensor([node not in parents.tolist() for node in range(len(tokens))])
    unread = torch.where(leaf[:, None], math.nan, q)
    before = p.clone(), unread.clone()
    for found, want in zip(sampled(tokens, parents, p, unread), wanted, strict=True):
        assert torch.equal(found, want)
    deterministic(tokens, parents, p)
    assert torch.equal(p, before[0]) and torch.equal(unread.nan_to_num(), before[1].nan_to_num())


def test_a_lone_root_emits_a_token_of_its_own_law():
    p, random = torch.tensor([[0.0, 1.0, 0.0]]), torch.Generator().manual_seed(0)
    one = torch.tensor([0]), torch.tensor([-1]), torch.ones(1, 1, dtype=torch.bool), torch.tensor([0])
    for q in (None, p):
        assert [int(x) for x in verify_sampled(*one, p, q, random)] == [0, 1]


@given(seeds, st.integers(1, 40), st.sampled_from([0.0, 0.5, 0.9]), st.sampled_from([torch.float32, torch.float64]))
@quick
def test_a_drawn_token_is_the_plain_loops_and_never_of_probability_0(seed, vocab, zeros, dtype):
    rng = np.random.default_rng(seed)
    p = torch.tensor(Table.random(rng, vocab, 0, zeros, 0.1).levels[0]).to(dtype)
    for uniform in [0.0, 5e-324, *rng.random(20), 1 - 2**-53, 1.0]:
        token = int(draw(p, torch.tensor(uniform, dtype=torch.float64)))
        assert token == ev.plain_draw(p.double().numpy(), uniform)
        assert p[token] > 0


def test_drawing_cuts_the_unit_interval_by_the_probabilities():
    p = torch.tensor([0, 3, 0, 1, 8, 4, 0]) / 16
    tokens = [int(draw(p, torch.tensor((k + 0.5) / 16))) for k in range(16)]
    assert tokens == [1] * 3 + [3] + [4] * 8 + [5] * 4


@pytest.mark.parametrize("p", [[math.nan] * 3, [0.0] * 3])
def test_no_distribution_yields_no_token(p):
    assert int(draw(torch.tensor(p), torch.tensor(0.5))) == -1


def test_nothing_waits_for_the_device():
    """On tensors without data, reading a value fails; the topology alone is the host's."""
    meta = partial(torch.empty, device="meta")
    tokens, depths = (meta(6, dtype=torch.int64) for _ in range(2))
    ancestors, host = meta(6, 6, dtype=torch.bool), torch.tensor(TWO_LEVELS)
    p = Warp(0.8, 3, 0.9)(meta(6, 7))
    for accept, residual in (deterministic(tokens, host, p), sampled(tokens, host, p, meta(6, 7))):
        node = walk(accept, host, ancestors, depths, meta(6, dtype=torch.float64))
        assert (node.shape, node.dtype) == ((), torch.int64)
        token = draw(residual.index_select(0, node[None])[0], meta((), dtype=torch.float64))
        assert (token.shape, token.dtype, token.device.type) == ((), torch.int64, "meta")


@pytest.mark.parametrize(
    "n_tokens, n_parents, p, q",
    [(2, 3, (3, 4), None), (3, 2, (3, 4), None), (3, 3, (3,), None), (3, 3, (3, 4), (3, 5))],
)
def test_shapes_that_do_not_fit_are_named(n_tokens, n_parents, p, q):
    tokens, parents = torch.zeros(n_tokens, dtype=torch.int64), torch.arange(-1, n_parents - 1)
    q = None if q is None else torch.ones(q)
    with pytest.raises(InputError, match="shape"):
        verify_sampled(tokens, parents, *ev.layout([-1, 0, 1]), torch.ones(p), q, torch.Generator())


# ---- warping


def transformers_warp(logits: torch.Tensor, temperature: float, top_k: int | None, top_p: float | None):
    scores = TemperatureLogitsWarper(temperature)(None, logits)
    if top_k is not None:
        scores = TopKLogitsWarper(top_k)(None, scores)
    if top_p is not None:
        scores = TopPLogitsWarper(top_p)(None, scores)
    return scores.softmax(-1)


@given(
    seeds,
    st.integers(1, 12),
    st.booleans(),
    st.sampled_from([0.3, 1.0, 2.5, 1e-6]),
    st.none() | st.integers(1, 15),
    st.none() | st.sampled_from([1e-9, 0.25, 0.5, 0.75, 0.9, 1.0]),
    st.sampled_from([torch.float32, torch.float64]),
)
@settings(max_examples=150, deadline=None)
def test_warping_is_transformers_own(seed, vocab, ties, temperature, top_k, top_p, dtype):
    """Ties of logits and sums that meet top_p exactly included."""
    rng = np.random.default_rng(seed)
    logits = torch.tensor(rng.integers(0, 3, (4, vocab)) * math.log(2) if ties else rng.normal(size=(4, vocab)) * 3)
    logits[0, : vocab // 2] = -math.inf
    logits = logits.to(dtype)
    found = Warp(temperature, top_k, top_p)(logits)
    assert found.dtype == dtype
    torch.testing.assert_close(found, transformers_warp(logits, temperature, top_k, top_p), atol=0, rtol=1e-6)
    assert torch.equal(Warp(temperature, top_k, top_p)(logits.view(2, 2, vocab)), found.view(2, 2, vocab))


def test_top_p_keeps_the_smallest_set_that_reaches_it():
    logits = torch.tensor([0.5, 0.25, 0.125, 0.125], dtype=torch.float64).log()
    for top_p, kept in [(0.49, 1), (0.51, 2), (0.74, 2), (0.76, 3), (1e-12, 1), (1.0, 4)]:
        assert int((Warp(1.0, top_p=top_p)(logits) > 0).sum()) == kept


@pytest.mark.parametrize("temperature", [0.0, 1e-300, 1e-45, 1e-6])
def test_the_coldest_temperatures_choose_the_largest_logit(temperature):
    logits = torch.tensor([[-40.0, 12.5, 12.25, -math.inf], [1000.0, 1.0, 2.0, 999.0]])
    assert Warp(temperature, top_k=3, top_p=0.9)(logits).tolist() == [[0, 1, 0, 0], [1, 0, 0, 0]]


def test_temperature_0_takes_the_first_of_equal_logits():
    warp = Warp(0.0, top_k=5, top_p=0.5)
    assert warp.greedy and not Warp(0.1).greedy
    assert warp(torch.tensor([1, 3, 3], dtype=torch.bfloat16)).tolist() == [0, 1, 0]


def test_half_precision_logits_become_float32():
    logits = torch.tensor([1.0, 2.0], dtype=torch.bfloat16)
    assert torch.equal(Warp(0.7)(logits), (logits.float() / 0.7).softmax(-1))


@pytest.mark.parametrize("temperature", [-0.1, math.nan, math.inf, "1", True, None])
def test_a_bad_temperature_is_refused(temperature):
    with pytest.raises(InputError, match="temperature"):
        Warp(temperature)


@pytest.mark.parametrize("top_k", [0, -1, 2.0, True, "3"])
def test_a_bad_top_k_is_refused(top_k):
    with pytest.raises(InputError, match="top_k"):
        Warp(1.0, top_k=top_k)


@pytest.mark.parametrize("top_p", [0, 0.0, -0.5, 1.01, math.nan, "0.9", True])
def test_a_bad_top_p_is_refused(top_p):
    with pytest.raises(InputError, match="top_p"):
        Warp(1.0, top_p=top_p)
