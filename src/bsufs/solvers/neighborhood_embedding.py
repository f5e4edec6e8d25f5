"""Non-negative embedding of local reconstruction errors, by an augmented Lagrangian.

Minimizes over H >= 0 (d x m)

    ||A H||_1 + alpha/4 ||H'H - I||^2

with a copy M of A H, a multiplier Y, and a penalty mu/2 ||M - A H||^2 that grows. M is a soft
threshold. H takes multiplicative steps: with the gradient split into a difference of two
non-negative matrices, an entry is multiplied by the root of their ratio, which keeps it
non-negative and leaves it alone where the gradient vanishes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from bsufs._typing import Array

_EPS = float(np.finfo(np.float64).eps)
_MOST_PENALTY = 1e10
# Above this size the d x d matrices of the elementwise split are too large to keep.
_MOST_FEATURES = 8000


class Split(ABC):
    """A'A as the difference of two non-negative matrices."""

    @abstractmethod
    def parts(self, H: Array) -> tuple[Array, Array]:
        """Return the products of both matrices with H."""


class ElementwiseSplit(Split):
    """Positive and negative entries of A'A, as d x d matrices.

    For n < d the negative ones are not kept: their product is that of the positive ones minus
    A'(A H), which costs O(n d m).
    """

    def __init__(self, A: Array) -> None:
        n, d = A.shape
        K = A.T @ A
        self._A = A
        self._negative: Array | None = None if n < d else np.maximum(-K, 0.0)
        self._positive = np.maximum(K, 0.0, out=K)

    def parts(self, H: Array) -> tuple[Array, Array]:
        """Return the products of both matrices with H."""
        positive = self._positive @ H
        if self._negative is not None:
            return positive, self._negative @ H
        negative = positive - self._A.T @ (self._A @ H)
        return positive, np.maximum(negative, 0.0, out=negative)


class FactorSplit(Split):
    """Products of the positive and negative entries of A itself; no d x d matrix.

    With A = P - N entry by entry, A'A = (P'P + N'N) - (P'N + N'P). Both parts are larger than those
    of the elementwise split, so steps are shorter, but a step costs O(n d m).
    """

    def __init__(self, A: Array) -> None:
        self._P = np.maximum(A, 0.0)
        self._N = np.maximum(-A, 0.0)

    def parts(self, H: Array) -> tuple[Array, Array]:
        """Return the products of both matrices with H."""
        m = H.shape[1]
        PH, NH = self._P @ H, self._N @ H
        sums = self._P.T @ np.hstack([PH, NH]) + self._N.T @ np.hstack([NH, PH])
        return sums[:, :m], sums[:, m:]


def make_split(A: Array) -> Split:
    """Return the split of A'A that suits the shape of A."""
    n, d = A.shape
    return FactorSplit(A) if d > min(3 * n, _MOST_FEATURES) else ElementwiseSplit(A)


@dataclass(frozen=True)
class EmbeddingResult:
    """What the iteration came to."""

    H: Array
    objective: float
    residual_history: Array
    n_iter: int
    stopping_reason: str


def neighborhood_embedding(
    A: Array,
    H: Array,
    *,
    alpha: float,
    mu: float,
    mu_growth: float,
    max_iter: int,
    max_inner_iter: int,
    tol: float | None,
    split: Split | None = None,
) -> EmbeddingResult:
    """Minimize ||A H||_1 + alpha/4 ||H'H - I||^2 over non-negative H.

    Parameters
    ----------
    A : array of shape (n, d)
        Local reconstruction errors of the features.
    H : array of shape (d, m)
        Where to start; positive.
    alpha : float
        Weight of the orthogonality of the columns of H.
    mu : float
        First weight of the tie between M and A H.
    mu_growth : float
        What it is multiplied by after each outer iteration.
    max_iter : int
        Outer iterations at most.
    max_inner_iter : int
        Multiplicative steps in each.
    tol : float or None
        Stop when H changes, and M differs from A H, relatively by less; None never stops early.
    split : Split, optional
        How A'A is split; by its entries by default.

    Returns
    -------
    EmbeddingResult
        The embedding.
    """
    split = ElementwiseSplit(A) if split is None else split
    AH = A @ H
    M: Array = AH
    Y: Array = np.zeros_like(AH)
    residuals: list[float] = []
    reason = "max_iter"
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        before = H
        H = h_step(H, split, A.T @ M, A.T @ Y, alpha=alpha, mu=mu, n_steps=max_inner_iter)
        AH = A @ H
        M = soft_threshold(AH - Y / mu, 1.0 / mu)
        gap = M - AH
        Y = Y + mu * gap
        mu = min(mu * mu_growth, _MOST_PENALTY)
        residuals.append(float(np.linalg.norm(gap) / (np.linalg.norm(AH) or 1.0)))
        moved = np.linalg.norm(H - before) / (np.linalg.norm(H) or 1.0)
        if tol is not None and moved < tol and residuals[-1] < tol:
            reason = "converged"
            break
    gram = H.T @ H
    gram[np.diag_indices_from(gram)] -= 1.0
    objective = float(np.abs(AH).sum()) + alpha / 4.0 * float(np.vdot(gram, gram))
    return EmbeddingResult(H, objective, np.array(residuals), n_iter, reason)


def h_step(
    H: Array, split: Split, B: Array, T: Array, *, alpha: float, mu: float, n_steps: int
) -> Array:
    """Take multiplicative steps in H, with M and Y fixed."""
    above_fixed = mu * np.maximum(B, 0.0) + np.maximum(T, 0.0)
    below_fixed = mu * np.maximum(-B, 0.0) + np.maximum(-T, 0.0) + _EPS
    for _ in range(n_steps):
        H = H / np.sqrt(np.einsum("ij,ij->j", H, H) + _EPS)
        positive, negative = split.parts(H)
        negative *= mu
        negative += above_fixed
        negative += alpha * H
        positive *= mu
        positive += below_fixed
        positive += alpha * (H @ (H.T @ H))
        negative /= positive
        H = H * np.sqrt(negative)
    return H


def soft_threshold(N: Array, level: float) -> Array:
    """Return the minimizer of ||M||_1 + ||M - N||^2 / (2 level)."""
    shrunk: Array = np.sign(N) * np.maximum(np.abs(N) - level, 0.0)
    return shrunk
