"""How good a selection of features is by the data alone: nothing here ever sees the labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import comb, entr
from scipy.stats import norm
from sklearn.utils import check_array, gen_batches

from bsufs._typing import Array, Indices
from bsufs.scatter import make_scatter

# The mutual information over the geometric or the arithmetic mean of the entropies; adjusted Rand.
Measure = Literal["nmi", "nmi-arithmetic", "ari"]

# Correlations are summed over blocks of this many; no d x d array is kept.
_ENTRIES = 2**21


def redundancy(X: ArrayLike) -> float:
    r"""Return the mean absolute correlation over all pairs of columns.

    .. math:: \frac{2}{d(d-1)} \sum_{i<j} |\rho_{ij}|

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The selected columns, finite numbers; never changed.

    Returns
    -------
    float
        Between 0 and 1; smaller is better. A constant column counts as uncorrelated with all
        others, and a single column has no redundancy: 0.

    Examples
    --------
    >>> import numpy as np
    >>> from bsufs.metrics import redundancy
    >>> redundancy(np.array([[0.0, 1.0, 5.0], [2.0, -1.0, 5.0], [4.0, -3.0, 5.0]]))
    0.333...
    """
    Z = standardized(check_array(X, dtype=np.float64))
    d = Z.shape[1]
    if d == 1:
        return 0.0
    blocks = gen_batches(d, max(1, _ENTRIES // d))
    total = sum(float(np.abs(Z[:, block].T @ Z).sum()) for block in blocks)
    # Each pair was counted twice, and every column that varies once with itself.
    return float(np.clip((total - np.vdot(Z, Z)) / (d * (d - 1)), 0.0, 1.0))


def redundancy_of_features(X: Array, feature: Indices) -> Array:
    """Return the redundancy among the first 1, 2, ... features, some of them of several columns.

    `feature` has the feature of each column, those of one side by side. Of the correlations between
    two features, the strongest counts.
    """
    Z, starts = standardized(X), np.flatnonzero(np.diff(feature, prepend=-1))
    among = np.maximum.reduceat(np.abs(Z.T @ Z), starts, axis=0)
    added = np.triu(np.maximum.reduceat(among, starts, axis=1), 1).sum(axis=0)
    n_before = np.arange(starts.size)
    pairs = n_before * (n_before + 1) / 2
    return np.minimum(np.cumsum(added) / np.maximum(pairs, 1), 1.0)


def standardized(X: Array) -> Array:
    """Return the columns centered and of unit length, constant ones zero."""
    constant = X.min(axis=0) == X.max(axis=0)
    # Relative to its largest entry, no column overflows when squared.
    largest = np.abs(X).max(axis=0)
    Z: Array = X / np.where(largest > 0, largest, 1.0)
    Z -= Z.mean(axis=0)
    Z[:, constant] = 0.0
    # Deviations much smaller than the mean would underflow when squared.
    Z /= np.where(constant, 1.0, np.abs(Z).max(axis=0))
    Z /= np.where(constant, 1.0, np.sqrt(np.einsum("ij,ij->j", Z, Z)))
    return Z


def reconstruction(X: Any, support: ArrayLike) -> float:
    r"""Return the share of the variance that linear regression on some columns explains.

    .. math:: 1 - \frac{\min_B \|X_c - X_{c,A} B\|_F^2}{\|X_c\|_F^2}

    with the columns of X centered and A the selected ones.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        All columns, finite numbers; never changed.
    support : array-like of bool of shape (n_features,), or of int
        The selected columns, as a mask or by number.

    Returns
    -------
    float
        Between 0 and 1; larger is better. 0 without columns; 1 for data that do not vary; NaN for
        more than 4096 columns of data of higher rank.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bsufs.metrics import reconstruction
    >>> round(reconstruction(load_iris().data, [2]), 3)
    0.921
    """
    X = check_array(X, accept_sparse="csr", dtype=np.float64)
    columns = column_numbers(support, X.shape[1], "support")
    if columns.size == 0:
        return 0.0
    scatter = make_scatter(sparse.csr_array(X) if sparse.issparse(X) else X)
    if not scatter.diagonal().any():
        return 1.0
    return scatter.explained_share(columns)


@dataclass(frozen=True)
class Stability:
    """How alike repeated selections are, with a confidence interval that is not cut off at 1.

    The value is 1 for identical selections, 0 on average for random ones; it may be negative.
    """

    value: float
    variance: float
    lower: float
    upper: float


def nogueira_stability(
    selections: Sequence[ArrayLike] | NDArray[Any],
    n_features: int | None = None,
    confidence: float = 0.95,
) -> Stability:
    r"""Return the stability of repeated selections and its asymptotic confidence interval.

    .. math:: \hat\Phi = 1 - \frac{\frac{1}{d} \sum_f \frac{M}{M-1} \hat p_f (1 - \hat p_f)}
        {\frac{\bar k}{d} (1 - \frac{\bar k}{d})}

    where :math:`\hat p_f` is the share of the M selections that hold feature f and
    :math:`\bar k` their mean size. It is corrected for chance and allows sizes that differ.

    Parameters
    ----------
    selections : sequence of M arrays
        At least two selections, such as those of a method on resampled data: masks of shape
        (n_features,), or numbers of columns, in any order.
    n_features : int, optional
        Number of columns that there were to select from; known from masks, needed for numbers.
    confidence : float, default=0.95
        Level of the interval, between 0 and 1.

    Returns
    -------
    Stability
        Value, variance and interval. All are NaN where every selection is empty or every one
        holds all features: there was no choice that could have been stable.

    References
    ----------
    Nogueira, S., Sechidis, K., Brown, G. (2018). On the stability of feature selection algorithms.
    Journal of Machine Learning Research 18(174). Theorem 7 and Corollary 9.

    Examples
    --------
    >>> from bsufs.metrics import nogueira_stability
    >>> stability = nogueira_stability([[0, 1], [0, 1], [0, 2]], n_features=6)
    >>> round(stability.value, 3), round(stability.lower, 3), round(stability.upper, 3)
    (0.5, 0.233, 0.767)
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence}.")
    Z = _selection_matrix(selections, n_features)
    M, d = Z.shape
    frequency = Z.mean(axis=0)
    share = Z.mean(axis=1)
    mean_share = float(share.mean())
    chance = mean_share * (1.0 - mean_share)
    if Z.all() or not Z.any():
        return Stability(np.nan, np.nan, np.nan, np.nan)
    spread = float((frequency * (1.0 - frequency)).mean()) * M / (M - 1)
    value = 1.0 - spread / chance
    contribution = (
        Z @ frequency / d
        - share * mean_share
        + value / 2 * (2 * share * mean_share - share - mean_share + 1)
    ) / chance
    variance = float(4 / M**2 * np.sum((contribution - contribution.mean()) ** 2))
    reach = float(norm.ppf((1 + confidence) / 2)) * variance**0.5
    return Stability(value, variance, value - reach, value + reach)


def clustering_similarities(
    one: NDArray[Any], others: NDArray[Any], measure: Measure = "nmi", weight: Array | None = None
) -> Array:
    """Return how alike a clustering is to each of several others (rows), all numbered from 0."""
    # As scikit-learn, but all pairs at once: one by one they would cost more than k-means does.
    runs, rows, columns = len(others), int(one.max()) + 1, int(others.max()) + 1
    cells = (np.arange(runs)[:, None] * rows + one) * columns + others
    weights = None if weight is None else np.tile(weight, runs)
    counts = np.bincount(cells.ravel(), weights, minlength=runs * rows * columns)
    counts = counts.reshape(runs, rows, columns)
    tables = (counts.reshape(runs, -1), counts.sum(axis=2), counts.sum(axis=1))
    if measure != "ari":
        total = one.size if weight is None else weight.sum()
        joint, first, second = (entr(table / total).sum(axis=1) for table in tables)
        found = np.maximum(first + second - joint, 0.0)
        most = np.sqrt(first * second) if measure == "nmi" else (first + second) / 2
    else:
        joint, first, second = (comb(table, 2).sum(axis=1) for table in tables)
        expected = first * second / max(comb(one.size, 2), 1.0)
        found, most = joint - expected, (first + second) / 2 - expected
    # Where there is nothing to tell apart, partitions are the same, or have nothing in common.
    trivial = (first == second).astype(np.float64)
    # Rounding may leave the range by a last digit.
    return np.asarray(np.minimum(np.divide(found, most, out=trivial, where=most > 0), 1.0))


def wilson_interval(
    frequency: ArrayLike, n_trials: int, confidence: float = 0.95
) -> tuple[Array, Array]:
    """Return the Wilson score interval of frequencies, such as how often features are selected."""
    share = np.asarray(frequency, dtype=np.float64)
    z = float(norm.ppf((1 + confidence) / 2))
    center = share + z**2 / (2 * n_trials)
    reach = z * np.sqrt(share * (1 - share) / n_trials + z**2 / (4 * n_trials**2))
    whole = 1 + z**2 / n_trials
    # Rounding must not put the ends outside of what a share can be, nor on the wrong side of it.
    lower = np.clip((center - reach) / whole, 0.0, share)
    upper = np.clip((center + reach) / whole, share, 1.0)
    return lower, upper


def _selection_matrix(selections: Any, n_features: int | None) -> Array:
    """Return one row of zeros and ones per selection."""
    arrays = [np.asarray(selection) for selection in selections]
    if len(arrays) < 2:
        raise ValueError(f"selections must hold at least two selections, got {len(arrays)}.")
    if n_features is None:
        sizes = {array.size for array in arrays if array.dtype == bool}
        if len(sizes) != 1:
            raise ValueError(
                "n_features must be given unless the selections are masks of one length."
            )
        n_features = sizes.pop()
    Z = np.zeros((len(arrays), n_features))
    for number, array in enumerate(arrays):
        Z[number, column_numbers(array, n_features, f"selections[{number}]")] = 1.0
    return Z


def column_numbers(support: ArrayLike, n_features: int, name: str) -> Indices:
    """Return the distinct column numbers of a mask or of a list of numbers."""
    support = np.asarray(support)
    if support.dtype == bool:
        if support.shape != (n_features,):
            raise ValueError(
                f"{name} as a mask must have shape ({n_features},), one entry per feature, "
                f"got {support.shape}."
            )
        return np.flatnonzero(support)
    if support.size == 0:
        return np.zeros(0, dtype=np.intp)
    if support.ndim != 1 or support.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be a mask or a one-dimensional array of column numbers, got an array "
            f"of {support.dtype} of shape {support.shape}."
        )
    if support.min() < 0 or support.max() >= n_features:
        raise ValueError(
            f"{name} must hold column numbers from 0 to {n_features - 1}, got numbers from "
            f"{support.min()} to {support.max()}."
        )
    return np.unique(support).astype(np.intp)
