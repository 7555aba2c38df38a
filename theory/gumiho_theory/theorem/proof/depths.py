r"""The early-token theorem at one depth D, written out in full and proved as a single polynomial inequality.

At a given D and d the theorem is about the rates p_1 ... p_D and the amounts z_ab >= 0 that an early position a gets
from a late position b: q_a = p_a + sum_b z_ab, q_b = p_b - sum_a z_ab. Every admissible q is reached so (`plan_sign`
and `plan_step` in `obligations`), so E_q[L] - E_p[L] >= 0 on the domain below is the whole theorem at that
D and d, with none of the lemmas that the proof for every D rests on. Its witness is the sum over the moves of
z_ab * P_{a-1} * (the witness of the bracket F), which is searched for; the sum is checked like any other.
"""

from __future__ import annotations

from functools import cache

from gumiho_theory.theorem.proof.nonnegative import Expression, fact_symbols, find_witness
from gumiho_theory.theorem.proof.obligations import Claim, implies

_Fact = tuple[str | int, ...]


def depth_claims(depth: int) -> tuple[Claim, ...]:
    """Return the theorem at one depth D >= 2: the moves to position 1 that D is the first to have, then every d.

    A move to a later position a is one to position 1 at depth D - a + 1, times P_{a-1}.
    """
    moves = [
        move_claim(early - 1, source - early - 1, depth - source)
        for early in range(1, depth)
        for source in range(early + 1, depth + 1)
    ]
    return (*moves, *(theorem_claim(depth, early) for early in range(1, depth)))


def _followed(rates: tuple[Expression, ...]) -> Expression:
    """Return 1 + r_1 + r_1 r_2 + ..., nested."""
    value: Expression = 1
    for rate in reversed(rates):
        value = 1 + rate * value
    return value


def _products(letter: str, count: int) -> list[str]:
    """Return the LaTeX of 1, r_1, r_1 r_2, ... with up to `count` factors."""
    return ["1", *(" ".join(f"{letter}_{i}" for i in range(1, n + 1)) for n in range(1, count + 1))]


def move_claim(raised: int, between: int, behind: int) -> Claim:
    """Return the claim that one move of the plan does no harm, with its positions written out.

    `raised`: Early positions between the receiver a and the source b, d - a. x_i is the rate of the i-th when b gives
    to a, g_i the part of it that came from b. `between`: Late positions between a and b, b - 1 - d; their rates
    continue x. `behind`: Positions behind b, D - b; their rates w_j. Returns U - N W (y - p_b) >= 0, where p_b = M -
    g_1 - g_2 ... and y is the rate of a after the move.
    """
    import sympy

    m, y = sympy.symbols("M y")
    x = sympy.symbols(f"x_1:{raised + between + 1}", seq=True)
    g = sympy.symbols(f"g_1:{raised + 1}", seq=True)
    w = sympy.symbols(f"w_1:{behind + 1}", seq=True)
    facts = [1 - y, m, 1 - m]
    for rate, part in zip(x, g, strict=False):
        facts += [rate - m - part, part, rate - m]
    for rate in w:
        facts += [m - rate, rate]
    for rate in x:
        facts += [rate, 1 - rate]
    depth, early, source = raised + between + behind + 2, raised + 1, raised + between + 2
    premises = [r"0 \leq M \leq 1", r"y \leq 1"]
    premises += [rf"0 \leq g_i \leq x_i - M\ (i \leq {raised})"] if raised else []
    premises += [rf"0 \leq x_i \leq 1\ (i \leq {len(x)})"] if x else []
    premises += [rf"0 \leq w_j \leq M\ (j \leq {behind})"] if w else []
    factors = [_products("x", len(x))[-1]] if x else []
    factors += [rf"\left({' + '.join(_products('w', behind))}\right)"] if w else []
    factors += [rf"\left({' + '.join(['y - M', *(f'g_{i}' for i in range(1, raised + 1))])}\right)"]
    conclusion = rf"{' '.join(factors)} \leq {' + '.join(_products('x', len(x)))}"
    return Claim(
        f"move_D{depth}_d{early}_b{source}",
        implies(premises, conclusion),
        f"The bracket of the move from position {source} to position 1 at D = {depth}, d = {early}.",
        _followed(x) - sympy.prod(x) * _followed(w) * (y - m + sum(g)),
        ">=0",
        tuple(sympy.Ge(fact, 0) for fact in facts),
        (y, *g, *w, *x, m),
    )


@cache
def _move_witness(raised: int, between: int, behind: int) -> Expression | None:
    claim = move_claim(raised, between, behind)
    return find_witness(claim.expression, [condition.lhs for condition in claim.domain], claim.variables)


def theorem_claim(depth: int, early: int) -> Claim:
    """Return the theorem at depth D with d early positions, 1 <= d < D, as one claim.

    Its variables are p_1 ... p_D and z_a_b, the amount that a <= d gets from b > d. Its domain is the dominated
    form of the hypothesis, which descending rates satisfy, and q in [0, 1]^D.
    """
    import sympy

    p = {i: sympy.Symbol(f"p_{i}") for i in range(1, depth + 1)}
    heads, tails = range(1, early + 1), range(early + 1, depth + 1)
    z = {(a, b): sympy.Symbol(f"z_{a}_{b}") for a in heads for b in tails}
    q = {a: p[a] + sum(z[a, b] for b in tails) for a in heads}
    q |= {b: p[b] - sum(z[a, b] for a in heads) for b in tails}
    facts: dict[_Fact, Expression] = {("z", *pair): amount for pair, amount in z.items()}
    facts |= {("at most one", a): 1 - q[a] for a in heads}
    facts |= {("not negative", b): q[b] for b in tails}
    facts |= {("dominates", a): p[a] - p[early + 1] for a in heads}
    facts |= {("descends", b): p[b] - p[b + 1] for b in tails[:-1]}
    symbols = dict(zip(facts, fact_symbols(len(facts)), strict=True))
    descending = r" \geq ".join(f"p_{b}" for b in tails)
    statement = implies(
        [
            rf"D = {depth},\ d = {early}",
            rf"p_a \geq {descending}\ (a \leq {early})",
            r"z_{ab} \geq 0",
            rf"q_a = p_a + \sum_{{b > {early}}} z_{{ab}} \leq 1",
            rf"q_b = p_b - \sum_{{a \leq {early}}} z_{{ab}} \geq 0",
        ],
        r"E_q[L] \geq E_p[L]",
    )
    return Claim(
        f"theorem_D{depth}_d{early}",
        statement,
        f"The theorem at D = {depth} with d = {early}, complete: E[L] written out, no lemma used.",
        _followed(tuple(q.values())) - _followed(tuple(p.values())),
        ">=0",
        tuple(sympy.Ge(fact, 0) for fact in facts.values()),
        (*z.values(), *p.values()),
        lambda: _theorem_witness(depth, early, symbols),
    )


def _theorem_witness(depth: int, early: int, fact: dict[_Fact, Expression]) -> Expression | None:
    """Return the sum of the moves' witnesses, each of whose facts is put together from the theorem's own."""
    import sympy

    heads, tails = range(1, early + 1), range(early + 1, depth + 1)

    def z(a: int, sources: range) -> Expression:
        return sum(fact["z", a, b] for b in sources)

    def descent(i: int, k: int) -> Expression:
        """p_i - p_k of late positions i <= k."""
        return sum(fact["descends", b] for b in range(i, k))

    def given(b: int) -> Expression:
        return sum(fact["z", a, b] for a in heads)

    def late(b: int) -> Expression:
        """p_b."""
        return fact["not negative", b] + given(b)

    def below_one(b: int) -> Expression:
        """1 - p_b, through position 1: q_1 <= 1 and p_1 >= p_b."""
        return fact["at most one", 1] + z(1, tails) + fact["dominates", 1] + descent(early + 1, b)

    def above(a: int, b: int) -> Expression:
        """p_a - p_b."""
        return fact["dominates", a] + descent(early + 1, b)

    terms = []
    for b in reversed(tails):
        done, coming = range(b, depth + 1), range(early + 1, b)
        for a in reversed(heads):
            witness = _move_witness(early - a, b - 1 - early, depth - b)
            if witness is None:
                return None
            # In the order of the facts in move_claim.
            parts = [fact["at most one", a] + z(a, coming), late(b), below_one(b)]
            for i in range(a + 1, early + 1):
                parts += [above(i, b) + z(i, done[1:]), fact["z", i, b], above(i, b) + z(i, done)]
            for j in range(b + 1, depth + 1):
                parts += [descent(b, j) + given(j), fact["not negative", j]]
            for i in range(a + 1, b):
                if i <= early:
                    parts += [late(b) + above(i, b) + z(i, done), fact["at most one", i] + z(i, coming)]
                else:
                    parts += [late(i), below_one(i)]
            bracket = witness.xreplace(dict(zip(fact_symbols(len(parts)), parts, strict=True)))
            before = sympy.prod([late(b) + above(i, b) + z(i, done[1:]) for i in range(1, a)])
            terms.append(fact["z", a, b] * before * bracket)
    return sympy.Add(*terms)
