"""Whole columns of a table as people have it: numbers, categories, dates, identifiers, gaps."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from bsufs._extras import needs
from bsufs._typing import Array, Indices, Mask
from bsufs.selectors._base import BaseSelector
from bsufs.selectors._data import FitData
from bsufs.selectors._groups import Groups
from bsufs.selectors._html import ShownInNotebooks
from bsufs.selectors._nuisance import names_columns
from bsufs.tables import Table, open_table, prepare


@dataclass(repr=False, eq=False)
class TableSelector(ShownInNotebooks, SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Select columns of a table as it is, of whatever kind they are.

    The table is read as the command line reads it (see `bsufs.tables.prepare`): a category is kept
    or left out as a whole, dates are numbers, gaps are filled with medians, columns are scaled
    where they share no unit, identifiers and free text are never selected. A selector then works on
    the numbers, and what it finds is told by column of the table.

    Parameters
    ----------
    selector : selector
        The method, one of `bsufs.selectors`; its `must_keep`, `never_keep`, `groups`, `costs` and
        `adjust_for` name columns of the table.

    Attributes
    ----------
    selected_features_ : array of str
        Names of the selected columns, best first.
    ranking_ : array of int of shape (n_features,)
        1 for the best column; those that were left out as no features come last.
    scores_, support_ : array of shape (n_features,)
        The score of each column, larger is better, and whether it is selected.
    scale_columns_ : str
        What was done to the columns, and why.
    table_ : Table
        The table; its `columns` say what each column was taken as.
    selector_ : selector
        The selector, fitted to the numbers of the table.
    feature_names_in_ : array of str
        The names of all columns.
    n_features_in_ : int
        Their number.

    Examples
    --------
    >>> import pandas as pd
    >>> from bsufs import ClusterAlignment, TableSelector
    >>> frame = pd.DataFrame({"id": range(20), "x": [1.5, 2, 4, 1] * 5, "kind": ["a", "b"] * 10})
    >>> selector = TableSelector(ClusterAlignment(1)).fit(frame)
    >>> selector.transform(frame).columns.tolist()
    ['kind']
    """

    selector: BaseSelector

    def fit(self, X: Any, y: Any = None) -> Self:
        """Select columns of a table.

        Parameters
        ----------
        X : data frame, path-like or Table
            The table, or the file that holds it.
        y : None
            Not used: there are no labels.

        Returns
        -------
        TableSelector
            The selector itself.
        """
        selector: Any = clone(self.selector)
        # What runs another selector takes what that one is told of columns.
        told: Any = getattr(selector, "estimator", None) or selector
        table = X if isinstance(X, Table) else table_of(X, told)
        self._set_columns(table)
        adjust_for = getattr(told, "adjust_for", None)
        if names_columns(adjust_for):
            import pandas as pd

            values = table.known_values(self._named(adjust_for))
            told.set_params(adjust_for=pd.DataFrame(values))
        for option in ("must_keep", "never_keep"):
            if getattr(told, option, None) is not None:
                told.set_params(**{option: self._kept_names(told, option, table)})
        groups = self._groups_of(told, table)
        data = FitData(table.values, names=table.matrix_names, groups=groups)
        self._data = told._to_be_cleared(data, {})
        self.table_, self.selector_ = table, selector.fit(self._data)
        self._finish()
        return self

    def _set_columns(self, table: Table) -> None:
        rows = table.rows
        names = [name for name in rows.names if name not in rows.row_names]
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)

    def _named(self, columns: Any) -> list[str]:
        """Return names for columns that are given by name or number."""
        columns = [columns] if isinstance(columns, str | Integral) else columns
        return [
            self.feature_names_in_[one] if isinstance(one, Integral) else one for one in columns
        ]

    def _kept_names(self, selector: Any, option: str, table: Table) -> list[str]:
        """Return the features that an option names: what is no feature is never kept anyway."""
        left_out = {column.name: column.why for column in table.columns}
        left_out = {name: why for name, why in left_out.items() if name not in table.names}
        names = self._named(getattr(selector, option))
        for name in left_out if option == "must_keep" else ():
            if name in names:
                raise ValueError(
                    f"must_keep must name features, got {name!r}, which is left out: "
                    f"{left_out[name]}. Say what it is by kinds, as in kinds={{{name!r}: "
                    "'category'}, or take it out of must_keep."
                )
        return [name for name in names if name not in left_out]

    @staticmethod
    def _groups_of(selector: Any, table: Table) -> Any:
        """Return the columns of the matrix that are kept together, by categories and groups."""
        given = getattr(selector, "groups", None)
        if given is None:
            return table.kept_together(None)
        selector.set_params(groups=None)
        groups = Groups.parsed(given, table.n_features, table.names)
        members = {
            label: np.flatnonzero(groups.of == number).tolist()
            for number, label in enumerate(groups.labels.tolist())
        }
        return table.kept_together(members)

    def _finish(self) -> None:
        """Tell by column of the table what was found by column of the matrix."""
        table, selector = self.table_, self.selector_
        best_first = np.argsort(selector.ranking_)
        _, ends = table.by_feature(best_first)
        best = best_first[np.append(0, ends[:-1] + 1)]
        k, scores = int(np.count_nonzero(selector.support_[best])), selector.scores_[best]
        place = {name: number for number, name in enumerate(self.feature_names_in_.tolist())}
        of = np.arange(table.n_features) if table.groups is None else table.groups
        # The column of the table that each column of the matrix belongs to.
        self.columns_of_matrix: Indices = np.array([place[name] for name in table.names])[of]
        columns = self.columns_of_matrix[best]
        self.scores_: Array = np.full(self.n_features_in_, scores.min())
        self.scores_[columns] = scores
        others = np.setdiff1d(np.arange(self.n_features_in_), columns)
        self.ranking_: Indices = np.empty(self.n_features_in_, dtype=np.intp)
        self.ranking_[np.append(columns, others)] = np.arange(1, self.n_features_in_ + 1)
        self.support_: Mask = self.ranking_ <= k
        self.selected_features_: NDArray[Any] = self.feature_names_in_[columns[:k]]
        self.scale_columns_ = f"{table.scale}: {table.why_scaled}".removesuffix(": ")

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self)
        return self.support_

    def transform(self, X: Any) -> Any:
        """Reduce a data frame to the selected columns.

        Parameters
        ----------
        X : data frame
            A table with these columns; others are left out.

        Returns
        -------
        data frame
            The selected columns as they are, in the order of the table.
        """
        names: Sequence[str] = self.get_feature_names_out().tolist()
        there = getattr(X, "columns", None)
        if there is None:
            raise TypeError(f"X must be a data frame, got {type(X).__name__}.")
        missing = [name for name in names if name not in there]
        if missing:
            raise ValueError(f"X must have the selected columns, but it has no {missing[0]!r}.")
        return X[names]

    def fitted_data(self, X: Any) -> FitData:
        """Return the numbers of the table it was fitted to, which X must be."""
        check_is_fitted(self)
        shape = getattr(X, "shape", None)
        known = (self.table_.rows.n_rows, self.n_features_in_)
        if shape is not None and tuple(shape) != known:
            raise ValueError(
                f"X must be the table that the selector was fitted to, of shape {known}, got "
                f"{tuple(shape)}."
            )
        return self._data


def table_of(X: Any, selector: Any, *, ignore: Sequence[str] = (), **options: Any) -> Table:
    """Return the table that a file or a data frame holds; what is adjusted for is carried."""
    adjust_for = getattr(selector, "adjust_for", None)
    named: Any = [adjust_for] if isinstance(adjust_for, str) else adjust_for
    named = [one for one in named if isinstance(one, str)] if names_columns(named) else []
    options = {"scale": "auto", "ignore": [*ignore, *named], **options}
    with needs("A table with columns of all kinds", "tables"):
        import pyarrow  # noqa: F401 - only to see whether it can be imported
    if isinstance(X, str | os.PathLike):
        return open_table(X, whole_for="bsufs.select", **options)
    return prepare(X, **options)
