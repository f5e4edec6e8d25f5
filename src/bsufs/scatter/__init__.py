"""S = Xc'Xc as an operator, behind one protocol.

A `Scatter` is of the kind that suits the data:

- `DenseScatter`: the d x d matrix, for d <= n;
- `FactoredScatter`: Xc itself, S W = Xc'(Xc W), for d > n;
- `SparseScatter`: a sparse X with the centering done implicitly, never densified;
- `ColumnScatter`: columns with the workers of a Dask cluster.

`make_scatter` picks one. `ScatterAccumulator` builds the first two from row batches in one pass,
by pairwise updates of mean and S that stay exact when the mean dwarfs the deviation.
"""

from typing import Any

import numpy as np
from scipy import sparse

from bsufs._typing import Array, Indices
from bsufs.scatter._accumulate import ScatterAccumulator, memory_for_scatter, safe_unit_exponent
from bsufs.scatter._base import Scatter
from bsufs.scatter._clearing import Beside, Clearing
from bsufs.scatter._dense import DenseScatter, FactoredScatter
from bsufs.scatter._sparse import SparseScatter

__all__ = [
    "Clearing",
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
    X: Any,
    sample_weight: Array | None = None,
    order: Indices | None = None,
    level: Array | None = None,
    regressors: Array | None = None,
) -> Scatter:
    """Return the scatter operator of some data, of the kind that suits their shape.

    That is sparse for sparse data, factored for more features than samples, else dense. X is never
    changed; weights are not negative, and not all zero. The columns come in the given order. The
    mean with the weights `level` (in that order) is taken off each row, and the data are then
    cleared of what a regression on the `regressors`, one row per sample, explains.

    Examples
    --------
    >>> import numpy as np
    >>> from bsufs.scatter import make_scatter
    >>> scatter = make_scatter(np.array([[0.0, 1.0], [2.0, 1.0], [4.0, 4.0]]))
    >>> scatter @ np.eye(2)
    array([[8., 6.],
           [6., 6.]])
    """
    n, d = X.shape
    if level is None and regressors is None:
        if sparse.issparse(X):
            return SparseScatter(X, sample_weight, order)
        accumulator = ScatterAccumulator(d, order)
        accumulator.add(X, sample_weight, tall=n >= d)
        return accumulator.scatter()
    level = np.zeros(d) if level is None else level
    regressors = np.empty((n, 0)) if regressors is None else regressors
    if sparse.issparse(X):
        return SparseScatter(X, sample_weight, order).without(level, regressors, sample_weight)
    order = np.arange(d) if order is None else order
    behind = np.arange(d, d + regressors.shape[1])
    accumulator = ScatterAccumulator(d + behind.size, np.concatenate([order, behind]))
    accumulator.add(Beside(X, regressors), sample_weight, tall=n >= d)
    return accumulator.scatter().cleared(level)
