"""Weights in files: the own format, strangers' files, fingerprints."""

from gumiho_decoder.drafters.files.own_format import load_pretrained, save_pretrained
from gumiho_decoder.drafters.files.weights import Weights, open_weights

__all__ = ["Weights", "load_pretrained", "open_weights", "save_pretrained"]
