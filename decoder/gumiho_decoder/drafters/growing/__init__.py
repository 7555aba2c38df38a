"""Draft trees grown from a method's distributions, one way for all: chains, static and dynamic trees."""

from gumiho_decoder.drafters.growing.branches import Branches, Grown
from gumiho_decoder.drafters.growing.cache import TreeCache
from gumiho_decoder.drafters.growing.drafter import TreeDrafter

__all__ = ["Branches", "Grown", "TreeCache", "TreeDrafter"]
