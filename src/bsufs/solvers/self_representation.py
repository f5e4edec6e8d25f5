"""Graph embedding with self-representation, by an augmented Lagrangian.

With the features in the rows of X (d x n), as in the publication: minimizes over a graph S with
rows on the simplex and Laplacian L, a frame W with k non-zero rows, Z and E

    2 tr(W'(X - E) L (X - E)'W) + alpha ||S||^2 + lambda_nuclear ||Z||_* + lambda_error ||E||^2

subject to X = XZ + E, with a copy J of Z that carries the nuclear norm. Z, J and a multiplier are
dense n x n matrices.
"""

from typing import Any

import numpy as np
from scipy import linalg

from bsufs._linalg import cholesky_solver, largest_eigenpairs, some_eigenpairs
from bsufs._typing import Array, Indices
from bsufs.graphs import adaptive_neighbors, directed_affinity, laplacian, symmetric
from bsufs.solvers.feature_sparse import largest, proxy_diagonal
from bsufs.solvers.forms import row_space, symmetric_product
from bsufs.solvers.solution import History, Solution
from bsufs.stiefel import flip_signs

_MOST_PENALTY = 1e10
_MOST_ROUNDS = 10
_ROUND_TOLERANCE = 1e-3
# Dense n x n arrays alive at once: Z, J, their multiplier, the factor, and the work of the SVD.
_SQUARE_ARRAYS = 14
# Dense d x n arrays alive at once: the data, E, their multiplier and what products need.
_WIDE_ARRAYS = 6


def bytes_needed(n: int, d: int) -> int:
    """Return about how much memory the solver takes."""
    return 8 * (_SQUARE_ARRAYS * n**2 + _WIDE_ARRAYS * n * d)


class SmoothnessOperator:
    """A = rho I - G'LG with rho the largest eigenvalue of G'LG: large where the graph is smooth."""

    def __init__(self, G: Array, L: Any, rho: float | None = None) -> None:
        self.G = G
        self.L = L
        self.rho = largest_eigenvalue(G, L) if rho is None else rho

    def __matmul__(self, W: Array) -> Array:
        return np.asarray(self.rho * W - self.G.T @ (self.L @ (self.G @ W)))

    def scores(self, W: Array) -> Array:
        """Return the diagonal of A W (W'AW)^+ W'A."""
        return np.maximum(proxy_diagonal(self, W), 0.0)

    def frame(self, features: Indices, m: int, restricted: bool) -> Array:
        """Return the leading eigenvectors of the submatrix of some features."""
        part = self.G[:, features]
        basis = row_space(part) if restricted else None
        K = symmetric_product(part if basis is None else part @ basis, self.L)
        W = np.zeros((self.G.shape[1], m))
        size = min(m, K.shape[0])
        if size:
            vectors = some_eigenpairs(K, 0, size - 1)[1]
            W[features, :size] = flip_signs(vectors if basis is None else basis @ vectors)
        return W


def largest_eigenvalue(G: Array, L: Any) -> float:
    """Return the largest eigenvalue of G'LG."""
    image = L @ G
    if not image.any():
        return 0.0
    values, _ = largest_eigenpairs(lambda v: G.T @ (image @ v), G.shape[1], 1)
    return max(float(values[0]), 0.0)


def sparse_frame(
    A: SmoothnessOperator, W: Array, n_features: int, restricted: bool
) -> tuple[Array, Array]:
    """Improve tr(W'AW) over frames with few non-zero rows."""
    scores = A.scores(W)
    for _ in range(_MOST_ROUNDS):
        before = W
        W = A.frame(largest(scores, n_features), W.shape[1], restricted)
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
    reference: bool = False,
) -> tuple[Solution, Array]:
    """Learn a graph, a self-representation and a projection with few features from a first W.

    Here X has one sample in each row. Returns the frame, and the diagonal of A W (W'AW)^+ W'A as
    scores. With `reference`, as in the public code, the graph and rho stay those of the data, and
    the frame may leave the span of the samples.
    """
    n, d = X.shape
    S, L, alpha = graph(X, n_neighbors)
    # The transposes of the matrices of the publication, which has one sample in each column.
    E, Y1 = np.zeros((n, d)), np.zeros((n, d))
    Z: Array = np.zeros((n, n))
    Y2 = np.zeros((n, n))
    gram = X @ X.T
    solve = cholesky_solver(gram + np.eye(n))
    rho = largest_eigenvalue(X, L) if reference else None
    scores: Array = np.zeros(d)
    history = History(tol)
    for _ in range(max_iter):
        J, nuclear_norm = shrink_singular_values(Z + Y2 / mu, lambda_nuclear / mu)
        Z = solve(gram - X @ E.T + J + (X @ Y1.T - Y2) / mu)
        A = SmoothnessOperator(X - E, L, rho)
        W, scores = sparse_frame(A, W, n_features, restricted=not reference)
        gap = X - Z.T @ X
        pulled = 4.0 * (L @ (X @ W)) + mu * (gap @ W) + Y1 @ W
        system = 4.0 * L.toarray()
        system[np.diag_indices_from(system)] += 2.0 * lambda_error + mu
        E = linalg.solve(system, pulled, assume_a="pos", check_finite=False) @ W.T
        P = (X - E) @ W
        if not reference:
            S, L, alpha = graph(P, n_neighbors)
        Y1 += mu * (gap - E)
        Y2 += mu * (Z - J)
        mu = min(mu * mu_growth, _MOST_PENALTY)
        value = 2.0 * float(np.vdot(P, L @ P)) + alpha * float(S.data @ S.data)
        value += lambda_nuclear * nuclear_norm + lambda_error * float(np.vdot(E, E))
        if history.settled(value):
            break
    return history.solution(W), scores


def graph(P: Array, n_neighbors: int) -> tuple[Any, Any, float]:
    """Return the adaptive affinities of samples, their Laplacian, and their weight alpha."""
    indices, weights, alpha = adaptive_neighbors(P, n_neighbors)
    S = directed_affinity(indices, weights)
    return S, laplacian(symmetric(S)), alpha
