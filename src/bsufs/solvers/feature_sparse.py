"""The principal subspace with at most s features: exact at rank m, ascent beyond.

max tr(W'AW) over frames W with at most s non-zero rows, A positive semidefinite. If A has rank at
most m, the s largest diagonal entries of A are the features, exactly: the s x s submatrix has no
more than m non-zero eigenvalues, so the frame collects its whole trace. Otherwise A is replaced by
the low-rank proxy P = AW (W'AW)^+ W'A, which lies below A and touches it at W, so that solving
for P exactly can only raise the objective.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from bsufs._typing import Array, Indices
from bsufs.scatter import Scatter
from bsufs.solvers.principal import restricted


@dataclass(frozen=True)
class FeatureSparseResult:
    """What the search for a feature-sparse subspace found."""

    W: Array
    features: Indices
    objective_history: Array
    n_iter: int
    stopping_reason: str


def feature_sparse_subspace(
    scatter: Scatter,
    eigenvalues: Array,
    eigenvectors: Array,
    n_features: int,
    *,
    max_iter: int = 20,
) -> FeatureSparseResult:
    """Maximize tr(W'SW) over frames with few non-zero rows.

    Parameters
    ----------
    scatter : Scatter
        The operator S.
    eigenvalues : array of shape (m,)
        The m largest eigenvalues of S.
    eigenvectors : array of shape (d, m)
        Their eigenvectors.
    n_features : int
        Rows that may be non-zero, at least m.
    max_iter : int, default=20
        Iterations at most; zero gives the start, which is exact for rank(S) <= m.

    Returns
    -------
    FeatureSparseResult
        The frame and its rows.
    """
    m = eigenvalues.size
    features = _largest((eigenvectors**2) @ eigenvalues, n_features)
    W, explained = _leading_frame(scatter, features, m)
    history = [explained]
    trace = scatter.trace()
    reason = "max_iter"
    if trace - eigenvalues.sum() <= 1e-12 * trace:
        return FeatureSparseResult(W, features, np.array(history), 0, "exact")
    for _ in range(max_iter):
        image = scatter @ W
        inner = W.T @ image
        # Only the diagonal of P is needed: row by row, never the d x d matrix.
        proxy = np.einsum("ij,ij->i", image @ linalg.pinvh(0.5 * (inner + inner.T)), image)
        chosen = _largest(proxy, n_features)
        if np.array_equal(chosen, features):
            # The same rows give the same frame for ever after.
            history.append(explained)
            reason = "converged"
            break
        features = chosen
        W, explained = _leading_frame(scatter, features, m)
        history.append(explained)
    return FeatureSparseResult(W, features, np.array(history), len(history) - 1, reason)


def _largest(values: Array, count: int) -> Indices:
    """Return the places of the largest values in ascending order; ties to the first."""
    return np.sort(np.argsort(-values, kind="stable")[:count])


def _leading_frame(scatter: Scatter, features: Indices, m: int) -> tuple[Array, float]:
    values, vectors = restricted(scatter, features).leading_eigenvectors(m)
    W = np.zeros((scatter.shape[0], m))
    W[features] = vectors
    return W, float(values.sum())
