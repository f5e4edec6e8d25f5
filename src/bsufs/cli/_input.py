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
from bsufs.cli._clustering import Classes, classes_in, cluster
from bsufs.cli._console import Console
from bsufs.cli._options import parse_names
from bsufs.scatter import memory_for_scatter
from bsufs.selectors._data import FitData
from bsufs.tables import Table, open_table

# What a class takes as text of its own.
_BYTES_PER_CLASS = 100


@dataclass(frozen=True)
class Input:
    """A table that is ready to select from, held or read in batches."""

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
        self.require_two_rows()

    def require_two_rows(self) -> None:
        """Raise an error where there is only one row."""
        if self.table.n_rows == 1:
            source = self.table.rows.file.source
            raise ValueError(f"{source}: at least two rows are needed to see any variation, got 1.")

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

    def clustering(
        self, best_first: Indices, classes: Classes, seed: int
    ) -> dict[str, dict[str, float]]:
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


def open_input(given: Any, console: Console, whole_for: str | None) -> Input:
    """Open a table as the options of a command say; whole where something needs that."""
    try:
        memory = None if given.memory is None else parse_size(given.memory)
    except ValueError as error:
        raise ValueError(f"--memory: {error}") from error
    with console.busy(f"reading {given.table}"):
        table = open_table(
            given.table,
            ignore=parse_names(given.ignore),
            label=given.label,
            missing=given.missing,
            scale=given.scale,
            delimiter="\t" if given.delimiter == "\\t" else given.delimiter,
            header=not given.no_header,
            array=given.array,
            names_from=given.names_from,
            memory=memory,
            whole_for=whole_for,
        )
    for notice in table.notices:
        console.say(notice)
    found = Input(table, console)
    if table.is_held:
        found.require_two_rows()
    else:
        _require_memory_for_scatter(given.table, table)
        needed = size_in_words(table.rows.memory_to_hold or 0)
        console.say(
            f"{given.table} would take {needed} or more of memory and is read in batches of "
            f"{table.batch_rows} rows"
        )
    gaps = table.missing
    if gaps.n_missing or gaps.n_infinite:
        done = {
            "median": "filled with medians while selecting",
            "drop-rows": f"{gaps.n_rows_dropped} rows left out",
            "drop-columns": f"{len(gaps.columns_dropped)} columns left out",
        }[given.missing]
        console.say(f"{gaps.n_missing} missing and {gaps.n_infinite} infinite values: {done}")
    return found


def _require_memory_for_scatter(path: str, table: Table) -> None:
    """Raise an error where the scatter of a table does not fit in memory, before work is done."""
    n_rows, n_features = table.rows.most_rows, table.n_features
    needed, available = memory_for_scatter(n_rows, n_features), available_memory()
    if needed > available:
        raise ValueError(
            f"{path}: {n_rows} rows of {n_features} features need a matrix of {n_features} x "
            f"{min(n_rows, n_features)} numbers, with working copies {size_in_words(needed)}, but "
            f"{size_in_words(available)} of memory is available. Select from fewer columns "
            "(--ignore the others), or, where most entries are zero, store the table as a sparse "
            ".npz."
        )
