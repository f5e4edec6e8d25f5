"""What the wrappers of this package share: the selector inside, its seed and its settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state

from bsufs.selectors._base import BaseSelector

Setting = dict[str, Any]
Item = TypeVar("Item")
Result = TypeVar("Result")


def selector_inside(estimator: BaseSelector, seed: int) -> BaseSelector:
    """Return an unfitted copy of the selector to wrap, with a seed where it has none."""
    inside: BaseSelector = clone(estimator)
    if "random_state" in inside.get_params() and inside.random_state is None:
        inside.set_params(random_state=seed)
    return inside


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


def as_seed(random_state: Any) -> int:
    """Return a number that all random streams of a fit are derived from."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def in_threads(
    function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None
) -> list[Result]:
    """Apply a function to at least one item; the first one prepares what the others share."""
    first, *others = items
    # Threads: the work is in BLAS, and the data are shared instead of copied.
    parallel = Parallel(n_jobs=n_jobs, prefer="threads")
    return [function(first), *parallel(delayed(function)(item) for item in others)]
