"""The LaTeX of statements, for notebooks and figures."""

from __future__ import annotations

import pytest

from gumiho_theory.extensions import dependence, text_cycles
from gumiho_theory.extensions import speed as speed_worth
from gumiho_theory.extensions import trees as tree_theorem
from gumiho_theory.extensions import worth as tree_worth

MODULES = (dependence, speed_worth, text_cycles, tree_theorem, tree_worth)


@pytest.mark.parametrize("latex", [latex for module in MODULES for latex in module.STATEMENTS.values()])
def test_every_statement_is_latex_that_a_figure_can_show(latex: str) -> None:
    from matplotlib.mathtext import MathTextParser

    MathTextParser("path").parse(f"${latex}$")
    with pytest.raises(ValueError):
        MathTextParser("path").parse(f"${latex}}}$")
