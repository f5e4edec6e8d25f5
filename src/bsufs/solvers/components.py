"""Principal components: how many to take, as a start, and weights in the units of their scatter."""

import math
from numbers import Integral

import numpy as np
from scipy.optimize import minimize_scalar

from bsufs._typing import Array
from bsufs.scatter import Scatter

# No more are chosen than so many above the noise edge, or so many above the average. Where no gap
# parts them from the noise, as in large sparse data, every further one would take many products.
_MOST_ABOVE_NOISE, _MOST_ABOVE_AVERAGE = 64, 32
# When the first component counts as a level that the rows share; fewer columns are easily alike.
_LARGE_SHARE, _ONE_SIGN, _SPREAD, _FEWEST_COLUMNS = 0.25, 0.95, 0.5, 20


def noise_edge(diagonal: Array, total_weight: float) -> float:
    """Return the largest eigenvalue to expect of S if its columns were independent.

    Parallel analysis finds it by shuffling every column by itself. In the limit of many samples and
    features it is the upper edge of the generalized Marchenko-Pastur law, which needs no shuffling
    and no seed (Dobriban and Owen, 2019): with variances s_j = S_jj / n

        n min over 0 < a < 1/max_j s_j of  1/a + (1/n) sum_j s_j / (1 - a s_j).
    """
    variances = np.sort(diagonal[diagonal > 0])[::-1]
    if variances.size == 0:
        return 0.0
    largest = variances[0]
    relative = variances / largest

    def edge(a: float) -> float:
        return 1.0 / a + float((relative / (1.0 - a * relative)).sum()) / total_weight

    solution = minimize_scalar(
        edge, bounds=(1e-9, 1.0 - 1e-12), method="bounded", options={"xatol": 1e-12}
    )
    return float(solution.fun) * float(largest)


def components_above_noise(scatter: Scatter) -> int:
    """Return the number of principal components above the noise edge."""
    return start_frame(scatter, "auto")[0].size if scatter.diagonal().any() else 1


def start_frame(scatter: Scatter, n_components: int | float | str) -> tuple[Array, Array]:
    """Return the leading eigenpairs of S, descending, as many as asked for; S is not zero.

    Those are a number; as many as reach a share of the total variance; or, for "auto", as many as
    have an eigenvalue above the noise edge, at most 64. Where none has, as for columns that are not
    correlated, no direction is special, and a single one would be an arbitrary mixture of columns:
    then as many as have an eigenvalue above the average, at most 32.
    """
    if isinstance(n_components, Integral):
        return scatter.leading_eigenvectors(int(n_components))
    limit = min(scatter.max_rank, scatter.shape[0])
    if not isinstance(n_components, str):
        # A little below it, or rounding would let a share of one run to the last digit.
        goal = float(n_components) * scatter.trace() * (1.0 - 1e-12)
        return scatter.leading_eigenvectors(limit, until=goal)
    edge = noise_edge(scatter.diagonal(), scatter.total_weight)
    values, vectors = scatter.leading_eigenvectors(min(_MOST_ABOVE_NOISE, limit), above=edge)
    if values.size == 0:
        average = scatter.trace() / int(np.count_nonzero(scatter.diagonal()))
        limit = min(_MOST_ABOVE_AVERAGE, limit)
        values, vectors = scatter.leading_eigenvectors(limit, above=average)
    return (values, vectors) if values.size else scatter.leading_eigenvectors(1)


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
            "weighting, without never_keep, and without what center_rows and adjust_for take "
            "off). There is nothing to select."
        )


def in_units_of(unit_exponent: int, weight: float) -> float:
    """Return a weight meant for the data as they came in the units in which S is held."""
    exponent = max(-1000, min(-2 * unit_exponent, 1000))
    return min(math.ldexp(1.0, exponent) * weight, 1e300)


def in_units_of_data(unit_exponent: int, values: Array | float) -> Array:
    """Return values in the units in which S is held in those of the data as they came."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.ldexp(values, 2 * unit_exponent))


def common_level_in_words(scatter: Scatter, in_shell: bool = False) -> str | None:
    """Return a sentence where the first component is a level that nearly all columns share.

    It is spread by the participation ratio 1 / sum of v_j^4 of its unit vector v.
    """
    n_varying, total = int(np.count_nonzero(scatter.diagonal())), scatter.trace()
    if n_varying < _FEWEST_COLUMNS:
        return None
    values, vectors = scatter.leading_eigenvectors(1)
    v, share = vectors[:, 0], float(values[0]) / total
    one_sign = abs(float(v.sum())) / float(np.abs(v).sum())
    spread = 1.0 / (float((v**4).sum()) * n_varying)
    if share <= _LARGE_SHARE or 0.5 + 0.5 * one_sign <= _ONE_SIGN or spread <= _SPREAD:
        return None
    cures = ("--center-rows", "--adjust-for") if in_shell else ("center_rows=True", "adjust_for")
    return (
        f"Nearly all columns rise and fall together: one component, with loadings of one sign, has "
        f"{share:.0%} of the variance. If that is a level of the rows and not what you look for "
        f"(brightness, depth, size), try {cures[0]}, or {cures[1]} with what causes it."
    )
