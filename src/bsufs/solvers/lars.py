"""Least-angle regression with the lasso modification, followed until enough variables are active.

Follows the minimizer b of

    1/2 ||y - X b||^2 + ridge/2 ||b||^2 + C ||b||_1

as C falls from the value at which b leaves zero. The minimizer is piecewise linear in C; a step
goes from one change of the active set to the next. Variables are neither centered nor scaled, and
there is no intercept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse

from bsufs._typing import Array, Indices

# What is left of a correlation below this share of the first one is rounding.
_EXHAUSTED = 1e-13
# A variable whose part outside the span of the active ones is smaller cannot enter.
_COLLINEAR = 1e-14
# More steps than this many for each variable asked for mean that the path goes round in circles.
_STEPS_PER_VARIABLE = 20


@dataclass(frozen=True)
class LarsResult:
    """What the path came to."""

    coefficients: Array
    n_iter: int
    stopping_reason: str


class Design:
    """The variables of a regression, seen through products with their Gram matrix.

    The d x d Gram matrix is formed for d <= n alone.
    """

    def __init__(self, X: Any, ridge: float) -> None:
        self.X: Any = sparse.csc_array(X) if sparse.issparse(X) else np.asarray(X)
        self.ridge = ridge
        self.shape: tuple[int, int] = X.shape
        self._gram: Array | None = None
        if X.shape[1] <= X.shape[0]:
            gram: Any = self.X.T @ self.X
            self._gram = gram.toarray() if sparse.issparse(X) else gram

    def correlations(self, y: Array) -> Array:
        """Return X'y."""
        products: Array = self.X.T @ y
        return products

    def gram_product(self, b: Array) -> Array:
        """Return X'X b, without the ridge."""
        if self._gram is not None:
            return self._gram @ b
        products: Array = self.X.T @ (self.X @ b)
        return products

    def gram_column(self, rows: Indices, column: int) -> Array:
        """Return some entries of a column of X'X, without the ridge."""
        if self._gram is not None:
            entries: Array = self._gram[rows, column]
            return entries
        products: Array = self.variables(rows).T @ self.variables(np.array([column]))[:, 0]
        return products

    def variables(self, which: Indices) -> Array:
        """Return some columns of X as a dense array."""
        columns: Any = self.X[:, which]
        dense: Array = columns.toarray() if sparse.issparse(columns) else np.asarray(columns)
        return dense


class _ActiveSet:
    """The active variables, in order of entry, and solves with their Gram matrix plus ridge."""

    def __init__(self, design: Design, size: int) -> None:
        self.design = design
        self.variables: list[int] = []
        # With far more variables than samples a system in the samples is smaller.
        self._dual = design.ridge > 0 and size > 2 * design.shape[0]
        n = design.shape[0]
        if self._dual:
            self._columns = np.empty((n, size + 1), order="F")
            self._inner = design.ridge * np.eye(n)
        else:
            self._lower = np.zeros((size + 1, size + 1), order="F")

    def __len__(self) -> int:
        return len(self.variables)

    def indices(self) -> Indices:
        return np.array(self.variables, dtype=np.intp)

    def add(self, variable: int) -> bool:
        """Let a variable in; return False if it is a combination of those that are in."""
        size = len(self)
        if self._dual:
            column = self.design.variables(np.array([variable]))[:, 0]
            self._columns[:, size] = column
            self._inner += np.multiply.outer(column, column)
            self.variables.append(variable)
            return True
        ridge = self.design.ridge
        column = self.design.gram_column(np.append(self.indices(), variable), variable)
        row = linalg.solve_triangular(
            self._lower[:size, :size], column[:-1], lower=True, check_finite=False
        )
        rest = column[-1] + ridge - row @ row
        if rest <= _COLLINEAR * (column[-1] + ridge):
            return False
        self._lower[size, :size] = row
        self._lower[size, size] = np.sqrt(rest)
        self.variables.append(variable)
        return True

    def remove(self, place: int) -> None:
        del self.variables[place]
        size = len(self)
        if self._dual:
            column = self._columns[:, place].copy()
            self._inner -= np.multiply.outer(column, column)
            self._columns[:, place:size] = self._columns[:, place + 1 : size + 1].copy()
            return
        # Only the factor of the variables that came later changes, by a rank-one term.
        lower = self._lower
        below, column = lower[place + 1 : size + 1, :place], lower[place + 1 : size + 1, place]
        corner = lower[place + 1 : size + 1, place + 1 : size + 1]
        updated = corner @ corner.T + np.multiply.outer(column, column)
        lower[place:size, :place] = below.copy()
        lower[place:size, place:size] = linalg.cholesky(updated, lower=True, check_finite=False)

    def solve(self, signs: Array) -> Array:
        """Return (X_A'X_A + ridge)^(-1) signs."""
        size = len(self)
        if not self._dual:
            solution: Array = linalg.cho_solve(
                (self._lower[:size, :size], True), signs, check_finite=False
            )
            return solution
        X = self._columns[:, :size]
        factor = linalg.cho_factor(self._inner, lower=True, check_finite=False)
        fitted = linalg.cho_solve(factor, X @ signs, check_finite=False)
        outside: Array = (signs - X.T @ fitted) / self.design.ridge
        return outside


def lars(
    design: Design, y: Array, n_active: int, *, ridge_in_correlations: bool = True
) -> LarsResult:
    """Follow the lasso path until a number of variables is active."""
    d = design.shape[1]
    ridge = design.ridge if ridge_in_correlations else 0.0
    correlations = design.correlations(y)
    first = float(np.abs(correlations).max(initial=0.0))
    b, recorded = np.zeros(d), np.zeros(d)
    active = _ActiveSet(design, n_active)
    inactive = np.ones(d, dtype=bool)
    eligible = np.ones(d, dtype=bool)
    dropped = False
    reason = "max_iter"
    n_iter = 0
    while n_iter < _STEPS_PER_VARIABLE * n_active:
        n_iter += 1
        candidates = np.flatnonzero(inactive & eligible)
        level = float(np.abs(correlations[candidates]).max(initial=0.0))
        if not dropped and candidates.size:
            newcomer = int(candidates[np.abs(correlations[candidates]).argmax()])
            entered = abs(correlations[newcomer]) > 0 and active.add(newcomer)
            # One that the active variables span already never enters; the path goes on without.
            (inactive if entered else eligible)[newcomer] = False
            candidates = candidates[candidates != newcomer]
        A = active.indices()
        if ridge_in_correlations and A.size:
            level = float(np.abs(correlations[A]).max())
        if level <= _EXHAUSTED * first or not A.size:
            reason = "exhausted"
            recorded = b.copy()
            break
        direction, speed = _equiangular(active, np.sign(correlations[A]))
        full = np.zeros(d)
        full[A] = direction
        slopes = design.gram_product(full) + ridge * full
        length = _next_entry(
            correlations[candidates], slopes[candidates], level, speed, ridge_in_correlations
        )
        length = min(length, level / speed)
        leaving, length, dropped = _next_exit(b[A], direction, length)
        b[A] += length * direction
        correlations = correlations - length * slopes
        if A.size == n_active:
            recorded = b.copy()
        if dropped:
            out = active.variables[leaving]
            active.remove(leaving)
            b[out] = 0.0
            inactive[out] = True
        # Without a ridge a step of no length is the doing of a copy, which is refused next.
        if len(active) >= n_active and (length > 0 or design.ridge > 0):
            reason = "enough_active"
            break
    return LarsResult(recorded, n_iter, reason)


def _equiangular(active: _ActiveSet, signs: Array) -> tuple[Array, float]:
    """Return the direction in which the active correlations fall alike, and how fast they do."""
    solution = active.solve(signs)
    speed = float((signs @ solution) ** -0.5)
    return speed * solution, speed


def _next_entry(
    correlations: Array, slopes: Array, level: float, speed: float, ties_enter: bool
) -> float:
    """Return how far to go until an inactive variable is as correlated as the active ones."""
    closest = np.inf
    for gap, rate in (
        (level - correlations, speed - slopes),
        (level + correlations, speed + slopes),
    ):
        with np.errstate(divide="ignore", invalid="ignore"):
            lengths = gap / rate
        if ties_enter:
            # One that is level already and falls behind more slowly has to enter at once.
            lengths = np.where(rate > 0, np.maximum(lengths, 0.0), np.inf)
        else:
            lengths = np.where(lengths > 0, lengths, np.inf)
        closest = min(closest, float(lengths.min(initial=np.inf)))
    return closest


def _next_exit(b: Array, direction: Array, length: float) -> tuple[int, float, bool]:
    """Return which coefficient reaches zero first on the way, how far that is, and whether any."""
    with np.errstate(divide="ignore", invalid="ignore"):
        lengths = -b / direction
    lengths = np.where(lengths > 0, lengths, np.inf)
    leaving = int(lengths.argmin())
    if lengths[leaving] < length:
        return leaving, float(lengths[leaving]), True
    return -1, length, False
