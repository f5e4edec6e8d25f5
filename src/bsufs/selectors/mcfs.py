"""MCFS: sparse regression on the smooth functions of the nearest-neighbor graph."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import Interval, StrOptions

from bsufs._typing import Array
from bsufs.graphs import affinity, in_safe_units, nearest_samples, spectral_responses
from bsufs.selectors._base import NUMBER_OF_FEATURES, ScoringSelector
from bsufs.selectors._data import FitData
from bsufs.solvers.components import components_above_noise
from bsufs.solvers.lars import Design, lars

# "auto" takes no more functions than this: each one costs a regression path.
_MOST_AUTO_COMPONENTS = 20


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
    n_features_to_select : int, float or "auto", default="auto"
        How many features to keep: a number, a share of all, or "auto", half of them.
    n_components : int or "auto", default="auto"
        The paper's K, how many functions to regress on, usually the number of clusters: a number,
        or "auto", the number of principal components above the noise edge (parallel analysis), at
        most 20. Cut to the number of functions that there are: below n_samples, and without those
        of eigenvalue zero; see `n_components_`.
    n_neighbors : int, default=5
        Neighbors of each sample; reduced to n_samples - 1 if there are fewer.
    n_nonzero : int or "auto", default="auto"
        The number s of active features at which each path stops; "auto" is the number of features
        to select.
    ridge : float, default=1e-3
        The number rho, relative to the mean squared length of the columns; with
        ``compat="reference"`` in the units of the data.
    compat : {"publication", "reference"}, default="publication"
        Whether to do what the publication means or what the reference code does, see Notes.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Larger is better; zero for features that were active on no path.
    ranking_ : array of int of shape (n_features,)
        1 for the best feature.
    support_ : array of bool of shape (n_features,)
        The selected features.
    selected_features_ : array of shape (n_features_to_select,)
        Names, or column numbers where there are no names, best first.
    n_components_ : int
        The number of functions regressed on.
    eigenvalues_ : array of shape (`n_components_`,)
        Their eigenvalues on the graph, at most one; near one is smooth.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : array of str
        Their names, if all are strings.

    Notes
    -----
    The publication has no ridge, and then a path ends at n_samples active features at the latest,
    and is not unique among copies. The reference code adds a ridge to the Gram matrix but not to
    the correlations, so that its path is not that of any objective. Here the ridge is in both,
    which is the exact path of the elastic net; ``ridge=0`` gives that of the lasso.

    As in the publication columns are not centered and there is no intercept: standardize data whose
    columns have large means.

    On a graph in several pieces the first functions are constant on each, and unique up to the sign
    for two pieces only. Here they are the indicators of the pieces but the largest, in order of
    size, made orthogonal, with the degrees as weights, to the constant and then to each other.

    The parameters k, n_eig and n_features of the reference runs are `n_neighbors`, `n_components`
    and `n_nonzero`, with ``compat="reference"``.

    References
    ----------
    Cai, D., Zhang, C., He, X. (2010). Unsupervised feature selection for multi-cluster data. KDD.

    Efron, B., Hastie, T., Johnstone, I., Tibshirani, R. (2004). Least angle regression. Annals of
    Statistics 32(2).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> from bsufs.selectors import MCFS
    >>> X = StandardScaler().fit_transform(load_wine().data)
    >>> selector = MCFS(4, n_components=2).fit(X)
    >>> selector.transform(X).shape
    (178, 4)
    """

    _accepts_sparse = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features_to_select": NUMBER_OF_FEATURES,
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "n_nonzero": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "compat": [StrOptions({"publication", "reference"})],
    }

    def __init__(
        self,
        n_features_to_select: int | float | str = "auto",
        *,
        n_components: int | str = "auto",
        n_neighbors: int = 5,
        n_nonzero: int | str = "auto",
        ridge: float = 1e-3,
        compat: str = "publication",
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.n_nonzero = n_nonzero
        self.ridge = ridge
        self.compat = compat

    def _score(self, data: FitData) -> Array:
        X = data.ordered
        n, d = X.shape
        n_nonzero = self._path_length(d)
        X = in_safe_units(X)
        neighbors = nearest_samples(X, min(self.n_neighbors + 1, n), with_mean_distance=True)
        self.eigenvalues_, responses = spectral_responses(
            affinity(neighbors, "heat"), self._n_responses(data)
        )
        self.n_components_ = self.eigenvalues_.size
        as_reference = self.compat == "reference"
        ridge = self.ridge * (1.0 if as_reference else _mean_squared_length(X))
        design = Design(X, ridge)
        scores = np.zeros(d)
        for response in responses.T:
            path = lars(design, response, n_nonzero, ridge_in_correlations=not as_reference)
            length = np.linalg.norm(path.coefficients)
            if length > 0:
                scores = np.maximum(scores, np.abs(path.coefficients) / length)
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

    def _n_responses(self, data: FitData) -> int:
        if not isinstance(self.n_components, str):
            return self.n_components
        return min(components_above_noise(data.scatter), _MOST_AUTO_COMPONENTS)


def _mean_squared_length(X: Any) -> float:
    values = X.data if sparse.issparse(X) else np.ravel(X)
    return float(np.vdot(values, values)) / int(X.shape[1])
