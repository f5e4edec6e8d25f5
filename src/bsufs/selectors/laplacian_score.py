"""Laplacian score: features that vary smoothly over the nearest-neighbor graph."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from bsufs._typing import Array
from bsufs.graphs import affinity, in_safe_units, nearest_samples
from bsufs.scatter._base import batches
from bsufs.selectors._base import ScoringSelector
from bsufs.selectors._data import FitData
from bsufs.selectors._parameters import constraints, one_of


@dataclass(repr=False, eq=False, kw_only=True)
class LaplacianScore(ScoringSelector):
    r"""Unsupervised feature selection by the Laplacian score.

    A good feature takes similar values on neighboring samples and varies between distant ones.
    With affinities G of a nearest-neighbor graph, degrees D, and a column f centered by its
    D-weighted mean,

    .. math:: \text{score}(f) = \frac{f' G f}{f' D f} = 1 - \frac{f' L f}{f' D f}, \qquad L = D - G.

    Parameters
    ----------
    %(n_features_to_select)s
    %(n_neighbors)s
    weight : {"heat", "binary", "cosine"}, default="heat"
        Weight of an edge: exp(-d^2 / 2t^2) with t the mean of all distances between samples, one,
        or the cosine of the two samples.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        One minus the Laplacian score: larger is better.
    %(fitted)s

    Notes
    -----
    The publication leaves t open; the mean distance makes the score independent of the unit of the
    data. Two samples are joined if either is among the neighbors of the other; those at equal
    distance are taken in the order of the rows. The reference implementation gives the same scores.
    Memory grows with n_samples * n_neighbors; time with the square of n_samples.

    References
    ----------
    He, X., Cai, D., Niyogi, P. (2005). Laplacian score for feature selection. Advances in Neural
    Information Processing Systems 18.

    %(example)s
    """

    n_neighbors: int = 5
    weight: str = "heat"

    _accepts_sparse = True
    _parameter_constraints = constraints(weight=one_of("heat", "binary", "cosine"))

    def _score(self, data: FitData) -> Array:
        X = in_safe_units(data.ordered)
        count = min(self.n_neighbors + 1, X.shape[0])
        neighbors = nearest_samples(X, count, with_mean_distance=self.weight == "heat")
        return rayleigh_scores(X, affinity(neighbors, self.weight, X))


def rayleigh_scores(X: Any, G: Any) -> Array:
    """Return f'Gf / f'Df of each column f, centered by its mean with the degrees D as weights."""
    degrees = G.sum(axis=1)
    total = float(degrees.sum())
    scores = np.zeros(X.shape[1])
    if total <= 0:
        return scores
    for columns in batches(X.shape[1], X.shape[0]):
        F = X[:, columns].toarray() if sparse.issparse(X) else X[:, columns]
        rounding = 1e-28 * (degrees @ F**2)
        F = F - (degrees @ F) / total
        above, below = np.einsum("ij,ij->j", F, G @ F), degrees @ F**2
        np.divide(above, below, out=scores[columns], where=below > rounding)
    return scores
