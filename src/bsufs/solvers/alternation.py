"""Proximal alternating minimization with fixed weights (the paper's Algorithm 1).

Minimizes, over orthonormal W and free U, V::

    f(W, U, V) = -tr(W'SW) + lambda_row sum_i ||v^i||^p + lambda_element sum_ij |u_ij|^q
                 + beta_element/2 ||W - U||^2 + beta_row/2 ||W - V||^2.

A penalty that is absent takes its variable with it: minimizing over an unpenalized U gives U = W.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from bsufs._typing import Array, Indices, Mask
from bsufs.penalties import ElementPenalty, RowPenalty, row_norms
from bsufs.scatter import Scatter
from bsufs.solvers.row_blocks import Report, Snapshot, row_blocks
from bsufs.solvers.survival import Survival
from bsufs.solvers.w_steps import PolarStep, WStep, w_gradient


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
        return (self.beta * W + self.tau * copy) * self.step

    def value(self, W: Array, copy: Array) -> float:
        """Return the penalty of the copy plus the cost of its distance from W."""
        gap = W - copy
        return self.penalty.value(copy) + 0.5 * self.beta * float(np.vdot(gap, gap))

    def criticality(self, W: Array, copy: Array) -> float:
        """Return the distance of zero from the subdifferential of this coupling in the copy."""
        pull = self.beta * (copy - W)
        rows = isinstance(self.penalty, RowPenalty)
        sizes = row_norms(copy)[:, None] if rows else np.abs(copy)
        weight: Any = self.penalty.weight
        if isinstance(self.penalty, RowPenalty) and self.penalty.row_weights is not None:
            weight = weight * self.penalty.row_weights[:, None]
        s = self.penalty.exponent
        alive = sizes > 0
        with np.errstate(invalid="ignore", over="ignore"):
            slope = weight * s * np.where(alive, sizes, 1.0) ** (s - 2.0) * copy
        residual = np.where(alive, pull + slope, 0.0)
        if s == 1.0:
            # At zero the subdifferential is a ball of radius weight; for s < 1 it is everything.
            at_zero = row_norms(pull)[:, None] if rows else np.abs(pull)
            excess = np.where(alive, 0.0, np.maximum(at_zero - weight, 0.0))
            return float(np.hypot(np.linalg.norm(residual), np.linalg.norm(excess)))
        return float(np.linalg.norm(residual))


@dataclass(frozen=True)
class Terms:
    """All of f but S: what can be said of some rows of the variables without the others."""

    row: Coupling | None
    element: Coupling | None
    tau: float

    def objective(self, W: Array, SW: Array, U: Array, V: Array) -> float:
        """Return f(W, U, V), or the part of it that some rows have."""
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
            L = L + self.element.beta * U
        if self.row is not None:
            L = L + self.row.beta * V
        return L


@dataclass(frozen=True)
class Problem:
    """The penalized problem f, with the operator S and one coupling per penalty.

    Parameters
    ----------
    scatter : Scatter
        The operator S.
    row : Coupling or None
        The row penalty on V; None for no such term.
    element : Coupling or None
        The element penalty on U; None for no such term.
    tau : float
        Weight of half the squared move of W in one step.
    """

    scatter: Scatter
    row: Coupling | None
    element: Coupling | None
    tau: float

    @property
    def terms(self) -> Terms:
        """All of f but S.

        Returns
        -------
        Terms
            The couplings and tau.
        """
        return Terms(self.row, self.element, self.tau)

    def objective(self, W: Array, SW: Array, U: Array, V: Array) -> float:
        """Return f(W, U, V).

        Parameters
        ----------
        W, SW, U, V : arrays of shape (d, m)
            The variables, and the product of W with S.

        Returns
        -------
        float
            The value.
        """
        return self.terms.objective(W, SW, U, V)

    def linear_term(self, W: Array, U: Array, V: Array) -> Array:
        """Return L = beta_element U + beta_row V + tau W, the linear part of the W-problem.

        Parameters
        ----------
        W, U, V : arrays of shape (d, m)
            The proximal center and the copies.

        Returns
        -------
        array of shape (d, m)
            The linear term.
        """
        return self.terms.linear_term(W, U, V)

    def criticality(self, W: Array, U: Array, V: Array) -> float:
        """Return the distance of zero from the subdifferential of f.

        Parameters
        ----------
        W, U, V : arrays of shape (d, m)
            The variables.

        Returns
        -------
        float
            Zero at a critical point.
        """
        in_w = w_gradient(W, self.scatter @ W, self.linear_term(0.0 * W, U, V))
        parts = [float(np.linalg.norm(in_w))]
        if self.element is not None:
            parts.append(self.element.criticality(W, U))
        if self.row is not None:
            parts.append(self.row.criticality(W, V))
        return float(np.linalg.norm(parts))


@dataclass(frozen=True)
class Progress:
    """What a callback sees after each iteration."""

    iteration: int
    max_iter: int
    objective: float
    n_alive: int
    rows: Indices = field(repr=False)
    snapshot: Snapshot = field(repr=False)

    @cached_property
    def _iterates(self) -> tuple[Array, Array, Array]:
        return self.snapshot.iterates()

    @property
    def W(self) -> Array:
        """The frame; not to be changed."""
        return self._iterates[0]

    @property
    def U(self) -> Array:
        """Its element-sparse copy; not to be changed."""
        return self._iterates[1]

    @property
    def V(self) -> Array:
        """Its row-sparse copy; not to be changed."""
        return self._iterates[2]


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
    U: Array | None = None,
    V: Array | None = None,
    first_center: Array | None = None,
    w_step: WStep | None = None,
    max_iter: int = 500,
    tol: float = 1e-4,
    callback: Callback | None = None,
) -> AlternationResult:
    """Minimize f by turns in W, U and V until its relative change falls below `tol`.

    Every step is a proximal one, so each lowers f by at least tau/2 times its squared move, and the
    iterates converge to a critical point (see the page on convergence).

    Parameters
    ----------
    problem : Problem
        The objective and its weights.
    W : array of shape (d, m)
        Orthonormal start.
    U, V : arrays of shape (d, m), optional
        Where the copies start; zero by default, as in the authors' code.
    first_center : array of shape (d, m), optional
        The point the first W-step stays close to, the start by default. The authors' code has zero,
        which on orthonormal frames is no pull at all.
    w_step : WStep, optional
        How W is updated; one polar step by default.
    max_iter : int, default=500
        Iterations at most.
    tol : float, default=1e-4
        Stop when ``|f_k - f_(k-1)| / max(1, |f_(k-1)|)`` is smaller.
    callback : callable, optional
        Called with a `Progress` after each iteration; a true answer stops the run.

    Returns
    -------
    AlternationResult
        The iterates, histories and the reason for stopping.
    """
    now = row_blocks(problem.scatter, W, PolarStep() if w_step is None else w_step)
    rules, row_weights = _AlternationRules.of(problem)
    start = now.start(rules, (first_center, U, V), () if row_weights is None else (row_weights,))
    objectives = [float(start.totals[0])]
    gaps: list[Array] = []
    survival = Survival(W.shape[0])
    reason = "max_iter"

    for iteration in range(1, max_iter + 1):
        report = now.advance(rules)
        objectives.append(float(report.totals[0]))
        gaps.append(np.sqrt(report.totals[1:]))
        center_norms, norms = report.by_row
        alive = norms > 0
        survival.record(center_norms, alive)
        progress = Progress(
            iteration,
            max_iter,
            objectives[-1],
            int(np.count_nonzero(alive)),
            now.rows,
            now.snapshot(),
        )
        if callback is not None and callback(progress):
            reason = "callback"
            break
        if abs(objectives[-1] - objectives[-2]) / max(1.0, abs(objectives[-2])) < tol:
            reason = "converged"
            break

    W, U, V = now.snapshot().iterates()
    element_gaps, row_gaps = np.transpose(gaps)
    return AlternationResult(
        W=W,
        U=U,
        V=V,
        objective_history=np.array(objectives),
        element_gap_history=element_gaps,
        row_gap_history=row_gaps,
        n_iter=len(gaps),
        stopping_reason=reason,
        survival=survival,
    )


@dataclass(frozen=True)
class _AlternationCopies:
    """The copies of some rows of W, and the point that the next W-step stays close to."""

    U: Array
    V: Array
    center: Array
    row_weights: Any


@dataclass(frozen=True)
class _AlternationRules:
    """One iteration with fixed weights: the W-step, then the proximal maps of both copies."""

    terms: Terms

    @classmethod
    def of(cls, problem: Problem) -> tuple[_AlternationRules, Array | None]:
        """Return the rules, and the weights that differ from row to row, if there are any."""
        row = problem.row
        weights = getattr(row.penalty, "row_weights", None) if row is not None else None
        if row is None or weights is None:
            return cls(problem.terms), None
        alike = replace(row, penalty=RowPenalty(row.penalty.weight, row.penalty.exponent))
        return cls(replace(problem.terms, row=alike)), weights

    def _terms_of(self, row_weights: Any) -> Terms:
        row = self.terms.row
        if row is None or row_weights is None:
            return self.terms
        penalty = RowPenalty(row.penalty.weight, row.penalty.exponent, row_weights)
        return replace(self.terms, row=replace(row, penalty=penalty))

    def begin(
        self, W: Array, SW: Array, frames: tuple[Array | None, ...], by_row: tuple[Any, ...]
    ) -> tuple[_AlternationCopies, Report]:
        center, U, V = frames
        copies = _AlternationCopies(
            np.zeros_like(W) if U is None else U,
            np.zeros_like(W) if V is None else V,
            W if center is None else center,
            by_row[0] if by_row else None,
        )
        terms = self._terms_of(copies.row_weights)
        objective = terms.objective(W, SW, copies.U, copies.V)
        return copies, Report(np.array([objective]), ())

    def before(
        self, W: Array, copies: _AlternationCopies, alive: Mask
    ) -> tuple[_AlternationCopies, Array]:
        return copies, self.terms.linear_term(copies.center, copies.U, copies.V)

    def after(
        self, W: Array, SW: Array, copies: _AlternationCopies
    ) -> tuple[_AlternationCopies, Report]:
        terms = self._terms_of(copies.row_weights)
        U = V = Z = W
        if terms.element is not None:
            center = terms.element.center(W, copies.U)
            U = terms.element.penalty.prox(center, terms.element.step)
        if terms.row is not None:
            Z = terms.row.center(W, copies.V)
            V = terms.row.penalty.prox(Z, terms.row.step)
        gaps = [float(np.vdot(gap, gap)) for gap in (W - U, W - V)]
        totals = np.array([terms.objective(W, SW, U, V), *gaps])
        now = _AlternationCopies(U, V, W, copies.row_weights)
        return now, Report(totals, (row_norms(Z), row_norms(V)))
