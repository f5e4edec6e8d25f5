"""FEN-PCAFS: PCA with a fuzzy elastic net."""

from dataclasses import dataclass, replace

from scipy import linalg

from bsufs._typing import Array
from bsufs.graphs import in_safe_units
from bsufs.penalties import row_norms
from bsufs.selectors._base import ScoringSelector
from bsufs.selectors._data import FitData
from bsufs.selectors._parameters import (
    NUMBER_OF_COMPONENTS,
    POSITIVE,
    POSITIVE_OR_AUTO,
    constraints,
)
from bsufs.solvers.components import principal_frame
from bsufs.solvers.fuzzy_elastic_net import ElasticNet, fuzzy_elastic_net
from bsufs.stiefel import flip_signs


@dataclass(repr=False, eq=False, kw_only=True)
class FENPCAFS(ScoringSelector):
    r"""Unsupervised feature selection by PCA with a fuzzy elastic net.

    Reconstructs the data from few features, with a ridge and a row penalty that share one weight:

    .. math:: \min_{W,\, Q'Q = I,\, \alpha} \|X_c - X_c W Q'\|_F^2 + \gamma \left(
              \alpha^u \|W\|_F^2 + s (1 - \alpha)^u \sum_i \|w^i\|^p \right)

    with X_c the centered data and alpha from 0 to 1. Q, alpha and W are solved for by turns.

    Parameters
    ----------
    %(n_features_to_select)s
    %(n_components)s
    gamma : float or "auto", default="auto"
        Weight of the penalty, in the units of the scatter matrix. "auto" makes the penalty of the
        principal components a tenth of the variance they explain.
    u : float, default=2.0
        Exponent of the shares of ridge and row penalty; up to 1 the best share is all or nothing.
    p : float, default=0.5
        Exponent of the row penalty, above 0 and at most 1; smaller is sparser.
    s : float or "auto", default="auto"
        Weight of the row penalty against the ridge; "auto" makes both weigh the same for the
        principal components.
    %(compat)s
    max_iter : int, default=100
        Iterations at most.
    tol : float, default=1e-5
        Stop when the objective changes by less, as a share of the total variance; with
        ``compat="reference"`` in absolute terms.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Squared row norms of W: larger is better.
    %(fitted)s
    coef_ : array of shape (n_components, n_features)
        The coefficients W, transposed.
    n_components_ : int
        The number of components.
    alpha_ : float
        The share of the ridge.
    gamma_, s_ : float
        The weights used, the first in the units of the scatter matrix as the objective; infinite
        or zero if out of range.
    %(solution)s

    Notes
    -----
    With u below 1, which the authors use, the penalty is concave in alpha, and the closed form of
    the public code is its maximizer where a minimum is meant. Here alpha is the minimizer, 0 or 1
    with u at most 1 and else that closed form, and no turn raises the objective.

    With ``compat="reference"`` the start is that of the data before centering, a ridge of 0.001
    (more samples than features) or 0.01 (else) is added, one factor is uncentered in the second
    case, and the value has the penalty of the last W but one. The public code calls `n_components`
    proj_dim; its demonstration has gamma = 100, u = 0.01, p = 0.5 and s = 1.

    References
    ----------
    Gao, Y., Wu, Q., Xu, Z., Cao, C., Pan, J., Shao, G., Nie, F., Zhu, Q. (2024). Principal
    component analysis with fuzzy elastic net for feature selection. IEEE Transactions on Fuzzy
    Systems 32(12).

    %(example)s
    """

    n_components: int | float | str = "auto"
    gamma: float | str = "auto"
    u: float = 2.0
    p: float = 0.5
    s: float | str = "auto"
    compat: str = "publication"
    max_iter: int = 100
    tol: float = 1e-5

    _parameter_constraints = constraints(
        n_components=NUMBER_OF_COMPONENTS, u=POSITIVE, s=POSITIVE_OR_AUTO
    )

    def _score(self, data: FitData) -> Array:
        X, scatter = data.ordered, data.scatter
        eigenvalues, W = principal_frame(scatter, self.n_components)
        m = eigenvalues.size
        net = ElasticNet(1.0, float(self.u), self.p, 1.0)
        ridge, row = net.parts(W)
        net = replace(net, s=ridge / row if isinstance(self.s, str) else float(self.s))
        penalty = net.value(net.best_share(ridge, row), ridge, row)
        unit = scatter.unit_exponent
        net = replace(net, gamma=self._keep_gamma(float(eigenvalues.sum()), penalty, unit))
        self.s_ = net.s
        reference = self.compat == "reference"
        if reference and self.u == 1:
            raise ValueError(
                "u must differ from 1 with compat='reference', whose closed form divides by 1 - u, "
                "got u=1. Use another u, or compat='publication'."
            )
        if reference:
            X = in_safe_units(X)
            W = flip_signs(linalg.svd(X, full_matrices=False, check_finite=False)[2][:m].T)
        solution, self.alpha_ = fuzzy_elastic_net(
            scatter,
            X,
            W,
            net,
            reference=reference,
            max_iter=self.max_iter,
            tol=self.tol if reference else self.tol * scatter.trace(),
        )
        self._keep_history(solution, unit)
        self.coef_ = solution.W.T[:, data.place]
        self.n_components_ = m
        return row_norms(solution.W) ** 2
