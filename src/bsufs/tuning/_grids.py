"""The settings that are tried when the caller names none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bsufs.selectors._base import BaseSelector
from bsufs.selectors._data import FitData
from bsufs.solvers.components import components_above_noise

Grid = dict[str, list[Any]]

# Numbers of components are multiples of the number above the noise edge.
_COMPONENTS = {"n_components": [0.5, 1, 2]}
_NEIGHBORS = {"n_neighbors": [3, 5, 10]}
# Methods without an entry have nothing to tune, or nothing that a rule of thumb covers.
_GRIDS: dict[str, Grid] = {
    "AlignedBSUFS": _COMPONENTS | {"flattening": [0.25, 0.5, 0.75]},
    "BSUFS": {
        "n_components": [0.5, 0.75, 1, 1.5, 2],
        "p": [0.0, 0.5, 1.0],
        "beta_row": [3.0, 10.0],
    },
    "ColumnSubset": {"method": ["greedy", "pivoted-qr"]},
    "FENPCAFS": _COMPONENTS,
    "FSPCA": _COMPONENTS,
    "LaplacianScore": _NEIGHBORS,
    "MCFS": _COMPONENTS | _NEIGHBORS,
    "NLGMS": _NEIGHBORS,
    "PCARowNorms": _COMPONENTS,
    "RNE": _NEIGHBORS,
    "SOGFS": _NEIGHBORS,
    "SPCAFS": _COMPONENTS,
    "UDFS": _COMPONENTS | _NEIGHBORS,
}
# The settings over which a consensus is formed.
_PATHS: dict[str, Grid] = {"BSUFS": {"p": [0.0, 0.5, 1.0], "beta_row": [3.0, 10.0, 30.0]}}


def default_grid(estimator: BaseSelector, X: Any) -> Grid:
    """Return the settings worth trying for a selector on some data.

    Parameters
    ----------
    estimator : selector
        Which method; a subclass takes the grid of its parent.
    X : array of shape (n_samples, n_features)
        The data.

    Returns
    -------
    dict of str to list
        Values by parameter, those that the estimator has first; empty for a method without a grid.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from bsufs.selectors import BSUFS
    >>> from bsufs.tuning import default_grid
    >>> default_grid(BSUFS(), load_digits().data)["n_components"]
    [7, 4, 5, 10, 14]
    """
    grid = dict(_of_family(estimator, _GRIDS))
    own = estimator.get_params()
    data = X if isinstance(X, FitData) else FitData(X)
    n, d = data.X.shape
    if not isinstance(own.get("init", ""), str):
        # A start given as a matrix fixes the number of components.
        grid.pop("n_components", None)
    if "n_components" in grid:
        never_keep = own.get("never_keep")
        most = min(n - 1, d - (0 if never_keep is None else np.atleast_1d(never_keep).size))
        if type(estimator).__name__ == "FSPCA" and isinstance(own["n_features_to_select"], int):
            # Its components live on the selected features alone.
            most = min(most, own["n_features_to_select"])
        m = components_above_noise(data.scatter)
        numbers = [min(max(1, round(factor * m)), max(1, most)) for factor in grid["n_components"]]
        grid["n_components"] = sorted(set(numbers))
        if own["n_components"] == "auto":
            own["n_components"] = min(m, max(1, most))
    if "n_neighbors" in grid:
        grid["n_neighbors"] = sorted({min(number, n - 1) for number in grid["n_neighbors"]})
    # Of settings that are equally good the first is taken, and one's own needs no reason.
    for name, values in grid.items():
        if own.get(name) in values:
            grid[name] = [own[name], *(value for value in values if value != own[name])]
    return grid


def default_paths(estimator: BaseSelector) -> Grid:
    """Return the settings over which a consensus is formed."""
    return dict(_of_family(estimator, _PATHS))


def _of_family(estimator: BaseSelector, grids: Mapping[str, Grid]) -> Grid:
    """Return the grid of the class of an estimator, or of the nearest parent that has one."""
    families = (cls.__name__ for cls in type(estimator).__mro__)
    return next((grids[name] for name in families if name in grids), {})
