"""What every importer shares: bounded entries in, groups and cycles counted, and what was wrong on the way."""

from gumiho_simulator.importers.reading.base import Importer
from gumiho_simulator.importers.reading.entries import Entry, LogFile
from gumiho_simulator.importers.reading.result import Reading
from gumiho_simulator.importers.reading.several import merge
from gumiho_simulator.importers.reading.tally import Malformed, Tally

__all__ = ["Entry", "Importer", "LogFile", "Malformed", "Reading", "Tally", "merge"]
