"""Principal components as a start, and weights in the units in which a scatter is held."""

from __future__ import annotations

import math
from numbers import Integral

import numpy as np

from bsufs._typing import Array, Indices
from bsufs.scatter import DenseScatter, FactoredScatter, Scatter, SparseScatter
from bsufs.solvers.components import start_frame


def principal_frame(scatter: Scatter, n_components: int | float | str) -> tuple[Array, Array]:
    """Return the leading eigenpairs of S, as many as asked for and no more than it can have."""
    limit = min(scatter.max_rank, scatter.shape[0])
    if isinstance(n_components, Integral) and int(n_components) > limit:
        raise ValueError(
            f"n_components must be at most {limit}, the rank that the data can have, got "
            f"{n_components}. Ask for fewer, or for 'auto'."
        )
    return start_frame(scatter, n_components)


def in_units_of(scatter: Scatter, weight: float) -> float:
    """Return a weight meant for the data as they came in the units in which S is held."""
    exponent = max(-1000, min(-2 * scatter.unit_exponent, 1000))
    return min(math.ldexp(1.0, exponent) * weight, 1e300)


def in_units_of_data(scatter: Scatter, values: Array | float) -> Array:
    """Return values in the units in which S is held in those of the data as they came."""
    with np.errstate(over="ignore", under="ignore"):
        converted: Array = np.ldexp(values, 2 * scatter.unit_exponent)
    return converted


def restricted(scatter: Scatter, features: Indices) -> Scatter:
    """Return the scatter operator of some of the columns."""
    if isinstance(scatter, SparseScatter):
        return SparseScatter(scatter._X[:, features]).scaled(scatter.factor)
    if isinstance(scatter, FactoredScatter):
        n = scatter.Xc.shape[0]
        columns = scatter.Xc[:, features]
        if features.size >= n:
            return FactoredScatter(columns, scatter.total_weight).scaled(scatter.factor)
        return DenseScatter(columns.T @ columns, scatter.total_weight).scaled(scatter.factor)
    block = scatter._block(features, features)
    return DenseScatter(np.asarray(block), scatter.total_weight).scaled(scatter.factor)
