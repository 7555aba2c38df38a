"""Measured with the loop: runs over prompts, speed, losslessness, step times, the choice of a structure, benches.

What a command measures is one call here, with a result that holds what it prints: `decode_prompts`, `run_bench`,
`profile_pair`.
"""

from gumiho_decoder.measuring.auto import Choice, choose
from gumiho_decoder.measuring.bench import BenchRequest, BenchResult, run_bench
from gumiho_decoder.measuring.decode import DecodeRequest, DecodeResult, decode_prompts
from gumiho_decoder.measuring.lossless import compare
from gumiho_decoder.measuring.profile import profile_pair
from gumiho_decoder.measuring.prompts import Prompt, read_prompts
from gumiho_decoder.measuring.runs import RunConfig, run

__all__ = [
    "BenchRequest",
    "BenchResult",
    "Choice",
    "DecodeRequest",
    "DecodeResult",
    "Prompt",
    "RunConfig",
    "choose",
    "compare",
    "decode_prompts",
    "profile_pair",
    "read_prompts",
    "run",
    "run_bench",
]
