"""What the methods share: rules for their parameters, starts, and what a solution leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from bsufs._typing import Array
from bsufs.penalties import row_norms
from bsufs.selectors._base import NUMBER_OF_FEATURES
from bsufs.selectors._data import FitData
from bsufs.solvers.components import components_above_noise, in_units_of, in_units_of_data
from bsufs.solvers.solution import Solution

# What `n_components` may be for the methods that start from principal components: a number, a share
# of the variance, or the number above the noise edge.
COUNT = [Interval(Integral, 1, None, closed="left")]
NUMBER_OF_COMPONENTS = [*COUNT, Interval(Real, 0, 1, closed="right"), StrOptions({"auto"})]
COUNT_OR_AUTO = [*COUNT, StrOptions({"auto"})]
POSITIVE = [Interval(Real, 0, None, closed="neither")]
POSITIVE_OR_AUTO = [*POSITIVE, StrOptions({"auto"})]
NOT_NEGATIVE = [Interval(Real, 0, None, closed="left")]
UNIT_INTERVAL = [Interval(Real, 0, 1, closed="both")]

# Parameters that mean the same wherever they appear; a selector need not have them all.
_SHARED: dict[str, list[Any]] = {
    "n_features_to_select": NUMBER_OF_FEATURES,
    "n_components": COUNT_OR_AUTO,
    "n_neighbors": COUNT,
    "gamma": POSITIVE_OR_AUTO,
    "p": [Interval(Real, 0, 1, closed="right")],
    "mu": POSITIVE,
    "mu_growth": [Interval(Real, 1, None, closed="left")],
    "compat": [StrOptions({"publication", "reference"})],
    "max_iter": COUNT,
    "tol": NOT_NEGATIVE,
    "must_keep": ["array-like", str, Integral, None],
    "never_keep": ["array-like", str, Integral, None],
    "groups": ["array-like", Mapping, None],
    "costs": ["array-like", Mapping, None],
    "budget": [*POSITIVE, None],
    "adjust_for": ["array-like", str, Integral, None],
    "center_rows": ["boolean"],
    "random_state": ["random_state"],
}

# With gamma="auto" the penalty of the start is this share of what the start explains: enough to
# move it, not enough to drown the data.
_AUTO_SHARE = 0.1


def constraints(**own: list[Any]) -> dict[str, list[Any]]:
    """Return what the parameters of a selector may be: those of shared meaning, and its own."""
    return _SHARED | own


def one_of(*words: str) -> list[Any]:
    """Return the rule for a parameter that is one of some words."""
    return [StrOptions(set(words))]


def checked_array(
    name: str,
    value: Any,
    shape: tuple[int | None, ...],
    meaning: str,
    cure: str,
    *,
    non_negative: bool = False,
) -> Array:
    """Return a parameter as an array of its own, or say what it must be and what to do."""
    kind = "finite numbers that are not negative" if non_negative else "finite numbers"
    must = f"{name} must be {meaning} of {kind}"
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{must}, got something else: {error}. {cure}") from error
    if array.ndim != len(shape) or any(
        wanted not in (None, length) for wanted, length in zip(shape, array.shape, strict=True)
    ):
        raise ValueError(f"{must}, got shape {array.shape}. {cure}")
    bad = ~np.isfinite(array)
    if bad.any():
        raise ValueError(f"{must}, got {array[bad][0]} among its entries. {cure}")
    if non_negative and (array < 0).any():
        raise ValueError(f"{must}, got a smallest entry of {array.min():g}. {cure}")
    return array


def n_directions(n_components: int | str, data: FitData, dimension: int) -> int:
    """Return how many directions to look for in a space of the dimension of the samples."""
    limit = max(dimension, 1)
    if isinstance(n_components, str):
        return min(components_above_noise(data.scatter), limit)
    if n_components > limit:
        raise ValueError(
            f"n_components must be at most {limit}, the number of dimensions that the samples "
            f"span, got {n_components}. Ask for fewer, or for 'auto'."
        )
    return n_components


def keep_gamma(selector: Any, explained: float, penalty: float, unit_exponent: int = 0) -> float:
    """Set `gamma_`, the weight of a penalty, and return it in the units in which S is held.

    "auto" makes the penalty of a start its share of what the start explains.
    """
    if isinstance(selector.gamma, str):
        gamma = _AUTO_SHARE * explained / penalty or 1.0
        selector.gamma_ = float(in_units_of_data(unit_exponent, gamma))
        return gamma
    selector.gamma_ = float(selector.gamma)
    return in_units_of(unit_exponent, selector.gamma_)


def keep_history(selector: Any, solution: Solution, unit_exponent: int = 0) -> None:
    """Set how a solution was reached, its objective in the units of the data."""
    selector.objective_history_ = in_units_of_data(unit_exponent, solution.objective_history)
    selector.n_iter_ = solution.n_iter
    selector.stopping_reason_ = solution.stopping_reason


def keep_frame(selector: Any, solution: Solution, unit_exponent: int = 0) -> Array:
    """Set a frame and how it was reached, and return its squared row norms."""
    selector.components_ = solution.W.T
    selector.n_components_ = solution.W.shape[1]
    keep_history(selector, solution, unit_exponent)
    return row_norms(solution.W) ** 2
