"""The principal subspace with at most s features: exact at rank m, ascent beyond.

max tr(W'AW) over frames W with at most s non-zero rows, A positive semidefinite. If A has rank at
most m, the s largest diagonal entries of A are the features, exactly: the s x s submatrix has no
more than m non-zero eigenvalues, so the frame collects its whole trace. Otherwise A is replaced by
the low-rank proxy P = AW (W'AW)^+ W'A, which lies below A and touches it at W, so that solving
for P exactly can only raise the objective.
"""

import numpy as np
from scipy import linalg

from bsufs._typing import Array, Indices
from bsufs.scatter import Scatter
from bsufs.solvers.solution import History, Solution
from bsufs.solvers.w_steps import Operator


def proxy_diagonal(A: Operator, W: Array) -> Array:
    """Return the diagonal of AW (W'AW)^+ W'A, row by row: never the d x d matrix."""
    image = A @ W
    inner = W.T @ image
    return np.asarray(np.einsum("ij,ij->i", image @ linalg.pinvh(0.5 * (inner + inner.T)), image))


def largest(values: Array, count: int) -> Indices:
    """Return the places of the largest values in ascending order; ties to the first."""
    return np.sort(np.argsort(-values, kind="stable")[:count])


def feature_sparse_subspace(
    scatter: Scatter, eigenvalues: Array, eigenvectors: Array, n_features: int, max_iter: int = 20
) -> Solution:
    """Maximize tr(W'SW) over frames with few non-zero rows, given the m leading eigenpairs of S."""
    m = eigenvalues.size
    features = largest((eigenvectors**2) @ eigenvalues, n_features)
    W, explained = _leading_frame(scatter, features, m)
    history = History(None, first=explained)
    trace = scatter.trace()
    if trace - eigenvalues.sum() <= 1e-12 * trace:
        history.stopping_reason = "exact"
        return history.solution(W)
    for _ in range(max_iter):
        chosen = largest(proxy_diagonal(scatter, W), n_features)
        if np.array_equal(chosen, features):
            # The same rows give the same frame for ever after.
            history.values.append(explained)
            history.stopping_reason = "converged"
            break
        features = chosen
        W, explained = _leading_frame(scatter, features, m)
        history.values.append(explained)
    return history.solution(W)


def _leading_frame(scatter: Scatter, features: Indices, m: int) -> tuple[Array, float]:
    values, vectors = scatter.restricted(features).leading_eigenvectors(m)
    W = np.zeros((scatter.shape[0], m))
    W[features] = vectors
    return W, float(values.sum())
