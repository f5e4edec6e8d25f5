"""Sparse PCA by positive semidefinite projection: one d x d matrix in place of a frame.

min over symmetric positive semidefinite Omega of

    ||Xc - Xc Omega||^2 + lambda sum_j ||omega_j|| + eta tr(Omega),

a convex problem. Each iteration takes Omega = sym((S - eta/2 I)(S + diag(lambda w) + ridge)^(-1))
with w_j = 1 / (2 sqrt(||omega_j||^2 + eps)), and drops its non-positive eigenvalues. For more than
two features a sample Omega is kept as its eigenvectors: it has no more than rank(Xc) positive
eigenvalues, since sym(...) is then a matrix of which half of the 2 rank(Xc) eigenvalues are
positive, minus a positive diagonal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from bsufs._linalg import largest_eigenpairs
from bsufs._typing import Array
from bsufs.scatter import DenseScatter, FactoredScatter, Scatter
from bsufs.solvers.reweighted import DenseForm, row_weights

# Eigenvalues below this share of the bound on the largest are nothing but rounding.
_NEGLIGIBLE = 1e-13


@dataclass(frozen=True)
class PSDProjectionResult:
    """What the iteration found."""

    column_norms: Array
    rank: int
    objective_history: Array
    n_iter: int
    stopping_reason: str


def psd_projection(
    scatter: Scatter,
    start: Array,
    *,
    lambda_row: float,
    eta: float,
    ridge: float = 0.0,
    descend: bool = True,
    max_iter: int = 100,
    tol: float = 1e-5,
) -> PSDProjectionResult:
    """Iterate reweighting and projection.

    Parameters
    ----------
    scatter : Scatter
        The operator S of dense data.
    start : array of shape (d,)
        Diagonal of the first Omega, not negative.
    lambda_row : float
        Weight of the row penalty, positive.
    eta : float
        Weight of the trace.
    ridge : float, default=0.0
        Added to the diagonal of the matrix that is inverted.
    descend : bool, default=True
        Whether an iteration that would raise the objective is refused and ends the run.
    max_iter : int, default=100
        Iterations at most.
    tol : float, default=1e-5
        Stop when the objective changes by no more, in absolute terms.

    Returns
    -------
    PSDProjectionResult
        The column norms of Omega and how they were reached.
    """
    step: _Step
    if isinstance(scatter, FactoredScatter) and scatter.shape[0] > 2 * scatter.Xc.shape[0]:
        step = _FactoredStep(scatter, eta)
    else:
        step = _DenseStep(scatter, eta)
    norms, rank = np.abs(start), int(np.count_nonzero(start))
    loss = float(((1.0 - start) ** 2) @ scatter.diagonal())
    history = [loss + lambda_row * float(norms.sum()) + eta * float(start.sum())]
    reason = "max_iter"
    for _ in range(max_iter):
        projected = step(lambda_row * row_weights(norms**2, 1.0) + ridge)
        value = projected.loss + lambda_row * float(projected.norms.sum()) + eta * projected.trace
        if descend and value > history[-1] + tol:
            reason = "no_descent"
            break
        norms, rank = projected.norms, projected.rank
        history.append(value)
        if abs(history[-1] - history[-2]) <= tol:
            reason = "converged"
            break
    return PSDProjectionResult(norms, rank, np.array(history), len(history) - 1, reason)


@dataclass(frozen=True)
class _Projected:
    """Omega by what is asked of it."""

    norms: Array
    trace: float
    loss: float
    rank: int


class _Step(ABC):
    """One update of Omega from the diagonal that reweighting adds to S."""

    @abstractmethod
    def __call__(self, diagonal: Array) -> _Projected:
        """Return the projected Omega."""


class _DenseStep(_Step):
    """Omega as a d x d matrix, for no more than two features a sample."""

    def __init__(self, scatter: Scatter, eta: float) -> None:
        if isinstance(scatter, DenseScatter):
            self._S = scatter.S
        else:
            self._S = scatter @ np.eye(scatter.shape[0])
        self._form = DenseForm(self._S)
        self._shifted = self._S - 0.5 * eta * np.eye(self._S.shape[0])

    def __call__(self, diagonal: Array) -> _Projected:
        unprojected = self._form.inverse(diagonal)(self._shifted)
        values, vectors = linalg.eigh(
            0.5 * (unprojected + unprojected.T), driver="evd", check_finite=False
        )
        positive = values > 0
        values, vectors = values[positive], vectors[:, positive]
        image = self._S @ vectors
        # ||Xc - Xc Omega||^2 = tr(S) - 2 tr(Omega S) + tr(Omega S Omega).
        shares = np.einsum("ij,ij->j", vectors, image)
        loss = float(self._S.trace() + shares @ (values**2 - 2.0 * values))
        return _summary(values, vectors, loss)


class _FactoredStep(_Step):
    """Omega as its eigenvectors, for more than two features a sample."""

    def __init__(self, scatter: FactoredScatter, eta: float) -> None:
        self._Xc = scatter.Xc * np.sqrt(scatter.factor)
        self._rank = scatter.max_rank
        self._eta = eta
        self._start = np.random.default_rng(0).standard_normal(self._Xc.shape[1])

    def __call__(self, diagonal: Array) -> _Projected:
        shrink = 1.0 / diagonal
        inner = (self._Xc * shrink) @ self._Xc.T
        inner[np.diag_indices_from(inner)] += 1.0
        lower = linalg.cholesky(inner, lower=True, check_finite=False)
        Y = linalg.solve_triangular(lower, self._Xc, lower=True, check_finite=False)
        values, vectors = self._positive_eigenpairs(Y, shrink)
        self._start = vectors.sum(axis=1) if values.size else self._start
        residual = self._Xc - ((self._Xc @ vectors) * values) @ vectors.T
        return _summary(values, vectors, float(np.vdot(residual, residual)))

    def _positive_eigenpairs(self, Y: Array, shrink: Array) -> tuple[Array, Array]:
        """Return those of (E Y'Y + Y'Y E + eta E Y'Y E - eta E) / 2 with E = diag(shrink).

        By the Woodbury identity this is the symmetric part of the update.
        """
        d = shrink.size
        eta = self._eta

        def product(V: Array) -> Array:
            columns = V.reshape(d, -1)
            scaled = shrink[:, None] * columns
            images = Y.T @ (Y @ np.hstack([columns, scaled]))
            from_v, from_scaled = np.hsplit(images, 2)
            image = shrink[:, None] * (from_v + eta * from_scaled - eta * columns) + from_scaled
            return 0.5 * image.reshape(V.shape)

        bound = float(shrink.max()) * (1.0 + 0.5 * eta * float(shrink.max())) * _norm_squared(Y)
        count = _count_positive(Y, shrink, eta, _NEGLIGIBLE * bound, self._rank)
        if count == 0:
            return np.zeros(0), np.zeros((d, 0))
        values, vectors = largest_eigenpairs(product, d, count, self._start)
        positive = values > 0
        return values[positive], vectors[:, positive]


def _norm_squared(Y: Array) -> float:
    return float(linalg.norm(Y @ Y.T, 2))


def _count_positive(Y: Array, shrink: Array, eta: float, level: float, limit: int) -> int:
    """Return how many eigenvalues exceed a small positive level, by Sylvester's law of inertia.

    With U = [Y', E Y'] and J = [[0, 1/2], [1/2, eta/2]] (times identities) the matrix is
    U J U' - F, F = eta/2 E + level: it has as many positive eigenvalues as U' F^(-1) U - J^(-1),
    less those of -J^(-1), which are half of all.
    """
    n = Y.shape[0]
    weight = 1.0 / (0.5 * eta * shrink + level)
    plain = (Y * weight) @ Y.T
    mixed = (Y * (weight * shrink)) @ Y.T
    twice = (Y * (weight * shrink**2)) @ Y.T
    identity = np.eye(n)
    # The inverse of [[0, 1/2], [1/2, eta/2]] is [[-2 eta, 2], [2, 0]].
    pencil = np.block(
        [[plain + 2.0 * eta * identity, mixed - 2.0 * identity], [mixed.T - 2.0 * identity, twice]]
    )
    scale = 1.0 / np.sqrt(np.maximum(pencil.diagonal(), np.finfo(np.float64).tiny))
    values: Any = linalg.eigvalsh(pencil * scale * scale[:, None], check_finite=False)
    return int(min(max(np.count_nonzero(values > 0) - n, 0), limit))


def _summary(values: Array, vectors: Array, loss: float) -> _Projected:
    norms = np.sqrt((vectors**2) @ values**2)
    return _Projected(norms, float(values.sum()), loss, values.size)
