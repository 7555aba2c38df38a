"""Hydra and Hydra++."""

from gumiho_decoder.drafters.hydra.drafter import HydraDrafter
from gumiho_decoder.drafters.hydra.model import HydraConfig, HydraModel

__all__ = ["HydraConfig", "HydraDrafter", "HydraModel"]
