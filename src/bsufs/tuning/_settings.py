"""What the selectors that run another one share: the selector inside, its settings, threads."""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state

from bsufs.selectors._base import BaseSelector
from bsufs.selectors._data import FitData
from bsufs.selectors._nuisance import as_codes
from bsufs.solvers.components import components_above_noise

Grid = dict[str, list[Any]]
Setting = dict[str, Any]

# Numbers of components are multiples of the number above the noise edge.
_COMPONENTS = {"n_components": [0.5, 1, 2]}
_NEIGHBORS = {"n_neighbors": [3, 5, 10]}
# Methods without an entry have nothing to tune, or nothing that a rule of thumb covers.
_GRIDS: dict[str, Grid] = {
    "ClusterAlignment": _COMPONENTS | {"n_neighbors": [2, 3, 5]},
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
    families = (cls.__name__ for cls in type(estimator).__mro__)
    grid = dict(next((_GRIDS[name] for name in families if name in _GRIDS), {}))
    own = estimator.get_params()
    data = X if isinstance(X, FitData) else FitData(X)
    n, d = data.X.shape
    if not isinstance(own.get("init", ""), str):
        # A start given as a matrix fixes the number of components.
        grid.pop("n_components", None)
    if "n_components" in grid:
        barred = own.get("never_keep")
        most = min(n - 1, d - (0 if barred is None else np.size(barred)))
        if type(estimator).__name__ == "FSPCA" and isinstance(own["n_features_to_select"], int):
            # Its components live on the selected features alone.
            most = min(most, own["n_features_to_select"])
        most, m = max(1, most), components_above_noise(data.scatter)
        numbers = {min(max(1, round(factor * m)), most) for factor in grid["n_components"]}
        grid["n_components"] = sorted(numbers)
        if own["n_components"] == "auto":
            own["n_components"] = min(m, most)
    if "n_neighbors" in grid:
        grid["n_neighbors"] = sorted({min(number, n - 1) for number in grid["n_neighbors"]})
    # Of settings that are equally good the first is taken, and one's own needs no reason.
    for name, values in grid.items():
        if own.get(name) in values:
            grid[name] = [own[name], *(value for value in values if value != own[name])]
    return grid


def checked_settings(param_grid: Any, estimator: BaseSelector) -> list[Setting]:
    """Return every setting of a grid as parameters of a selector."""
    known = estimator.get_params()
    for grid in [param_grid] if isinstance(param_grid, Mapping) else param_grid:
        for name in grid:
            if name == "n_features_to_select":
                raise ValueError(
                    "param_grid must not hold n_features_to_select: it is a parameter of its own."
                )
            if name not in known:
                raise ValueError(
                    f"param_grid must hold parameters of {type(estimator).__name__}, got "
                    f"{name!r}. It has: {', '.join(sorted(known))}."
                )
    settings = list(ParameterGrid(param_grid))
    if not settings:
        raise ValueError("param_grid must hold at least one setting, got an empty list.")
    return settings


def with_most_components(selectors: Sequence[BaseSelector]) -> int:
    """Return which of some selectors finds the principal components that all others need."""
    numbers = [selector.get_params().get("n_components") for selector in selectors]
    return int(np.argmax([int(m) if isinstance(m, Integral) else 0 for m in numbers]))


# What the parameters that they share may be.
WRAPPING: dict[str, list[Any]] = {
    "estimator": [BaseSelector, None],
    "param_grid": [dict, list, None],
    "n_jobs": [Integral, None],
}


class WrappingSelector(BaseSelector):
    """Base class of the selectors that run another one many times."""

    estimator: BaseSelector | None
    _default_estimator: type[BaseSelector]

    def _inside(self) -> BaseSelector:
        return self._default_estimator() if self.estimator is None else self.estimator

    @property
    def adjust_for(self) -> Any:
        """What the data are adjusted for: what the estimator is told."""
        return getattr(self.estimator, "adjust_for", None)

    def _option(self, name: str) -> Any:
        return getattr(self.estimator, name, None)

    @property
    def _clears(self) -> bool:  # type: ignore[override] # as the estimator inside does
        return self._inside()._clears

    def _fit_data(self, X: Any, sample_weight: Any) -> FitData:
        # Cleared once, and not of every part of the rows anew.
        X, texts = as_codes(X, self.adjust_for)
        data = super()._fit_data(X, sample_weight)
        return clone(self._inside())._to_be_cleared(data, texts)

    def _seeded(self) -> tuple[BaseSelector, int]:
        """Return an unfitted copy of the selector inside, with a seed, and this seed."""
        seed = self.random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31 - 1)
        inside: BaseSelector = clone(self._inside())
        if "random_state" in inside.get_params() and inside.random_state is None:
            inside.set_params(random_state=int(seed))
        return inside, int(seed)

    def _wanted(self) -> int | float | str:
        asked = self.n_features_to_select
        if asked is None:
            return self._inside()._wanted()
        return "auto" if isinstance(asked, list | tuple | np.ndarray) else asked

    def _in_threads(self, function: Any, items: Iterable[Any], first: int = 0) -> list[Any]:
        """Apply a function to some items, first to the one that prepares what the others share."""
        others = list(items)
        prepared = function(others.pop(first))
        # Threads: the work is in BLAS, and the data are shared instead of copied.
        parallel = Parallel(n_jobs=self.n_jobs, prefer="threads")
        results: list[Any] = parallel(delayed(function)(item) for item in others)
        results.insert(first, prepared)
        return results
