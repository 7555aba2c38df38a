"""EAGLE (chain, static tree) and EAGLE-2 (dynamic tree)."""

from gumiho_decoder.drafters.eagle.drafter import EagleDrafter, EagleModel
from gumiho_decoder.drafters.eagle.serial import SerialConfig, SerialModel

__all__ = ["EagleDrafter", "EagleModel", "SerialConfig", "SerialModel"]
