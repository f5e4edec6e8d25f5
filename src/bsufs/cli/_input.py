"""The table of a command, with what a selection asks of it."""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from bsufs._memory import available_memory, size_in_words
from bsufs._typing import Indices
from bsufs.cli._columns import Groups, column_groups, features_named
from bsufs.cli._console import Console
from bsufs.cli._options import parse_kinds
from bsufs.metrics import batched_kmeans, clustering_accuracy, normalized_mutual_information
from bsufs.scatter import memory_for_scatter
from bsufs.selectors._data import FitData
from bsufs.selectors._nuisance import (
    KnownColumns,
    Nuisance,
    batch_regressors,
    side_by_side,
    with_regressors,
)
from bsufs.selectors._row_sample import RowSample
from bsufs.tables import Table, open_table
from bsufs.tables._arrays import ANNDATA

# Methods that look for neighbors take time with the square of the rows, and k-means is run over and
# over to judge a selection: a sample of so many rows tells nearly the same.
SAMPLE_ROWS = 4096
# With so many rows, and so many times as many as columns, rows may be features.
_MANY_ROWS, _TIMES_AS_MANY = 1000, 10
# What a class takes as text of its own.
_BYTES_PER_CLASS = 100
_KMEANS_RUNS = 20
# Scores of more classes than this take minutes and say little.
_MOST_CLASSES = 100
# The classes of the rows that have one, and the numbers of these rows.
Classes = tuple[Any, Any]


@dataclass(frozen=True)
class Input:
    """A table that is ready to select from, held or read in batches."""

    table: Table
    console: Console
    groups: Groups
    nuisance: Nuisance | None
    # The options that ask for it, as an error names them.
    cleared_by: str
    # Seed of the sample of rows, None for all of them.
    seed: int | None

    @cached_property
    def data(self) -> FitData:
        """The numbers of a table that is held, with all that is computed of them once."""
        table = self.table
        return FitData(
            table.values, None, table.matrix_names, self.nuisance, groups=self.kept_together
        )

    @cached_property
    def dense(self) -> FitData:
        """The same for what cannot take a sparse matrix, or looks at the numbers themselves."""
        return _as_dense(self.data.cleared)

    @cached_property
    def sampled(self) -> FitData:
        """Some rows of a large table, all of a small one, for what cannot take all."""
        rows = self._drawn(self.data.X.shape[0])
        return self.dense if rows is None else _as_dense(self.data.cleared.part(rows))

    @cached_property
    def kept_together(self) -> Groups | None:
        """Columns of the matrix that belong together: groups that were given, and categories."""
        return self.table.kept_together(self.groups or None)

    def _drawn(self, n_rows: int) -> Indices | None:
        return None if self.seed is None else RowSample(SAMPLE_ROWS, self.seed).numbers(n_rows)

    def data_for(self, selector: Any) -> FitData:
        """Return the numbers of a table that is held, as a selector can take them."""
        return self.data if selector.__sklearn_tags__().input_tags.sparse else self.dense

    def fit(self, selector: Any) -> Indices:
        """Fit a selector and return the columns it selects, best first."""
        if self.table.is_held:
            self.console.progress("scatter matrix")
            self.compute_scatter()
            self.console.progress("")
            selector.fit(self.data_for(selector))
            return selected_best_first(selector)
        batches = self.table.batches()
        if self.nuisance is not None:
            centered, regressors = self.nuisance.columns.centered, self.nuisance.regressors
            behind = list(range(centered.size, centered.size + regressors.shape[1]))
            selector.set_params(adjust_for=behind or None, center_rows=bool(centered.any()))
            if selector.costs is not None:
                selector.set_params(costs=[*selector.costs, *(1.0 for _ in behind)])
            batches = with_regressors(batches, regressors)
        selector.fit_batches(self._of_two_rows(batches))
        return selected_best_first(selector)

    def _of_two_rows(self, batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches
        self.require_two_rows()

    def compute_scatter(self) -> None:
        """Compute the scatter of a table that is held, which whoever selects needs."""
        _ = self.data.scatter
        if not self.data.variances.any():
            raise ValueError(
                f"{self.table.source}: every column is constant"
                f"{f' after {self.cleared_by}' if self.cleared_by else ''}. There is nothing to "
                "select."
            )

    def require_two_rows(self) -> None:
        """Raise an error where there is only one row."""
        if self.table.n_rows == 1:
            raise ValueError(
                f"{self.table.source}: at least two rows are needed to see any variation, got 1."
            )

    def fitted_data(self, selector: Any) -> FitData:
        """Return the data that a selector was fitted to."""
        return self.data if self.table.is_held else selector.stream_.data()

    def classes(self, label: str) -> Classes | None:
        """Return the classes of the rows that have one; None where they are too many to hold."""
        cells: list[Any] = []
        for batch in self.table.cells([label]):
            cells += batch.column(0).to_pylist()
            if not self.table.is_held and _BYTES_PER_CLASS * len(cells) > self.table.memory:
                self._say_unclustered(_BYTES_PER_CLASS * (self.table.n_rows or len(cells)))
                return None
        known = [cell is not None and bool(str(cell).strip()) for cell in cells]
        rows = np.flatnonzero(known)
        labels = np.array([str(cells[row]) for row in rows])
        n_classes = np.unique(labels).size
        if not 2 <= n_classes <= rows.size / 2:
            raise ValueError(
                f"--label {label!r} must hold classes: at least two, of two rows each on average. "
                f"It has {n_classes} different values in {rows.size} rows."
            )
        if n_classes > _MOST_CLASSES:
            self.console.say(
                f"k-means is left out: {label!r} has {n_classes} classes, more than {_MOST_CLASSES}"
            )
            return None
        drawn = self._drawn(rows.size)
        if drawn is None:
            return labels, rows
        self.console.say(f"k-means is compared with {label!r} on {drawn.size} of {rows.size} rows")
        return labels[drawn], rows[drawn]

    def clustering(
        self, best_first: Indices, classes: Classes, seed: int
    ) -> dict[str, dict[str, float]]:
        """Run k-means on the selected columns, and on all where these are held."""
        self.console.progress("k-means on the selected")
        if self.table.is_held:
            X = self.data.cleared.X
            parts = {"selected": X[:, best_first], "all": X}
            return {which: cluster(part, classes, seed) for which, part in parts.items()}
        if self.nuisance is not None:
            self.console.say(f"k-means is left out: {self.cleared_by} would need the table")
            return {}
        needed = 2 * 8 * int(self.table.n_rows or 0) * best_first.size
        if needed > self.table.memory:
            self._say_unclustered(needed)
            return {}
        self.console.say("k-means on all columns is left out: it needs the whole table in memory")
        selected = np.concatenate(list(self.table.batches(self.table.by_feature(best_first)[0])))
        return {"selected": cluster(selected, classes, seed)}

    def _say_unclustered(self, needed: int) -> None:
        self.console.say(
            f"k-means is left out: it needs {size_in_words(needed)} or more, --memory is "
            f"{size_in_words(self.table.memory)}"
        )


def _as_dense(data: FitData) -> FitData:
    if not sparse.issparse(data.X):
        return data
    return FitData(data.X.toarray(), names=data.names, groups=data.groups)


def cluster(X: Any, classes: Classes, seed: int) -> dict[str, float]:
    """Run k-means and return how well it finds the classes."""
    labels, rows = classes
    part = X[rows].toarray() if sparse.issparse(X) else X[rows]
    runs = batched_kmeans(part, len(set(labels)), n_runs=_KMEANS_RUNS, random_state=seed)
    found = runs.labels[runs.best]
    return {
        "accuracy": clustering_accuracy(labels, found),
        "information": normalized_mutual_information(labels, found),
    }


def selected_best_first(selector: Any) -> Indices:
    """Return the columns that a fitted selector selects."""
    return np.argsort(selector.ranking_)[: int(selector.support_.sum())]


def read_as(given: Any) -> dict[str, Any]:
    """Return how the table of a command is read, in the words of `open_table`."""
    known = inspect.signature(open_table).parameters
    same = {name: value for name, value in vars(given).items() if name in known}
    plain = {name: str(one) if isinstance(one, StrEnum) else one for name, one in same.items()}
    learned = {"kinds": parse_kinds(given), "header": not given.no_header, "scale": _scale(given)}
    return plain | learned


def _scale(given: Any) -> str:
    """Return how to scale: genes count in units of their noise where clusters are looked for."""
    is_expression = Path(given.table).suffix.lower() in ANNDATA
    seeks_clusters = getattr(given, "method", "") in (None, "ClusterAlignment")
    is_left_open = given.scale == "auto"
    return "noise" if is_left_open and is_expression and seeks_clusters else str(given.scale)


def open_input(given: Any, console: Console, whole_for: str | None) -> Input:
    """Open a table as the options of a command say; whole where something needs that."""
    with console.busy(f"reading {given.table}"):
        table = open_table(
            given.table, whole_for=whole_for, progress=console.progress, **read_as(given)
        )
    for notice in table.notices:
        console.say(notice)
    groups = column_groups(given, table)
    nuisance, seed = _nuisance(given, table, groups), None if given.all_rows else given.seed
    typed = {"--adjust-for": given.adjust_for, "--batch-key": given.batch_key}
    typed["--center-rows"] = given.center_rows
    cleared_by = " and ".join(option for option, value in typed.items() if value)
    found = Input(table, console, groups, nuisance, cleared_by, seed)
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
    if gaps.in_words():
        done = {
            "drop-rows": f"{gaps.n_rows_dropped} rows left out",
            "drop-columns": f"{len(gaps.columns_dropped)} columns left out",
        }.get(given.missing, "medians stand for them while selecting")
        console.say(f"{gaps.in_words()}: {done}")
    if given.scale == "auto":
        done = {
            "standard": "are brought to variance 1 while selecting",
            "noise": "count in units of the noise that is usual for their mean",
            "none": "keep their scale",
        }[table.scale]
        console.say(f"columns {done}: {table.why_scaled}")
    if _may_be_turned(table) and not given.transpose:
        console.say(
            f"{table.n_rows} rows and {table.n_features} columns, with a name for each row: if the "
            "rows are the features, such as genes, use --transpose"
        )
    return found


def _may_be_turned(table: Table) -> bool:
    """Return whether the rows of a table look like features."""
    n_rows = table.n_rows or 0
    many = n_rows >= max(_MANY_ROWS, _TIMES_AS_MANY * table.n_features)
    # More than are counted may be different in every row, too.
    names = ("it is different in every row", "it has more than")
    named = any(column.why.startswith(names) for column in table.columns)
    return many and (named or bool(table.rows.row_names))


def _nuisance(given: Any, table: Table, groups: Groups) -> Nuisance | None:
    """Return what the table is to be cleared of, None for nothing."""
    names = list(dict.fromkeys([*given.adjust_for, *given.batch_key]))
    if not names and not given.center_rows:
        return None
    source = table.source
    columns = table.known_values(names) if names else {}
    for name, cells in columns.items():
        gaps = np.array([cell is None or cell != cell for cell in cells])
        if gaps.any():
            option = "--batch-key" if name in given.batch_key else "--adjust-for"
            raise ValueError(
                f"{source}: {option} {name!r} must have a value in every row, but "
                f"{int(gaps.sum())} are missing, the first in row {int(gaps.argmax()) + 1}. Fill "
                "them in, or delete these rows."
            )
    centered = np.full(len(table.matrix_names), given.center_rows)
    left_out = set(features_named(given, "never_keep", table, groups))
    for members in [left_out, *groups.values()]:
        if left_out.intersection(members):
            centered[table.places(list(members))] = False
    try:
        batches = [
            batch_regressors(columns.pop(name), f"--batch-key {name!r}", "row")
            for name in dict.fromkeys(given.batch_key)
        ]
        others = side_by_side(columns, table.n_rows, None)
        known = KnownColumns(np.zeros_like(centered), centered)
        return Nuisance(known, np.hstack([others, *batches]))
    except ValueError as error:
        message = str(error).replace("adjust_for", "--adjust-for")
        raise ValueError(f"{source}: {message}") from error


def _require_memory_for_scatter(path: str, table: Table) -> None:
    """Raise an error where the scatter of a table does not fit in memory, before work is done."""
    n_rows, n_features = table.rows.most_rows, len(table.matrix_names)
    needed, available = memory_for_scatter(n_rows, n_features), available_memory()
    if needed > available:
        raise ValueError(
            f"{path}: {n_rows} rows of {n_features} features need a matrix of {n_features} x "
            f"{min(n_rows, n_features)} numbers, with working copies {size_in_words(needed)}, but "
            f"{size_in_words(available)} of memory is available. Select from fewer columns "
            "(--ignore the others), or, where most entries are zero, store the table as a sparse "
            ".npz."
        )
