"""The front door: say what the columns are for, and get a fitted selector."""

from __future__ import annotations

import difflib
from typing import Any

from bsufs.selectors import ClusterAlignment, ColumnSubset, NeighborAlignment
from bsufs.selectors._base import BaseSelector

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
            near = difflib.get_close_matches(name, valid, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise TypeError(
                f"purpose={purpose!r} selects with {selector_class.__name__}, which has no "
                f"parameter {name!r}.{hint} It has {', '.join(valid)}."
            )
    selector.set_params(**parameters)
    return selector


def select(
    X: Any, k: int | float | str = "auto", *, purpose: str = "clusters", **parameters: Any
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
    **parameters
        Parameters of the selector, such as `must_keep`.

    Returns
    -------
    selector
        The fitted selector: `selected_features_` are the columns, best first, `transform` reduces a
        table to them.

    Examples
    --------
    >>> import bsufs
    >>> from sklearn.datasets import load_iris
    >>> iris = load_iris(as_frame=True).data
    >>> bsufs.select(iris, 2, purpose="reconstruction").selected_features_.tolist()
    ['petal length (cm)', 'sepal length (cm)']
    >>> bsufs.select(iris, 2, purpose="neighbors", n_neighbors=10).transform(iris).shape
    (150, 2)
    """
    return selector_for(purpose, k, **parameters).fit(X)
