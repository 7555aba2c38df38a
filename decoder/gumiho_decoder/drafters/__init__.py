"""Drafters: one file or folder a method, the growing of trees that all share, and the loading by name."""

from gumiho_decoder.drafters.growing import TreeDrafter
from gumiho_decoder.drafters.load import load_drafter

__all__ = ["TreeDrafter", "load_drafter"]
