"""A table that is held in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from scipy import sparse
from sklearn.preprocessing import StandardScaler

from bsufs._typing import Indices
from bsufs.cli._base import Input, require_two_rows, say_what_was_missing
from bsufs.cli._clustering import Classes, Clustering, classes_in, cluster
from bsufs.cli._console import Reporter
from bsufs.cli._methods import fit
from bsufs.cli._options import Reading
from bsufs.scatter import Scatter, make_scatter
from bsufs.tables import MissingValues, Table, read_table, resolve_missing, write_table


@dataclass(frozen=True)
class WholeInput(Input):
    """A table ready to select from, all of it in memory."""

    table: Table
    X: Any
    missing: MissingValues
    is_scaled: bool

    @property
    def whole(self) -> WholeInput:
        """The table itself."""
        return self

    def fit(self, selector: Any) -> Indices:
        return fit(selector, self.X)

    def scatter(self, selector: Any) -> Scatter:
        return make_scatter(self.X)

    def classes(self, label: str) -> Classes:
        return classes_in(self.table.carried.column(label).to_pylist(), label)

    def clustering(self, best_first: Indices, classes: Classes, seed: int) -> dict[str, Clustering]:
        return {
            "selected": cluster(self.X[:, best_first], classes, seed),
            "all": cluster(self.X, classes, seed),
        }

    def write(
        self, best_first: Indices, output: str, order: Literal["table", "rank"], force: bool
    ) -> None:
        write_table(self.table.features(best_first, order), output, force=force)


def read_input(path: str, reading: Reading, report: Reporter, stdin: Any = None) -> WholeInput:
    """Read a table, settle its missing values, and scale it."""
    with report.busy(f"reading {path}"):
        table = read_table(path, **reading.of_cells(), array=reading.array, stdin=stdin)
    for notice in table.notices:
        report.say(notice)
    try:
        table, found = resolve_missing(table, reading.missing)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    say_what_was_missing(found, reading.missing, report)
    require_two_rows(table.n_rows, path)
    X = table.values
    is_scaled = reading.scale == "standard"
    if is_scaled:
        X = StandardScaler(with_mean=not sparse.issparse(X)).fit_transform(X)
    return WholeInput(table, X, found, is_scaled)
