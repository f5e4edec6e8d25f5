"""Columns as a selector sees them: an order of their own, copies, and names the caller gave."""

import re
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from bsufs._linalg import group_sums
from bsufs._names import did_you_mean
from bsufs._typing import Array, Indices, Mask
from bsufs.scatter import Scatter
from bsufs.scatter._base import batches

# Two columns count as perfectly correlated when their unit vectors differ by no more than this
# along a random direction: far above rounding, far below any difference that data can show.
_DUPLICATE_TOLERANCE = 1e-9


class ContentKey:
    """A number per column that depends on its contents alone, for rows that come in batches."""

    def __init__(self, n_features: int, first_row: int = 0) -> None:
        self.values = np.zeros(n_features)
        bits = np.random.PCG64(0)
        # One number of the generator for each row.
        bits.advance(first_row)
        self._random = np.random.Generator(bits)

    def add(self, X: Any) -> None:
        weights = self._random.uniform(0.5, 1.5, size=X.shape[0])
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            if sparse.issparse(X):
                # Each column is summed from its first row to its last, in either format.
                self.values += X.T @ weights
                return
            rows = max(1, 2**16 // max(X.shape[1], 1))
            for start in range(0, X.shape[0], rows):
                # Elementwise, row by row: a matrix product would round by position.
                batch = np.ascontiguousarray(X[start : start + rows], dtype=np.float64)
                self.values += np.add.reduce(batch * weights[start : start + rows, None], axis=0)

    def order(self) -> Indices:
        return np.argsort(self.values, kind="stable")


def canonical_order(X: Any) -> Indices:
    """Return an order of the columns that depends on their contents alone.

    Solving in this order makes every result the same, to the last bit, whatever order the columns
    came in. The key of a column is a weighted sum over its rows with fixed random weights; equal
    columns, which nothing can tell apart, keep their order.
    """
    key = ContentKey(X.shape[1])
    key.add(X)
    return key.order()


def column_variances(X: Any) -> Array:
    """Return the variance of each column, exactly zero where all entries agree."""
    if sparse.issparse(X):
        _, variances = mean_variance_axis(sparse.csr_matrix(X, dtype=np.float64), axis=0)
    else:
        variances = np.empty(X.shape[1])
        for columns in batches(X.shape[1], X.shape[0]):
            # Each column by itself, so that no order and no layout of the columns changes a bit.
            block = np.array(X[:, columns].T, dtype=np.float64, order="C")
            with np.errstate(over="ignore"):
                variances[columns] = np.var(block, axis=1)
    return np.where(varying_columns(X), np.maximum(variances, np.finfo(np.float64).tiny), 0.0)


def varying_columns(X: Any) -> Mask:
    """Tell which columns hold more than one value."""
    low, high = X.min(axis=0), X.max(axis=0)
    if sparse.issparse(X):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    return low != high


def find_duplicates(scatter: Scatter, forced: Mask, groups: Indices | None = None) -> Mask:
    """Find the columns that are perfectly correlated with one that stands for them.

    A copy, a shifted or negated copy and the same quantity in other units say nothing that the
    first has not said. Of such columns a forced one stands for the others, else the one of largest
    variance, the first in a tie. Where columns are kept in groups, the variance is that of the
    group, and a group is found where every column of it is.
    """
    diagonal = scatter.diagonal()
    d = diagonal.size
    varying = np.flatnonzero(diagonal > 0)
    # Directions that weigh all columns alike, or a single large one would drown the others.
    directions = np.zeros((d, 2))
    directions[varying] = np.random.default_rng(0).standard_normal((varying.size, 2))
    directions[varying] /= np.sqrt(diagonal[varying])[:, None]
    images = scatter @ directions
    lengths = np.sqrt(np.maximum(np.einsum("ij,ij->j", directions, images), 0.0))
    if varying.size < 2 or not lengths.all():
        return np.zeros(d, dtype=bool)
    # Coordinates of the unit vector of each column along two random directions in sample space.
    prints = images[varying] / np.sqrt(diagonal[varying])[:, None] / lengths
    prints *= np.where(prints[:, :1] < 0, -1.0, 1.0)
    by_print = np.argsort(prints[:, 0], kind="stable")
    steps = np.abs(np.diff(prints[by_print], axis=0)).max(axis=1)
    if (steps > _DUPLICATE_TOLERANCE).all():
        return np.zeros(d, dtype=bool)
    group = np.empty(varying.size, dtype=np.intp)
    group[by_print] = np.concatenate([[0], np.cumsum(steps > _DUPLICATE_TOLERANCE)])
    size, first = diagonal, np.arange(d)
    if groups is not None:
        size, first = group_sums(groups, diagonal)[groups], groups
    # In products copies can differ by rounding: what comes that close to the largest is as large.
    sizes, largest = size[varying], np.zeros(varying.size)
    np.maximum.at(largest, group, sizes)
    close = sizes >= largest[group] * (1.0 - _DUPLICATE_TOLERANCE)
    sizes = np.where(close, largest[group], sizes)
    by_standing = np.lexsort((varying, first[varying], -sizes, ~forced[varying], group))
    first_of_group = np.ones(varying.size, dtype=bool)
    first_of_group[by_standing[1:]] = np.diff(group[by_standing]) > 0
    found = np.zeros(d, dtype=bool)
    found[varying[~first_of_group]] = True
    if groups is not None:
        found = (np.bincount(groups, ~found & (diagonal > 0)) == 0)[groups] & (size > 0)
    return found & ~forced


def feature_mask(
    parameter: str, features: Any, n_features: int, names: Sequence[str] | None
) -> Mask:
    """Turn a caller's list of names or positions into a mask."""
    mask = np.zeros(n_features, dtype=bool)
    if features is None:
        return mask
    if isinstance(features, str | Integral):
        features = [features]
    places = {} if names is None else {name: place for place, name in enumerate(names)}
    for feature in features:
        if isinstance(feature, str):
            if feature not in places:
                raise ValueError(_unknown_name(parameter, feature, names))
            mask[places[feature]] = True
        elif isinstance(feature, Integral) and not isinstance(feature, bool | np.bool_):
            if not 0 <= int(feature) < n_features:
                raise ValueError(
                    f"{parameter} must hold column numbers from 0 to {n_features - 1} "
                    f"(X has {n_features} features), got {feature}."
                )
            mask[int(feature)] = True
        else:
            raise TypeError(
                f"{parameter} must hold column names or column numbers, got {feature!r} of type "
                f"{type(feature).__name__}."
            )
    return mask


def matching(parameter: str, pattern: str, names: Sequence[str]) -> Mask:
    """Return the mask of the names in which a regular expression is found: some, but not all."""
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise ValueError(
            f"{parameter} must be a regular expression, got {pattern!r}: {error}."
        ) from error
    mask = np.array([expression.search(name) is not None for name in names], dtype=bool)
    if mask.all() or not mask.any():
        what = "every name" if mask.any() else "no name"
        raise ValueError(
            f"{parameter} must match some names and not others, but {pattern!r} matches {what}, "
            f"such as {str(names[0])!r}. It is searched for anywhere in a name, in the case it has."
        )
    return mask


def _unknown_name(parameter: str, feature: str, names: Sequence[str] | None) -> str:
    if names is None:
        return (
            f"{parameter} names the column {feature!r}, but X has no column names; pass a data "
            "frame, or give column numbers."
        )
    hint = did_you_mean(feature, names)
    return f"{parameter} must hold names of columns of X, got the unknown {feature!r}.{hint}"
