"""The settings that are tried when the caller names none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bsufs._typing import Array
from bsufs.scatter import make_scatter
from bsufs.selectors._base import BaseSelector
from bsufs.solvers.components import components_above_noise

Grid = dict[str, list[Any]]


@dataclass(frozen=True)
class _Extent:
    """What a grid has to know about the data."""

    n_samples: int
    n_features: int
    n_components: int

    def components(self, *factors: float) -> list[int]:
        """Return multiples of the number of components above the noise edge."""
        most = max(1, min(self.n_samples - 1, self.n_features))
        found = {min(max(1, round(factor * self.n_components)), most) for factor in factors}
        return sorted(found)

    def neighbors(self) -> list[int]:
        """Return numbers of neighbors that there are samples for."""
        return sorted({min(number, self.n_samples - 1) for number in (3, 5, 10)})


def _components(data: _Extent) -> Grid:
    return {"n_components": data.components(0.5, 1, 2)}


def _neighbors(data: _Extent) -> Grid:
    return {"n_neighbors": data.neighbors()}


def _components_and_neighbors(data: _Extent) -> Grid:
    return _components(data) | _neighbors(data)


def _bsufs(data: _Extent) -> Grid:
    return {
        "n_components": data.components(0.5, 0.75, 1, 1.5, 2),
        "p": [0.0, 0.5, 1.0],
        "beta_row": [3.0, 10.0],
    }


def _aligned_bsufs(data: _Extent) -> Grid:
    return _components(data) | {"flattening": [0.25, 0.5, 0.75]}


def _column_subset(data: _Extent) -> Grid:
    return {"method": ["greedy", "pivoted-qr"]}


# Methods without an entry have nothing to tune, or nothing that a rule of thumb covers.
_GRIDS: dict[str, Callable[[_Extent], Grid]] = {
    "AlignedBSUFS": _aligned_bsufs,
    "BSUFS": _bsufs,
    "ColumnSubset": _column_subset,
    "FENPCAFS": _components,
    "FSPCA": _components,
    "LaplacianScore": _neighbors,
    "MCFS": _components_and_neighbors,
    "NLGMS": _neighbors,
    "PCARowNorms": _components,
    "RNE": _neighbors,
    "SOGFS": _neighbors,
    "SPCAFS": _components,
    "UDFS": _components_and_neighbors,
}


def default_grid(estimator: BaseSelector, X: Array) -> Grid:
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
    families = (cls.__name__ for cls in type(estimator).__mro__)
    make = next((_GRIDS[name] for name in families if name in _GRIDS), None)
    if make is None:
        return {}
    parameters = estimator.get_params()
    never_keep = parameters.get("never_keep")
    n_barred = 0 if never_keep is None else np.atleast_1d(never_keep).size
    extent = _Extent(X.shape[0], X.shape[1] - n_barred, components_above_noise(make_scatter(X)))
    grid = make(extent)
    own = dict(parameters)
    if own.get("n_components") == "auto":
        own["n_components"] = extent.components(1)[0]
    k = parameters["n_features_to_select"]
    if type(estimator).__name__ == "FSPCA" and isinstance(k, int):
        # Its components live on the selected features alone.
        grid["n_components"] = sorted({min(m, k) for m in grid["n_components"]})
    if not isinstance(parameters.get("init", ""), str):
        # A start given as a matrix fixes the number of components.
        grid.pop("n_components", None)
    # Of settings that are equally good the first is taken, and one's own needs no reason.
    return {name: _first_of_all(own.get(name), values) for name, values in grid.items()}


def _first_of_all(first: Any, values: list[Any]) -> list[Any]:
    """Return values with one of them at the beginning, if it is there."""
    return sorted(values, key=lambda value: bool(value != first))


def default_paths(estimator: BaseSelector) -> Grid:
    """Return the settings over which a consensus is formed."""
    if any(cls.__name__ == "BSUFS" for cls in type(estimator).__mro__):
        return {"p": [0.0, 0.5, 1.0], "beta_row": [3.0, 10.0, 30.0]}
    return {}
