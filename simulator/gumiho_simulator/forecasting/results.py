"""Results as rows: what every row and every table of rows gives as plain values."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar


class Row:
    """What a frozen dataclass needs to be printed: its fields, or the columns that it names, as plain values."""

    columns: ClassVar[tuple[str, ...]] = ()
    """Names of fields and properties, in order; every field unless given."""

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain values, a key a column."""
        return {name: getattr(self, name) for name in self.columns or vars(self)}


AnyRow = TypeVar("AnyRow", bound=Row)


class Rows(tuple[AnyRow, ...]):
    """A tuple of rows that is printed as one object."""

    __slots__ = ()
    key: ClassVar[str] = "rows"

    def to_json(self) -> dict[str, Any]:
        """Return what the command that makes such rows prints with ``--json``: a list of dicts under one key."""
        return {self.key: [row.to_json() for row in self]}
