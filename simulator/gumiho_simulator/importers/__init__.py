"""Logs that people already hold, read into a cycle trace or acceptance counts; one file a format."""

from gumiho_simulator.importers.formats import FORMATS, import_logs, read
from gumiho_simulator.importers.reading import Reading

__all__ = ["FORMATS", "Reading", "import_logs", "read"]
