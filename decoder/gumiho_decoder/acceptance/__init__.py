"""Which drafted tokens are kept, and where an output ends: pure functions, the exact rules and the lossy ones."""

from gumiho_decoder.acceptance.fta import FullTreeAttention
from gumiho_decoder.acceptance.rules import Accepted, Greedy, Rule, Sampling, Typical
from gumiho_decoder.acceptance.sampling import Warp, draw, verify_sampled
from gumiho_decoder.acceptance.stops import Stops
from gumiho_decoder.acceptance.typical import TypicalAcceptance, verify_typical

__all__ = [
    "Accepted",
    "FullTreeAttention",
    "Greedy",
    "Rule",
    "Sampling",
    "Stops",
    "Typical",
    "TypicalAcceptance",
    "Warp",
    "draw",
    "verify_sampled",
    "verify_typical",
]
