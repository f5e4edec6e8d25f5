"""Sparse PCA by positive semidefinite projection: one d x d matrix in place of a frame.

min over symmetric positive semidefinite Omega of

    ||Xc - Xc Omega||^2 + lambda sum_j ||omega_j|| + eta tr(Omega),

a convex problem. Each iteration takes Omega = sym((S - eta/2 I)(S + diag(lambda w) + ridge)^(-1))
with w_j = 1 / (2 sqrt(||omega_j||^2 + eps)), and drops its non-positive eigenvalues. For more than
two features per sample Omega is kept as its eigenvectors: it has no more than rank(Xc) positive
eigenvalues, since sym(...) is then a matrix of which half of the 2 rank(Xc) eigenvalues are
positive, minus a positive diagonal.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg

from bsufs._linalg import largest_eigenpairs
from bsufs._typing import Array
from bsufs.scatter import Scatter
from bsufs.solvers.forms import DenseForm, centered
from bsufs.solvers.reweighted import row_weights
from bsufs.solvers.solution import History, Solution

# Eigenvalues below this share of the bound on the largest are nothing but rounding.
_NEGLIGIBLE = 1e-13

# From the diagonal that reweighting adds to S: positive eigenvalues and eigenvectors of the next
# Omega, and its loss ||Xc - Xc Omega||^2.
_Step = Callable[[Array], tuple[Array, Array, float]]


def psd_projection(
    scatter: Scatter,
    X: Array,
    start: Array,
    *,
    lambda_row: float,
    eta: float,
    ridge: float = 0.0,
    descend: bool = True,
    max_iter: int = 100,
    tol: float = 1e-5,
) -> tuple[Solution, int]:
    """Iterate reweighting and projection from a diagonal Omega.

    Returns the column norms of Omega in place of W, and its number of positive eigenvalues. With
    `descend` an iteration that would raise the objective is refused and ends the run.
    """
    n, d = X.shape
    if d > 2 * n:
        step = _factored_step(centered(X), scatter.max_rank, eta)
    else:
        step = _dense_step(scatter.rows(np.arange(d)), eta)
    norms, rank = np.abs(start), int(np.count_nonzero(start))
    loss = float(((1.0 - start) ** 2) @ scatter.diagonal())
    penalty = lambda_row * float(norms.sum()) + eta * float(start.sum())
    history = History(tol, first=loss + penalty)
    for _ in range(max_iter):
        values, vectors, loss = step(lambda_row * row_weights(norms**2, 1.0) + ridge)
        new_norms: Array = np.sqrt((vectors**2) @ values**2)
        value = loss + lambda_row * float(new_norms.sum()) + eta * float(values.sum())
        if descend and value > history.values[-1] + tol:
            history.stopping_reason = "no_descent"
            break
        norms, rank = new_norms, values.size
        if history.settled(value):
            break
    return history.solution(norms), rank


def _dense_step(S: Array, eta: float) -> _Step:
    """Return the step that has Omega as a d x d matrix."""
    form = DenseForm(S)
    shifted = S - 0.5 * eta * np.eye(S.shape[0])

    def step(diagonal: Array) -> tuple[Array, Array, float]:
        omega = form.inverse(diagonal)(shifted)
        values, vectors = linalg.eigh(0.5 * (omega + omega.T), driver="evd", check_finite=False)
        values, vectors = values[values > 0], vectors[:, values > 0]
        # ||Xc - Xc Omega||^2 = tr(S) - 2 tr(Omega S) + tr(Omega S Omega).
        shares = np.einsum("ij,ij->j", vectors, S @ vectors)
        return values, vectors, float(S.trace() + shares @ (values**2 - 2.0 * values))

    return step


def _factored_step(Xc: Array, rank: int, eta: float) -> _Step:
    """Return the step that has Omega as its eigenvectors, by the Woodbury identity."""
    d = Xc.shape[1]

    def step(diagonal: Array) -> tuple[Array, Array, float]:
        shrink = 1.0 / diagonal
        inner = np.eye(len(Xc)) + (Xc * shrink) @ Xc.T
        lower = linalg.cholesky(inner, lower=True, check_finite=False)
        Y = linalg.solve_triangular(lower, Xc, lower=True, check_finite=False)

        def product(V: Array) -> Array:
            columns = V.reshape(d, -1)
            scaled = shrink[:, None] * columns
            images = Y.T @ (Y @ np.hstack([columns, scaled]))
            from_v, from_scaled = np.hsplit(images, 2)
            image = shrink[:, None] * (from_v + eta * from_scaled - eta * columns) + from_scaled
            return 0.5 * np.reshape(image, V.shape)

        largest = float(shrink.max())
        bound = largest * (1.0 + 0.5 * eta * largest) * float(linalg.norm(Y @ Y.T, 2))
        count = min(_count_positive(Y, shrink, eta, _NEGLIGIBLE * bound), rank)
        values, vectors = largest_eigenpairs(product, d, count)
        values, vectors = values[values > 0], vectors[:, values > 0]
        residual = Xc - ((Xc @ vectors) * values) @ vectors.T
        return values, vectors, float(np.vdot(residual, residual))

    return step


def _count_positive(Y: Array, shrink: Array, eta: float, level: float) -> int:
    """Return how many eigenvalues exceed a small positive level, by Sylvester's law of inertia.

    With U = [Y', E Y'] and J = [[0, 1/2], [1/2, eta/2]] (times identities) the matrix is
    U J U' - F, F = eta/2 E + level: it has as many positive eigenvalues as U' F^(-1) U - J^(-1),
    less those of -J^(-1), which are half of all.
    """
    n = len(Y)
    weight = 1.0 / (0.5 * eta * shrink + level)
    plain, mixed, twice = ((Y * (weight * shrink**power)) @ Y.T for power in range(3))
    identity = np.eye(n)
    # The inverse of [[0, 1/2], [1/2, eta/2]] is [[-2 eta, 2], [2, 0]].
    pencil = np.block(
        [[plain + 2.0 * eta * identity, mixed - 2.0 * identity], [mixed.T - 2.0 * identity, twice]]
    )
    scale = 1.0 / np.sqrt(np.maximum(pencil.diagonal(), np.finfo(np.float64).tiny))
    values: Any = linalg.eigvalsh(pencil * scale * scale[:, None], check_finite=False)
    return max(int(np.count_nonzero(values > 0)) - n, 0)
