"""What the wrappers of this package share: the selector inside, its seed and its settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state

from bsufs._typing import Indices
from bsufs.selectors._base import BaseSelector
from bsufs.selectors._columns import feature_mask
from bsufs.selectors.bsufs import BSUFS

Setting = dict[str, Any]


def selector_inside(estimator: Any, seed: int, default: type[BaseSelector] = BSUFS) -> BaseSelector:
    """Return an unfitted copy of the selector to wrap, with a seed where it has none."""
    if estimator is None:
        estimator = default()
    if not isinstance(estimator, BaseSelector):
        raise TypeError(
            "estimator must be a selector of bsufs.selectors, such as BSUFS(), got "
            f"{estimator!r}. Leave it out for {default.__name__}()."
        )
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


def with_column_numbers(
    estimator: BaseSelector, names: Sequence[str] | None, n_features: int, order: Indices
) -> BaseSelector:
    """Return a copy whose `must_keep` and `never_keep` hold numbers instead of names."""
    numbered: BaseSelector = clone(estimator)
    for parameter in ("must_keep", "never_keep"):
        features = estimator.get_params().get(parameter)
        if features is not None:
            mask = feature_mask(parameter, features, n_features, names)
            numbered.set_params(**{parameter: np.flatnonzero(mask[order])})
    return numbered
