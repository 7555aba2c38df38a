"""Cycles that follow one another over tokens of different difficulty: the chain, its likelihood, the logit scale."""

from gumiho_simulator.acceptance.chain.likelihood import Pieces, log_likelihood, maximise
from gumiho_simulator.acceptance.chain.links import anchored, logistic, logit
from gumiho_simulator.acceptance.chain.tokens import TokenChain

__all__ = ["Pieces", "TokenChain", "anchored", "log_likelihood", "logistic", "logit", "maximise"]
