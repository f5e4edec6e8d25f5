"""What the parameters of selectors may be."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from bsufs._typing import Array
from bsufs.selectors._base import NUMBER_OF_FEATURES

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


def constraints(**own: list[Any]) -> dict[str, list[Any]]:
    """Return what the parameters of a selector may be: those of shared meaning, and its own."""
    return _SHARED | own


def one_of(*words: str) -> list[Any]:
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
