"""NLGMS: a smooth, feature-sparse projection of data cleaned by self-representation."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from bsufs._typing import Array
from bsufs.graphs import in_safe_units
from bsufs.scatter import make_scatter
from bsufs.selectors._base import ScoringSelector
from bsufs.selectors._data import FitData
from bsufs.selectors._parameters import NOT_NEGATIVE, POSITIVE, constraints, one_of
from bsufs.solvers.components import components_above_noise, require_variation
from bsufs.solvers.self_representation import (
    SmoothnessOperator,
    bytes_needed,
    graph,
    self_representation,
)
from bsufs.stiefel import polar_factor

_N_RANDOM_STARTS = 10


@dataclass(repr=False, eq=False, kw_only=True)
class NLGMS(ScoringSelector):
    r"""Graph embedding with self-representation and a feature-sparse projection.

    With the features in the rows of X, each scaled to [0, 1], learns a graph S with Laplacian L, a
    self-representation Z with error E, and a projection W with k non-zero rows:

    .. math:: \min_{W'W = I,\, \|W\|_{2,0} = k} 2 \operatorname{tr}(W'(X-E) L (X-E)'W)
              + \alpha \|S\|_F^2 + \lambda_1 \|Z\|_* + \lambda_2 \|E\|_F^2
              \quad \text{with } X = XZ + E.

    Parameters
    ----------
    %(n_features_to_select)s
    n_components : int or "auto", default="auto"
        Number of columns m of W, at most k: a number, or "auto", the number of principal components
        above the noise edge (parallel analysis), below k where possible.
    %(n_neighbors)s
    lambda_nuclear : float, default=100.0
        Weight of the nuclear norm of Z, the paper's lambda_1.
    lambda_error : float, default=100.0
        Weight of the error, the paper's lambda_2.
    mu : float, default=1e-6
        First weight of the augmented Lagrangian.
    mu_growth : float, default=1.1
        What it is multiplied by in each iteration.
    init : {"pca", "random"}, default="pca"
        Where W starts: the leading principal components, or the best of ten random frames.
    %(compat)s
    max_iter : int, default=30
        Iterations at most.
    tol : float, default=1e-3
        Stop when the objective changes by less.
    max_memory : float, default=2.0
        The most memory to take, in units of 1e9 bytes; what needs more is refused.
    %(random_state)s

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Diagonal of A W (W'AW)^+ W'A with A = rho I - (X - E) L (X - E)': larger is better.
    %(fitted)s
    %(components_)s
        It applies to columns scaled to [0, 1].
    %(solution)s

    Notes
    -----
    Z, its copy and their multiplier are dense n x n matrices: in all the method needs about
    8 * (14 n^2 + 6 n d) bytes for n samples and d features, which with the default `max_memory`
    allows some 4200 samples. Pass a sample of the rows if there are more.

    The public code sorts the distances of the data where those of the projected samples are meant,
    so that its graph never changes; it starts from random frames; and with more features than
    samples its projection may leave the span of the samples, where it is arbitrary.
    ``compat="reference"`` keeps the first graph and does not restrict the projection; use it with
    ``init="random"`` for the rest.

    References
    ----------
    Bai, H., Huang, M., Zhong, P. (2024). Precise feature selection via non-convex regularized graph
    embedding and self-representation for unsupervised learning. Knowledge-Based Systems. Public
    code: https://github.com/hrbai/NLGMS.

    %(example)s
    """

    n_components: int | str = "auto"
    n_neighbors: int = 5
    lambda_nuclear: float = 100.0
    lambda_error: float = 100.0
    mu: float = 1e-6
    mu_growth: float = 1.1
    init: str = "pca"
    compat: str = "publication"
    max_iter: int = 30
    tol: float = 1e-3
    max_memory: float = 2.0
    random_state: Any = None

    _parameter_constraints = constraints(
        lambda_nuclear=NOT_NEGATIVE,
        lambda_error=NOT_NEGATIVE,
        init=one_of("pca", "random"),
        max_memory=POSITIVE,
    )

    def _score(self, data: FitData) -> Array:
        n, d = data.X.shape
        needed = bytes_needed(n, d) / 1e9
        if needed > self.max_memory:
            raise ValueError(
                f"NLGMS keeps dense n_samples x n_samples matrices and would need about "
                f"{needed:.1f} GB for {n} samples and {d} features, more than max_memory = "
                f"{self.max_memory:g} GB. Pass fewer rows, or raise max_memory if there is room."
            )
        k = self._n_to_select(d)
        X = in_safe_units(data.ordered)
        low, high = X.min(axis=0), X.max(axis=0)
        # Constant columns become zero.
        X = (X - low) / np.where(high > low, high - low, 1.0)
        solution, scores = self_representation(
            X,
            self._first_frame(X, k),
            k,
            n_neighbors=self.n_neighbors,
            lambda_nuclear=self.lambda_nuclear,
            lambda_error=self.lambda_error,
            mu=self.mu,
            mu_growth=self.mu_growth,
            max_iter=self.max_iter,
            tol=self.tol,
            reference=self.compat == "reference",
        )
        self._keep_frame(solution)
        return scores

    def _first_frame(self, X: Array, k: int) -> Array:
        # Not those of the data as they came: the method sees scaled columns.
        scatter = make_scatter(X)
        require_variation(scatter)
        if isinstance(self.n_components, str):
            m = min(components_above_noise(scatter), max(min(k - 1, scatter.max_rank), 1))
        else:
            m = self.n_components
            limit = k if self.compat == "reference" else min(k, scatter.max_rank)
            if m > limit:
                raise ValueError(
                    f"n_components must be at most the number of features to select and below the "
                    f"number of samples, {limit}, got {m}. Ask for fewer, or for 'auto'."
                )
        if self.init == "pca":
            return scatter.leading_eigenvectors(m)[1]
        rng = check_random_state(self.random_state)
        A = SmoothnessOperator(X, graph(X, self.n_neighbors)[1])
        shape = X.shape[1], m
        frames = (polar_factor(rng.standard_normal(shape)) for _ in range(_N_RANDOM_STARTS))
        return max(frames, key=lambda W: float(np.vdot(W, A @ W)))
