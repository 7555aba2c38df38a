from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import sympy

from gumiho_theory import InputError
from gumiho_theory.theorem.cases import Cases, random_cases
from gumiho_theory.theorem.losses import largest_loss, losing_case, one_early_loss


def expected(rates) -> Fraction:
    product, total = Fraction(1), Fraction(0)
    for rate in rates:
        product *= rate
        total += product
    return total


def bounded(p, n) -> Fraction:
    """F_d: A - d + n P Z."""
    return expected(p) - len(p) + n * math.prod(p) * sum(1 - rate for rate in p)


def exact_pairs(depth: int, count: int, seed: int):
    cases = random_cases(depth, count, np.random.default_rng(seed), any_order=True, grid=60)
    for row in range(count):
        case = cases.case(row)
        yield list(case.original), list(case.improved), case.early


@pytest.mark.parametrize("depth", [3, 5, 8])
def test_step_1_the_loss_is_affine_in_a_joint_shift_and_none_at_its_lower_end(depth):
    for p, q, early in exact_pairs(depth, 60, depth):
        for i in range(early):
            ends = []
            for t in (-p[i], (1 - q[i] - p[i]) / 2, 1 - q[i]):
                shifted = [[*r[:i], r[i] + t, *r[i + 1 :]] for r in (p, q)]
                ends.append(expected(shifted[0]) - expected(shifted[1]))
            assert ends[1] == (ends[0] + ends[2]) / 2
            assert ends[0] <= 0


@pytest.mark.parametrize("depth", [3, 5, 8])
def test_step_2_late_positions_lose_no_more_than_n_p_z(depth):
    for p, q, early in exact_pairs(depth, 200, depth):
        late, product = depth - early, math.prod(p[:early])
        mass = sum(p[early:]) - sum(q[early:])
        before, after = expected(p[early:]), expected(q[early:])
        assert before - after <= late * mass
        assert before <= late
        assert product * before - after <= late * product * min(mass, 1)


@pytest.mark.parametrize("depth", [3, 4, 6, 9, 15])
def test_the_whole_chain_no_loss_exceeds_f_d_of_the_shifted_rates(depth):
    for p, q, early in exact_pairs(depth, 300, depth):
        loss = expected(p) - expected(q)
        if loss <= 0:
            continue
        shifted = [old + 1 - new for old, new in zip(p[:early], q[:early], strict=True)]
        raised = list(shifted)
        for i in range(early):  # step 3: raise until Z = 1
            excess = max(sum(1 - rate for rate in raised) - 1, Fraction(0))
            raised[i] += min(1 - raised[i], excess)
        assert loss <= bounded(raised, depth - early)
        assert losing_case(tuple(raised), depth).gain <= -loss


def test_the_family_attains_f_d():
    rng = np.random.default_rng(0)
    for depth, early in ((3, 1), (5, 2), (9, 3), (9, 8)):
        p = tuple(1 - Fraction(int(k), 100 * early) for k in rng.integers(0, 100, early))
        case = losing_case(p, depth)
        assert -case.gain == bounded(p, depth - early) == expected(case.original) - expected(case.improved)
        assert sum(case.original) == sum(case.improved)
        assert case.early == early
    with pytest.raises(InputError, match="early rates"):
        losing_case((Fraction(1, 3), Fraction(1, 3)), 4)


def test_one_early_position_loses_most_at_the_stated_rate():
    p, depth = sympy.symbols("p D", positive=True)
    loss = p - 1 + (depth - 1) * p * (1 - p)
    best = sympy.solve(sympy.diff(loss, p), p)
    assert [sympy.simplify(root - depth / (2 * (depth - 1))) for root in best] == [0]
    assert sympy.simplify(loss.subs(p, best[0]) - (depth - 2) ** 2 / (4 * (depth - 1))) == 0
    assert sympy.simplify(sympy.diff(loss, p, 2) + 2 * (depth - 1)) == 0
    assert one_early_loss(3) == Fraction(1, 8)


@pytest.mark.parametrize("early", [1, 2, 3])
def test_stationary_points_obey_the_recursion_and_their_value_is_n_p_p1_less_d(early):
    n, last = sympy.symbols("n t", positive=True)
    rates, rest = [last], last
    for _ in range(early - 1):
        rates.insert(0, rates[0] + 1 / (n * rest))
        rest = rest * rates[0]
    p = sympy.symbols(f"p1:{early + 1}", positive=True)
    room = sympy.Symbol("Z")
    partial = [sympy.prod(p[:k]) for k in range(1, early + 1)]
    value = sum(partial) - early + n * partial[-1] * room
    there = {**dict(zip(p, rates, strict=True)), room: last - 1 / n}
    for i in range(early):
        # Z falls as p_i rises.
        slope = sympy.diff(value, p[i]) - sympy.diff(value, room)
        assert sympy.cancel(slope.subs(there, simultaneous=True)) == 0
    assert sympy.cancel(value.subs(there) - (n * partial[-1] * p[0] - early).subs(there)) == 0


@pytest.mark.parametrize("early", [4, 6])
@pytest.mark.parametrize("last", [Fraction(3, 5), Fraction(7, 8)])
def test_more_early_positions_obey_the_recursion_too(early, last):
    n = 23
    rates = [last]
    for _ in range(early - 1):
        rates.insert(0, rates[0] + 1 / (n * math.prod(rates)))
    room = last - Fraction(1, n)

    def value(p):
        return expected(p) - early + n * math.prod(p) * room

    for i in range(early):  # affine in each rate, so that the slope is the difference of its ends
        slope = value([*rates[:i], 1, *rates[i + 1 :]]) - value([*rates[:i], 0, *rates[i + 1 :]])
        assert slope == n * math.prod(rates)
    assert value(rates) == n * math.prod(rates) * rates[0] - early


@pytest.mark.parametrize("depth", range(2, 15))
def test_up_to_fourteen_positions_the_closed_form_is_the_largest_loss_exactly(depth):
    found = largest_loss(depth)
    assert found.exact
    assert found.loss == found.bound == Fraction((depth - 2) ** 2, 4 * (depth - 1))
    assert found.case.early == 1


@pytest.mark.parametrize("depth", [15, 16, 17, 20, 40, 100])
def test_from_fifteen_positions_on_more_is_lost_than_the_closed_form_says(depth):
    found = largest_loss(depth)
    assert not found.exact
    assert found.case.early >= 2
    assert found.loss > one_early_loss(depth)
    assert 0 < found.bound - found.loss <= Fraction(1, 10**9)
    case = found.case
    assert expected(case.original) - expected(case.improved) == found.loss
    assert sum(case.original) == sum(case.improved)


def test_two_thirds_beat_the_closed_form_for_every_depth_from_seventeen_on():
    n = sympy.Symbol("n", positive=True)
    surplus = 8 * n / 27 - sympy.Rational(8, 9) - n**2 / (4 * (n + 1))
    numerator = sympy.Poly(sympy.fraction(sympy.together(surplus.subs(n, n + 15)))[0], n)
    assert min(numerator.all_coeffs()) > 0  # n = D - 2, from 15 on
    assert -losing_case((Fraction(2, 3),) * 2, 17).gain == Fraction(8, 27) * 15 - Fraction(8, 9)


@pytest.mark.parametrize("depth", [2, 3, 14, 15, 60, 512])
def test_the_largest_loss_lies_between_its_bounds(depth):
    found = largest_loss(depth)
    assert one_early_loss(depth) <= found.loss
    assert float(found.bound) <= (depth - 1) / math.e


def test_the_share_lost_tends_to_one_in_e():
    shares = [float(largest_loss(depth).loss) / depth for depth in (30, 100, 300, 512)]
    assert shares == sorted(shares)
    early = 10**4
    p_z = (early / (early + 1)) ** (early + 1)
    assert abs((10**8 - early) * p_z - early - 10**8 / math.e) / 10**8 < 1e-3


@pytest.mark.parametrize("depth", [4, 9, 14, 15, 18])
def test_no_early_rates_on_a_grid_exceed_the_bound(depth):
    bound = float(largest_loss(depth).bound)
    grid = np.linspace(0, 1, 21)
    for early in range(1, min(depth, 5)):
        p = np.array(list(itertools.product(grid, repeat=early)))
        room = early - p.sum(axis=1)
        partial = np.cumprod(p, axis=1)
        value = partial.sum(axis=1) - early + (depth - early) * partial[:, -1] * room
        assert value[room <= 1].max() <= bound + 1e-12


@pytest.mark.parametrize("depth", [2, 3, 4, 5, 8, 15])
def test_no_random_change_loses_more(depth):
    cases: Cases = random_cases(depth, 60_000, np.random.default_rng(depth), any_order=True)
    assert -cases.gain().min() <= float(largest_loss(depth).bound) + 1e-12


@pytest.mark.parametrize(("depth", "early"), [(3, 1), (4, 1), (5, 1), (5, 2), (15, 2)])
def test_optimising_the_loss_itself_arrives_at_the_largest_loss_and_not_beyond(depth, early):
    from scipy.optimize import minimize

    def gain(x):
        p, q = x[:depth], x[depth:]
        return np.cumprod(q).sum() - np.cumprod(p).sum()

    sign = np.where(np.arange(depth) < early, 1.0, -1.0)
    constraints = [
        {"type": "eq", "fun": lambda x: x[:depth].sum() - x[depth:].sum()},
        {"type": "ineq", "fun": lambda x: sign * (x[depth:] - x[:depth])},
    ]
    rng = np.random.default_rng(early)
    losses = []
    for attempt in range(8):
        # Half of the starts anywhere, where many end in a lesser optimum; half around a losing pair.
        p = np.concatenate([np.full(early, 0.7), [0.4], np.ones(depth - early - 1)])
        q = np.concatenate([np.ones(early), [0.1], np.ones(depth - early - 1)])
        near = np.clip(np.concatenate([p, q]) + rng.normal(0, 0.05, 2 * depth), 0, 1)
        start = near if attempt % 2 else rng.random(2 * depth)
        done = minimize(gain, start, method="SLSQP", bounds=[(0, 1)] * (2 * depth), constraints=constraints)
        if done.success:
            losses.append(-done.fun)
    found = largest_loss(depth)
    assert max(losses) <= float(found.bound) + 1e-5
    if early == found.case.early:
        assert max(losses) >= float(found.loss) - 1e-5


def test_the_result_as_json_says_whether_it_is_exact():
    assert largest_loss(3).to_json() == {
        "depth": 3,
        "loss": 0.125,
        "bound": 0.125,
        "exact": True,
        "original": [0.75, 0.25, 1.0],
        "improved": [1.0, 0.0, 1.0],
        "early": 1,
    }
    assert largest_loss(15).to_json()["exact"] is False


@pytest.mark.parametrize("depth", [1, 0, 513])
def test_a_depth_out_of_range_is_refused(depth):
    for function in (largest_loss, one_early_loss):
        with pytest.raises(InputError, match="depth"):
            function(depth)
