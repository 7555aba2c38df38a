"""Many pairs of drafter and structure over the same prompts, in turn."""

from gumiho_decoder.measuring.bench.run import BenchRequest, BenchResult, run_bench

__all__ = ["BenchRequest", "BenchResult", "run_bench"]
