"""Gumiho: serial Transformer for the early positions, parallel heads for the later ones."""

from gumiho_decoder.drafters.gumiho.drafter import GumihoDrafter
from gumiho_decoder.drafters.gumiho.model import GumihoConfig, GumihoModel

__all__ = ["GumihoConfig", "GumihoDrafter", "GumihoModel"]
