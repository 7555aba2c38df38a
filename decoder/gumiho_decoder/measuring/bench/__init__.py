"""Many pairs of drafter and structure over the same prompts, in turn."""

from gumiho_decoder.measuring.bench.run import BenchRequest, run_bench

__all__ = ["BenchRequest", "run_bench"]
