"""S as a matrix, for d <= n, and as the product of the centered data with itself, for d > n."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import linalg

from bsufs._typing import Array, Indices
from bsufs.scatter._base import RIDGE, Scatter, batches
from bsufs.scatter._clearing import Clearing, clear_matrix, clear_rows
from bsufs.scatter._eigen import NumberWanted, from_other_side, pairs_of_matrix, pairs_of_operator

# With more samples than this, products with the data are cheaper than their Gram matrix.
LARGEST_GRAM = 4096


class DenseScatter(Scatter):
    """S as a d x d matrix, which is kept, not copied."""

    def __init__(self, S: Array, total_weight: float, max_rank: int | None = None) -> None:
        self.S = S
        self.shape = (S.shape[0], S.shape[0])
        self.total_weight = total_weight
        self.max_rank = S.shape[0] if max_rank is None else min(max_rank, S.shape[0])

    def _product(self, W: Array) -> Array:
        return self.S @ W

    def _diagonal(self) -> Array:
        return self.S.diagonal()

    def _block(self, rows: Any, columns: Any) -> Array:
        if isinstance(rows, slice) or isinstance(columns, slice):
            return np.array(self.S[rows, columns])
        return np.array(self.S[np.ix_(rows, columns)])

    def _restricted(self, features: Indices) -> DenseScatter:
        return DenseScatter(self.S[np.ix_(features, features)], self.total_weight, self.max_rank)

    def _cleared(self, level: Array) -> tuple[DenseScatter, Clearing]:
        S, clearing = clear_matrix(self.S, level)
        return DenseScatter(np.ascontiguousarray(S), self.total_weight, self.max_rank), clearing

    def _leading(self, n_wanted: NumberWanted, most: int) -> tuple[Array, Array]:
        return pairs_of_matrix(self.S, n_wanted, most)


class FactoredScatter(Scatter):
    """S = Xc'Xc of centered rows, each scaled by the root of its weight; kept, not copied."""

    # Xc is as large as the data; a second copy of most of it would be felt.
    restriction_pays = 0.5

    def __init__(self, Xc: Array, total_weight: float) -> None:
        n, d = Xc.shape
        self.Xc = Xc
        self.shape = (d, d)
        self.total_weight = total_weight
        # Centering costs one dimension.
        self.max_rank = min(max(n - 1, 1), d)

    def centered_rows(self) -> Array:
        """Return the centered rows."""
        return self.Xc

    def _product(self, W: Array) -> Array:
        return self.Xc.T @ (self.Xc @ W)

    def _diagonal(self) -> Array:
        if "diagonal" not in self._remembered:
            self._remembered["diagonal"] = np.einsum("ij,ij->j", self.Xc, self.Xc)
        return self._remembered["diagonal"]

    def _block(self, rows: Any, columns: Any) -> Array:
        return self.Xc[:, rows].T @ self.Xc[:, columns]

    def _restricted(self, features: Indices) -> FactoredScatter:
        return FactoredScatter(self.Xc[:, features], self.total_weight)

    def _cleared(self, level: Array) -> tuple[FactoredScatter, Clearing]:
        Xc, clearing = clear_rows(self.Xc, level)
        return FactoredScatter(Xc, self.total_weight), clearing

    def _leading(self, n_wanted: NumberWanted, most: int) -> tuple[Array, Array]:
        # On the side of the samples, where there are fewer numbers.
        if self.Xc.shape[0] <= LARGEST_GRAM:
            values, left = pairs_of_matrix(self.Xc @ self.Xc.T, n_wanted, most)
        else:
            values, left = pairs_of_operator(
                lambda v: self.Xc @ (self.Xc.T @ v), self.Xc.shape[0], n_wanted
            )
        return from_other_side(values, self.Xc.T @ left, n_wanted, most)

    def _explained_by_many(self, features: Indices) -> float:
        # Their span is at most n-dimensional; its basis is smaller than X, where S_AA is larger.
        basis, singular, _ = linalg.svd(
            self.Xc[:, features], full_matrices=False, check_finite=False
        )
        basis = basis[:, singular > math.sqrt(RIDGE) * singular[0]]
        explained = 0.0
        for block in batches(self.shape[0], self.Xc.shape[0]):
            shadow = basis.T @ self.Xc[:, block]
            explained += float(np.vdot(shadow, shadow))
        return explained
