"""What is known and must not decide: a level that rows share, columns and values to adjust for."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from bsufs._typing import Array, Indices, Mask
from bsufs.scatter import Scatter
from bsufs.scatter._clearing import weighted_mean
from bsufs.selectors._columns import feature_mask

_ROWS = (
    "Pass an array, series or data frame with a row for each row of X, or a list of names or "
    "numbers of columns of X."
)
# Regressors that are collinear but for rounding count once.
_COLLINEAR = 1e-10


@dataclass(frozen=True)
class KnownColumns:
    """Columns of X to adjust for, and those whose mean is taken off each row.

    That is all that is known of a nuisance before the rows come.
    """

    adjusted: Mask
    centered: Mask

    @property
    def level(self) -> Array:
        """The weights of the columns in the mean of a row."""
        return self.centered / max(int(np.count_nonzero(self.centered)), 1)

    def named(self, order: Indices) -> Indices:
        """Return the numbers of the columns to adjust for, in the order of all columns."""
        return order[self.adjusted[order]]

    def cleared(self, joint: Scatter, order: Indices) -> Scatter:
        """Clear columns of what was put behind them, first of all those to adjust for."""
        level, named = self.level[order], self.named(order)
        variation = joint.diagonal()[order.size : order.size + named.size]
        for column in named[variation == 0]:
            raise _constant(str(column))
        clears = joint.shape[0] > order.size or level.any()
        return joint.cleared(level) if clears else joint


@dataclass(frozen=True)
class Nuisance:
    """What the rows of a fit are cleared of: their means over some columns, and regressors.

    Groups are coded by a regressor for each but the last.
    """

    columns: KnownColumns
    regressors: Array

    def part(self, rows: Any) -> Self:
        return replace(self, regressors=self.regressors[rows])

    def basis(self, weight: Array | None) -> Array:
        """Return centered combinations of the regressors, orthonormal with weighted rows."""
        Z = self.regressors
        Z = Z / np.maximum(np.abs(Z).max(axis=0, initial=0.0), np.finfo(np.float64).tiny)
        Z = Z - weighted_mean(Z, weight)
        weighted = Z if weight is None else Z * np.sqrt(weight)[:, None]
        lengths = np.linalg.norm(weighted, axis=0)
        lengths[lengths == 0] = 1.0
        # Not by the Gram matrix, as where that is all there is: years and their powers are so
        # close to collinear that it would lose some.
        _, values, axes = linalg.svd(weighted / lengths, full_matrices=False)
        sound = values > _COLLINEAR * values.max(initial=1.0)
        return (Z / lengths) @ (axes[sound].T / values[sound])


def with_regressors(batches: Iterable[Any], regressors: Array) -> Iterator[Any]:
    """Go through batches of rows, with the regressors of all rows as further columns behind."""
    if not regressors.shape[1]:
        yield from batches
        return
    first = 0
    for X in batches:
        Z = regressors[first : first + X.shape[0]].astype(X.dtype, copy=False)
        first += X.shape[0]
        if sparse.issparse(X):
            yield sparse.hstack([X, sparse.csr_array(Z)], format="csr")
        else:
            yield np.hstack([X, Z])


def names_columns(adjust_for: Any) -> bool:
    """Tell whether it names columns of X: one, or a list without repetitions."""
    if isinstance(adjust_for, str | Integral):
        return True
    return (
        isinstance(adjust_for, list | tuple | range)
        and all(isinstance(one, str | Integral) for one in adjust_for)
        and len(set(adjust_for)) == len(adjust_for)
    )


def adjusted_columns(adjust_for: Any, n_features: int, names: Any) -> Mask:
    """Return the columns of X to adjust for; none where values of its own are given."""
    try:
        columns = adjust_for if names_columns(adjust_for) else None
        return feature_mask("adjust_for", columns, n_features, names)
    except ValueError as error:
        raise ValueError(f"{error} {_ROWS}") from None


def as_codes(X: Any, adjust_for: Any) -> tuple[Any, dict[str, Any]]:
    """Replace columns of text to adjust for by numbers in a data frame; return these columns."""
    if not (hasattr(X, "assign") and hasattr(X, "columns") and names_columns(adjust_for)):
        return X, {}
    asked = {adjust_for} if isinstance(adjust_for, str | Integral) else set(adjust_for)
    found = {
        name: X[name]
        for place, name in enumerate(X.columns)
        if {place, str(name)} & asked and not is_number(X[name].dtype, "uif")
    }
    return (X.assign(**dict.fromkeys(found, 0.0)), found) if found else (X, {})


def named_regressors(
    X: Any, adjusted: Mask, names: Any, texts: Mapping[str, Any], weight: Array | None
) -> Array:
    """Return the numbers of columns of X to adjust for; some of them may have been text."""
    columns = {}
    for column in np.flatnonzero(adjusted):
        name = str(column) if names is None else names[column]
        cells = X[:, [column]].toarray().ravel() if sparse.issparse(X) else X[:, column]
        columns[name] = texts.get(name, cells)
    return side_by_side(columns, X.shape[0], weight)


def given_regressors(given: Any, n_rows: int, weight: Array | None) -> Array:
    """Return the numbers of an array, a series or a data frame to adjust for."""
    if hasattr(given, "columns") and not callable(given.columns):
        return side_by_side({str(name): given[name] for name in given.columns}, n_rows, weight)
    if getattr(given, "ndim", None) == 1 and hasattr(given, "dtype"):
        return side_by_side({"0": given}, n_rows, weight)
    try:
        array = np.asarray(given)
    except ValueError:
        array = np.empty(0)
    if array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(
            f"adjust_for must hold one or several columns, got {type(given).__name__} of shape "
            f"{array.shape}. {_ROWS}"
        )
    columns = {str(number): column for number, column in enumerate(np.atleast_2d(array.T))}
    return side_by_side(columns, n_rows, weight)


def side_by_side(columns: Mapping[str, Any], n_rows: int, weight: Array | None) -> Array:
    """Return columns as numbers, groups coded, or say what is wrong with one."""
    coded: list[Array] = [np.empty((n_rows, 0))]
    for name, column in columns.items():
        numbers = _as_numbers(name, column, n_rows)
        seen = numbers if weight is None else numbers[weight > 0]
        if (seen == seen[:1]).all():
            raise _constant(name)
        coded.append(numbers)
    return np.hstack(coded)


def batch_regressors(batches: NDArray[Any], option: str, row: str) -> Array:
    """Return a regressor for each batch but one, or say what is wrong with an option's batches."""
    names, sizes = np.unique(batches.astype(str), return_counts=True)
    if names.size < 2:
        raise ValueError(f"{option} must tell two batches apart, got one. Leave it out.")
    if sizes.min() < 2:
        raise ValueError(
            f"every batch must have at least two {row}s, but {str(names[sizes.argmin()])!r} of "
            f"{option} has one, of which nothing is left without its mean. Leave that {row} out, "
            "or join it to another batch."
        )
    return side_by_side({option: batches}, batches.size, None)


def is_number(kind: Any, letters: str) -> bool:
    """Tell whether a type of columns is among these kinds of NumPy, or a number to pandas."""
    return bool(getattr(kind, "_is_numeric", getattr(kind, "kind", "O") in letters))


def _as_numbers(label: str, column: Any, n_rows: int) -> Array:
    """Return a column of numbers as it is, and of groups a column for each but the last."""
    if len(column) != n_rows:
        raise ValueError(
            f"adjust_for must have one row for each of the {n_rows} rows of X, got {len(column)}. "
            f"{_ROWS}"
        )
    grouped = str(column.dtype).lower().startswith(("cat", "enum", "bool"))
    cells = np.asarray(column)
    if cells.dtype.kind in "uif" and not grouped:
        numbers = cells.astype(np.float64)
        _require_complete(label, ~np.isfinite(numbers))
        return numbers[:, None]
    cells = cells.astype(object)
    _require_complete(label, np.array([_is_missing(cell) for cell in cells], dtype=bool))
    is_bool = any(isinstance(cell, bool | np.bool_) for cell in cells)
    if not (grouped or is_bool) and all(isinstance(cell, Real) for cell in cells):
        return cells.astype(np.float64)[:, None]
    groups, codes = np.unique(cells.astype(str), return_inverse=True)
    if groups.size > max(n_rows // 2, 2):
        raise ValueError(
            f"adjust_for must have groups of several rows, but column {label!r} has {groups.size} "
            f"different values in {n_rows} rows. Leave out what is different in every row, and "
            "pass numbers as numbers."
        )
    return np.asarray(codes[:, None] == np.arange(max(groups.size - 1, 1)), dtype=np.float64)


def _is_missing(cell: Any) -> bool:
    try:
        return cell is None or bool(cell != cell)
    except TypeError:
        # The missing value of pandas will not be compared.
        return True


def _require_complete(label: str, missing: NDArray[np.bool_]) -> None:
    if missing.any():
        raise ValueError(
            f"adjust_for must have no missing or infinite values, but column {label!r} has "
            f"{int(missing.sum())}, the first in row {int(missing.argmax())}. Fill them, or leave "
            "these rows out of both X and adjust_for."
        )


def _constant(label: str) -> ValueError:
    return ValueError(
        f"adjust_for must hold columns that vary, but column {label!r} has the same value in all "
        "rows. Leave it out."
    )
