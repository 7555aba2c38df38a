"""Drafters: one file a method behind one protocol."""

from gumiho_decoder.drafters.base import Draft, Drafter

__all__ = ["Draft", "Drafter"]
