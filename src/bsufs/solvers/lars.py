"""Least-angle regression with the lasso modification, followed until enough variables are active.

Follows the minimizer b of

    1/2 ||y - X b||^2 + ridge/2 ||b||^2 + C ||b||_1

as C falls from the value at which b leaves zero. The minimizer is piecewise linear in C; a step
goes from one change of the active set to the next. Variables are neither centered nor scaled, and
there is no intercept. (scikit-learn's `lars_path` would need the d x d Gram matrix for a ridge, and
takes no sparse X.)
"""

from typing import Any

import numpy as np
from scipy import linalg, sparse

from bsufs._linalg import cholesky_solver
from bsufs._typing import Array

# What is left of a correlation below this share of the first one is rounding.
_EXHAUSTED = 1e-13
# A variable whose part outside the span of the active ones is smaller cannot enter.
_COLLINEAR = 1e-14
# More steps than this many for each variable asked for mean that the path goes round in circles.
_STEPS_PER_VARIABLE = 20


class _ActiveSet:
    """The active variables, in order of entry, and solves with their Gram matrix plus ridge."""

    def __init__(self, X: Any, ridge: float, size: int) -> None:
        self.X, self.ridge = X, ridge
        self.variables: list[int] = []
        n = X.shape[0]
        # With far more variables than samples a system in the samples is smaller.
        self._dual = ridge > 0 and size > 2 * n
        if self._dual:
            self._inner = ridge * np.eye(n)
        else:
            self._lower = np.zeros((size + 1, size + 1), order="F")

    def add(self, variable: int) -> None:
        """Let a variable in unless it is a combination of those that are in: then go on without."""
        if self._dual:
            self._inner += self._outer_square(variable)
        else:
            size, ridge = len(self.variables), self.ridge
            column = _dense(self.X[:, [*self.variables, variable]].T @ self.X[:, [variable]])[:, 0]
            row = linalg.solve_triangular(
                self._lower[:size, :size], column[:-1], lower=True, check_finite=False
            )
            rest = column[-1] + ridge - row @ row
            if rest <= _COLLINEAR * (column[-1] + ridge):
                return
            self._lower[size, :size] = row
            self._lower[size, size] = np.sqrt(rest)
        self.variables.append(variable)

    def remove(self, place: int) -> int:
        """Take the variable out that came in at some place; return it."""
        variable = self.variables.pop(place)
        if self._dual:
            self._inner -= self._outer_square(variable)
            return variable
        # Only the factor of the variables that came later changes, by a rank-one term.
        size, lower = len(self.variables), self._lower
        later = slice(place + 1, size + 1)
        column, corner = lower[later, place], lower[later, later]
        updated = corner @ corner.T + np.multiply.outer(column, column)
        lower[place:size, :place] = lower[later, :place].copy()
        lower[place:size, place:size] = linalg.cholesky(updated, lower=True, check_finite=False)
        return variable

    def solve(self, signs: Array) -> Array:
        """Return (X_A'X_A + ridge)^(-1) signs."""
        if self._dual:
            X = self.X[:, self.variables]
            fitted = cholesky_solver(self._inner.copy())(X @ signs)
            return np.asarray(signs - X.T @ fitted) / self.ridge
        lower = self._lower[: signs.size, : signs.size]
        return np.asarray(linalg.cho_solve((lower, True), signs, check_finite=False))

    def _outer_square(self, variable: int) -> Array:
        column = _dense(self.X[:, [variable]])
        return column @ column.T


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if sparse.issparse(X) else X)


def lars(
    X: Any,
    correlations: Array,
    n_active: int,
    *,
    ridge: float = 0.0,
    ridge_in_correlations: bool = True,
) -> Array:
    """Follow the lasso path from the correlations X'y until a number of variables is active.

    Of X only X'X matters after that: any matrix with the same products will do.
    """
    d = X.shape[1]
    ridge_in_slopes = ridge if ridge_in_correlations else 0.0
    first = float(np.abs(correlations).max(initial=0.0))
    b, recorded = np.zeros(d), np.zeros(d)
    active = _ActiveSet(X, ridge, n_active)
    free = np.ones(d, dtype=bool)
    dropped = False
    for _ in range(_STEPS_PER_VARIABLE * n_active):
        candidates = np.flatnonzero(free)
        strengths = np.abs(correlations[candidates])
        level = float(strengths.max(initial=0.0))
        if not dropped and candidates.size:
            newcomer = int(candidates[strengths.argmax()])
            free[newcomer] = False
            if level > 0:
                active.add(newcomer)
            candidates = candidates[candidates != newcomer]
        A = np.array(active.variables, dtype=np.intp)
        if ridge_in_correlations and A.size:
            level = float(np.abs(correlations[A]).max())
        if level <= _EXHAUSTED * first or not A.size:
            return b
        # The direction in which all active correlations fall alike, and how fast they do.
        signs = np.sign(correlations[A])
        solution = active.solve(signs)
        speed = float((signs @ solution) ** -0.5)
        direction = speed * solution
        step = np.zeros(d)
        step[A] = direction
        slopes = X.T @ (X @ step) + ridge_in_slopes * step
        length = _next_entry(
            correlations[candidates], slopes[candidates], level, speed, ridge_in_correlations
        )
        leaving, length = _next_exit(b[A], direction, min(length, level / speed))
        b[A] += length * direction
        correlations = correlations - length * slopes
        if A.size == n_active:
            recorded = b.copy()
        dropped = leaving is not None
        if leaving is not None:
            variable = active.remove(leaving)
            b[variable] = 0.0
            free[variable] = True
        # Without a ridge a step of no length comes from a duplicate, which is refused next.
        if len(active.variables) >= n_active and (length > 0 or ridge > 0):
            break
    return recorded


def _next_entry(
    correlations: Array, slopes: Array, level: float, speed: float, ties_enter: bool
) -> float:
    """Return how far to go until an inactive variable is as correlated as the active ones."""
    gaps = np.concatenate([level - correlations, level + correlations])
    rates = np.concatenate([speed - slopes, speed + slopes])
    with np.errstate(divide="ignore", invalid="ignore"):
        lengths = gaps / rates
    if ties_enter:
        # One that is level already and falls behind more slowly has to enter at once.
        lengths = np.where(rates > 0, np.maximum(lengths, 0.0), np.inf)
    else:
        lengths = np.where(lengths > 0, lengths, np.inf)
    return float(lengths.min(initial=np.inf))


def _next_exit(b: Array, direction: Array, length: float) -> tuple[int | None, float]:
    """Return which coefficient reaches zero first on the way, if any, and how far to go."""
    with np.errstate(divide="ignore", invalid="ignore"):
        lengths = -b / direction
    lengths = np.where(lengths > 0, lengths, np.inf)
    leaving = int(lengths.argmin())
    return (leaving, float(lengths[leaving])) if lengths[leaving] < length else (None, length)
