"""How much of each column's variance lies between clusters of rows, beyond chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from bsufs._typing import Array, Indices
from bsufs.selectors._columns import varying_columns


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

    def shares_beyond_chance(self, found: Sequence[Clusters]) -> Array:
        """Return, for each column, the sum over clusterings of its share less that of chance."""
        ...


class LocalRows:
    """Rows in memory; where they are sparse the mean is taken off without storing that."""

    def __init__(self, X: Any, unit_exponent: int) -> None:
        self.n_rows = X.shape[0]
        self._mean = np.zeros(X.shape[1])
        # What centering leaves of a constant column is rounding, of which a share means nothing.
        self._varying = varying_columns(X)
        if sparse.issparse(X):
            self._X = sparse.csr_array(X, dtype=np.float64, copy=True)
            self._X.data = np.ldexp(self._X.data, -unit_exponent)
            self._mean = np.asarray(self._X.mean(axis=0)).ravel()
            total = np.asarray(self._X.multiply(self._X).sum(axis=0)).ravel()
            self._squares = np.maximum(total - self.n_rows * self._mean**2, 0.0)
            return
        self._X = np.ldexp(np.asarray(X, dtype=np.float64), -unit_exponent)
        self._X -= self._X.mean(axis=0)
        self._squares = np.einsum("ij,ij->j", self._X, self._X)

    def __matmul__(self, V: Array) -> Array:
        return np.asarray(self._X @ V - self._mean @ V)

    def shares_beyond_chance(self, found: Sequence[Clusters]) -> Array:
        """Return, for each column, the sum over clusterings of its share less that of chance."""
        shares = np.zeros(self._mean.size)
        for clusters in found:
            shares += self._share_between(clusters) - clusters.share_by_chance
        return shares

    def _share_between(self, clusters: Clusters) -> Array:
        """Return the weighted share of each column's variance that lies between clusters."""
        sums = clusters.means @ self._X
        sums = sums.toarray() if sparse.issparse(sums) else sums
        sums = sums - clusters.means.sum(axis=1)[:, None] * self._mean
        between = np.einsum("ij,ij->j", sums, sums)
        shares: Array = np.zeros_like(between)
        known = self._varying & (self._squares > 0)
        np.divide(between, self._squares, out=shares, where=known)
        return np.minimum(shares, 1.0, out=shares)
