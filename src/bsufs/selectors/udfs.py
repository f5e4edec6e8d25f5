"""UDFS: a projection with few features that keeps neighborhoods apart."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bsufs._typing import Array, Indices
from bsufs.graphs import discriminative_laplacian, in_safe_units, local_grams, nearest_samples
from bsufs.selectors._base import ScoringSelector
from bsufs.selectors._data import FitData
from bsufs.selectors._parameters import POSITIVE, checked_array, constraints
from bsufs.solvers.forms import row_space, samples_form
from bsufs.solvers.reweighted import reweighted_eigenvectors, row_weights


@dataclass(repr=False, eq=False, kw_only=True)
class UDFS(ScoringSelector):
    r"""Unsupervised discriminative feature selection.

    Looks for m orthonormal directions in which every neighborhood, taken as a cluster of its own,
    is well told apart, with few features:

    .. math:: \min_{W'W = I} \operatorname{tr}(W' X'LX W) + \gamma \sum_i \|w^i\|, \qquad
              L = \sum_i P_i' J (\lambda I + Y_i Y_i')^{-1} J P_i,

    where :math:`P_i` picks a sample and its k nearest neighbors, J centers them and :math:`Y_i`
    holds the centered neighborhood.

    Parameters
    ----------
    %(n_features_to_select)s
    n_components : int or "auto", default="auto"
        Number of directions m, usually the number of clusters: a number, or "auto", the number of
        principal components above the noise edge (parallel analysis), at most 64.
    %(n_neighbors)s
    gamma : float or "auto", default="auto"
        Weight of the row penalty. "auto" makes the penalty of a frame with equal rows a tenth of
        the mean of the first term.
    ridge : float, default=1e-2
        The number lambda, relative to the mean eigenvalue of the local scatter matrices; with
        ``compat="reference"`` in the units of the data squared.
    x0 : array of shape (n_features,), optional
        Row norms of a first W, in the order of the columns of X: the first weights are
        :math:`1 / (2 \sqrt{x_0^2 + \epsilon})`. By default all weights are one.
    %(compat)s
    max_iter : int, default=20
        Iterations at most; with ``compat="reference"`` all of them are done.
    tol : float, default=1e-6
        Stop when the objective changes relatively by less.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Squared row norms of W: larger is better.
    %(fitted)s
    %(components_)s
    gamma_ : float
        The weight used.
    %(solution)s
        It never increases.

    Notes
    -----
    With more features than samples, and with constant columns, the first term is zero on a whole
    subspace in which no two samples differ; which directions of it the reference code returns is up
    to its eigensolver. Here W is restricted to the span of the centered samples, which changes
    nothing for data that span all dimensions. With ``compat="reference"`` it is not, and the result
    for more features than samples has a meaning only if `x0` is given.

    For n_features <= n_neighbors + 1 the reference code uses another, differently scaled formula
    for L; only ``compat="reference"`` does so here. The reference runs call `n_neighbors` k,
    `ridge` lambda and `n_components` proj_dim; their x0 is
    ``0.5 + 0.5 * np.arange(1, d + 1) / d``.

    References
    ----------
    Yang, Y., Shen, H. T., Ma, Z., Huang, Z., Zhou, X. (2011). l2,1-norm regularized discriminative
    feature selection for unsupervised learning. IJCAI.

    %(example)s
    """

    n_components: int | str = "auto"
    n_neighbors: int = 5
    gamma: float | str = "auto"
    ridge: float = 1e-2
    x0: Any = None
    compat: str = "publication"
    max_iter: int = 20
    tol: float = 1e-6

    _parameter_constraints = constraints(ridge=POSITIVE, x0=["array-like", None])

    def _score(self, data: FitData) -> Array:
        X = in_safe_units(data.ordered)
        d = X.shape[1]
        reference = self.compat == "reference"
        L = self._laplacian(X)
        if not reference:
            # Constant vectors are in the null space of L: centering changes nothing but rounding.
            X = X - X.mean(axis=0)
        form = samples_form(X, L, None if reference else row_space(data.ordered))
        m = self._n_directions(data, form.dimension)
        mean_value = float(np.vdot(X, L @ X)) / max(form.dimension, 1) * m
        solution = reweighted_eigenvectors(
            form,
            m,
            gamma=self._keep_gamma(mean_value, float(np.sqrt(d * m))),
            start_weights=self._start_weights(data.order),
            max_iter=self.max_iter,
            tol=None if reference else self.tol * mean_value,
        )
        return self._keep_frame(solution)

    def _start_weights(self, order: Indices) -> Array | None:
        if self.x0 is None:
            return None
        x0 = checked_array(
            "x0",
            self.x0,
            order.shape,
            f"None or an array of shape (n_features,) = ({order.size},)",
            "Leave x0 out to start with equal weights.",
        )
        return row_weights(x0[order] ** 2, 1.0)

    def _laplacian(self, X: Array) -> Any:
        n, d = X.shape
        k = min(self.n_neighbors + 1, n)
        indices = nearest_samples(X, k).indices
        grams = local_grams(X, indices)
        reference = self.compat == "reference"
        mean_eigenvalue = float(np.einsum("ijj->", grams)) / (n * max(k - 1, 1))
        ridge = self.ridge * (1.0 if reference else mean_eigenvalue or 1.0)
        swapped = reference and d <= k
        try:
            return discriminative_laplacian(grams, indices, ridge, swapped_ridge=swapped)
        except np.linalg.LinAlgError as error:
            raise ValueError(
                "ridge must be large enough to make the local systems regular, got "
                f"{self.ridge:g}, with which one is singular. Raise it; repeated samples and data "
                "with large numbers need more, or drop the former and scale the latter."
            ) from error
