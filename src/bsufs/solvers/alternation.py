"""Proximal alternating minimization with fixed weights (the paper's Algorithm 1).

Minimizes, over orthonormal W and free U, V::

    f(W, U, V) = -tr(W'SW) + lambda_row sum_i ||v^i||^p + lambda_element sum_ij |u_ij|^q
                 + beta_element/2 ||W - U||^2 + beta_row/2 ||W - V||^2.

A penalty that is absent takes its variable with it: minimizing over an unpenalized U gives U = W.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from bsufs._typing import Array, Indices
from bsufs.penalties import ElementPenalty, RowPenalty, row_norms
from bsufs.scatter import Scatter
from bsufs.solvers.survival import Survival
from bsufs.solvers.w_steps import PolarStep, WStep

_CACHED_ELEMENTS = 2**16


@dataclass(frozen=True)
class Coupling:
    """A penalty on a copy of W, how tightly the copy is tied to W, and how slowly it may move."""

    penalty: ElementPenalty | RowPenalty
    beta: float
    tau: float

    @property
    def step(self) -> float:
        """Step of the proximal map, 1 / (beta + tau)."""
        return 1.0 / (self.beta + self.tau)

    def center(self, W: Array, copy: Array) -> Array:
        """Return the point whose proximal map is the next copy."""
        center = self.beta * W
        center += self.tau * copy
        center *= self.step
        return center

    def elements(self, W: Array, copy: Array) -> Array:
        """Return the next copy where elements are penalized, rows that fit the cache at a time."""
        following = np.empty_like(W)
        n_rows = max(1, _CACHED_ELEMENTS // W.shape[1])
        for start in range(0, len(W), n_rows):
            rows = slice(start, start + n_rows)
            following[rows] = self.penalty.prox(self.center(W[rows], copy[rows]), self.step)
        return following

    def value(self, W: Array, copy: Array) -> float:
        """Return the penalty of the copy plus the cost of its distance from W."""
        penalty = self.penalty.value(copy)
        gap = W - copy
        return penalty + 0.5 * self.beta * float(np.vdot(gap, gap))


@dataclass(frozen=True)
class Problem:
    """The penalized problem f: S, a coupling per penalty (None for no such term), tau of W."""

    scatter: Scatter
    row: Coupling | None
    element: Coupling | None
    tau: float

    def objective(self, W: Array, SW: Array, U: Array, V: Array) -> float:
        """Return f(W, U, V), given the product SW of W with S."""
        value = -float(np.vdot(W, SW))
        if self.element is not None:
            value += self.element.value(W, U)
        if self.row is not None:
            value += self.row.value(W, V)
        return value

    def linear_term(self, W: Array, U: Array, V: Array) -> Array:
        """Return L = beta_element U + beta_row V + tau W, the linear part of the W-problem."""
        L = self.tau * W
        if self.element is not None:
            L += self.element.beta * U
        if self.row is not None:
            L += self.row.beta * V
        return L


@dataclass(frozen=True)
class Progress:
    """What a callback sees after each iteration; the iterates are not to be changed.

    The rows of W, U and V stand for the features in `rows`; on the path, rows that were eliminated
    some steps ago are left out, and those eliminated since are zero.
    """

    iteration: int
    max_iter: int
    objective: float
    n_alive: int
    rows: Indices = field(repr=False)
    W: Array = field(repr=False)
    U: Array = field(repr=False)
    V: Array = field(repr=False)


Callback = Callable[[Progress], object]


@dataclass(frozen=True)
class AlternationResult:
    """Where the alternation ended and how it got there."""

    W: Array
    U: Array
    V: Array
    objective_history: Array
    element_gap_history: Array
    row_gap_history: Array
    n_iter: int
    stopping_reason: str
    survival: Survival


def proximal_alternation(
    problem: Problem,
    W: Array,
    *,
    first_center: Array | None = None,
    w_step: WStep | None = None,
    max_iter: int = 500,
    tol: float = 1e-4,
    callback: Callback | None = None,
) -> AlternationResult:
    """Minimize f by turns in W, U and V until its relative change falls below `tol`.

    Every step is a proximal one, so each lowers f by at least tau/2 times its squared move, and the
    iterates converge to a critical point (see the page on convergence).

    W starts orthonormal; the copies U and V start at zero, as in the authors' code. The
    first W-step stays close to `first_center`, the start by default; the authors' code has zero,
    which on orthonormal frames is no pull at all. The change that ends the run is
    ``|f_k - f_(k-1)| / max(1, |f_(k-1)|)``. A `callback` gets a `Progress` after each iteration; a
    true answer stops the run.
    """
    w_step = PolarStep() if w_step is None else w_step
    row, element = problem.row, problem.element
    U = V = np.zeros_like(W)
    SW = problem.scatter @ W
    center = W if first_center is None else first_center
    objectives = [problem.objective(W, SW, U, V)]
    element_gaps: list[float] = []
    row_gaps: list[float] = []
    rows = np.arange(W.shape[0])
    groups = None if row is None else getattr(row.penalty, "groups", None)
    survival = Survival(rows.size, 1.0 if groups is None else W.shape[1] ** 0.5)
    reason = "max_iter"

    for iteration in range(1, max_iter + 1):
        W, SW = w_step(problem.scatter, W, SW, problem.linear_term(center, U, V))
        center = W
        U = W if element is None else element.elements(W, U)
        row_center = W if row is None else row.center(W, V)
        V = W if row is None else row.penalty.prox(row_center, row.step)

        objectives.append(problem.objective(W, SW, U, V))
        element_gaps.append(float(np.linalg.norm(W - U)))
        row_gaps.append(float(np.linalg.norm(W - V)))
        alive = row_norms(V, groups) > 0
        survival.record(row_norms(row_center, groups), alive, rows)
        n_alive = int(np.count_nonzero(alive))
        progress = Progress(iteration, max_iter, objectives[-1], n_alive, rows, W, U, V)
        if callback is not None and callback(progress):
            reason = "callback"
            break
        if abs(objectives[-1] - objectives[-2]) / max(1.0, abs(objectives[-2])) < tol:
            reason = "converged"
            break

    return AlternationResult(
        W=W,
        U=U,
        V=V,
        objective_history=np.array(objectives),
        element_gap_history=np.array(element_gaps),
        row_gap_history=np.array(row_gaps),
        n_iter=len(row_gaps),
        stopping_reason=reason,
        survival=survival,
    )
