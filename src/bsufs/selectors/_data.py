"""The data of a fit, and what follows from them alone: each thing computed once, when asked for."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from bsufs._typing import Array, Indices
from bsufs.scatter import Scatter, make_scatter
from bsufs.selectors._columns import canonical_order, column_variances


class FitData:
    """Checked data, to be fitted and asked by as many as want to: `fit` takes it in place of X.

    Features are numbered as the columns of X, except in `ordered` and `scatter`, which have them in
    an order that depends on their contents alone (see `canonical_order`).

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Finite numbers; never changed.
    sample_weight : array of shape (n_samples,), optional
        Non-negative weights, not all zero.
    names : sequence of str, optional
        Names of the features.
    """

    def __init__(self, X: Any, sample_weight: Array | None = None, names: Any = None) -> None:
        self.X = X
        self.sample_weight = sample_weight
        self.names = None if names is None else np.asarray(names, dtype=object)
        self._curve: tuple[Indices, Array] = np.empty(0, dtype=np.intp), np.empty(0)

    @cached_property
    def order(self) -> Indices:
        """The column that comes first, second and so on in `ordered` and `scatter`."""
        return canonical_order(self.X)

    @cached_property
    def place(self) -> Indices:
        """Where each column of X is in `ordered` and `scatter`."""
        return np.argsort(self.order)

    @cached_property
    def ordered(self) -> Any:
        """The columns in their order."""
        return self.X[:, self.order]

    @cached_property
    def scatter(self) -> Scatter:
        """The scatter operator of `ordered`."""
        return make_scatter(self.X, self.sample_weight, self.order)

    @cached_property
    def variances(self) -> Array:
        """The variance of each feature, zero where all its entries agree."""
        return column_variances(self.X)

    def explained_curve(self, features: Indices) -> Array:
        """Return the share of the total variance that the first 1, 2, ... of some explain."""
        features = np.asarray(features)
        known, curve = self._curve
        if not np.array_equal(features, known[: features.size]):
            curve = self.scatter.explained_curve(self.place[features])
            self._curve = features, curve
        return curve[: features.size]
