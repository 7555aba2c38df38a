"""Measured with the loop: runs over prompts, speed, losslessness, step times, the choice of a structure, benches."""

from gumiho_decoder.measuring.auto import Choice, choose
from gumiho_decoder.measuring.decode import DecodeRequest, DecodeResult, decode_prompts
from gumiho_decoder.measuring.lossless import compare
from gumiho_decoder.measuring.prompts import Prompt, read_prompts
from gumiho_decoder.measuring.runs import RunConfig, run

__all__ = [
    "Choice",
    "DecodeRequest",
    "DecodeResult",
    "Prompt",
    "RunConfig",
    "choose",
    "compare",
    "decode_prompts",
    "read_prompts",
    "run",
]
