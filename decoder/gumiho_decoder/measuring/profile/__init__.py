"""What the steps of a cycle cost on this machine."""

from gumiho_decoder.measuring.profile.times import measure, measure_together, profile_pair

__all__ = ["measure", "measure_together", "profile_pair"]
