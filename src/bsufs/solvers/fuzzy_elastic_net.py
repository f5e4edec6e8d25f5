"""PCA by regression with a fuzzy elastic net: a ridge and a row penalty that share one weight.

min over W, frames Q and alpha in [0, 1] of

    ||Xc - Xc W Q'||^2 + gamma (alpha^u sum_i ||w^i||^2 + s (1-alpha)^u sum_i (||w^i||^2+eps)^(p/2))

by turns: Q is a polar factor, alpha has a closed form, and W solves a ridge problem whose weights
majorize the row penalty. Each turn is an exact minimization, so the objective cannot rise.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from bsufs._typing import Array
from bsufs.scatter import Scatter
from bsufs.solvers.forms import centered, scatter_form
from bsufs.solvers.reweighted import EPS, row_weights
from bsufs.solvers.solution import History, Solution
from bsufs.stiefel import polar_factor

# Solve for W given the weights of its rows and the frame Q.
RidgeStep = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class ElasticNet:
    """The penalty gamma (alpha^u ||W||^2 + s (1-alpha)^u ||W||_{2,p}^p)."""

    gamma: float
    u: float
    p: float
    s: float

    def parts(self, W: Array) -> tuple[float, float]:
        """Return the two penalties of W without their weights."""
        squares: Array = np.einsum("ij,ij->i", W, W)
        return float(squares.sum()), float(((squares + EPS) ** (self.p / 2)).sum())

    def value(self, alpha: float, ridge: float, row: float) -> float:
        """Return the penalty."""
        return float(self.gamma * (alpha**self.u * ridge + self.s * (1.0 - alpha) ** self.u * row))

    def stationary_share(self, ridge: float, row: float) -> float:
        """Return the alpha at which the slope vanishes: the minimizer for u > 1, else maximizer."""
        if ridge <= 0.0:
            return 0.0 if self.u < 1 else 1.0
        with np.errstate(over="ignore", divide="ignore"):
            odds = np.float64(self.s * row / ridge) ** (1.0 / (1.0 - self.u))
        return float(1.0 / (odds + 1.0))

    def best_share(self, ridge: float, row: float) -> float:
        """Return the alpha in [0, 1] that minimizes the penalty."""
        if self.u > 1.0:
            return self.stationary_share(ridge, row)
        # Where both weigh the same but for rounding, the one that selects: the row penalty.
        return 1.0 if ridge < (1.0 - 1e-9) * self.s * row else 0.0

    def weights(self, W: Array, alpha: float) -> Array:
        """Return the weights of ||w^i||^2 in the ridge problem that majorizes the penalty."""
        slope = row_weights(np.einsum("ij,ij->i", W, W), self.p)
        return np.asarray(self.gamma * (alpha**self.u + self.s * (1.0 - alpha) ** self.u * slope))


def _ridge_step(scatter: Scatter, X: Array, reference: bool) -> RidgeStep:
    """Return the step W = (S + diag(weights))^(-1) S Q."""
    n, d = X.shape
    if not reference or n > d:
        form, ridge = scatter_form(scatter, X), 0.001 if reference else 0.0
        return lambda weights, Q: form.inverse(weights + ridge)(scatter @ Q)
    Xc = centered(X)

    def step(weights: Array, Q: Array) -> Array:
        shrunk = (X / (weights + 0.01)).T
        inner = np.eye(n) + Xc @ shrunk
        return np.asarray(shrunk @ linalg.solve(inner, Xc @ Q, check_finite=False))

    return step


def fuzzy_elastic_net(
    scatter: Scatter,
    X: Array,
    W: Array,
    net: ElasticNet,
    *,
    reference: bool = False,
    max_iter: int = 100,
    tol: float = 1e-5,
) -> tuple[Solution, float]:
    """Alternate between frame, share and coefficients; return the coefficients and alpha.

    With `reference`, as in the public code, alpha is where the slope vanishes, be it a maximum, and
    the value that is watched has the penalty of the coefficients before the last step.
    """
    step = _ridge_step(scatter, X, reference)
    trace = scatter.trace()
    share = net.stationary_share if reference else net.best_share
    alpha = 0.0
    history = History(tol)
    image = scatter @ W
    for _ in range(max_iter):
        Q = polar_factor(image)
        before = net.parts(W)
        alpha = share(*before)
        W = step(net.weights(W, alpha), Q)
        image = scatter @ W
        loss = trace - 2.0 * float(np.vdot(image, Q)) + float(np.vdot(W, image))
        if history.settled(loss + net.value(alpha, *(before if reference else net.parts(W)))):
            break
    return history.solution(W), alpha
