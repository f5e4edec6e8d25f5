"""SOGFS: a projection with few features, learned together with a graph in pieces."""

from dataclasses import dataclass

import numpy as np

from bsufs._typing import Array
from bsufs.selectors._base import ScoringSelector
from bsufs.selectors._data import FitData
from bsufs.selectors._parameters import COUNT, COUNT_OR_AUTO, constraints
from bsufs.solvers.forms import centered, row_space
from bsufs.solvers.structured_graph import structured_graph


@dataclass(repr=False, eq=False, kw_only=True)
class SOGFS(ScoringSelector):
    r"""Unsupervised feature selection with a structured optimal graph.

    Learns at once a projection W with few features, and a graph A of the projected samples that
    falls into a given number of pieces:

    .. math:: \min_{W'W = I,\, F'F = I,\, A \ge 0,\, A1 = 1} \sum_{ij} \left(
              \|W'z_i - W'z_j\|^2 a_{ij} + r a_{ij}^2 \right) + \gamma \sum_i \|w^i\|
              + 2 \lambda \operatorname{tr}(F' L_A F)

    for standardized samples :math:`z_i`, with lambda adapted until the graph has its pieces.

    Parameters
    ----------
    %(n_features_to_select)s
    n_components : int or "auto", default="auto"
        Number of columns m of W: a number, or "auto", the number of principal components of the
        standardized data above the noise edge (parallel analysis).
    n_clusters : int or "auto", default="auto"
        Number of pieces of the graph; "auto" is one more than the number of components.
    %(n_neighbors)s
    gamma : float or "auto", default="auto"
        Weight of the row penalty. "auto" makes the penalty of a frame with equal rows a tenth of
        the mean of the first term; since columns have unit length, useful numbers are between 1e-4
        and 0.1.
    %(compat)s
    max_iter : int, default=50
        Iterations at most.
    max_reweightings : int, default=100
        Eigenproblems at most in each step of W.
    tol : float, default=1e-6
        A step of W ends when its value changes by less.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Squared row norms of W: larger is better.
    %(fitted)s
    %(components_)s
        It applies to standardized columns.
    n_clusters_ : int
        The number of pieces asked for.
    affinity_ : sparse array of shape (n_samples, n_samples)
        The learned graph.
    gamma_, rank_weight_ : float
        The weight of the row penalty, and the last lambda.
    objective_history_ : array
        First term and row penalty at the start and after each iteration.
    n_iter_ : int
        Iterations done.
    stopping_reason_ : str
        "converged" if the graph has its pieces, or "max_iter".

    Notes
    -----
    With more features than samples the first term is zero on a whole subspace, see `UDFS`; here W
    is restricted to the span of the centered samples. The default weight of the reference code,
    100, reduces W to m unit vectors, so that all but m features are ranked by rounding; "auto"
    gives graded scores.

    Samples whose neighbors are all equally far weigh them alike here, and not at all in the
    reference code; and a duplicate in an earlier row is not taken for the sample itself. The
    reference runs call `n_components` proj_dim, `n_neighbors` k and `max_iter` max_outer.

    Memory grows with n_samples * (n_neighbors + n_clusters) and min(n_samples, n_features)^2, the
    time of an iteration with n_samples^2.

    References
    ----------
    Nie, F., Zhu, W., Li, X. (2016). Unsupervised feature selection with structured graph
    optimization. AAAI.

    %(example)s
    """

    n_components: int | str = "auto"
    n_clusters: int | str = "auto"
    n_neighbors: int = 5
    gamma: float | str = "auto"
    compat: str = "publication"
    max_iter: int = 50
    max_reweightings: int = 100
    tol: float = 1e-6

    _parameter_constraints = constraints(n_clusters=COUNT_OR_AUTO, max_reweightings=COUNT)

    def _score(self, data: FitData) -> Array:
        reference = self.compat == "reference"
        Z = centered(data.ordered)
        n, d = Z.shape
        squares: Array = np.einsum("ij,ij->j", Z, Z)
        # Constant columns stay zero.
        Z /= np.sqrt(squares + np.finfo(np.float64).eps if reference else squares + (squares == 0))
        basis = None if reference else row_space(Z)
        rank = d if basis is None else basis.shape[1]
        m = self._n_directions(FitData(Z), rank)
        self.n_clusters_ = min(m + 1, n) if isinstance(self.n_clusters, str) else self.n_clusters
        if self.n_clusters_ > n:
            raise ValueError(
                f"n_clusters must be at most the number of samples, {n}, got {self.n_clusters}. "
                "Ask for fewer."
            )
        solution, self.affinity_, self.rank_weight_ = structured_graph(
            Z,
            basis,
            n_components=m,
            n_clusters=self.n_clusters_,
            n_neighbors=self.n_neighbors,
            # Columns have unit length, so the first term of a frame is m d / rank on average; the
            # penalty of one with equal rows is sqrt(m d).
            gamma=self._keep_gamma(float(np.sqrt(m * d)), max(rank, 1)),
            max_iter=self.max_iter,
            max_reweightings=self.max_reweightings,
            tol=self.tol,
            reference=reference,
        )
        return self._keep_frame(solution)
