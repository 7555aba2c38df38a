"""What the steps of a cycle cost on this machine: cost profiles of pairs, or of random weights of known shape."""

from gumiho_decoder.measuring.profile.pairs import measure, measure_together, profile_pair

__all__ = ["measure", "measure_together", "profile_pair"]
