"""S = Xc'Xc as an operator, behind one protocol.

A `Scatter` is of the kind that suits the data:

- `DenseScatter`: the d x d matrix, for d <= n;
- `FactoredScatter`: Xc itself, S W = Xc'(Xc W), for d > n;
- `SparseScatter`: a sparse X with the centering done implicitly, never densified;
- `ColumnScatter`: columns with the workers of a Dask cluster.

`make_scatter` picks one. `ScatterAccumulator` builds the first two from row batches in one pass,
by pairwise updates of mean and S that stay exact when the mean dwarfs the deviation.
"""

from __future__ import annotations

from typing import Any

from scipy import sparse

from bsufs._typing import Array, Indices
from bsufs.scatter._accumulate import ScatterAccumulator, memory_for_scatter, safe_unit_exponent
from bsufs.scatter._base import Scatter
from bsufs.scatter._dense import DenseScatter, FactoredScatter
from bsufs.scatter._sparse import SparseScatter

__all__ = [
    "DenseScatter",
    "FactoredScatter",
    "Scatter",
    "ScatterAccumulator",
    "SparseScatter",
    "make_scatter",
    "memory_for_scatter",
    "safe_unit_exponent",
]


def make_scatter(
    X: Any, sample_weight: Array | None = None, order: Indices | None = None
) -> Scatter:
    """Return the scatter operator of some data, of the kind that suits their shape.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Finite numbers; never changed.
    sample_weight : array of shape (n_samples,), optional
        Non-negative weights, not all zero.
    order : array of int of shape (n_features,), optional
        The column that comes first, second and so on in the operator; as they come by default.

    Returns
    -------
    Scatter
        Sparse for sparse data, factored for more features than samples, else dense.

    Examples
    --------
    >>> import numpy as np
    >>> from bsufs.scatter import make_scatter
    >>> scatter = make_scatter(np.array([[0.0, 1.0], [2.0, 1.0], [4.0, 4.0]]))
    >>> scatter @ np.eye(2)
    array([[8., 6.],
           [6., 6.]])
    """
    if sparse.issparse(X):
        return SparseScatter(X, sample_weight, order)
    n, d = X.shape
    accumulator = ScatterAccumulator(d, order)
    accumulator.add(X, sample_weight, tall=n >= d)
    return accumulator.scatter()
