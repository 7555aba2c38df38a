"""`--structure auto`: which draft structure promises the most tokens a second here."""

from gumiho_decoder.measuring.auto.choice import PROMPTS, Candidate, Choice, choose

__all__ = ["PROMPTS", "Candidate", "Choice", "choose"]
