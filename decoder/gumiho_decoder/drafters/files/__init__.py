"""Weights in files: the own format, strangers' files, fingerprints."""

from gumiho_decoder.drafters.files.own_format import OwnFormat
from gumiho_decoder.drafters.files.weights import Weights, open_weights

__all__ = ["OwnFormat", "Weights", "open_weights"]
