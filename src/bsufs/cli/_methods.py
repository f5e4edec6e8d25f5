"""From a table to a fitted selector, and what the selection is worth."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from bsufs._typing import Array, Indices
from bsufs.cli._console import Reporter
from bsufs.cli._options import one_of, parse_delimiter, parse_names
from bsufs.metrics import batched_kmeans, clustering_accuracy, normalized_mutual_information
from bsufs.scatter import Scatter, make_scatter
from bsufs.selectors import all_selectors
from bsufs.tables import MissingValues, Table, read_table, resolve_missing, write_table

# Parameters that have options of their own, or make no sense in a shell.
_NOT_SETTABLE = {
    "n_features_to_select": "-k",
    "must_keep": "--must-keep",
    "never_keep": "--never-keep",
    "random_state": "--seed",
    "callback": None,
    "verbose": None,
}
_KMEANS_RUNS = 20


@dataclass(frozen=True)
class Features:
    """What there is to select from.

    Parameters
    ----------
    names : tuple of str
        Names of the features.
    n_rows : int
        Number of rows; 0 as long as it is not known.
    """

    names: tuple[str, ...]
    n_rows: int

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.names)


@dataclass(frozen=True)
class Input:
    """A table ready to select from.

    Parameters
    ----------
    table : Table
        The table, without dropped rows and columns.
    X : array or sparse array of shape (n_rows, n_features)
        The numbers, scaled where that was asked for.
    missing : MissingValues
        What was missing.
    """

    # What clusters best without labels; see the documentation on choosing without labels.
    default_method: ClassVar[str] = "AlignedBSUFS"

    table: Table
    X: Any
    missing: MissingValues

    def fit(self, selector: Any) -> Indices:
        """Fit a selector and return the columns it selects, best first.

        Parameters
        ----------
        selector : BaseSelector
            The selector.

        Returns
        -------
        array of int
            Column numbers.
        """
        return fit(selector, self.X)

    def scatter(self, selector: Any) -> Scatter:
        """Return the scatter of the table.

        Parameters
        ----------
        selector : BaseSelector
            The selector that has seen it; not used.

        Returns
        -------
        Scatter
            In the order of the columns.
        """
        return make_scatter(self.X)

    def classes(self, label: str) -> tuple[Any, Any]:
        """Return the classes of the rows that have one, and which rows these are.

        Parameters
        ----------
        label : str
            The column of classes.

        Returns
        -------
        tuple of arrays
            Classes and rows.
        """
        return labels_of(self.table, label)

    def clustering(self, best_first: Indices, classes: Any, seed: int) -> dict[str, Clustering]:
        """Run k-means on the selected columns, and on all.

        Parameters
        ----------
        best_first : array of int
            The selected columns.
        classes : tuple of arrays
            The classes, and the rows that have one.
        seed : int
            Seed of the starts.

        Returns
        -------
        dict
            The scores under "selected" and "all".
        """
        return {
            "selected": cluster(dense_columns(self.X, best_first), classes, seed),
            "all": cluster(self.X, classes, seed),
        }

    def write(
        self, best_first: Indices, output: str, order: Literal["table", "rank"], force: bool
    ) -> None:
        """Write the reduced table.

        Parameters
        ----------
        best_first : array of int
            The selected columns.
        output : str
            The file.
        order : {"table", "rank"}
            Order of its columns.
        force : bool
            Whether an old file may be replaced.
        """
        write_table(self.table.features(best_first, order), output, force=force)


@dataclass(frozen=True)
class Clustering:
    """How well k-means finds the classes.

    Parameters
    ----------
    accuracy : float
        Share of samples in the right cluster (ACC).
    information : float
        Normalised mutual information (NMI).
    """

    accuracy: float
    information: float


def read_input(
    path: str,
    *,
    ignore: Sequence[str] | None,
    label: str | None,
    missing: Any,
    scale: str,
    delimiter: str | None,
    no_header: bool,
    array: str | None,
    report: Reporter,
    stdin: Any = None,
) -> Input:
    """Read a table, settle its missing values, and scale it.

    Parameters
    ----------
    path : str
        The file.
    ignore, label : list of str, str
        Columns to carry.
    missing : str
        What to do about missing values.
    scale : str
        "none" or "standard".
    delimiter, no_header, array : str, bool, str
        How to read the file.
    report : Reporter
        Where notices go.
    stdin : binary file, optional
        What "-" reads; by default standard input.

    Returns
    -------
    Input
        The table and its numbers.
    """
    with report.busy(f"reading {path}"):
        table = read_table(
            path,
            ignore=parse_names(ignore),
            label=label,
            delimiter=parse_delimiter(delimiter),
            header=not no_header,
            array=array,
            stdin=stdin,
        )
    for notice in table.notices:
        report.say(notice)
    try:
        table, found = resolve_missing(table, missing)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    say_what_was_missing(found, missing, report)
    if table.n_rows < 2:
        raise ValueError(f"{path}: at least two rows are needed to see any variation, got 1.")
    X = table.values
    if scale == "standard":
        X = StandardScaler(with_mean=not sparse.issparse(X)).fit_transform(X)
    return Input(table, X, found)


def say_what_was_missing(found: MissingValues, how: str, report: Reporter) -> None:
    """Say what was missing and what was done about it, where anything was.

    Parameters
    ----------
    found : MissingValues
        What was missing.
    how : str
        What was to be done.
    report : Reporter
        Where to say it.
    """
    if not found.n_missing and not found.n_infinite:
        return
    done = {
        "median": "filled with medians while selecting",
        "drop-rows": f"{found.n_rows_dropped} rows left out",
        "drop-columns": f"{len(found.columns_dropped)} columns left out",
    }[how]
    report.say(f"{found.n_missing} missing and {found.n_infinite} infinite values: {done}")


def make_selector(
    method: str,
    number: int | float | str,
    *,
    seed: int,
    jobs: int | None = None,
    settings: Mapping[str, Any] | None = None,
    keep: Mapping[str, Sequence[int]] | None = None,
) -> Any:
    """Return a selector that is not fitted yet.

    Parameters
    ----------
    method : str
        Name of its class, in any case.
    number : int, float or "auto"
        How many features to keep.
    seed : int
        For methods with chance in them.
    jobs : int, optional
        For methods with `n_jobs`.
    settings : mapping, optional
        Other parameters.
    keep : mapping, optional
        Column numbers under "must_keep" and "never_keep".

    Returns
    -------
    BaseSelector
        The selector.
    """
    known = all_selectors()
    name = one_of(method, list(known), "--method")
    selector = known[name](number)
    parameters = selector.get_params()
    chosen: dict[str, Any] = {
        option: list(columns) for option, columns in (keep or {}).items() if columns
    }
    for option in chosen:
        if option not in parameters:
            able = [other for other, kind in known.items() if option in kind().get_params()]
            raise ValueError(
                f"--{option.replace('_', '-')} cannot be used with {name}; methods that know it: "
                f"{', '.join(able)}."
            )
    _check_settings(name, settings or {}, parameters)
    chosen.update(settings or {})
    if "random_state" in parameters:
        chosen["random_state"] = seed
    if "n_jobs" in parameters:
        chosen["n_jobs"] = jobs
    return selector.set_params(**chosen)


def _check_settings(
    method: str, settings: Mapping[str, Any], parameters: Mapping[str, Any]
) -> None:
    valid = [name for name in parameters if name not in _NOT_SETTABLE]
    for name in settings:
        if name in valid:
            continue
        option = _NOT_SETTABLE.get(name)
        if option:
            raise ValueError(f"--set {name} has an option of its own: use {option}.")
        near = difflib.get_close_matches(name, valid, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        able = [other for other, kind in all_selectors().items() if name in kind().get_params()]
        if able and name not in _NOT_SETTABLE:
            hint = f" Methods that have it: {', '.join(able)}."
        raise ValueError(
            f"--set {name}: {method} has no such parameter.{hint} Valid: "
            f"{', '.join(valid) or 'none'}."
        )


def column_numbers(names: Sequence[str], table: Table | Features, option: str) -> list[int]:
    """Return the numbers of features given by name.

    Parameters
    ----------
    names : sequence of str
        The names.
    table : Table or Features
        Where they must be.
    option : str
        What they were given for, for the message.

    Returns
    -------
    list of int
        Their numbers.
    """
    place = {name: number for number, name in enumerate(table.names)}
    for name in names:
        if name not in place:
            near = difflib.get_close_matches(name, table.names, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"{option} {name!r} is not among the features to select from.{hint}")
    return [place[name] for name in names]


def check_number(number: int | float | str, table: Table | Features) -> None:
    """Raise an error where more features are wanted than there are.

    Parameters
    ----------
    number : int, float or "auto"
        How many.
    table : Table or Features
        Where from.
    """
    if isinstance(number, int) and number > table.n_features:
        raise ValueError(
            f"-k must be at most {table.n_features}, the number of features in the table, got "
            f"{number}."
        )


def fit(selector: Any, X: Any) -> Indices:
    """Fit a selector and return the columns it selects, best first.

    Parameters
    ----------
    selector : BaseSelector
        The selector.
    X : array or sparse array of shape (n_rows, n_features)
        The numbers; made dense for methods that need it.

    Returns
    -------
    array of int
        Column numbers.
    """
    if sparse.issparse(X) and not selector.__sklearn_tags__().input_tags.sparse:
        X = X.toarray()
    selector.fit(X)
    return best_first_of(selector)


def best_first_of(selector: Any) -> Indices:
    """Return the columns that a fitted selector selects, best first.

    Parameters
    ----------
    selector : BaseSelector
        The selector.

    Returns
    -------
    array of int
        Column numbers.
    """
    best_first: Indices = np.argsort(selector.ranking_)[: int(selector.support_.sum())]
    return best_first


def dense_columns(X: Any, columns: Indices) -> Array:
    """Return some columns as an array.

    Parameters
    ----------
    X : array or sparse array of shape (n_rows, n_features)
        All columns.
    columns : array of int
        Which.

    Returns
    -------
    array of shape (n_rows, n_columns)
        The columns.
    """
    part = X[:, columns]
    return np.asarray(part.toarray() if sparse.issparse(part) else part)


def labels_of(table: Table, label: str) -> tuple[Any, Any]:
    """Return the classes of the rows that have one, and which rows these are.

    Parameters
    ----------
    table : Table
        The table.
    label : str
        The column of classes.

    Returns
    -------
    labels : array of str
        The classes.
    rows : array of int
        The rows.
    """
    return classes_in(table.carried.column(label).to_pylist(), label)


def classes_in(cells: Sequence[Any], label: str) -> tuple[Any, Any]:
    """Return the classes of the rows that have one, and which rows these are.

    Parameters
    ----------
    cells : sequence
        The column of classes.
    label : str
        Its name, for the message.

    Returns
    -------
    labels : array of str
        The classes.
    rows : array of int
        The rows.
    """
    rows = [row for row, cell in enumerate(cells) if cell is not None and str(cell).strip()]
    labels = np.array([str(cells[row]) for row in rows])
    n_classes = len(set(labels.tolist()))
    if not 2 <= n_classes <= len(rows) / 2:
        raise ValueError(
            f"--label {label!r} must hold classes: at least two, of two rows each on average. It "
            f"has {n_classes} different values in {len(rows)} rows."
        )
    return labels, np.array(rows)


def cluster(X: Any, classes: tuple[Any, Any], seed: int) -> Clustering:
    """Run k-means and compare the clusters with the classes.

    Parameters
    ----------
    X : array or sparse array of shape (n_rows, n_features)
        The columns to cluster by.
    classes : tuple of arrays
        The classes, and the rows that have one.
    seed : int
        Seed of the starts.

    Returns
    -------
    Clustering
        Of the run with the smallest inertia.
    """
    labels, rows = classes
    part = X[rows]
    part = part.toarray() if sparse.issparse(part) else part
    runs = batched_kmeans(part, len(set(labels)), n_runs=_KMEANS_RUNS, random_state=seed)
    found = runs.labels[runs.best]
    return Clustering(
        clustering_accuracy(labels, found), normalized_mutual_information(labels, found)
    )


@contextlib.contextmanager
def at_most_threads(jobs: int | None) -> Any:
    """Limit the threads of linear algebra.

    Parameters
    ----------
    jobs : int or None
        At most so many; None for no limit.

    Yields
    ------
    None
        While the limit holds.
    """
    if jobs is None:
        yield
        return
    # Comes with scikit-learn, without type hints.
    with import_module("threadpoolctl").threadpool_limits(limits=jobs):
        yield
