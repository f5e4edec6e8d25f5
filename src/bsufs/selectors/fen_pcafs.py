"""FEN-PCAFS: PCA with a fuzzy elastic net."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from bsufs._typing import Array
from bsufs.penalties import row_norms
from bsufs.scatter import DenseScatter, FactoredScatter, Scatter
from bsufs.selectors._base import NUMBER_OF_FEATURES, Scored, ScoringSelector
from bsufs.selectors._data import FitData
from bsufs.selectors._parameters import NUMBER_OF_COMPONENTS
from bsufs.solvers.fuzzy_elastic_net import (
    ElasticNet,
    exact_ridge_step,
    fuzzy_elastic_net,
    reference_ridge_step,
)
from bsufs.solvers.principal import in_units_of, in_units_of_data, principal_frame
from bsufs.solvers.reweighted import DenseForm, FactoredForm, QuadraticForm

# With gamma="auto" the penalty of the principal components is this share of the variance that they
# explain.
_AUTO_SHARE = 0.1


class FENPCAFS(ScoringSelector):
    r"""Unsupervised feature selection by PCA with a fuzzy elastic net.

    Reconstructs the data from few features, with a ridge and a row penalty that share one weight:

    .. math:: \min_{W,\, Q'Q = I,\, \alpha} \|X_c - X_c W Q'\|_F^2 + \gamma \left(
              \alpha^u \|W\|_F^2 + s (1 - \alpha)^u \sum_i \|w^i\|^p \right)

    with X_c the centered data and alpha from 0 to 1. Q, alpha and W are solved for by turns.

    Parameters
    ----------
    n_features_to_select : int, float or "auto", default="auto"
        How many features to keep: a number, a share of all, or "auto", half of them.
    n_components : int, float or "auto", default="auto"
        Number of components m; a share of the total variance that they reach; or "auto", the
        number of principal components above the noise edge (parallel analysis).
    gamma : float or "auto", default="auto"
        Weight of the penalty, in the units of the scatter matrix. "auto" makes the penalty of the
        principal components a tenth of the variance they explain.
    u : float, default=2.0
        Exponent of the shares of ridge and row penalty. Above 1 they are blended; at most 1 the
        best share is all or nothing.
    p : float, default=0.5
        Exponent of the row penalty, above 0 and at most 1; smaller is sparser.
    s : float or "auto", default="auto"
        Weight of the row penalty against the ridge; "auto" makes both weigh the same for the
        principal components.
    compat : {"publication", "reference"}, default="publication"
        Whether each turn is an exact minimization, or as in the public code (see Notes).
    max_iter : int, default=100
        Iterations at most.
    tol : float, default=1e-5
        Stop when the objective changes by less, as a share of the total variance; with
        ``compat="reference"`` in absolute terms.

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
    coef_ : array of shape (n_components, n_features)
        The coefficients W, transposed.
    n_components_ : int
        The number of components.
    alpha_ : float
        The share of the ridge.
    gamma_, s_ : float
        The weights used, the first in the units of the scatter matrix; infinite or zero if it is
        out of range.
    objective_history_ : array
        The objective after each iteration, likewise.
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
    With u below 1, which the authors use, the penalty is concave in alpha; the closed form of the
    public code is where its slope vanishes, and that is the maximizer, where a minimum is meant. By
    default u is 2, for which the same closed form is the minimizer; with u at most 1 the minimum
    is taken, at alpha = 0 or 1. With that no turn raises the objective.

    The public code further starts from the singular vectors of the data before centering, adds a
    ridge of 0.001 (more samples than features) or 0.01 (else), leaves one factor uncentered in the
    second case, and takes the penalty of the last W but one in the value it stops by. All this is
    what ``compat="reference"`` does, and none of it is done by default.

    Its parameters gamma, proj_dim, u, p and s are `gamma`, `n_components`, `u`, `p` and `s`; its
    demonstration has gamma = 100, u = 0.01, p = 0.5 and s = 1.

    For more features than samples each iteration solves with an n x n matrix by the Woodbury
    identity; no d x d array is formed.

    References
    ----------
    Gao, Y., Wu, Q., Xu, Z., Cao, C., Pan, J., Shao, G., Nie, F., Zhu, Q. (2024). Principal
    component analysis with fuzzy elastic net for feature selection. IEEE Transactions on Fuzzy
    Systems 32(12).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bsufs.selectors import FENPCAFS
    >>> selector = FENPCAFS(2).fit(load_iris().data)
    >>> selector.selected_features_
    array([2, 0])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features_to_select": NUMBER_OF_FEATURES,
        "n_components": NUMBER_OF_COMPONENTS,
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "u": [Interval(Real, 0, None, closed="neither")],
        "p": [Interval(Real, 0, 1, closed="right")],
        "s": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "compat": [StrOptions({"publication", "reference"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    coef_: Array

    def __init__(
        self,
        n_features_to_select: int | float | str = "auto",
        *,
        n_components: int | float | str = "auto",
        gamma: float | str = "auto",
        u: float = 2.0,
        p: float = 0.5,
        s: float | str = "auto",
        compat: str = "publication",
        max_iter: int = 100,
        tol: float = 1e-5,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_components = n_components
        self.gamma = gamma
        self.u = u
        self.p = p
        self.s = s
        self.compat = compat
        self.max_iter = max_iter
        self.tol = tol

    def _fit(self, data: FitData) -> Scored:
        scored = super()._fit(data)
        # The coefficients were found for columns in an order of their own.
        self.coef_ = self.coef_[:, scored.position]
        return scored

    def _score(self, data: FitData) -> Array:
        X = data.ordered
        scatter = data.scatter
        eigenvalues, W = principal_frame(scatter, self.n_components)
        m = eigenvalues.size
        as_reference = self.compat == "reference"
        if as_reference and self.u == 1:
            raise ValueError(
                "u must differ from 1 with compat='reference', whose closed form divides by 1 - u, "
                "got u=1. Use another u, or compat='publication'."
            )
        net = self._net(scatter, eigenvalues, W)
        if as_reference:
            X = np.ldexp(np.asarray(X, dtype=np.float64), -scatter.unit_exponent)
            W = _uncentered(X).leading_eigenvectors(m)[1]
            S = scatter.S if isinstance(scatter, DenseScatter) and X.shape[0] > X.shape[1] else None
            ridge_step = reference_ridge_step(X, X - X.mean(axis=0), S)
        else:
            ridge_step = exact_ridge_step(scatter, _form(scatter))
        result = fuzzy_elastic_net(
            scatter,
            W,
            net,
            ridge_step,
            share=net.stationary_share if as_reference else net.best_share,
            stale_penalty=as_reference,
            max_iter=self.max_iter,
            tol=self.tol if as_reference else self.tol * scatter.trace(),
        )
        self.coef_ = result.W.T
        self.n_components_ = m
        self.alpha_ = result.alpha
        auto = isinstance(self.gamma, str)
        self.gamma_ = float(in_units_of_data(scatter, net.gamma) if auto else self.gamma)
        self.s_ = net.s
        self.objective_history_ = in_units_of_data(scatter, result.objective_history)
        self.n_iter_ = result.n_iter
        self.stopping_reason_ = result.stopping_reason
        return row_norms(result.W) ** 2

    def _net(self, scatter: Scatter, eigenvalues: Array, frame: Array) -> ElasticNet:
        net = ElasticNet(1.0, float(self.u), self.p, 1.0)
        ridge, row = net.parts(frame)
        net = replace(net, s=ridge / row if isinstance(self.s, str) else float(self.s))
        if not isinstance(self.gamma, str):
            return replace(net, gamma=in_units_of(scatter, float(self.gamma)))
        penalty = net.value(net.best_share(ridge, row), ridge, row)
        return replace(net, gamma=_AUTO_SHARE * float(eigenvalues.sum()) / penalty or 1.0)


def _uncentered(X: Array) -> Scatter:
    """Return the operator X'X of the data as they came."""
    n, d = X.shape
    return DenseScatter(X.T @ X, n) if n > d else FactoredScatter(X, n)


def _form(scatter: Scatter) -> QuadraticForm:
    """Return S as a matrix to solve with."""
    if isinstance(scatter, FactoredScatter):
        return FactoredForm(scatter.Xc)
    assert isinstance(scatter, DenseScatter)
    return DenseForm(scatter.S)
