"""The theorem proved by machine: obligations for every D, the whole theorem at small D, a second opinion."""

from gumiho_theory.theorem.proof.symbolic import Obligation, ProofReport, prove

__all__ = ["Obligation", "ProofReport", "prove"]
