"""UDFS: a projection with few features that keeps neighborhoods apart."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from bsufs._typing import Array, Indices
from bsufs.graphs import discriminative_laplacian, in_safe_units, local_variance, nearest_samples
from bsufs.penalties import row_norms
from bsufs.selectors._base import NUMBER_OF_FEATURES, ScoringSelector
from bsufs.selectors._data import FitData
from bsufs.selectors._parameters import checked_array, n_directions
from bsufs.solvers.reweighted import (
    FactoredForm,
    QuadraticForm,
    reweighted_eigenvectors,
    row_weights,
)
from bsufs.solvers.row_space import factor_of_samples, form_of_samples, row_space

# With gamma="auto" the penalty of a frame with rows of equal length is this share of the mean
# value of the quadratic form.
_AUTO_SHARE = 0.1


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
    n_features_to_select : int, float or "auto", default="auto"
        How many features to keep: a number, a share of all, or "auto", half of them.
    n_components : int or "auto", default="auto"
        Number of directions m, usually the number of clusters: a number, or "auto", the number of
        principal components above the noise edge (parallel analysis).
    n_neighbors : int, default=5
        Neighbors of each sample; reduced to n_samples - 1 if there are fewer.
    gamma : float or "auto", default="auto"
        Weight of the row penalty. "auto" makes the penalty of a frame with equal rows a tenth of
        the mean of the first term.
    ridge : float, default=1e-2
        The number lambda, relative to the mean eigenvalue of the local scatter matrices; with
        ``compat="reference"`` in the units of the data squared.
    x0 : array of shape (n_features,), optional
        Row norms of a first W, in the order of the columns of X: the first weights are
        :math:`1 / (2 \sqrt{x_0^2 + \epsilon})`. By default all weights are one.
    compat : {"publication", "reference"}, default="publication"
        Whether to do what the publication means or what the reference code does, see Notes.
    max_iter : int, default=20
        Iterations at most; with ``compat="reference"`` all of them are done.
    tol : float, default=1e-6
        Stop when the objective changes relatively by less.

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
        The orthonormal W, transposed.
    n_components_ : int
        The number of directions.
    gamma_ : float
        The weight used.
    objective_history_ : array
        The objective after each iteration; it never increases.
    n_iter_ : int
        Iterations done.
    stopping_reason_ : str
        "converged" or "max_iter".
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : array of str
        Their names, if all are strings.

    Notes
    -----
    With more features than samples, and with constant columns, the first term is zero on a whole
    subspace in which no two samples differ, and the directions found there say nothing about the
    data; which of them the reference code returns is up to its eigensolver. Here W is restricted to
    the span of the centered samples. For data that span all dimensions this changes nothing. With
    ``compat="reference"`` there is no such restriction; with more features than samples the result
    then has a meaning only if `x0` is given.

    For n_features <= n_neighbors + 1 the reference code uses another, differently scaled formula
    for L; only ``compat="reference"`` does so here.

    The parameters k, gamma, lambda, proj_dim and x0 of the reference runs are `n_neighbors`,
    `gamma`, `ridge`, `n_components` and `x0` (linear: ``0.5 + 0.5 * np.arange(1, d + 1) / d``),
    with ``compat="reference"``; its defaults are one neighbor and 1e-5 for both weights.

    References
    ----------
    Yang, Y., Shen, H. T., Ma, Z., Huang, Z., Zhou, X. (2011). l2,1-norm regularized discriminative
    feature selection for unsupervised learning. IJCAI.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> from bsufs.selectors import UDFS
    >>> X = StandardScaler().fit_transform(load_wine().data)
    >>> selector = UDFS(4, n_components=3).fit(X)
    >>> selector.transform(X).shape
    (178, 4)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features_to_select": NUMBER_OF_FEATURES,
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "ridge": [Interval(Real, 0, None, closed="neither")],
        "x0": ["array-like", None],
        "compat": [StrOptions({"publication", "reference"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    components_: Array

    def __init__(
        self,
        n_features_to_select: int | float | str = "auto",
        *,
        n_components: int | str = "auto",
        n_neighbors: int = 5,
        gamma: float | str = "auto",
        ridge: float = 1e-2,
        x0: Any = None,
        compat: str = "publication",
        max_iter: int = 20,
        tol: float = 1e-6,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.gamma = gamma
        self.ridge = ridge
        self.x0 = x0
        self.compat = compat
        self.max_iter = max_iter
        self.tol = tol

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

    def _score(self, data: FitData) -> Array:
        X, order = data.ordered, data.order
        X = in_safe_units(X)
        d = X.shape[1]
        form, trace, rank = self._form(X)
        m = n_directions(self.n_components, data, rank)
        self.n_components_ = m
        self.components_ = np.zeros((m, d))
        if rank == 0:
            # Nothing varies, so no feature is better than another.
            self.gamma_ = 0.0
            self.objective_history_: Array = np.zeros(0)
            self.n_iter_, self.stopping_reason_ = 0, "converged"
            return np.zeros(d)
        mean_value = trace / rank * m
        if isinstance(self.gamma, str):
            self.gamma_ = _AUTO_SHARE * mean_value / np.sqrt(d * m) or 1.0
        else:
            self.gamma_ = float(self.gamma)
        result = reweighted_eigenvectors(
            form,
            m,
            gamma=self.gamma_,
            start_weights=self._start_weights(order),
            max_iter=self.max_iter,
            tol=None if self.compat == "reference" else self.tol * mean_value,
        )
        self.components_ = result.W.T
        self.objective_history_ = result.objective_history
        self.n_iter_ = result.n_iter
        self.stopping_reason_ = result.stopping_reason
        return row_norms(result.W) ** 2

    def _form(self, X: Array) -> tuple[QuadraticForm, float, int]:
        """Return the form X'LX, its trace, and the dimension of the space it lives in."""
        n, d = X.shape
        k = min(self.n_neighbors + 1, n)
        indices = nearest_samples(X, k).indices
        if self.compat != "reference":
            ridge = self.ridge * (local_variance(X, indices) or 1.0)
            L = self._laplacian(X, indices, ridge)
            # Constant vectors are in the null space of L: centering changes nothing but rounding.
            form = form_of_samples(X - X.mean(axis=0), L, row_space(X))
            return form, float(form.K.trace()), form.K.shape[0]
        L = self._laplacian(X, indices, self.ridge, swapped_ridge=d <= k)
        if d <= n:
            dense = form_of_samples(X, L, None)
            return dense, float(dense.K.trace()), d
        A = factor_of_samples(X, L)
        return FactoredForm(A), float(np.vdot(A, A)), d

    def _laplacian(self, X: Array, indices: Indices, ridge: float, **options: bool) -> Any:
        try:
            return discriminative_laplacian(X, indices, ridge, **options)
        except np.linalg.LinAlgError as error:
            raise ValueError(
                "ridge must be large enough to make the local systems regular, got "
                f"{self.ridge:g}, with which one is singular. Raise it; repeated samples and data "
                "with large numbers need more, or drop the former and scale the latter."
            ) from error
