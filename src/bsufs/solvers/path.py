"""The sparsity path: lambda_row follows from how many rows should die.

The same alternation as with fixed weights, but each iteration sets lambda_row so that a given share
of the living rows falls below the threshold, and a row that has died leaves the problem: from then
on W is a frame over the living rows alone. The path ends when as many rows live as W has columns;
these last ones are put in order by greedy regression. So one run ranks all features for every k,
and no weight has to be guessed. Since the living rows shrink by a constant factor, the whole path
costs about ten products with S.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bsufs._typing import Array, Indices, Mask
from bsufs.penalties import RowPenalty, row_norms, shrink_factor, strength_for_threshold
from bsufs.scatter import Scatter
from bsufs.solvers.alternation import Callback, Coupling, Progress, Terms
from bsufs.solvers.row_blocks import Report, row_blocks
from bsufs.solvers.survival import Survival
from bsufs.solvers.w_steps import PolarStep, WStep


@dataclass(frozen=True)
class PathResult:
    """The whole path, one entry per step, and the iterates at one of its steps.

    Parameters
    ----------
    lambda_row : array of shape (n_iter,)
        The weight of the row penalty that each step used.
    n_alive : array of int of shape (n_iter,)
        Living rows after the step.
    component_variance_ratio : array of shape (n_iter + 1,)
        tr(W'SW) / tr(S) at the start and after each step.
    objective_history : array of shape (n_iter + 1,)
        f at the start and after each step, with the weight of that step.
    rows : array of int of shape (k,)
        The rows that had not been taken out at the last step with enough living rows (see
        `n_keep`).
    iterates : tuple of arrays of shape (k, m)
        The frame and its copies at that step, W, U and V, with these rows alone: of many features
        few are left. All rows are in the properties of these names.
    n_iter : int
        Steps done.
    stopping_reason : str
        "path_complete", "max_iter" or "callback".
    survival : Survival
        How long each row stayed alive.
    """

    lambda_row: Array
    n_alive: Indices
    component_variance_ratio: Array
    objective_history: Array
    rows: Indices
    iterates: tuple[Array, Array, Array]
    n_iter: int
    stopping_reason: str
    survival: Survival

    @property
    def W(self) -> Array:
        """The frame, of shape (d, m), with zero rows where rows have been taken out."""
        return self._spread(self.iterates[0])

    @property
    def U(self) -> Array:
        """The element-sparse copy, of shape (d, m)."""
        return self._spread(self.iterates[1])

    @property
    def V(self) -> Array:
        """The row-sparse copy, of shape (d, m)."""
        return self._spread(self.iterates[2])

    def _spread(self, A: Array) -> Array:
        full = np.zeros((self.survival.last_step.size, A.shape[1]))
        full[self.rows] = A
        return full


@dataclass(frozen=True)
class _PathCopies:
    """The copies of some rows of W, and what the next step makes of them before its threshold."""

    U: Array
    V: Array
    forced: Mask
    next_U: Array
    next_center: Array
    next_norms: Array

    def restricted(self, rows: Mask) -> _PathCopies:
        return _PathCopies(
            self.U[rows],
            self.V[rows],
            self.forced[rows],
            self.next_U[rows],
            self.next_center[rows],
            self.next_norms[rows],
        )


@dataclass(frozen=True)
class _PathRules:
    """One step of the path: the threshold, the W-step, and a look at the next threshold.

    The penalty of the row term is that of the step, with its weight; at the start there is none.
    """

    row: Coupling
    element: Coupling | None

    @property
    def terms(self) -> Terms:
        return Terms(self.row, self.element, self.row.tau)

    def begin(
        self, W: Array, SW: Array, frames: tuple[Array | None, ...], by_row: tuple[Any, ...]
    ) -> tuple[_PathCopies, Report]:
        (forced,) = by_row
        return self._look_ahead(W, SW, W, W, forced, -float(np.vdot(W, SW)))

    def before(self, W: Array, copies: _PathCopies, alive: Mask) -> tuple[_PathCopies, Array]:
        strength = self.row.penalty.weight * self.row.step
        factor = _survivors_factor(
            copies.next_norms, alive, copies.forced, strength, self.row.penalty.exponent
        )
        now = replace(copies, U=copies.next_U, V=copies.next_center * factor[:, None])
        return now, self.terms.linear_term(W, now.U, now.V)

    def after(self, W: Array, SW: Array, copies: _PathCopies) -> tuple[_PathCopies, Report]:
        objective = self.terms.objective(W, SW, copies.U, copies.V)
        return self._look_ahead(W, SW, copies.U, copies.V, copies.forced, objective)

    def _look_ahead(
        self, W: Array, SW: Array, U: Array, V: Array, forced: Mask, objective: float
    ) -> tuple[_PathCopies, Report]:
        next_U = W
        if self.element is not None:
            center = self.element.center(W, U)
            next_U = self.element.penalty.prox(center, self.element.step)
        next_center = self.row.center(W, V)
        norms = row_norms(next_center)
        totals = np.array([objective, float(np.vdot(W, SW))])
        return _PathCopies(U, V, forced, next_U, next_center, norms), Report(totals, (norms,))


def sparsity_path(
    scatter: Scatter,
    W: Array,
    *,
    p: float,
    beta_row: float,
    tau: float,
    element: Coupling | None = None,
    drop_rate: float = 0.05,
    n_keep: int = 1,
    forced: Mask | None = None,
    barred: Mask | None = None,
    w_step: WStep | None = None,
    max_iter: int = 500,
    callback: Callback | None = None,
) -> PathResult:
    """Follow the path from all rows to as many as there are components.

    Parameters
    ----------
    scatter : Scatter
        The operator S.
    W : array of shape (d, m)
        Orthonormal start, usually the leading eigenvectors.
    p : float
        Exponent of the row penalty.
    beta_row : float
        Tie between W and its row-sparse copy.
    tau : float
        Proximal weight of all three variables.
    element : Coupling, optional
        The element penalty, with its fixed weight; None for no such term.
    drop_rate : float, default=0.05
        Share of the living rows that die in a step; at least one does.
    n_keep : int, default=1
        The iterates returned are those of the last step with at least this many living rows.
    forced, barred : arrays of bool of shape (d,), optional
        Rows that never die, and rows that die at the first step.
    w_step : WStep, optional
        How W is updated; one polar step by default.
    max_iter : int, default=500
        Steps at most.
    callback : callable, optional
        Called with a `Progress` after each step; a true answer stops the run.

    Returns
    -------
    PathResult
        The path, the iterates of one of its steps and the survival of each row.
    """
    d, m = W.shape
    contest = _Contest(d, m, forced, barred)
    no_penalty = Coupling(RowPenalty(0.0, p), beta_row, tau)
    now = row_blocks(scatter, W, PolarStep() if w_step is None else w_step)
    report = now.start(_PathRules(no_penalty, element), by_row=(contest.forced,))
    history = _History(report, scatter.trace())
    kept = now.snapshot()
    survival = Survival(d)
    reason = "path_complete"

    while not contest.is_over:
        if history.n_iter == max_iter:
            reason = "max_iter"
            break
        contest.lower_number(drop_rate)
        (norms,) = report.by_row
        alive, largest_dying = contest.survivors(norms, now.rows, now.alive)
        survival.record(norms, alive, now.rows)

        weight = float(strength_for_threshold(largest_dying, p)) / no_penalty.step
        row = replace(no_penalty, penalty=RowPenalty(weight, p))
        report = now.advance(_PathRules(row, element), alive)
        history.record(weight, contest.n_living, report)
        snapshot = now.snapshot()
        if contest.n_living >= n_keep:
            kept = snapshot
        progress = Progress(
            history.n_iter,
            max_iter,
            history.objectives[-1],
            contest.n_living,
            snapshot.rows,
            snapshot,
        )
        if callback is not None and callback(progress):
            reason = "callback"
            break

    if reason == "path_complete":
        survivors = now.rows[now.alive] if history.n_iter else contest.all_rows()
        survival.settle(_by_regression(scatter, survivors, contest.forced))
    W, U, V = kept.iterates()
    return PathResult(
        lambda_row=np.array(history.lambdas),
        n_alive=np.array(history.living, dtype=np.intp),
        component_variance_ratio=np.array(history.carried),
        objective_history=np.array(history.objectives),
        rows=kept.rows,
        iterates=(W, W if element is None else U, V),
        n_iter=history.n_iter,
        stopping_reason=reason,
        survival=survival,
    )


class _Contest:
    """Which rows can die, and how many of them are to live after the step."""

    def __init__(self, d: int, m: int, forced: Mask | None, barred: Mask | None) -> None:
        self.forced = np.zeros(d, dtype=bool) if forced is None else forced
        self._competing = ~self.forced if barred is None else ~self.forced & ~barred
        self._n_components = m
        self._n_forced = int(np.count_nonzero(self.forced))
        self._n_competing = int(np.count_nonzero(self._competing))

    @property
    def n_living(self) -> int:
        return self._n_competing + self._n_forced

    @property
    def is_over(self) -> bool:
        return self._n_competing <= 1 or self.n_living <= self._n_components

    def lower_number(self, drop_rate: float) -> None:
        """Let a share of the rows die, but leave enough for a frame."""
        dying = max(1, round(drop_rate * self._n_competing))
        self._n_competing = max(self._n_competing - dying, self._n_components - self._n_forced)

    def survivors(self, norms: Array, rows: Indices, alive: Mask) -> tuple[Mask, float]:
        """Return which rows live on, and the largest norm among those that die."""
        competing = self._competing[rows] & alive
        strongest, largest_dying = _largest(norms, competing, self._n_competing)
        return strongest | self.forced[rows], largest_dying

    def all_rows(self) -> Indices:
        """Return the rows that are there before the first step."""
        return np.flatnonzero(self._competing | self.forced)


class _History:
    """What is noted of every step; objective and variance also of the start."""

    def __init__(self, start: Report, total_variance: float) -> None:
        self._total_variance = total_variance
        self.lambdas: list[float] = []
        self.living: list[int] = []
        self.objectives: list[float] = []
        self.carried: list[float] = []
        self._take(start)

    @property
    def n_iter(self) -> int:
        return len(self.lambdas)

    def record(self, weight: float, n_living: int, report: Report) -> None:
        self.lambdas.append(weight)
        self.living.append(n_living)
        self._take(report)

    def _take(self, report: Report) -> None:
        objective, variance = report.totals
        self.objectives.append(float(objective))
        self.carried.append(float(variance) / self._total_variance)


def _by_regression(scatter: Scatter, rows: Indices, forced: Mask) -> Indices:
    """Order rows so that each explains most of what those before it leave of all features.

    The frame over the last rows is nearly square, and the norms of its rows nearly equal: they have
    no more to say. Forced rows come first.
    """
    across, among = scatter.regression_rows(rows)
    floor = 1e-10 * among.diagonal()
    order = []
    waiting = np.ones(rows.size, dtype=bool)
    for _ in range(rows.size):
        left = among.diagonal()
        candidates = waiting & forced[rows] if (waiting & forced[rows]).any() else waiting
        gain = np.einsum("ij,ij->i", across, across) / np.maximum(left, floor + (floor == 0))
        best = int(np.argmax(np.where(candidates, gain, -1.0)))
        order.append(best)
        waiting[best] = False
        if left[best] > floor[best]:
            share = among[:, best] / left[best]
            across = across - np.multiply.outer(share, across[best])
            among = among - np.multiply.outer(share, among[best])
    return rows[order]


def _largest(norms: Array, competing: Mask, count: int) -> tuple[Mask, float]:
    """Return the `count` competing rows of largest norm, earlier ones first in a tie.

    Also returns the largest norm among the other competing rows.
    """
    # A partition instead of a sort: with many millions of rows this is what the client waits for.
    keys = np.where(competing, -norms, np.inf)
    alive = np.zeros(norms.size, dtype=bool)
    if count:
        last = np.partition(keys, count - 1)[count - 1]
        alive = keys < last
        level = np.flatnonzero(keys == last)
        alive[level[: count - np.count_nonzero(alive)]] = True
    return alive, -float(keys[~alive].min())


def _survivors_factor(norms: Array, alive: Mask, forced: Mask, strength: float, p: float) -> Array:
    """Return the factor of each row: the proximal map's for the living, one for the forced."""
    factor = shrink_factor(norms, strength, p)
    # At the threshold itself zero and the branch above are both minimizers; a living row that ties
    # with a dying one takes the branch.
    factor = np.where(alive, np.maximum(factor, 2.0 * (1.0 - p) / (2.0 - p)), 0.0)
    return np.where(forced, 1.0, factor)
