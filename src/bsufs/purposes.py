"""The front door: say what the columns are for, and get a fitted selector."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from bsufs._names import did_you_mean
from bsufs.selectors import ClusterAlignment, ColumnSubset, NeighborAlignment
from bsufs.selectors._base import BaseSelector
from bsufs.selectors._dask_input import is_dask
from bsufs.selectors._data import FitData
from bsufs.selectors._validation import non_finite
from bsufs.table_selector import TableSelector, table_of
from bsufs.tables._kinds import Kind
from bsufs.tables._prepare import Missing, suited_scale

PURPOSES: dict[str, type[BaseSelector]] = {
    "clusters": ClusterAlignment,
    "reconstruction": ColumnSubset,
    "neighbors": NeighborAlignment,
}


def selector_for(purpose: str, k: int | float | str = "auto", **parameters: Any) -> BaseSelector:
    """Return the selector of a purpose, not fitted yet."""
    if purpose not in list(PURPOSES):
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
    ignore: Sequence[str] = (),
    kinds: Mapping[str, Kind] | None = None,
    missing: Missing | None = None,
    **parameters: Any,
) -> BaseSelector | TableSelector:
    """Select the columns of a table that serve a purpose best, without labels.

    Parameters
    ----------
    X : data frame, path-like, array, sparse matrix or Dask collection
        The table, or the file that holds it, at least two rows. A data frame or a file may have
        columns of all kinds, and gaps; a data frame of finite numbers is taken as it is.
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
    ignore : sequence of str, default=()
        Columns of a data frame or file that are no features.
    kinds : mapping of str to {"number", "category", "date"}, optional
        What columns of a data frame or file are, whatever they look like.
    missing : {"error", "median", "drop-rows", "drop-columns"}, optional
        What to do about gaps of a data frame or file; they are filled with medians by default.
    **parameters
        Parameters of the selector, such as `must_keep`.

    Returns
    -------
    selector or TableSelector
        The fitted selector: `selected_features_` are the columns, best first, `transform` reduces a
        table to them, in its own units; `scale_columns_` says what was done to the columns, and
        why. For files and data frames with more than finite numbers it is a `TableSelector`.

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
    if hasattr(X, "var_names"):
        raise TypeError(
            "X must be a table, got an AnnData object. Use bsufs.genes.select_genes(adata, n), or "
            "pass adata.to_df()."
        )
    selector = selector_for(purpose, k, **parameters)
    asked: dict[str, Any] = {"ignore": ignore, "kinds": kinds or {}, "missing": missing}
    if _is_table(X) or (any(asked.values()) and hasattr(X, "columns")):
        return TableSelector(selector).fit(table_of(X, selector, scale=scale_columns, **asked))
    for name, value in asked.items():
        if value:
            raise ValueError(f"{name} is for data frames and files, got {type(X).__name__} for X.")
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
        variances, smallest = data.variances, data.X.min(axis=0)
        filled = np.count_nonzero(data.X) / data.X.size
        how, why = suited_scale(variances, smallest, filled, [str(name) for name in names])
        done = f"{how}: {why}" if scale_columns == "auto" else scale_columns
        if done.startswith("standard"):
            scales = np.sqrt(np.where(variances > 0, variances, 1.0))
            data = FitData((data.X - data.X.mean(axis=0)) / scales, names=data.names)
        selector.fit(data)
    selector.scale_columns_ = done
    return selector


def _is_table(X: Any) -> bool:
    """Tell whether X is a file, or a data frame that holds more than finite numbers."""
    if isinstance(X, str | os.PathLike):
        return True
    if not hasattr(X, "columns") or is_dask(X) or not all(isinstance(n, str) for n in X.columns):
        return False
    cells = np.asarray(X)
    return cells.dtype.kind not in "uif" or non_finite(cells) is not None
