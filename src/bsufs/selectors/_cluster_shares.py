"""How much of each column's variance lies between clusters of rows, beyond chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from bsufs._typing import Array, Indices
from bsufs.scatter._base import batches
from bsufs.selectors._columns import varying_columns

# Cluster means of so many bytes are computed at a time.
_BLOCK_BYTES = 2**20


class Clusters:
    """A clustering: weighted cluster means as an operator, and what chance makes of them."""

    def __init__(self, labels: Indices) -> None:
        _, cluster, counts = np.unique(labels, return_inverse=True, return_counts=True)
        n = labels.size
        # A handful of outliers makes a cluster of its own, which is not worth a whole one.
        weights = np.minimum(counts * counts.size / n, 1.0)
        self.means = sparse.csr_array(
            (np.sqrt(weights / counts)[cluster], (cluster, np.arange(n))), shape=(counts.size, n)
        )
        # Of a column that knows nothing of the clusters.
        outside = 1.0 - counts / n
        self.share_by_chance = float(weights @ outside) / (n - 1)
        self.deviation_by_chance = math.sqrt(2.0 * float(weights**2 @ outside)) / (n - 1)


class SampleOfRows(Protocol):
    """Rows with their mean taken off, wherever they are."""

    n_rows: int

    def __matmul__(self, V: Any) -> Array:
        """Return the product with a matrix, in the form in which the scatter gives frames."""
        ...

    def columns(self, which: Any) -> Array:
        """Return some of the columns as a dense array."""
        ...

    def shares_beyond_chance(self, found: Sequence[Clusters]) -> Array:
        """Return, for each column, the sum over clusterings of its share less that of chance."""
        ...


class LocalRows:
    """Rows in memory, centered; of sparse ones the mean is taken off without storing that."""

    def __init__(self, X: Any, mean: Array, squares: Array) -> None:
        self.n_rows = X.shape[0]
        self._X, self._mean, self._squares = X, mean, squares

    @classmethod
    def of(cls, X: Any, unit_exponent: int) -> LocalRows:
        """Center rows, in units of two to some power."""
        # What centering leaves of a constant column is rounding, of which a share means nothing.
        varying = varying_columns(X)
        if sparse.issparse(X):
            X = sparse.csr_array(X, dtype=np.float64, copy=True)
            X.data = np.ldexp(X.data, -unit_exponent)
            mean = np.asarray(X.mean(axis=0)).ravel()
            total = np.asarray(X.multiply(X).sum(axis=0)).ravel()
            squares = np.maximum(total - X.shape[0] * mean**2, 0.0)
            return cls(X, mean, np.where(varying, squares, 0.0))
        X = np.array(X, dtype=np.float64, order="C")
        if unit_exponent:
            np.ldexp(X, -unit_exponent, out=X)
        X -= X.mean(axis=0)
        return cls.centered(X, np.where(varying, np.einsum("ij,ij->j", X, X), 0.0))

    @classmethod
    def centered(cls, Xc: Array, squares: Array) -> LocalRows:
        """Take rows that are centered, and the sums of squares of their columns."""
        return cls(Xc, np.zeros(Xc.shape[1]), squares)

    def __matmul__(self, V: Array) -> Array:
        return np.asarray(self._X @ V - self._mean @ V)

    def columns(self, which: Any) -> Array:
        """Return some of the columns as a dense array."""
        X = self._X[:, which]
        return (X.toarray() if sparse.issparse(X) else X) - self._mean[which]

    def shares_beyond_chance(self, found: Sequence[Clusters]) -> Array:
        """Return, for each column, the sum over clusterings of its share less that of chance."""
        means = sparse.vstack([clusters.means for clusters in found], format="csr")
        of_all = means.sum(axis=1)[:, None]
        first = np.cumsum([0, *(clusters.means.shape[0] for clusters in found[:-1])])
        shares = np.empty(self._squares.size)
        # Some columns at a time, which stay in the cache for all clusterings.
        for columns in batches(shares.size, means.shape[0], _BLOCK_BYTES):
            sums = means @ self._X[:, columns]
            sums = sums.toarray() if sparse.issparse(sums) else sums
            sums -= of_all * self._mean[columns]
            between = np.add.reduceat(sums**2, first, axis=0)
            squares = np.broadcast_to(self._squares[columns], between.shape)
            share = np.divide(between, squares, out=np.zeros_like(between), where=squares > 0)
            shares[columns] = np.minimum(share, 1.0).sum(axis=0)
        return shares - sum(clusters.share_by_chance for clusters in found)
