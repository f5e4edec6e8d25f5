"""Non-negative embedding of local reconstruction errors, by an augmented Lagrangian.

Minimizes over H >= 0 (d x m)

    ||A H||_1 + alpha/4 ||H'H - I||^2

with a copy M of A H, a multiplier Y, and a penalty mu/2 ||M - A H||^2 that grows. M is a soft
threshold. H takes multiplicative steps: with the gradient split into a difference of two
non-negative matrices, an entry is multiplied by the root of their ratio, which keeps it
non-negative and leaves it alone where the gradient vanishes.
"""

from collections.abc import Callable

import numpy as np

from bsufs._typing import Array
from bsufs.solvers.solution import History, Solution

_EPS = float(np.finfo(np.float64).eps)
_MOST_PENALTY = 1e10
# Above this size the d x d matrices of the elementwise split are too large to keep.
_MOST_FEATURES = 8000

# The products with H of two non-negative matrices of which A'A is the difference.
Split = Callable[[Array], tuple[Array, Array]]


def elementwise_split(A: Array) -> Split:
    """Split A'A into its positive and its negative entries, as d x d matrices."""
    n, d = A.shape
    K = A.T @ A
    negative = None if n < d else np.maximum(-K, 0.0)
    positive = np.maximum(K, 0.0, out=K)

    def parts(H: Array) -> tuple[Array, Array]:
        above = positive @ H
        if negative is not None:
            return above, negative @ H
        return above, np.maximum(above - A.T @ (A @ H), 0.0)

    return parts


def factor_split(A: Array) -> Split:
    """Split A'A by the positive and negative entries of A itself; no d x d matrix.

    With A = P - N entry by entry, A'A = (P'P + N'N) - (P'N + N'P): longer parts, shorter steps.
    """
    P, N = np.maximum(A, 0.0), np.maximum(-A, 0.0)

    def parts(H: Array) -> tuple[Array, Array]:
        PH, NH = P @ H, N @ H
        sums = P.T @ np.hstack([PH, NH]) + N.T @ np.hstack([NH, PH])
        return sums[:, : H.shape[1]], sums[:, H.shape[1] :]

    return parts


def make_split(A: Array) -> Split:
    """Return the split of A'A that suits the shape of A."""
    n, d = A.shape
    return factor_split(A) if d > min(3 * n, _MOST_FEATURES) else elementwise_split(A)


def neighborhood_embedding(
    A: Array,
    H: Array,
    *,
    alpha: float,
    mu: float,
    mu_growth: float,
    max_iter: int,
    max_inner_iter: int,
    tol: float,
    reference: bool = False,
) -> Solution:
    """Minimize ||A H||_1 + alpha/4 ||H'H - I||^2 from a positive H.

    Stops when H changes, and M differs from A H, relatively by less than `tol`. With `reference`,
    as in the reference code, it never stops early and always splits A'A entry by entry.
    """
    split = elementwise_split(A) if reference else make_split(A)
    AH = A @ H
    M: Array = AH
    Y: Array = np.zeros_like(AH)
    history = History(None)
    for _ in range(max_iter):
        before = H
        H = h_step(H, split, A.T @ M, A.T @ Y, alpha=alpha, mu=mu, n_steps=max_inner_iter)
        AH = A @ H
        M = soft_threshold(AH - Y / mu, 1.0 / mu)
        gap = M - AH
        Y = Y + mu * gap
        mu = min(mu * mu_growth, _MOST_PENALTY)
        gram = H.T @ H - np.eye(H.shape[1])
        history.values.append(float(np.abs(AH).sum() + alpha / 4.0 * np.vdot(gram, gram)))
        violated = np.linalg.norm(gap) / (np.linalg.norm(AH) or 1.0)
        moved = np.linalg.norm(H - before) / (np.linalg.norm(H) or 1.0)
        if not reference and moved < tol and violated < tol:
            history.stopping_reason = "converged"
            break
    return history.solution(H)


def h_step(
    H: Array, split: Split, B: Array, T: Array, *, alpha: float, mu: float, n_steps: int
) -> Array:
    """Take multiplicative steps in H, with M and Y fixed."""
    above_fixed = mu * np.maximum(B, 0.0) + np.maximum(T, 0.0)
    below_fixed = mu * np.maximum(-B, 0.0) + np.maximum(-T, 0.0) + _EPS
    for _ in range(n_steps):
        H = H / np.sqrt(np.einsum("ij,ij->j", H, H) + _EPS)
        positive, negative = split(H)
        above = mu * negative + above_fixed + alpha * H
        below = mu * positive + below_fixed + alpha * (H @ (H.T @ H))
        H = H * np.sqrt(above / below)
    return H


def soft_threshold(N: Array, level: float) -> Array:
    """Return the minimizer of ||M||_1 + ||M - N||^2 / (2 level)."""
    return np.asarray(np.sign(N) * np.maximum(np.abs(N) - level, 0.0))
