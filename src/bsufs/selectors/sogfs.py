"""SOGFS: a projection with few features, learned together with a graph in pieces."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from bsufs._typing import Array
from bsufs.graphs import adaptive_neighbors, directed_affinity, in_safe_units, symmetric
from bsufs.penalties import row_norms
from bsufs.selectors._base import NUMBER_OF_FEATURES, ScoringSelector
from bsufs.selectors._data import FitData
from bsufs.selectors._parameters import n_directions
from bsufs.solvers.reweighted import FactoredForm, QuadraticForm
from bsufs.solvers.row_space import factor_of_samples, form_of_samples, row_space
from bsufs.solvers.structured_graph import GraphSettings, structured_graph

# With gamma="auto" the penalty of a frame with rows of equal length is this share of the mean
# value of the quadratic form.
_AUTO_SHARE = 0.1


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
    n_features_to_select : int, float or "auto", default="auto"
        How many features to keep: a number, a share of all, or "auto", half of them.
    n_components : int or "auto", default="auto"
        Number of columns m of W: a number, or "auto", the number of principal components of the
        standardized data above the noise edge (parallel analysis).
    n_clusters : int or "auto", default="auto"
        Number of pieces of the graph; "auto" is one more than the number of components.
    n_neighbors : int, default=5
        Neighbors of each sample; reduced to n_samples - 2 if there are fewer.
    gamma : float or "auto", default="auto"
        Weight of the row penalty. "auto" makes the penalty of a frame with equal rows a tenth of
        the mean of the first term; since columns have unit length, useful numbers are between 1e-4
        and 0.1.
    compat : {"publication", "reference"}, default="publication"
        Whether to do what the publication means or what the reference code does, see Notes.
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
    ranking_ : array of int of shape (n_features,)
        1 for the best feature.
    support_ : array of bool of shape (n_features,)
        The selected features.
    selected_features_ : array of shape (n_features_to_select,)
        Names, or column numbers where there are no names, best first.
    components_ : array of shape (n_components, n_features)
        The orthonormal W, transposed; it applies to standardized columns.
    n_components_ : int
        Its number of columns.
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
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : array of str
        Their names, if all are strings.

    Notes
    -----
    With more features than samples the first term is zero on a whole subspace in which no two
    samples differ; which directions of it the reference code returns is up to its eigensolver. Here
    W is restricted to the span of the centered samples. For data that span all dimensions this
    changes nothing.

    The default weight of the reference code, 100, reduces W to m unit vectors, so that all but m
    features are ranked by rounding; "auto" gives graded scores.

    Samples whose neighbors are all equally far weigh them alike here, and not at all in the
    reference code; and a copy in an earlier row is not taken for the sample itself.

    The parameters gamma, proj_dim, n_clusters, k and max_outer of the reference runs are `gamma`,
    `n_components`, `n_clusters`, `n_neighbors` and `max_iter`, with ``compat="reference"``.

    Memory grows with n_samples * (n_neighbors + n_clusters) and the square of the smaller of
    n_samples and n_features; time with the square of n_samples in each iteration.

    References
    ----------
    Nie, F., Zhu, W., Li, X. (2016). Unsupervised feature selection with structured graph
    optimization. AAAI.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from bsufs.selectors.sogfs import SOGFS
    >>> X = load_wine().data
    >>> selector = SOGFS(4, n_components=2, n_clusters=3).fit(X)
    >>> selector.transform(X).shape
    (178, 4)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features_to_select": NUMBER_OF_FEATURES,
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "n_clusters": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "compat": [StrOptions({"publication", "reference"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_reweightings": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    components_: Array

    def __init__(
        self,
        n_features_to_select: int | float | str = "auto",
        *,
        n_components: int | str = "auto",
        n_clusters: int | str = "auto",
        n_neighbors: int = 5,
        gamma: float | str = "auto",
        compat: str = "publication",
        max_iter: int = 50,
        max_reweightings: int = 100,
        tol: float = 1e-6,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_components = n_components
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.gamma = gamma
        self.compat = compat
        self.max_iter = max_iter
        self.max_reweightings = max_reweightings
        self.tol = tol

    def _score(self, data: FitData) -> Array:
        X = data.ordered
        n, d = X.shape
        literal = self.compat == "reference"
        Z = _standardized(in_safe_units(X), smoothed=literal)
        basis = None if literal else row_space(Z)
        rank = d if basis is None else basis.shape[1]
        self._choose_sizes(Z, rank)
        if rank == 0:
            return self._score_of_nothing(Z)

        def make_form(L: Any) -> QuadraticForm:
            if literal and d > n:
                return FactoredForm(factor_of_samples(Z, L))
            return form_of_samples(Z, L, basis)

        settings = GraphSettings(
            n_components=self.n_components_,
            n_clusters=self.n_clusters_,
            n_neighbors=self.n_neighbors,
            gamma=self.gamma_,
            max_iter=self.max_iter,
            max_reweightings=self.max_reweightings,
            tol=self.tol,
            literal=literal,
        )
        result = structured_graph(Z, make_form, settings)
        self.components_ = result.W.T
        self.affinity_ = result.affinity
        self.rank_weight_ = result.rank_weight
        self.objective_history_ = result.objective_history
        self.n_iter_ = result.n_iter
        self.stopping_reason_ = result.stopping_reason
        return row_norms(result.W) ** 2

    def _choose_sizes(self, Z: Array, rank: int) -> None:
        """Set the numbers of components and of clusters, and the weight that goes with them."""
        n, d = Z.shape
        m = n_directions(self.n_components, FitData(Z), rank)
        c = min(m + 1, n) if isinstance(self.n_clusters, str) else self.n_clusters
        if c > n:
            raise ValueError(
                f"n_clusters must be at most the number of samples, {n}, got {c}. Ask for fewer."
            )
        self.n_components_, self.n_clusters_ = m, c
        if isinstance(self.gamma, str):
            # Columns have unit length, and their mean squared slope on a graph is about one.
            self.gamma_ = _AUTO_SHARE * float(np.sqrt(m * d)) / max(rank, 1)
        else:
            self.gamma_ = float(self.gamma)

    def _score_of_nothing(self, Z: Array) -> Array:
        """Score where nothing varies: no feature beats another, no graph the first."""
        indices, weights, self.rank_weight_ = adaptive_neighbors(Z, self.n_neighbors)
        self.affinity_ = symmetric(directed_affinity(indices, weights))
        self.components_ = np.zeros((self.n_components_, Z.shape[1]))
        self.objective_history_ = np.zeros(0)
        self.n_iter_, self.stopping_reason_ = 0, "converged"
        return np.zeros(Z.shape[1])


def _standardized(X: Array, smoothed: bool) -> Array:
    """Return centered columns of unit length; constant columns become zero."""
    constant = (X[0] == X).all(axis=0)
    Z: Array = X - X.mean(axis=0)
    squares = np.einsum("ij,ij->j", Z, Z)
    if smoothed:
        scale = np.sqrt(squares + np.finfo(np.float64).eps)
    else:
        Z[:, constant] = 0.0
        scale = np.where(constant | (squares <= 0), 1.0, np.sqrt(squares))
    Z /= scale
    return Z
