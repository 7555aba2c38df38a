"""What is logged of a run: trace rows, provenance, the every-position log."""

from gumiho_decoder.logging.every_position import Log
from gumiho_decoder.logging.places import accepted_lengths, behind_truth
from gumiho_decoder.logging.recorder import Recorder, environment

__all__ = ["Log", "Recorder", "accepted_lengths", "behind_truth", "environment"]
