"""What every input must be: finite numbers, two rows or more, weights that are not negative."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from bsufs._typing import Array


def require_two_rows(n_rows: int) -> None:
    if n_rows < 2:
        raise ValueError(
            "X must have at least two rows, or there is no variation to see, got "
            f"n_samples = {n_rows}. Pass more rows."
        )


def require_positive_weight(weight: Array) -> None:
    if not weight.any():
        raise ValueError(
            "sample_weight must have a positive entry, got only zero weights. Leave it out to "
            "weigh all rows alike."
        )


def checked_weight(sample_weight: Any, n_rows: int) -> Array:
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must have one number for each of the {n_rows} rows, got shape "
            f"{weight.shape}."
        )
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError(
            f"sample_weight must be finite and not negative, got a smallest weight of "
            f"{weight.min():g}. Use zero to leave a row out."
        )
    return weight


@dataclass(frozen=True)
class NonFinite:
    """Entries that are not finite: how many, and the first of them."""

    count: int
    row: int
    column: int
    value: float

    def moved(self, rows: int, columns: int) -> NonFinite:
        """Return the same, seen from a table in which this part begins at some place."""
        return replace(self, row=self.row + rows, column=self.column + columns)

    @staticmethod
    def earlier(one: NonFinite | None, other: NonFinite | None) -> NonFinite | None:
        """Return the entries of both, which is None if neither has any."""
        if one is None or other is None:
            return one or other
        first = min(one, other, key=lambda entry: (entry.row, entry.column))
        return replace(first, count=one.count + other.count)

    def error(self, names: Any) -> ValueError:
        kind = "NaN" if np.isnan(self.value) else "infinity"
        label = self.column if names is None else repr(str(names[self.column]))
        cure = (
            "Fill missing values (for example with sklearn.impute.SimpleImputer) or drop those "
            "rows or columns."
            if kind == "NaN"
            else "Replace infinite values, or drop those rows or columns."
        )
        return ValueError(
            f"X must hold finite numbers only, but it contains {kind}: the first of {self.count} "
            f"such entries is in row {self.row}, column {label}. {cure}"
        )


def non_finite(X: Any) -> NonFinite | None:
    """Return the entries that are not finite; None if there are none."""
    values = X.data if sparse.issparse(X) else X
    # The sum of finite numbers is finite but for overflow: one cheap look, then a careful one.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(values)) or np.isfinite(values).all():
            return None
    if sparse.issparse(X):
        X = X.tocsr()
        bad, entries = ~np.isfinite(X.data), X.tocoo()
        rows, columns = entries.row[bad], entries.col[bad]
    else:
        rows, columns = np.nonzero(~np.isfinite(X))
    row, column = int(rows[0]), int(columns[0])
    return NonFinite(rows.size, row, column, float(X[row, column]))


def not_numeric(X: Any, error: Exception) -> str:
    """Return the message for data that are not numbers."""
    columns = getattr(X, "columns", None)
    bad: list[str] = []
    if columns is not None:
        for name in columns:
            try:
                np.asarray(X[name], dtype=np.float64)
            except (ValueError, TypeError):
                bad.append(str(name))
    which = (
        f" The columns {bad[:5]}{' ...' if len(bad) > 5 else ''} are not numeric." if bad else ""
    )
    return (
        f"X must hold numbers only: {error}.{which} Encode text as numbers (for example with "
        "sklearn.preprocessing.OneHotEncoder) or leave such columns out."
    )
