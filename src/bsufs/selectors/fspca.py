"""FSPCA: the principal subspace with at most k features."""

from dataclasses import dataclass
from numbers import Integral

from bsufs._typing import Array
from bsufs.selectors._base import ScoringSelector
from bsufs.selectors._data import FitData
from bsufs.selectors._parameters import NUMBER_OF_COMPONENTS, constraints, one_of
from bsufs.solvers.components import principal_frame
from bsufs.solvers.feature_sparse import feature_sparse_subspace


@dataclass(repr=False, eq=False, kw_only=True)
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
    %(n_features_to_select)s
    %(n_components)s
        No more than the features to select.
    solver : {"IPU", "Go"}, default="IPU"
        "IPU" iterates from the start of "Go", which is exact for rank m and cheap.
    max_iter : int, default=20
        Iterations at most; the run ends earlier when the features no longer change.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Squared row norms of W: larger is better, zero outside the features found.
    %(fitted)s
    %(components_)s
    objective_history_ : array
        tr(W'SW) at the start and after each iteration.
    n_iter_ : int
        Iterations done.
    stopping_reason_ : str
        "exact" (rank at most m), "converged" or "max_iter".

    Notes
    -----
    The method returns a set for the number of features asked for, and the sets for different
    numbers need not be nested. Within the set features are ranked by their row norm; outside all
    scores are zero, and the larger variance comes first.

    The public code always runs 20 iterations; ending when the set repeats gives the same result. It
    calls `n_components` proj_dim and `n_features_to_select` n_features.

    References
    ----------
    Tian, L., Nie, F., Wang, R., Li, X. (2020). Learning feature sparse principal subspace. Advances
    in Neural Information Processing Systems 33.

    %(example)s
    """

    n_components: int | float | str = "auto"
    solver: str = "IPU"
    max_iter: int = 20

    _accepts_sparse = True
    _parameter_constraints = constraints(
        n_components=NUMBER_OF_COMPONENTS, solver=one_of("IPU", "Go")
    )

    def _score(self, data: FitData) -> Array:
        scatter = data.scatter
        k = self._n_to_select(data.n_features)
        if isinstance(self.n_components, Integral) and int(self.n_components) > k:
            raise ValueError(
                f"n_components must be at most n_features_to_select = {k}, or the components "
                f"cannot be orthonormal, got {self.n_components}. Ask for fewer components, more "
                "features, or n_components='auto'."
            )
        values, vectors = principal_frame(scatter, self.n_components)
        max_iter = self.max_iter if self.solver == "IPU" else 0
        solution = feature_sparse_subspace(scatter, values[:k], vectors[:, :k], k, max_iter)
        return self._keep_frame(solution, scatter.unit_exponent)
