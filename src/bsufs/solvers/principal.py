"""Principal components as a start, and weights in the units in which a scatter is held."""

from __future__ import annotations

import math
from numbers import Integral

import numpy as np

from bsufs._typing import Array
from bsufs.scatter import Scatter
from bsufs.solvers.components import start_frame


def principal_frame(scatter: Scatter, n_components: int | float | str) -> tuple[Array, Array]:
    """Return the leading eigenpairs of S, as many as asked for and no more than it can have."""
    require_variation(scatter)
    limit = min(scatter.max_rank, scatter.shape[0])
    if isinstance(n_components, Integral) and int(n_components) > limit:
        raise ValueError(
            f"n_components must be at most {limit}, the rank that the data can have, got "
            f"{n_components}. Ask for fewer, or for 'auto'."
        )
    return start_frame(scatter, n_components)


def require_variation(scatter: Scatter) -> None:
    """Raise an error if no column varies."""
    if not scatter.diagonal().any():
        raise ValueError(
            "X must have at least one column that varies, but every column is constant (after "
            "weighting, and without never_keep). There is nothing to select."
        )


def in_units_of(scatter: Scatter, weight: float) -> float:
    """Return a weight meant for the data as they came in the units in which S is held."""
    exponent = max(-1000, min(-2 * scatter.unit_exponent, 1000))
    return min(math.ldexp(1.0, exponent) * weight, 1e300)


def in_units_of_data(scatter: Scatter, values: Array | float) -> Array:
    """Return values in the units in which S is held in those of the data as they came."""
    with np.errstate(over="ignore", under="ignore"):
        converted: Array = np.ldexp(values, 2 * scatter.unit_exponent)
    return converted
