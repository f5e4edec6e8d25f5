"""The front door: say what the columns are for, and get a fitted selector."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from bsufs._names import did_you_mean
from bsufs.selectors import ClusterAlignment, ColumnSubset, NeighborAlignment
from bsufs.selectors._base import BaseSelector
from bsufs.selectors._dask_input import is_dask
from bsufs.selectors._data import FitData
from bsufs.tables._prepare import Units

PURPOSES: dict[str, type[BaseSelector]] = {
    "clusters": ClusterAlignment,
    "reconstruction": ColumnSubset,
    "neighbors": NeighborAlignment,
}


def selector_for(purpose: str, k: int | float | str = "auto", **parameters: Any) -> BaseSelector:
    """Return the selector of a purpose, not fitted yet."""
    if purpose not in PURPOSES:
        raise ValueError(
            f"purpose must be one of {', '.join(map(repr, PURPOSES))}, got {purpose!r}."
        )
    # mypy knows no parameters of a class that is looked up.
    selector_class: Any = PURPOSES[purpose]
    selector: BaseSelector = selector_class(n_features_to_select=k)
    valid = [name for name in selector.get_params() if name != "n_features_to_select"]
    for name in parameters:
        if name not in valid:
            raise TypeError(
                f"purpose={purpose!r} selects with {selector_class.__name__}, which has no "
                f"parameter {name!r}.{did_you_mean(name, valid)} It has {', '.join(valid)}."
            )
    selector.set_params(**parameters)
    return selector


def select(
    X: Any,
    k: int | float | str = "auto",
    *,
    purpose: str = "clusters",
    scale_columns: str = "auto",
    **parameters: Any,
) -> BaseSelector:
    """Select the columns of a table that serve a purpose best, without labels.

    Parameters
    ----------
    X : array, data frame, sparse matrix or Dask collection of shape (n_samples, n_features)
        The data: finite numbers, at least two rows.
    k : int, float or "auto", default="auto"
        How many columns to keep: a number, a share of all, or "auto", see the selector.
    purpose : {"clusters", "reconstruction", "neighbors"}, default="clusters"
        What the columns are for: "clusters", to tell groups of rows apart (`ClusterAlignment`);
        "reconstruction", to predict all other columns (`ColumnSubset`); "neighbors", to keep who is
        near whom (`NeighborAlignment`).
    scale_columns : {"auto", "none", "standard"}, default="auto"
        Whether columns are brought to variance 1 before: "auto" does so where one varies ten times
        as much as the median column or has more than half of all variance, unless most entries are
        zero, as in counts. Sparse matrices and Dask collections are taken as they are.
    **parameters
        Parameters of the selector, such as `must_keep`.

    Returns
    -------
    selector
        The fitted selector: `selected_features_` are the columns, best first, `transform` reduces a
        table to them, in its own units; `scale_columns_` says what was done to the columns, and
        why.

    Examples
    --------
    >>> import bsufs
    >>> from sklearn.datasets import load_iris
    >>> iris = load_iris(as_frame=True).data
    >>> selector = bsufs.select(iris, 2, purpose="reconstruction")
    >>> selector.selected_features_.tolist()
    ['petal length (cm)', 'sepal width (cm)']
    >>> selector.scale_columns_
    "standard: 'petal length (cm)' alone has 68% of the variance"
    >>> bsufs.select(iris, 2, purpose="neighbors", n_neighbors=10).transform(iris).shape
    (150, 2)
    """
    if scale_columns not in ("auto", "none", "standard"):
        raise ValueError(
            f"scale_columns must be 'auto', 'none' or 'standard', got {scale_columns!r}."
        )
    selector = selector_for(purpose, k, **parameters)
    if scale_columns == "none" or sparse.issparse(X) or is_dask(X):
        if scale_columns == "standard":
            raise ValueError(
                "scale_columns='standard' needs a dense table in memory, got a sparse matrix or a "
                "Dask collection. Scale it before, and leave scale_columns at 'auto'."
            )
        done = "none"
        selector.fit(X)
    else:
        data = selector._fit_data(X, None)
        names: Any = data.names
        if names is None:
            names = [f"column {i}" for i in range(data.n_features)]
        variances, units = data.variances, Units()
        units.add(data.X)
        how, why = units.decide(variances, [str(name) for name in names], ["number"])
        done = f"{how}: {why}" if scale_columns == "auto" else scale_columns
        if done.startswith("standard"):
            scales = np.sqrt(np.where(variances > 0, variances, 1.0))
            data = FitData((data.X - data.X.mean(axis=0)) / scales, names=data.names)
        selector.fit(data)
    selector.scale_columns_ = done
    return selector
