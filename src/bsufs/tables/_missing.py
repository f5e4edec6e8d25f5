"""What to do about values that are missing or infinite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import sparse

from bsufs._typing import Mask
from bsufs.tables._errors import TableError, listed
from bsufs.tables._table import Table

Missing = Literal["error", "median", "drop-rows", "drop-columns"]


@dataclass(frozen=True)
class MissingValues:
    """What was missing, and what was done about it."""

    n_missing: int = 0
    n_infinite: int = 0
    n_rows_dropped: int = 0
    columns_dropped: tuple[str, ...] = ()


def resolve_missing(table: Table, how: Missing) -> tuple[Table, MissingValues]:
    """Return a table of finite numbers.

    An infinite value counts as missing. "median" fills `values` alone: the cells as they were read,
    and so what is written, keep their gaps.
    """
    gaps = _Gaps.of(table.values)
    if gaps.count == 0:
        return table, MissingValues()
    found = gaps.found
    if how == "error":
        first = (gaps.first_row, gaps.first_column)
        raise TableError(complain_of_gaps(found, first, table.names))
    if how == "drop-rows":
        return _without_rows(table, gaps, found)
    if how == "drop-columns":
        return _without_columns(table, gaps, found)
    return _filled(table, gaps), found


@dataclass(frozen=True)
class _Gaps:
    """Where the numbers are not finite."""

    rows: Any
    columns: Any
    n_infinite: int

    @classmethod
    def of(cls, values: Any) -> _Gaps:
        if sparse.issparse(values):
            stored = values.tocoo()
            bad = ~np.isfinite(stored.data)
            rows, columns, cells = stored.row[bad], stored.col[bad], stored.data[bad]
        else:
            rows, columns = np.nonzero(~np.isfinite(values))
            cells = values[rows, columns]
        return cls(rows, columns, int(np.isinf(cells).sum()))

    @property
    def count(self) -> int:
        return int(self.rows.size)

    @property
    def found(self) -> MissingValues:
        return MissingValues(self.count - self.n_infinite, self.n_infinite)

    @property
    def first_row(self) -> int:
        return int(self.rows[0])

    @property
    def first_column(self) -> int:
        return int(self.columns[0])


def complain_of_gaps(found: MissingValues, first: tuple[int, int], names: Sequence[str]) -> str:
    """Return the complaint about values that are missing."""
    return (
        f"{_counted(found)}, the first in row {first[0] + 1} of column {names[first[1]]!r}. Say "
        "what to do with --missing median, drop-rows or drop-columns."
    )


def complain_of_rows(found: MissingValues) -> str:
    """Return the complaint about a table of which no row is complete."""
    return (
        f"{_counted(found)}, and every row has a gap: --missing drop-rows would leave none. Try "
        "drop-columns or median."
    )


def complain_of_columns(found: MissingValues, n_complete: int, n_columns: int) -> str:
    """Return the complaint about a table with too few complete columns to select from."""
    return (
        f"{_counted(found)}: --missing drop-columns would leave {n_complete} of {n_columns} "
        "columns. Try drop-rows or median."
    )


def complain_of_empty(names: Sequence[str]) -> str:
    """Return the complaint about columns that have no median."""
    return (
        f"--missing median needs a value in every column, but {listed(names)} has none. Use "
        "--missing drop-columns, or leave it out with --ignore."
    )


def _counted(found: MissingValues) -> str:
    """Return such as "1 value is missing and 2 values are infinite"."""
    parts = [
        f"{count} {'value is' if count == 1 else 'values are'} {word}"
        for count, word in ((found.n_missing, "missing"), (found.n_infinite, "infinite"))
        if count
    ]
    return " and ".join(parts)


def _without_rows(table: Table, gaps: _Gaps, found: MissingValues) -> tuple[Table, MissingValues]:
    kept: Mask = np.ones(table.n_rows, dtype=bool)
    kept[gaps.rows] = False
    if not kept.any():
        raise TableError(complain_of_rows(found))
    return table.rows(kept), replace(found, n_rows_dropped=int((~kept).sum()))


def _without_columns(
    table: Table, gaps: _Gaps, found: MissingValues
) -> tuple[Table, MissingValues]:
    dropped = np.unique(gaps.columns)
    kept = np.setdiff1d(np.arange(table.n_features), dropped)
    if kept.size < 2:
        raise TableError(complain_of_columns(found, kept.size, table.n_features))
    names = tuple(table.names[column] for column in dropped)
    return table.features(kept), replace(found, columns_dropped=names)


def _filled(table: Table, gaps: _Gaps) -> Table:
    incomplete = np.unique(gaps.columns)
    values = table.values.copy()
    part = values[:, incomplete]
    part = part.toarray() if sparse.issparse(part) else part
    part = np.where(np.isfinite(part), part, np.nan)
    empty = np.isnan(part).all(axis=0)
    if empty.any():
        raise TableError(complain_of_empty([table.names[c] for c in incomplete[empty]]))
    medians = dict(zip(incomplete.tolist(), np.nanmedian(part, axis=0), strict=True))
    if sparse.issparse(values):
        # Stored entries are replaced where they are: nothing else of the matrix changes.
        bad = ~np.isfinite(values.data)
        values.data[bad] = [medians[column] for column in values.indices[bad].tolist()]
    else:
        values[gaps.rows, gaps.columns] = [medians[column] for column in gaps.columns.tolist()]
    return replace(table, values=values)
