"""Commands of the theory: `gumiho theorem check`, `prove`, `sample` and `counterexample`, one file each."""

from gumiho_theory.commands.theorem import register

__all__ = ["register"]
