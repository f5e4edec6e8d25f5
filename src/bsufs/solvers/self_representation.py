"""Graph embedding with self-representation, by an augmented Lagrangian.

With the features in the rows of X (d x n), as in the publication: minimizes over a graph S with
rows on the simplex and Laplacian L, a frame W with k non-zero rows, Z and E

    2 tr(W'(X - E) L (X - E)'W) + alpha ||S||^2 + lambda_nuclear ||Z||_* + lambda_error ||E||^2

subject to X = XZ + E, with a copy J of Z that carries the nuclear norm. Z, J and a multiplier are
dense n x n matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, eigsh

from bsufs._linalg import some_eigenpairs
from bsufs._typing import Array, Indices
from bsufs.graphs import adaptive_neighbors, directed_affinity, laplacian, symmetric
from bsufs.solvers.row_space import form_of_samples, row_space
from bsufs.stiefel import flip_signs

_MOST_PENALTY = 1e10
_MOST_ROUNDS = 10
_ROUND_TOLERANCE = 1e-3
# Up to this size a dense eigendecomposition is as fast as Lanczos.
_SMALL = 64
# Dense n x n arrays alive at once: Z, J, their multiplier, the factor, and the work of the SVD.
_SQUARE_ARRAYS = 14
# Dense d x n arrays alive at once: the data, E, their multiplier and what products need.
_WIDE_ARRAYS = 6


def bytes_needed(n: int, d: int) -> int:
    """Return about how much memory the solver takes."""
    return 8 * (_SQUARE_ARRAYS * n**2 + _WIDE_ARRAYS * n * d)


@dataclass(frozen=True)
class SelfRepresentationResult:
    """What the iteration came to."""

    W: Array
    scores: Array
    affinity: Any
    objective_history: Array
    n_iter: int
    stopping_reason: str


class SmoothnessOperator:
    """A = rho I - G'LG with rho the largest eigenvalue of G'LG: large where the graph is smooth."""

    def __init__(self, G: Array, L: Any, rho: float | None = None) -> None:
        self.G = G
        self.L = L
        self.rho = largest_eigenvalue(G, L) if rho is None else rho

    def __matmul__(self, W: Array) -> Array:
        product: Array = self.rho * W - self.G.T @ (self.L @ (self.G @ W))
        return product

    def scores(self, W: Array) -> Array:
        """Return the diagonal of A W (W'AW)^+ W'A."""
        AW = self @ W
        middle = W.T @ AW
        inverse = linalg.pinvh(0.5 * (middle + middle.T))
        diagonal: Array = np.einsum("ij,ij->i", AW @ inverse, AW)
        return np.maximum(diagonal, 0.0)

    def frame(self, features: Indices, m: int, restricted: bool) -> Array:
        """Return the leading eigenvectors of the submatrix of some features."""
        part = self.G[:, features]
        basis = row_space(part) if restricted else None
        K = form_of_samples(part, self.L, basis).K
        W = np.zeros((self.G.shape[1], m))
        size = min(m, K.shape[0])
        if size:
            vectors = some_eigenpairs(K, 0, size - 1)[1]
            local = vectors if basis is None else basis @ vectors
            W[features, :size] = flip_signs(local)
        return W


def largest_eigenvalue(G: Array, L: Any) -> float:
    """Return the largest eigenvalue of G'LG."""
    d = G.shape[1]
    if d <= _SMALL:
        return max(float(linalg.eigvalsh(G.T @ (L @ G))[-1]), 0.0)
    operator = LinearOperator((d, d), matvec=lambda v: G.T @ (L @ (G @ v)), dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(d)
    if not np.any(operator @ start):
        return 0.0
    return max(float(eigsh(operator, k=1, which="LA", v0=start, return_eigenvectors=False)[0]), 0.0)


def sparse_frame(
    A: SmoothnessOperator, W: Array, n_features: int, restricted: bool
) -> tuple[Array, Array]:
    """Improve tr(W'AW) over frames with few non-zero rows."""
    scores = A.scores(W)
    for _ in range(_MOST_ROUNDS):
        features = np.sort(np.argsort(-scores, kind="stable")[:n_features])
        before = W
        W = A.frame(features, W.shape[1], restricted)
        scores = A.scores(W)
        if np.linalg.norm(W - before) ** 2 < _ROUND_TOLERANCE:
            break
    return W, scores


def shrink_singular_values(B: Array, level: float) -> tuple[Array, float]:
    """Return the minimizer of level ||J||_* + ||J - B||^2 / 2, and its nuclear norm."""
    # No singular value exceeds the Frobenius norm: below the level there is nothing to decompose.
    if np.linalg.norm(B) <= level:
        return np.zeros_like(B), 0.0
    left, values, right = linalg.svd(B, full_matrices=False, check_finite=False)
    values = np.maximum(values - level, 0.0)
    kept = values > 0
    return (left[:, kept] * values[kept]) @ right[kept], float(values.sum())


def self_representation(
    X: Array,
    W: Array,
    n_features: int,
    *,
    n_neighbors: int,
    lambda_nuclear: float,
    lambda_error: float,
    mu: float,
    mu_growth: float,
    max_iter: int,
    tol: float,
    literal: bool,
) -> SelfRepresentationResult:
    """Learn a graph, a self-representation and a projection with few features.

    Parameters
    ----------
    X : array of shape (n, d)
        The data, one sample a row.
    W : array of shape (d, m)
        Where the frame starts.
    n_features : int
        Rows of W that may be non-zero.
    n_neighbors : int
        Neighbors of each sample.
    lambda_nuclear, lambda_error : float
        Weights of the nuclear norm and of the error.
    mu, mu_growth : float
        First weight of the augmented Lagrangian, and what it is multiplied by in each iteration.
    max_iter : int
        Iterations at most.
    tol : float
        Stop when the objective changes by less.
    literal : bool
        Whether to keep the graph of the data, take rho from the data, and leave the span of the
        samples, as the public code does.

    Returns
    -------
    SelfRepresentationResult
        The frame and the scores.
    """
    n, d = X.shape
    S, alpha = _graph(X, n_neighbors)
    L = laplacian(symmetric(S))
    # From here on the transposes of the matrices of the publication: one sample a row.
    E, Y1 = np.zeros((n, d)), np.zeros((n, d))
    Z, Y2 = np.zeros((n, n)), np.zeros((n, n))
    gram = X @ X.T
    factor = linalg.cho_factor(gram + np.eye(n), lower=True, check_finite=False)
    scores: Array = np.zeros(d)
    history: list[float] = []
    reason = "max_iter"
    for _ in range(max_iter):
        J, nuclear_norm = shrink_singular_values(Z + Y2 / mu, lambda_nuclear / mu)
        right = gram - X @ E.T + J + (X @ Y1.T - Y2) / mu
        Z = linalg.cho_solve(factor, right, overwrite_b=True, check_finite=False)
        A = SmoothnessOperator(X - E, L, largest_eigenvalue(X, L) if literal else None)
        W, scores = sparse_frame(A, W, n_features, restricted=not literal)
        gap = X - Z.T @ X
        pulled = 4.0 * (L @ (X @ W)) + mu * (gap @ W) + Y1 @ W
        E = _solve_with_ridge(L, 2.0 * lambda_error + mu, pulled) @ W.T
        P = (X - E) @ W
        if not literal:
            S, alpha = _graph(P, n_neighbors)
            L = laplacian(symmetric(S))
        Y1 += mu * (gap - E)
        Y2 += mu * (Z - J)
        mu = min(mu * mu_growth, _MOST_PENALTY)
        history.append(
            2.0 * float(np.vdot(P, L @ P))
            + alpha * float(S.data @ S.data)
            + lambda_nuclear * nuclear_norm
            + lambda_error * float(np.vdot(E, E))
        )
        if len(history) > 1 and abs(history[-1] - history[-2]) < tol:
            reason = "converged"
            break
    return SelfRepresentationResult(W, scores, S, np.array(history), len(history), reason)


def _solve_with_ridge(L: Any, ridge: float, right: Array) -> Array:
    """Return (4 L + ridge)^(-1) right, where the errors have their minimum."""
    system = 4.0 * L.toarray()
    system[np.diag_indices_from(system)] += ridge
    solution: Array = linalg.solve(system, right, assume_a="pos", check_finite=False)
    return solution


def _graph(P: Array, n_neighbors: int) -> tuple[Any, float]:
    indices, weights, alpha = adaptive_neighbors(P, n_neighbors)
    return directed_affinity(indices, weights), alpha
