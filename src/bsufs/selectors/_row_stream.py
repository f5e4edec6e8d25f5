"""Rows that arrive in batches, for partial_fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from bsufs._typing import Array, Indices
from bsufs.scatter import Scatter, ScatterAccumulator, SparseScatter
from bsufs.selectors._columns import ContentKey


class RowStream:
    """Rows that arrive in batches, dense or sparse."""

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features
        self.n_rows = 0
        self.key = ContentKey(n_features)
        self.dense: ScatterAccumulator | None = None
        self.sparse: list[tuple[Any, Array | None]] = []

    def add(self, X: Any, sample_weight: Array | None) -> None:
        """Take in a batch."""
        if sparse.issparse(X) != bool(self.sparse) and (self.sparse or self.dense):
            raise ValueError(
                "partial_fit must get all batches dense or all sparse, got both. Convert the "
                "batches to one kind."
            )
        self.n_rows += X.shape[0]
        self.key.add(X)
        if sparse.issparse(X):
            self.sparse.append((sparse.csr_array(X, copy=True), sample_weight))
            return
        if self.dense is None:
            self.dense = ScatterAccumulator(self.n_features)
        # The caller may reuse the memory of the batch.
        self.dense.add(X.copy(), sample_weight)

    def canonical_order(self) -> Indices:
        """Return the order of the columns in which `fit` would solve."""
        return self.key.order()

    def scatter(self) -> Scatter:
        """Return the operator of all rows so far."""
        if self.dense is not None:
            return self.dense.scatter()
        if len(self.sparse) > 1:
            # One matrix from here on, or the rows would be held twice.
            self.sparse = [self._joined()]
        return SparseScatter(*self.sparse[0])

    def _joined(self) -> tuple[Any, Array | None]:
        X = sparse.vstack([batch for batch, _ in self.sparse], format="csr")
        if all(weight is None for _, weight in self.sparse):
            return X, None
        weights = [
            np.ones(batch.shape[0]) if weight is None else weight for batch, weight in self.sparse
        ]
        return X, np.concatenate(weights)
