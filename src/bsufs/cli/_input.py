"""The table of a command, with what a selection asks of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from bsufs._memory import available_memory, parse_size, size_in_words
from bsufs._typing import Array, Indices
from bsufs.cli._clustering import Classes, Clustering, classes_in, cluster
from bsufs.cli._console import Console
from bsufs.cli._options import Reading
from bsufs.scatter import memory_for_scatter
from bsufs.selectors._data import FitData
from bsufs.tables import Table, open_table

# What a class takes as text of its own.
_BYTES_PER_CLASS = 100


@dataclass(frozen=True)
class Input:
    """A table that is ready to select from, held or read in batches."""

    path: str
    table: Table
    console: Console

    @cached_property
    def data(self) -> FitData:
        """The numbers of a table that is held, with all that is computed of them once."""
        return FitData(self.table.values, names=self.table.names)

    @cached_property
    def dense(self) -> FitData:
        """The same for what cannot take a sparse matrix."""
        if not sparse.issparse(self.data.X):
            return self.data
        return FitData(self.data.X.toarray(), names=self.table.names)

    def fit(self, selector: Any) -> Indices:
        """Fit a selector and return the columns it selects, best first."""
        if self.table.is_held:
            takes_sparse = selector.__sklearn_tags__().input_tags.sparse
            selector.fit(self.data if takes_sparse else self.dense)
        else:
            selector.fit_batches(self._batches())
        return np.argsort(selector.ranking_)[: int(selector.support_.sum())]

    def _batches(self) -> Iterator[Any]:
        yield from self.table.batches()
        _require_two_rows(self)

    def variances_and_curve(self, selector: Any, best_first: Indices) -> tuple[Array, Array]:
        """Return the variance of each feature, and what the best 1, 2, ... of them explain."""
        data = self.data if self.table.is_held else selector.stream_.data()
        # Of data that do not vary nothing is left to explain.
        if not data.variances.any():
            return data.variances, np.ones(best_first.size)
        return data.variances, data.explained_curve(best_first)

    def classes(self, label: str) -> Classes | None:
        """Return the classes of the rows that have one; None where they are too many to hold."""
        cells: list[Any] = []
        for batch in self.table.cells([label]):
            cells += batch.column(0).to_pylist()
            if not self.table.is_held and _BYTES_PER_CLASS * len(cells) > self.table.memory:
                self._say_unclustered(_BYTES_PER_CLASS * (self.table.n_rows or len(cells)))
                return None
        return classes_in(cells, label)

    def clustering(self, best_first: Indices, classes: Classes, seed: int) -> dict[str, Clustering]:
        """Run k-means on the selected columns, and on all where these are held."""
        if self.table.is_held:
            X = self.data.X
            parts = {"selected": X[:, best_first], "all": X}
            return {which: cluster(part, classes, seed) for which, part in parts.items()}
        needed = 2 * 8 * int(self.table.n_rows or 0) * best_first.size
        if needed > self.table.memory:
            self._say_unclustered(needed)
            return {}
        self.console.say("k-means on all columns is left out: it needs the whole table in memory")
        selected = np.concatenate(list(self.table.batches(best_first)))
        return {"selected": cluster(selected, classes, seed)}

    def _say_unclustered(self, needed: int) -> None:
        self.console.say(
            f"k-means is left out: it needs {size_in_words(needed)} or more, --memory is "
            f"{size_in_words(self.table.memory)}"
        )


def open_input(
    path: str,
    reading: Reading,
    console: Console,
    *,
    memory: str | None = None,
    whole_for: str | None = None,
) -> Input:
    """Read a table, or open it to be read in batches where it is larger than is allowed."""
    try:
        limit = None if memory is None else parse_size(memory)
    except ValueError as error:
        raise ValueError(f"--memory: {error}") from error
    with console.busy(f"reading {path}"):
        table = open_table(path, memory=limit, whole_for=whole_for, **reading.options())
    for notice in table.notices:
        console.say(notice)
    found = Input(path, table, console)
    if table.is_held:
        _require_two_rows(found)
    else:
        _require_memory_for_scatter(found)
        needed = size_in_words(table.rows.memory_to_hold or 0)
        console.say(
            f"{path} would take {needed} or more of memory and is read in batches of "
            f"{table.batch_rows} rows"
        )
    _say_what_was_missing(table, reading.missing, console)
    return found


def _say_what_was_missing(table: Table, how: str, console: Console) -> None:
    found = table.missing
    if found.n_missing or found.n_infinite:
        done = {
            "median": "filled with medians while selecting",
            "drop-rows": f"{found.n_rows_dropped} rows left out",
            "drop-columns": f"{len(found.columns_dropped)} columns left out",
        }[how]
        console.say(f"{found.n_missing} missing and {found.n_infinite} infinite values: {done}")


def _require_two_rows(found: Input) -> None:
    if found.table.n_rows == 1:
        raise ValueError(f"{found.path}: at least two rows are needed to see any variation, got 1.")


def _require_memory_for_scatter(found: Input) -> None:
    """Raise an error where the scatter of a table does not fit in memory, before work is done."""
    n_rows, n_features = found.table.rows.most_rows, found.table.n_features
    needed, available = memory_for_scatter(n_rows, n_features), available_memory()
    if needed > available:
        raise ValueError(
            f"{found.path}: {n_rows} rows of {n_features} features need a matrix of {n_features} x "
            f"{min(n_rows, n_features)} numbers, with working copies {size_in_words(needed)}, but "
            f"{size_in_words(available)} of memory is available. Select from fewer columns "
            "(--ignore the others), or, where most entries are zero, store the table as a sparse "
            ".npz."
        )
