"""How much of each column's variance lies between clusters of rows, beyond chance."""

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from bsufs._typing import Array, Indices
from bsufs.scatter._base import batches
from bsufs.scatter._clearing import nothing_left, weighted_mean
from bsufs.selectors._columns import varying_columns

# Cluster means of so many bytes are computed at a time.
_BLOCK_BYTES = 2**20
_LEAST_FREEDOM = 1e-9


class Clusters:
    """A clustering: weighted cluster means as an operator, and what chance makes of them."""

    def __init__(self, labels: Indices, weight: Array | None = None) -> None:
        _, cluster = np.unique(labels, return_inverse=True)
        weight = np.ones(labels.size) if weight is None else weight
        counts, n = np.bincount(cluster, weight), float(weight.sum())
        # A handful of outliers makes a cluster of its own, which is not worth a whole one.
        weights = np.minimum(counts * counts.size / n, 1.0)
        self.means = sparse.csr_array(
            (np.sqrt(weights / counts)[cluster] * weight, (cluster, np.arange(labels.size))),
            shape=(counts.size, labels.size),
        )
        # Of a column that knows nothing of the clusters.
        outside = 1.0 - counts / n
        # Rows that weigh no more than a single one tell nothing that chance could not.
        free = max(n - 1, _LEAST_FREEDOM)
        self.share_by_chance = min(float(weights @ outside) / free, 1.0)
        self.deviation_by_chance = min(math.sqrt(2.0 * float(weights**2 @ outside)) / free, 1.0)


class SampleOfRows(Protocol):
    """Rows with their mean taken off, wherever they are, and their weights."""

    n_rows: int
    weight: Array | None

    def __matmul__(self, V: Any) -> Array:
        """Return the product with a matrix, in the form in which the scatter gives frames."""
        ...

    def shares_beyond_chance(self, found: Sequence[Clusters]) -> Array:
        """Return, for each column, the sum over clusterings of its share less that of chance."""
        ...

    def columns(self, places: Indices) -> Array:
        """Return some columns as an array."""
        ...


class LocalRows:
    """Rows in memory, centered: X - L R' with few columns in L, ones for means not taken off X."""

    def __init__(
        self, X: Any, left: Array, right: Array, squares: Array, weight: Array | None = None
    ) -> None:
        self.n_rows, self.weight = X.shape[0], weight
        self._X, self._left, self._right, self._squares = X, left, right, squares

    @classmethod
    def of(
        cls,
        X: Any,
        unit_exponent: int,
        weight: Array | None = None,
        cleared_of: tuple[Array, Array] | None = None,
    ) -> "LocalRows":
        """Center rows, in units of two to some power, cleared of some L R' first."""
        # What centering leaves of a constant column is rounding, of which a share means nothing.
        varying = varying_columns(X)
        left, right = cleared_of or (np.empty((X.shape[0], 0)), np.empty((X.shape[1], 0)))
        left = np.ldexp(left - weighted_mean(left, weight), -unit_exponent)
        if sparse.issparse(X):
            X = sparse.csr_array(X, dtype=np.float64, copy=True)
            X.data = np.ldexp(X.data, -unit_exponent)
            ones = np.ones(X.shape[0]) if weight is None else weight
            mean = X.T @ ones / ones.sum()
            before = np.maximum(X.multiply(X).T @ ones - ones.sum() * mean**2, 0.0)
            across = X.T @ (left * ones[:, None])
            mixed = right @ (left.T @ (left * ones[:, None])) - 2.0 * across
            squares = before + np.einsum("ij,ij->i", mixed, right)
            left = np.column_stack([np.ones(X.shape[0]), left])
            right = np.column_stack([mean, right])
        else:
            X = np.array(X, dtype=np.float64, order="C")
            if unit_exponent:
                np.ldexp(X, -unit_exponent, out=X)
            X -= weighted_mean(X, weight)
            before = squares = _sums_of_squares(X, weight)
            if left.size:
                X -= left @ right.T
                squares = _sums_of_squares(X, weight)
            left, right = left[:, :0], right[:, :0]
        varying &= ~nothing_left(before, squares)
        return cls(X, left, right, np.where(varying, squares, 0.0), weight)

    @classmethod
    def centered(cls, Xc: Array, squares: Array) -> "LocalRows":
        """Take rows that are centered, and the sums of squares of their columns."""
        return cls(Xc, np.empty((Xc.shape[0], 0)), np.empty((Xc.shape[1], 0)), squares)

    def __matmul__(self, V: Array) -> Array:
        # In the precision of the rows, of which no copy is made.
        product = self._X @ V.astype(self._X.dtype, copy=False)
        return np.asarray(product - self._left @ (self._right.T @ V), dtype=np.float64)

    def columns(self, places: Indices) -> Array:
        """Return some of the columns as a dense array."""
        X = self._X[:, places]
        X = (X.toarray() if sparse.issparse(X) else X) - self._left @ self._right[places].T
        # What clearing leaves of a column that does not vary otherwise is rounding.
        return np.where(self._squares[places] > 0, X, 0.0)

    def shares_beyond_chance(self, found: Sequence[Clusters]) -> Array:
        """Return, for each column, the sum over clusterings of its share less that of chance."""
        means = sparse.vstack([clusters.means for clusters in found], format="csr")
        of_left = means @ self._left
        first = np.cumsum([0, *(clusters.means.shape[0] for clusters in found[:-1])])
        shares = np.empty(self._squares.size)
        # Some columns at a time, which stay in the cache for all clusterings.
        for columns in batches(shares.size, means.shape[0], _BLOCK_BYTES):
            sums = means @ self._X[:, columns]
            sums = sums.toarray() if sparse.issparse(sums) else sums
            sums -= of_left @ self._right[columns].T
            between = np.add.reduceat(sums**2, first, axis=0)
            squares = np.broadcast_to(self._squares[columns], between.shape)
            share = np.divide(between, squares, out=np.zeros_like(between), where=squares > 0)
            shares[columns] = np.minimum(share, 1.0).sum(axis=0)
        return shares - sum(clusters.share_by_chance for clusters in found)


def _sums_of_squares(X: Array, weight: Array | None) -> Array:
    return np.einsum("ij,ij->j", X, X) if weight is None else np.einsum("i,ij,ij->j", weight, X, X)
