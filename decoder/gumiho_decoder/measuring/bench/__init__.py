"""Many pairs of drafter and structure over the same prompts, in turn with plain decoding: a table of rows."""

from gumiho_decoder.measuring.bench.plan import BenchRequest
from gumiho_decoder.measuring.bench.run import BenchResult, run_bench

__all__ = ["BenchRequest", "BenchResult", "run_bench"]
