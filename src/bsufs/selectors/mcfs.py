"""MCFS: sparse regression on the smooth functions of the nearest-neighbor graph."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms

from bsufs._typing import Array
from bsufs.graphs import affinity, in_safe_units, nearest_samples, spectral_responses
from bsufs.selectors._base import ScoringSelector
from bsufs.selectors._data import FitData
from bsufs.selectors._parameters import COUNT_OR_AUTO, NOT_NEGATIVE, constraints
from bsufs.solvers.components import components_above_noise
from bsufs.solvers.forms import short_root
from bsufs.solvers.lars import lars

# "auto" takes no more functions than this: each one costs a regression path.
_MOST_AUTO_COMPONENTS = 20


@dataclass(repr=False, eq=False, kw_only=True)
class MCFS(ScoringSelector):
    r"""Multi-cluster feature selection.

    The smoothest functions :math:`y_1, \dots, y_K` on a nearest-neighbor graph unfold the clusters
    of the data. Each is regressed on the features with as few of them as are to be selected:

    .. math:: \min_{a_k} \|y_k - X a_k\|^2 + \rho \|a_k\|^2
              \quad \text{with at most } s \text{ non-zero coefficients on the lasso path},

    and the score of a feature is the largest modulus of its coefficient in the vectors
    :math:`a_k / \|a_k\|`.

    Parameters
    ----------
    %(n_features_to_select)s
    n_components : int or "auto", default="auto"
        The paper's K, how many functions to regress on, usually the number of clusters: a number,
        or "auto", the number of principal components above the noise edge (parallel analysis), at
        most 20. There may be fewer: below n_samples, and without those of eigenvalue zero.
    %(n_neighbors)s
    n_nonzero : int or "auto", default="auto"
        The number s of active features at which each path stops; "auto" is the number of features
        to select.
    ridge : float, default=1e-3
        The number rho, relative to the mean squared length of the columns; with
        ``compat="reference"`` in the units of the data.
    %(compat)s

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Larger is better; zero for features that were active on no path.
    %(fitted)s
    n_components_ : int
        The number of functions regressed on.
    eigenvalues_ : array of shape (`n_components_`,)
        Their eigenvalues on the graph, at most one; near one is smooth.

    Notes
    -----
    The publication has no ridge, and then a path ends at n_samples active features at the latest,
    and is not unique among duplicates. The reference code adds a ridge to the Gram matrix but not
    to the correlations, so that its path is not that of any objective. Here the ridge is in both,
    which is the exact path of the elastic net; ``ridge=0`` gives that of the lasso. As in the
    publication there is no intercept: standardize data whose columns have large means.

    On a graph in several pieces the first functions are constant on each, and unique up to the sign
    for two pieces only. Here they are the indicators of the pieces but the largest, in order of
    size, made orthogonal, with the degrees as weights, to the constant and then to each other.

    The reference runs call `n_neighbors` k, `n_components` n_eig and `n_nonzero` n_features.

    References
    ----------
    Cai, D., Zhang, C., He, X. (2010). Unsupervised feature selection for multi-cluster data. KDD.

    Efron, B., Hastie, T., Johnstone, I., Tibshirani, R. (2004). Least angle regression. Annals of
    Statistics 32(2).

    %(example)s
    """

    n_components: int | str = "auto"
    n_neighbors: int = 5
    n_nonzero: int | str = "auto"
    ridge: float = 1e-3
    compat: str = "publication"

    _accepts_sparse = True
    _parameter_constraints = constraints(n_nonzero=COUNT_OR_AUTO, ridge=NOT_NEGATIVE)

    def _score(self, data: FitData) -> Array:
        X = in_safe_units(data.ordered)
        n, d = X.shape
        n_nonzero = self._path_length(d)
        n_responses = self.n_components
        if isinstance(n_responses, str):
            n_responses = min(components_above_noise(data.scatter), _MOST_AUTO_COMPONENTS)
        neighbors = nearest_samples(X, min(self.n_neighbors + 1, n), with_mean_distance=True)
        self.eigenvalues_, responses = spectral_responses(affinity(neighbors, "heat"), n_responses)
        self.n_components_ = self.eigenvalues_.size
        reference = self.compat == "reference"
        # The mean squared length of the columns.
        unit = 1.0 if reference else float(row_norms(X, squared=True).sum()) / d
        root = sparse.csc_array(X) if sparse.issparse(X) else short_root(X)
        scores = np.zeros(d)
        for response in responses.T:
            b = lars(
                root,
                X.T @ response,
                n_nonzero,
                ridge=self.ridge * unit,
                ridge_in_correlations=not reference,
            )
            length = np.linalg.norm(b)
            if length > 0:
                scores = np.maximum(scores, np.abs(b) / length)
        return scores

    def _path_length(self, d: int) -> int:
        if isinstance(self.n_nonzero, str):
            return self._n_to_select(d)
        if self.n_nonzero > d:
            raise ValueError(
                f"n_nonzero must be at most the number of features, {d}, got {self.n_nonzero}. Ask "
                "for fewer, or for 'auto'."
            )
        return self.n_nonzero
