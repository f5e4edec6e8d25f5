"""A table that is larger than memory, gone through in batches of rows.

The passes over the file are: one over text for its encoding; one for what must be known before the
numbers can be used (columns to drop, medians, deviations), where that was asked for; one for the
scatter; and one to write the selected columns, preceded by another where how they are written
depends on all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from sklearn.preprocessing import StandardScaler

from bsufs._memory import available_memory, size_in_words
from bsufs._typing import Array, Indices, Mask
from bsufs.cli._base import Features, Input, require_two_rows, say_what_was_missing
from bsufs.cli._clustering import Classes, Clustering, classes_in, cluster
from bsufs.cli._console import Reporter
from bsufs.cli._methods import best_first_of
from bsufs.cli._whole import WholeInput
from bsufs.scatter import Scatter, memory_for_scatter
from bsufs.tables import MissingValues, Table, TableError, TableStream, write_batches
from bsufs.tables._missing import (
    complain_of_columns,
    complain_of_empty,
    complain_of_gaps,
    complain_of_rows,
)

# A row of a batch is text, cells, numbers, and copies of these on their way into the scatter.
_BYTES_PER_CELL = 64
# What a class takes as text of its own.
_BYTES_PER_CLASS = 100


@dataclass
class StreamedInput(Input):
    """A table ready to select from, of which no more than a batch is in memory."""

    path: str
    stream: TableStream
    how: str
    memory: int
    report: Reporter
    missing: MissingValues = field(default_factory=MissingValues)
    table: Features = field(init=False)
    _scaler: Any = None
    _medians: Array | None = None
    _dropped: Indices | None = None

    def __post_init__(self) -> None:
        self.table = Features(self.stream.names, 0)

    def prepare(self, scale: str) -> None:
        """Find out what must be known of all rows before their numbers can be used."""
        if self.how in ("drop-columns", "median"):
            self._survey()
        if scale == "standard":
            scaler = StandardScaler()
            for values in self._numbers():
                scaler.partial_fit(values)
            self._scaler = scaler

    # ------------------------------------------------------------------------------------- passes

    def _numbers(self, columns: Sequence[int] | None = None) -> Iterator[Array]:
        """Go through the finite numbers, of all columns or, once these have been seen, of some."""
        gaps = _GapCount(len(self.table.names))
        names = self.table.names if columns is None else [self.table.names[c] for c in columns]
        dropped: list[Indices] = []
        n_rows = 0
        for table in self.stream.tables(names, check=columns is None):
            values = table.values
            rows = np.arange(n_rows, n_rows + values.shape[0])
            n_rows += values.shape[0]
            if columns is not None:
                kept = self._kept(rows)
                yield self._ready(values[kept] if not kept.all() else values, columns)
                continue
            finite = np.isfinite(values)
            if not finite.all():
                gaps.add(values, finite, rows[0])
                if self.how == "drop-rows":
                    kept = finite.all(axis=1)
                    dropped.append(rows[~kept])
                    values = values[kept]
            if gaps.count and self.how == "error":
                continue
            if values.shape[0]:
                yield self._ready(values, None)
        if columns is None:
            self._settle(gaps, dropped, n_rows)

    def _ready(self, values: Array, columns: Sequence[int] | None) -> Array:
        if self._medians is not None:
            medians = self._medians if columns is None else self._medians[list(columns)]
            values = np.where(np.isfinite(values), values, medians)
        if self._scaler is None:
            return values
        if columns is None:
            return np.asarray(self._scaler.transform(values))
        part = list(columns)
        scaled: Array = (values - self._scaler.mean_[part]) / self._scaler.scale_[part]
        return scaled

    def _kept(self, rows: Indices) -> Mask:
        if self._dropped is None:
            return np.ones(rows.size, dtype=bool)
        first, last = np.searchsorted(self._dropped, [rows[0], rows[-1] + 1])
        kept = np.ones(rows.size, dtype=bool)
        kept[self._dropped[first:last] - rows[0]] = False
        return kept

    def _settle(self, gaps: _GapCount, dropped: list[Indices], n_rows: int) -> None:
        """Note after a pass over all columns what was missing, or say that it cannot be."""
        found = gaps.found
        if gaps.count and self.how == "error":
            raise TableError(
                f"{self.path}: {complain_of_gaps(found, gaps.first, self.table.names)}"
            )
        if self.how == "drop-rows":
            self._dropped = np.concatenate(dropped) if dropped else None
            n_dropped = 0 if self._dropped is None else int(self._dropped.size)
            if n_dropped == n_rows:
                raise TableError(f"{self.path}: {complain_of_rows(found)}")
            found = replace(found, n_rows_dropped=n_dropped)
            n_rows -= n_dropped
            if gaps.count and not self.missing.n_rows_dropped:
                say_what_was_missing(found, self.how, self.report)
            self.missing = found
        require_two_rows(n_rows, self.path)
        self.table = Features(self.table.names, n_rows)

    def _survey(self) -> None:
        """Find the columns with gaps; leave them out, or find what to fill them with."""
        gaps = _GapCount(self.stream.n_features)
        n_rows = 0
        for table in self.stream:
            finite = np.isfinite(table.values)
            if not finite.all():
                gaps.add(table.values, finite, n_rows)
            n_rows += table.n_rows
        if not gaps.count:
            return
        found = gaps.found
        names = self.stream.names
        incomplete = np.flatnonzero(gaps.by_column)
        if self.how == "drop-columns":
            kept = np.flatnonzero(gaps.by_column == 0)
            if kept.size < 2:
                complaint = complain_of_columns(found, kept.size, len(names))
                raise TableError(f"{self.path}: {complaint}")
            self.table = Features(tuple(names[column] for column in kept), 0)
            found = replace(found, columns_dropped=tuple(names[c] for c in incomplete))
        else:
            self._medians = self._find_medians(incomplete, n_rows)
        self.missing = found
        say_what_was_missing(found, self.how, self.report)

    def _find_medians(self, incomplete: Indices, n_rows: int) -> Array:
        """Return the medians of the columns with gaps, zero for those that need none."""
        needed = 2 * 8 * n_rows
        at_once = self.memory // max(needed, 1)
        if at_once < 1:
            raise ValueError(
                f"{self.path}: --missing median sorts a column, which takes "
                f"{size_in_words(needed)}, more than --memory {size_in_words(self.memory)}. Raise "
                "--memory, or use --missing drop-rows or drop-columns."
            )
        medians = np.zeros(self.stream.n_features)
        for start in range(0, incomplete.size, at_once):
            part = incomplete[start : start + at_once]
            names = [self.stream.names[column] for column in part]
            values = np.empty((n_rows, part.size), order="F")
            row = 0
            for table in self.stream.tables(names):
                values[row : row + table.n_rows] = table.values
                row += table.n_rows
            for number, column in enumerate(part):
                known = values[np.isfinite(values[:, number]), number]
                if known.size == 0:
                    raise TableError(f"{self.path}: {complain_of_empty([names[number]])}")
                medians[column] = np.median(known)
        return medians

    # ------------------------------------------------------------------- what a selection asks for

    @property
    def whole(self) -> WholeInput:
        """Not to be had: `open_input` refuses what needs it before it opens a stream."""
        raise ValueError(
            f"{self.path}: the whole table is needed, but it is read in batches. Raise --memory."
        )

    def fit(self, selector: Any) -> Indices:
        for values in self._numbers():
            selector.partial_fit(values)
        return best_first_of(selector)

    def scatter(self, selector: Any) -> Scatter:
        scatter: Scatter = selector.stream_.scatter()
        return scatter

    def classes(self, label: str) -> Classes | None:
        if self.how == "drop-rows":
            for _ in self._numbers():
                pass
        cells: list[Any] = []
        row = 0
        for batch in self.stream.cells([label]):
            kept = self._kept(np.arange(row, row + batch.num_rows))
            row += batch.num_rows
            cells += batch.filter(kept).column(label).to_pylist()
            if _BYTES_PER_CLASS * len(cells) > self.memory:
                self._say_unclustered(_BYTES_PER_CLASS * (self.stream.n_rows or len(cells)))
                return None
        return classes_in(cells, label)

    def _say_unclustered(self, needed: int) -> None:
        self.report.say(
            f"k-means is left out: it needs {size_in_words(needed)} or more, --memory is "
            f"{size_in_words(self.memory)}"
        )

    def clustering(self, best_first: Indices, classes: Classes, seed: int) -> dict[str, Clustering]:
        needed = 2 * 8 * self.table.n_rows * len(best_first)
        if needed > self.memory:
            self._say_unclustered(needed)
            return {}
        self.report.say("k-means on all columns is left out: it needs the whole table in memory")
        values = np.concatenate(list(self._numbers([int(column) for column in best_first])))
        return {"selected": cluster(values, classes, seed)}

    def write(
        self, best_first: Indices, output: str, order: Literal["table", "rank"], force: bool
    ) -> None:
        in_table_order = np.sort(best_first)
        names = [self.table.names[column] for column in in_table_order]
        ranked = np.searchsorted(in_table_order, best_first)

        def batches() -> Iterator[Table]:
            row = 0
            for table in self.stream.tables(names):
                kept = self._kept(np.arange(row, row + table.n_rows))
                row += table.n_rows
                if kept.any():
                    shorter = table if kept.all() else table.rows(kept)
                    yield shorter.features(ranked, order)

        write_batches(
            batches,
            output,
            force=force,
            group_bytes=max(self.memory // 8, 2**20),
            plain=not self.stream.has_carriage_returns,
        )


class _GapCount:
    """Counts, over batches, what is missing or infinite."""

    def __init__(self, n_columns: int) -> None:
        self.count = self.n_infinite = 0
        self.by_column = np.zeros(n_columns, dtype=np.int64)
        self.first = (0, 0)

    @property
    def found(self) -> MissingValues:
        return MissingValues(self.count - self.n_infinite, self.n_infinite)

    def add(self, values: Array, finite: Mask, first_row: int) -> None:
        rows, columns = np.nonzero(~finite)
        if not self.count:
            self.first = (int(rows[0]) + int(first_row), int(columns[0]))
        self.count += rows.size
        self.n_infinite += int(np.isinf(values[rows, columns]).sum())
        self.by_column += np.bincount(columns, minlength=self.by_column.size)


def batch_rows_for(memory: int, n_columns: int) -> int:
    """Return how many rows a batch may have."""
    return max(1, memory // (_BYTES_PER_CELL * n_columns))


def check_width(path: str, n_rows: int, n_features: int) -> None:
    """Raise an error where the scatter of a table does not fit in memory, before work is done."""
    needed, available = memory_for_scatter(n_rows, n_features), available_memory()
    if needed > available:
        size = f"{n_features} x {min(n_rows, n_features)}"
        raise ValueError(
            f"{path}: {n_rows} rows of {n_features} features need a matrix of {size} numbers, with "
            f"working copies {size_in_words(needed)}, but {size_in_words(available)} of memory "
            "is available. Select from fewer columns (--ignore the others), or, where most entries "
            "are zero, store the table as a sparse .npz."
        )
