"""FSPCA: the principal subspace with at most k features."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from bsufs._typing import Array
from bsufs.penalties import row_norms
from bsufs.selectors._base import NUMBER_OF_FEATURES, ScoringSelector
from bsufs.selectors._data import FitData
from bsufs.selectors._parameters import NUMBER_OF_COMPONENTS
from bsufs.solvers.feature_sparse import feature_sparse_subspace
from bsufs.solvers.principal import in_units_of_data, principal_frame


class FSPCA(ScoringSelector):
    r"""Unsupervised feature selection by feature-sparse PCA.

    Looks for the m orthonormal components that explain most variance with k features,

    .. math:: \max_{W'W = I} \operatorname{tr}(W'SW)
              \quad\text{with at most } k \text{ non-zero rows of } W,

    with S the scatter matrix of the centered data. No weight has to be chosen. The start is the
    exact solution if S has rank at most m; otherwise each iteration solves a problem of that rank
    exactly, which never lowers the objective.

    Parameters
    ----------
    n_features_to_select : int, float or "auto", default="auto"
        How many features to keep: a number, a share of all, or "auto", half of them.
    n_components : int, float or "auto", default="auto"
        Number of components m; a share of the total variance that they reach; or "auto", the
        number of principal components above the noise edge (parallel analysis).
        No more than the features to select.
    solver : {"IPU", "Go"}, default="IPU"
        "IPU" iterates from the start of "Go", which is exact for rank m and cheap.
    max_iter : int, default=20
        Iterations at most; the run ends earlier when the features no longer change.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Squared row norms of W: larger is better, zero outside the features found.
    ranking_ : array of int of shape (n_features,)
        1 for the best feature.
    support_ : array of bool of shape (n_features,)
        The selected features.
    selected_features_ : array of shape (n_features_to_select,)
        Names, or column numbers where there are no names, best first.
    components_ : array of shape (n_components, n_features)
        The orthonormal W, transposed.
    n_components_ : int
        The number of components.
    objective_history_ : array
        tr(W'SW) at the start and after each iteration.
    n_iter_ : int
        Iterations done.
    stopping_reason_ : str
        "exact" (rank at most m), "converged" or "max_iter".
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : array of str
        Their names, if all are strings.

    Notes
    -----
    The method returns a set for the number of features asked for, and the sets for different
    numbers need not be nested. Within the set features are ranked by their row norm; outside all
    scores are zero, and the larger variance comes first.

    The public code always runs 20 iterations; ending when the set repeats gives the same result.
    Its parameters proj_dim, n_features and solver are `n_components`, `n_features_to_select` and
    `solver`, and the matrix A that it takes is S here.

    References
    ----------
    Tian, L., Nie, F., Wang, R., Li, X. (2020). Learning feature sparse principal subspace. Advances
    in Neural Information Processing Systems 33.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bsufs.selectors import FSPCA
    >>> selector = FSPCA(2, n_components=1).fit(load_iris().data)
    >>> selector.selected_features_
    array([2, 0])
    """

    _accepts_sparse = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features_to_select": NUMBER_OF_FEATURES,
        "n_components": NUMBER_OF_COMPONENTS,
        "solver": [StrOptions({"IPU", "Go"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_features_to_select: int | float | str = "auto",
        *,
        n_components: int | float | str = "auto",
        solver: str = "IPU",
        max_iter: int = 20,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_components = n_components
        self.solver = solver
        self.max_iter = max_iter

    def _score(self, data: FitData) -> Array:
        X = data.ordered
        d = X.shape[1]
        k = self._n_to_select(d)
        if isinstance(self.n_components, Integral) and int(self.n_components) > k:
            raise ValueError(
                f"n_components must be at most n_features_to_select = {k}, or the components "
                f"cannot be orthonormal, got {self.n_components}. Ask for fewer components, more "
                "features, or n_components='auto'."
            )
        scatter = data.scatter
        eigenvalues, eigenvectors = principal_frame(scatter, self.n_components)
        result = feature_sparse_subspace(
            scatter,
            eigenvalues[:k],
            eigenvectors[:, :k],
            k,
            max_iter=self.max_iter if self.solver == "IPU" else 0,
        )
        self.components_ = result.W.T
        self.n_components_ = result.W.shape[1]
        self.objective_history_ = in_units_of_data(scatter, result.objective_history)
        self.n_iter_ = result.n_iter
        self.stopping_reason_ = result.stopping_reason
        return row_norms(result.W) ** 2
