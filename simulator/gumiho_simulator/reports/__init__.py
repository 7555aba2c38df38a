"""HTML pages that open offline: the demo's report, and a bench."""

from gumiho_simulator.reports.bench import show_bench, write_bench_report
from gumiho_simulator.reports.demo import write_report
from gumiho_simulator.reports.facts import DemoSummary, NearTie, TreeDrawing

__all__ = ["DemoSummary", "NearTie", "TreeDrawing", "show_bench", "write_bench_report", "write_report"]
