r"""What has to be proved for the early-token theorem to hold at every D, as claims about polynomials.

The theorem (Gumiho, arXiv 2503.10135, Theorem 3.1, in its dominated form): p, q in [0, 1]^D, q_a >= p_a for a <= d,
q_b <= p_b for b > d, both with the same sum; every p_a with a <= d is at least every p_b with b > d, and
p_{d+1} >= ... >= p_D. Then E_q[L] >= E_p[L]. Conditional rates, no bonus token.

The argument, with the claim that carries each step:

1. Plan. Let z_ab = (q_a - p_a)(p_b - q_b) / T, T the sum of all raises. `plan_sign`: z_ab >= 0. `plan_step`, induction
   over the positions summed: row a sums to q_a - p_a and, the roles exchanged, column b to p_b - q_b. (T = 0: p = q.)
   Moving z_ab from b to a, for b = D, ..., d+1 and for each b for a = d, ..., 1, leads from p to q.
2. One move. With W_D = 1 and W_{k-1} = 1 + p_k W_k, E[L] = W_0 - 1. `split_step`, induction over m from the
   definition (m = 0: U = N = 1): W_k = U_m + N_m p_{k+m+1} W_{k+m+1}, where N_m = p_{k+1} ... p_{k+m} and
   U_m = N_0 + ... + N_m. Used twice, E[L] = S + P p_a (U + N p_b W) with P = P_{a-1}, U = U_{b-1-a} and N = N_{b-1-a}
   over the positions between a and b, W = W_b. `move_identity`: moving z from b to a adds
   z (P U - P N W (p_a + z - p_b)).
3. The rates when b gives to a. M is p_b as it was at first. `early_rate_at_most_one`, `early_rate_at_least_m`,
   `late_rate_at_most_m`, `late_rate_not_negative`; `order_step`, induction: a descending sequence keeps the order of
   any two of its members (so descending rates are dominated, and later ones do not exceed M).
4. Bounds. `tail_base`, `tail_step`, induction from the back: (1 - M) W_b <= 1, that is W_b <= 1/(1 - M) when M < 1.
   `average_step`, induction over m (m = 0: 1 >= 1): U_m >= (m + 1) N_m. `given_step`, induction over the early
   positions that b has served (none: 0 <= 0): k of them took at most k (1 - M). `reach`: so
   p_a + z - p_b <= (k + 1)(1 - M), where k = d - a.
5. `single_move`: as k = d - a <= b - 1 - a = m, the bracket of step 2 is not negative.
6. `gain_step`, induction over the moves (none: 0 >= 0): neither is their sum, E_q[L] - E_p[L].

Two more: `first_order`, when the gradient falls from one position to the next; and `depth_two_any_order`, the theorem
at D = 2, where the rates may be in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gumiho_theory.theorem.proof.nonnegative import Expression


@dataclass(frozen=True)
class Claim:
    r"""A statement about a rational expression, to be proved by machine.

    Parameters
    ----------
    name : str
    statement : str
        LaTeX, without delimiters.
    role : str
        What the claim is for, in words.
    expression : SymPy expression
    relation : str
        What the expression is on the domain, ">=0" or "==0".
    domain : tuple of SymPy relational
        Conditions ``f >= 0`` or ``f > 0``; an identity without denominators needs none.
    variables : tuple of SymPy symbol
        All symbols, in the order in which a search should eliminate them.
    witness : callable, optional
        Gives the proof of ">=0" in terms of the domain's left sides, or None; left out, it is searched for.
        See gumiho_theory.theorem.proof.nonnegative.
    """

    name: str
    statement: str
    role: str
    expression: Expression
    relation: str
    domain: tuple[Expression, ...]
    variables: tuple[Expression, ...]
    witness: Callable[[], Expression | None] | None = None


def implies(premises: Sequence[str], conclusion: str) -> str:
    """Return the LaTeX of an implication."""
    return r",\ ".join(premises) + r"\ \Rightarrow\ " + conclusion


def general_claims() -> tuple[Claim, ...]:
    """Return the claims that make the proof for every D, in the order of the argument, and the two beside it."""
    return (*_plan(), *_one_move(), *_rates_along_the_way(), *_bounds(), *_conclusion(), *_beside())


def _identity(name: str, statement: str, role: str, expression: Expression, *positive: Expression) -> Claim:
    import sympy

    variables = tuple(sorted(expression.free_symbols, key=str))
    return Claim(name, statement, role, expression, "==0", tuple(sympy.Gt(f, 0) for f in positive), variables)


def _bound(
    name: str, statement: str, role: str, expression: Expression, facts: Sequence[Expression], variables: str
) -> Claim:
    import sympy

    order = sympy.symbols(variables, seq=True)
    return Claim(name, statement, role, expression, ">=0", tuple(sympy.Ge(f, 0) for f in facts), order)


def _plan() -> tuple[Claim, ...]:
    import sympy

    u, v, total, so_far = sympy.symbols("u v T V")
    sign = Claim(
        "plan_sign",
        implies([r"u, v \geq 0", "T > 0"], r"\frac{u v}{T} \geq 0"),
        "No amount moved, z_ab = u_a v_b / T with u_a = q_a - p_a and v_b = p_b - q_b, is negative.",
        u * v / total,
        ">=0",
        (sympy.Ge(u, 0), sympy.Ge(v, 0), sympy.Gt(total, 0)),
        (u, v, total),
    )
    step = _identity(
        "plan_step",
        implies(["T > 0"], r"\frac{u (V + v)}{T} = \frac{u V}{T} + \frac{u v}{T}"),
        "Step of the induction over the positions b that z_ab = u v_b / T is summed over: the sum is u V / T, V the "
        "sum of their v_b. At the end V = T and the sum is u; with u and v exchanged, the same for the sum over a.",
        u * (so_far + v) / total - u * so_far / total - u * v / total,
        total,
    )
    return sign, step


def _one_move() -> tuple[Claim, ...]:
    import sympy

    u, n, p, following, w = sympy.symbols("U N p p_next W")
    rest, reached, p_a, p_b, z = sympy.symbols("S P p_a p_b z")
    split = _identity(
        "split_step",
        r"U_m + N_m p_{k+m+1} W_{k+m+1} = U_{m+1} + N_{m+1} p_{k+m+2} W_{k+m+2}",
        "Step of the induction over m of W_k = U_m + N_m p_{k+m+1} W_{k+m+1}; p stands for p_{k+m+1}, p_next for "
        "p_{k+m+2}, W for W_{k+m+2}. For m = 0, where U = N = 1, it is the definition W_k = 1 + p_{k+1} W_{k+1}.",
        u + n * p * (1 + following * w) - ((u + n * p) + n * p * following * w),
    )

    def expected(rate_a: Expression, rate_b: Expression) -> Expression:
        return rest + reached * rate_a * (u + n * rate_b * w)

    move = _identity(
        "move_identity",
        r"E(p_a + z, p_b - z) - E(p_a, p_b) = z (P U - P N W (p_a + z - p_b)),\quad "
        r"E(x, y) = S + P x (U + N y W)",
        "What moving z from position b to an earlier position a adds to E[L], whatever the rates.",
        expected(p_a + z, p_b - z) - expected(p_a, p_b) - z * (reached * u - reached * n * w * (p_a + z - p_b)),
    )
    return split, move


def _rates_along_the_way() -> tuple[Claim, ...]:
    import sympy

    p, got, more, g, m, first, last, after = sympy.symbols("p s t g M p_i p_k p_next")
    return (
        _bound(
            "early_rate_at_most_one",
            implies([r"p + s + t \leq 1", r"t \geq 0"], r"p + s \leq 1"),
            "An early rate p that has got s of the s + t it will get is at most 1, since in the end it is.",
            1 - (p + got),
            [1 - p - got - more, more],
            "p s t",
        ),
        _bound(
            "early_rate_at_least_m",
            implies([r"p \geq M", r"s \geq 0"], r"(p + s + g) - g \geq M"),
            "An early rate that has got g from b and s from positions after b is at least M + g.",
            (p + got + g) - g - m,
            [p - m, got],
            "p s g M",
        ),
        _bound(
            "late_rate_at_most_m",
            implies([r"p \leq M", r"s \geq 0"], r"p - s \leq M"),
            "A rate p after b, of which s has been given away, is at most M.",
            m - (p - got),
            [m - p, got],
            "M p s",
        ),
        _bound(
            "late_rate_not_negative",
            implies([r"p - s - t \geq 0", r"t \geq 0"], r"p - s \geq 0"),
            "A late rate p that has given s of the s + t it will give is not negative, since in the end it is not.",
            p - got,
            [p - got - more, more],
            "p s t",
        ),
        _bound(
            "order_step",
            implies([r"p_i \geq p_k", r"p_k \geq p_{k+1}"], r"p_i \geq p_{k+1}"),
            "Step of the induction over k: a member of a descending sequence is at least every later one.",
            first - after,
            [first - last, last - after],
            "p_i p_k p_next",
        ),
    )


def _bounds() -> tuple[Claim, ...]:
    import sympy

    m, w, p, u, n, k, r, g, x, y = sympy.symbols("M W p U N k r g x y")
    count = sympy.Symbol("m")
    return (
        _bound(
            "tail_base",
            implies([r"M \geq 0"], r"(1 - M) W_D \leq 1,\quad W_D = 1"),
            "Start of the induction over k = D, ..., b of (1 - M) W_k <= 1.",
            1 - (1 - m) * 1,
            [m],
            "M",
        ),
        _bound(
            "tail_step",
            implies(
                [r"0 \leq p_k \leq M \leq 1", r"(1 - M) W_k \leq 1", r"W_k \geq 0"], r"(1 - M) (1 + p_k W_k) \leq 1"
            ),
            "Step of that induction, from W = W_k to W_{k-1} = 1 + p_k W_k, where p = p_k is a rate after b.",
            1 - (1 - m) * (1 + p * w),
            [p, m - p, m, 1 - m, 1 - (1 - m) * w, w],
            "p W M",
        ),
        _bound(
            "average_step",
            implies([r"U \geq (m + 1) N", r"0 \leq x \leq 1", r"N, m \geq 0"], r"U + N x \geq (m + 2) N x"),
            "Step of the induction over m of U_m >= (m + 1) N_m: the mean of products that only shrink is at least "
            "the last; x is the next rate.",
            (u + n * x) - (count + 2) * n * x,
            [u - (count + 1) * n, n, count, x, 1 - x],
            "U N x m",
        ),
        _bound(
            "given_step",
            implies([r"r \leq k (1 - M)", r"M \leq x", r"x + g \leq 1"], r"r + g \leq (k + 1) (1 - M)"),
            "Step of the induction over k, the early positions b has served: what it gave, r, is at most k (1 - M). "
            "The next one, at rate x, gets g.",
            (k + 1) * (1 - m) - (r + g),
            [k * (1 - m) - r, x - m, 1 - x - g],
            "r g x M k",
        ),
        _bound(
            "reach",
            implies([r"y \leq 1", r"r \leq k (1 - M)"], r"y - (M - r) \leq (k + 1) (1 - M)"),
            "The p_a + z - p_b of a move: y = p_a + z is the rate of a after it, M - r that of b before it.",
            (k + 1) * (1 - m) - (y - (m - r)),
            [1 - y, k * (1 - m) - r],
            "y r M k",
        ),
    )


def _conclusion() -> tuple[Claim, ...]:
    import sympy

    reached, u, n, w, m, k, reach, total, z, factor = sympy.symbols("P U N W M k delta G z F")
    count = sympy.Symbol("m")
    return (
        _bound(
            "single_move",
            implies(
                [
                    r"U \geq (m + 1) N",
                    r"(1 - M) W \leq 1",
                    r"\delta \leq (k + 1) (1 - M)",
                    r"0 \leq k \leq m",
                    r"P, N, W \geq 0",
                ],
                r"P U - P N W \delta \geq 0",
            ),
            "Every move of the plan helps or does nothing: delta is p_a + z - p_b, k = d - a, m = b - 1 - a.",
            reached * u - reached * n * w * reach,
            [u - (count + 1) * n, 1 - (1 - m) * w, (k + 1) * (1 - m) - reach, count - k, k, reached, n, w],
            "U delta m k P N W M",
        ),
        _bound(
            "gain_step",
            implies([r"G, z, F \geq 0"], r"G + z F \geq 0"),
            "Step of the induction over the moves: G is the gain so far, z F the next move's.",
            total + z * factor,
            [total, z, factor],
            "G z F",
        ),
    )


def _beside() -> tuple[Claim, ...]:
    import sympy

    rest, reached, x, y, w, z = sympy.symbols("S P p_k p_next W z")
    p_1, p_2 = sympy.symbols("p_1 p_2")
    expected = rest + reached * x * (1 + y * w)
    return (
        _identity(
            "first_order",
            r"\frac{\partial E}{\partial p_k} - \frac{\partial E}{\partial p_{k+1}} = "
            r"P_{k-1} (1 - (p_k - p_{k+1}) W_{k+1})",
            "The gradient falls from k to k + 1 exactly when (p_k - p_{k+1}) W_{k+1} <= 1 (where P_{k-1} > 0).",
            sympy.diff(expected, x) - sympy.diff(expected, y) - reached * (1 - (x - y) * w),
        ),
        _bound(
            "depth_two_any_order",
            implies(
                [r"p_1, z \geq 0", r"p_1 + z \leq 1", r"p_2 - z \geq 0"],
                r"(p_1 + z)(1 + p_2 - z) \geq p_1 (1 + p_2)",
            ),
            "The theorem for D = 2, where it needs no order: no counterexample exists.",
            (p_1 + z) * (1 + p_2 - z) - p_1 * (1 + p_2),
            [p_1, z, 1 - p_1 - z, p_2 - z],
            "p_1 p_2 z",
        ),
    )
