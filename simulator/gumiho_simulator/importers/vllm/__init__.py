"""vLLM's logs: log lines, Prometheus text, benchmark results, per-request statistics."""

from gumiho_simulator.importers.vllm.bench import VllmBench
from gumiho_simulator.importers.vllm.log import VllmLog
from gumiho_simulator.importers.vllm.metrics import VllmMetrics
from gumiho_simulator.importers.vllm.request import VllmRequest

__all__ = ["VllmBench", "VllmLog", "VllmMetrics", "VllmRequest"]
