"""`--structure auto`: the draft structure that promises the most tokens a second on this machine and these prompts.

What a cycle takes is timed once and kept on disk: it belongs to the machine and the pair. What it yields belongs to the
prompts: it is read, each time, off a few short texts of the target's own.
"""

from gumiho_decoder.measuring.auto.choice import PILOT_PROMPTS, Candidate, Choice, choose

__all__ = ["PILOT_PROMPTS", "Candidate", "Choice", "choose"]
