"""Parameters that several methods read in the same way: arrays, and numbers of components."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from bsufs._typing import Array
from bsufs.selectors._data import FitData
from bsufs.solvers.components import components_above_noise

# What `n_components` may be for the methods that start from principal components: a number, a share
# of the variance, or the number above the noise edge.
NUMBER_OF_COMPONENTS = [
    Interval(Integral, 1, None, closed="left"),
    Interval(Real, 0, 1, closed="right"),
    StrOptions({"auto"}),
]


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
    fits = array.ndim == len(shape) and all(
        wanted in (None, length) for wanted, length in zip(shape, array.shape, strict=True)
    )
    if not fits:
        raise ValueError(f"{must}, got shape {array.shape}. {cure}")
    bad = ~np.isfinite(array)
    if bad.any():
        raise ValueError(f"{must}, got {array[bad][0]} among its entries. {cure}")
    if non_negative and (array < 0).any():
        raise ValueError(f"{must}, got a smallest entry of {array.min():g}. {cure}")
    return array


def n_directions(n_components: int | str, data: FitData, rank: int) -> int:
    """Return how many directions to look for within the space that the samples span."""
    limit = max(rank, 1)
    if isinstance(n_components, str):
        return min(components_above_noise(data.scatter), limit)
    if n_components > limit:
        raise ValueError(
            f"n_components must be at most {limit}, the number of dimensions that the samples "
            f"span, got {n_components}. Ask for fewer, or for 'auto'."
        )
    return n_components
