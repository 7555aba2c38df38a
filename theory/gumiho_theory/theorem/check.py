"""The early-token theorem: its statement, its hypothesis in two forms, and the check of a concrete change.

Theorem (Gumiho, arXiv 2503.10135, Theorem 3.1): raise the conditional rates of the first d of D draft positions,
lower the later ones by as much in total, all rates staying in [0, 1]. Then the expected accepted length
E[L] = sum_i p_1 ... p_i does not fall, provided that the original rates are

- ``descending``: p_1 >= p_2 >= ... >= p_D, the paper's hypothesis, or
- ``dominated``: every early rate is at least every later one, and the later ones are descending; the early ones
  may stand in any order. Weaker, and enough.

Rates in any order can lose from D = 3 on.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from gumiho_theory.theorem.certificate import Certificate, decompose
from gumiho_theory.theorem.exact import Change, check_early, expected_exact, fraction_text, short, to_rates

Hypothesis = Literal["descending", "dominated"]

STATEMENTS = {
    "theorem": r"p_i \leq q_i \ (i \leq d), \quad q_i \leq p_i \ (i > d), \quad \sum_{i=1}^{D} q_i = \sum_{i=1}^{D} p_i"
    r"\ \Rightarrow\ \mathbb{E}_q[L] \geq \mathbb{E}_p[L]",
    "expected accepted length": r"\mathbb{E}_p[L] = \sum_{i=1}^{D} \prod_{j=1}^{i} p_j",
    "descending": r"p_1 \geq p_2 \geq \dots \geq p_D",
    "dominated": r"\min_{i \leq d} p_i \geq p_{d+1} \geq p_{d+2} \geq \dots \geq p_D",
    "one move": r"\Delta = \zeta \left[ B + C \left( p_b - p_a - \zeta \right) \right], \quad a < b",
    "one move, B": r"B = P_{a-1} \sum_{j=a}^{b-1} \prod_{i=a+1}^{j} p_i",
    "one move, C": r"C = P_{a-1} W_b \prod_{i=a+1}^{b-1} p_i",
    "criterion": r"\Delta \geq 0 \Leftrightarrow C \left( p_a + \zeta - p_b \right) \leq B",
}
"""LaTeX of the theorem, of its hypothesis and of the exact criterion of one move; matplotlib can draw it."""


@dataclass(frozen=True)
class TheoremCheck:
    """What the theorem says about one change of rates, and what the change does.

    Attributes
    ----------
    hypothesis : {"descending", "dominated"} or None
        The stronger form that the original rates satisfy; None: neither, and the theorem says nothing.
    violations : tuple of str
        Without a hypothesis: everything that breaks the weaker form, by position. Otherwise empty.
    expected_original, expected_improved : float
        E[L] before and after; no bonus token. The exact values, rounded once.
    gain : float
        E[L] after less before: the exact value of the rates as given, rounded once.
    gain_exact : Fraction or None
        The gain, which the certificate's gains sum to; None when the sums of float rates leave a residual, which
        no moves account for.
    certificate : Certificate
        The moves with their exact gains, also where some of them lose.
    residual : Fraction
        Sum of the improved rates less that of the original ones, at most 1e-9 (or D times the spacing of floats
        coarser than float64) and 0 for exact rates. The gain differs from the certificate's by at most D times it.
    """

    hypothesis: Hypothesis | None
    violations: tuple[str, ...]
    expected_original: float
    expected_improved: float
    gain: float
    gain_exact: Fraction | None
    certificate: Certificate
    residual: Fraction

    @property
    def certified(self) -> bool:
        """Whether every move of the certificate gains or keeps; it may be so without the hypothesis."""
        return self.certificate.certified

    def to_json(self) -> dict[str, Any]:
        """Return the check as JSON values; exact numbers as fraction text."""
        return {
            "hypothesis": self.hypothesis,
            "violations": list(self.violations),
            "expected_original": self.expected_original,
            "expected_improved": self.expected_improved,
            "gain": self.gain,
            "gain_exact": None if self.gain_exact is None else fraction_text(self.gain_exact),
            "certificate": self.certificate.to_json(),
            "certified": self.certified,
            "residual": float(self.residual),
        }

    def to_latex(self) -> str:
        """Return the outcome as LaTeX: a short gain as the fraction it is, a long one rounded."""
        gain = r"\mathbb{E}_q[L] - \mathbb{E}_p[L]"
        if self.gain_exact is not None and self.gain_exact.denominator < 10**6:
            sign = "-" if self.gain_exact < 0 else ""
            above, below = abs(self.gain_exact.numerator), self.gain_exact.denominator
            return f"{gain} = {sign}{above}" if below == 1 else rf"{gain} = {sign}\frac{{{above}}}{{{below}}}"
        digits, _, exponent = f"{self.gain:.6g}".partition("e")
        return rf"{gain} \approx {digits}" + (rf" \times 10^{{{int(exponent)}}}" if exponent else "")


def hypothesis_form(original: Any, early: int) -> tuple[Hypothesis | None, tuple[str, ...]]:
    """Return the form of the hypothesis that rates satisfy, and what breaks it.

    `original`, `early`: As for `check_theorem`. Returns form, {"descending", "dominated"} or None: The stronger form
    that holds. Returns violations, tuple of str: Every early rate below a later one, with the largest such, and every
    rise among the later ones: empty unless form is None. Raises InputError: When the rates are no rates, or `early` is
    outside 1..D-1.
    """
    rates = to_rates(original, "original")
    return _hypothesis(rates, check_early(early, len(rates)))


def _hypothesis(rates: tuple[Fraction, ...], early: int) -> tuple[Hypothesis | None, tuple[str, ...]]:
    if all(rates[i] >= rates[i + 1] for i in range(len(rates) - 1)):
        return "descending", ()

    def named(i: int, beside: int) -> str:
        return f"{i + 1} ({short(rates[i], rates[beside])})"

    best = max(range(early, len(rates)), key=rates.__getitem__)
    violations = [
        f"early rate {named(i, best)} is below later rate {named(best, i)}"
        for i in range(early)
        if rates[i] < rates[best]
    ]
    violations += [
        f"later rates rise from {named(i, i + 1)} to {named(i + 1, i)}"
        for i in range(early, len(rates) - 1)
        if rates[i] < rates[i + 1]
    ]
    return (None if violations else "dominated"), tuple(violations)


def check_theorem(original: Any, improved: Any, early: int) -> TheoremCheck:
    """Check the early-token theorem on one change of rates.

    Parameters
    ----------
    original, improved : str or iterable [D]
        Conditional rates before and after: Fraction, int, text such as "3/4" or "0.81" (an exact decimal), float
        (taken as the binary number that it is), numpy, or one comma-separated text.
    early : int
        d, the number of early positions, 1..D-1: their rates rise or stay, the later ones fall or stay.

    Raises
    ------
    InputError
        For unequal lengths, a rate outside [0, 1], an early rate lowered, a later one raised, `early` outside
        1..D-1, or sums that differ (see `gumiho_theory.theorem.exact.Change.read`).

    Examples
    --------
    >>> check = check_theorem("9/10, 9/10, 9/10", "1, 9/10, 4/5", early=1)
    >>> check.hypothesis, check.gain_exact, check.certified
    ('descending', Fraction(181, 1000), True)
    """
    change = Change.read(original, improved, early)
    before, after = expected_exact(change.original), expected_exact(change.improved)
    form, violations = _hypothesis(change.original, change.early)
    return TheoremCheck(
        hypothesis=form,
        violations=violations,
        expected_original=float(before),
        expected_improved=float(after),
        gain=float(after - before),
        gain_exact=None if change.residual else after - before,
        certificate=decompose(change),
        residual=change.residual,
    )
