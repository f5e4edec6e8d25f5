"""The sparsity path: lambda_row follows from how many rows should be eliminated.

The same alternation as with fixed weights, but each iteration sets lambda_row so that a given share
of the remaining rows falls below the threshold, and a row that is eliminated leaves the problem:
from then on W is a frame over the remaining rows alone. The path ends when as many rows remain as W
has columns; these last ones are put in order by greedy regression. So one run ranks all features
for every k, and no weight has to be guessed. Since the rows shrink by a constant factor, the whole
path costs about ten products with S. While many rows remain, a step does the work of four.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bsufs._typing import Array, Indices, Mask
from bsufs.penalties import RowPenalty, row_norms, shrink_factor, strength_for_threshold
from bsufs.scatter import Scatter
from bsufs.solvers.alternation import Callback, Coupling, Problem, Progress
from bsufs.solvers.survival import Survival
from bsufs.solvers.w_steps import PolarStep, WStep
from bsufs.stiefel import polar_factor

# The iterates of every step with so few rows are kept; all of them where they are small beside S.
_FEW_ROWS = 256
# While more rows remain, a step eliminates as many as so many steps would: which of them go first
# among thousands tells nothing of those that are left at the end.
_MANY_ROWS, _STEPS_AT_ONCE = 256, 4
# Norms of rows, which are at most one, count as equal when they agree in so many digits.
_DIGITS = 12


@dataclass(frozen=True)
class Iterates:
    """The frame and its copies at a step: of the rows that remained, zero elsewhere."""

    rows: Indices
    W: Array
    U: Array
    V: Array


@dataclass(frozen=True)
class PathResult:
    """The whole path, one entry per step, and the iterates at some of its steps.

    Of each step: the weight `lambda_row` it used, and the rows (or groups) that remain. At the
    start and after each step: tr(W'SW) / tr(S), and f with the weight of that step. The iterates
    are those of the last step with at least `n_keep` rows; without `n_keep`, of all steps whose
    rows are few. It stops for "path_complete", "max_iter" or "callback".
    """

    lambda_row: Array
    n_alive: Indices
    component_variance_ratio: Array
    objective_history: Array
    iterates: list[Iterates]
    n_iter: int
    stopping_reason: str
    survival: Survival
    groups: Indices | None = None

    def at(self, n_rows: int) -> Iterates | None:
        """Return the iterates of the last step with at least so many rows; None if not kept."""
        large_enough = [kept for kept in self.iterates if self._count(kept.rows) >= n_rows]
        return large_enough[-1] if large_enough else None

    def _count(self, rows: Indices) -> int:
        return rows.size if self.groups is None else np.unique(self.groups[rows]).size


def sparsity_path(
    scatter: Scatter,
    W: Array,
    *,
    p: float,
    beta_row: float,
    tau: float,
    element: Coupling | None = None,
    drop_rate: float = 0.05,
    n_keep: int | None = None,
    forced: Mask | None = None,
    barred: Mask | None = None,
    groups: Indices | None = None,
    w_step: WStep | None = None,
    max_iter: int = 500,
    callback: Callback | None = None,
) -> PathResult:
    """Follow the path from all rows to as many as there are components.

    W starts orthonormal, usually as the leading eigenvectors; p, `beta_row` and `tau` are those of
    the row penalty, and `element` is the element penalty with its fixed weight, if there is one. A
    step eliminates the share `drop_rate` of the remaining rows, at least one; while more than 256
    remain, as many as four such steps would. `n_keep` is the number of rows at which the iterates
    are wanted, where it is known. Forced rows are never eliminated, barred ones at the first step.
    With `groups`, the number of the group of each row, groups are penalized, eliminated and counted
    in the place of rows. A `callback` gets a `Progress` after each step; a true answer stops.
    """
    d, m = W.shape
    w_step = PolarStep() if w_step is None else w_step
    contest = _Contest(d, m, forced, barred, groups)
    few_rows = max(_FEW_ROWS, int(drop_rate * d * scatter.max_rank / (3 * m)))
    total_variance = scatter.trace()
    survival = Survival(d, 1.0 if groups is None else m**0.5)
    operator = _Remaining(scatter, np.float64 if w_step.starts_on_manifold else scatter.dtype)
    row = Coupling(RowPenalty(0.0, p), beta_row, tau)
    U = V = W
    SW = operator @ W
    lambdas: list[float] = []
    n_alive: list[int] = []
    objectives = [-float(np.vdot(W, SW))]
    carried = [-objectives[0] / total_variance]
    kept = [Iterates(operator.rows, W, U, V)] if n_keep is None and d <= few_rows else []
    reason = "path_complete"

    while not contest.is_over:
        if len(lambdas) == max_iter:
            reason = "max_iter"
            break
        contest.lower_number(drop_rate)
        if n_keep is not None and not kept and contest.n_remaining < n_keep:
            kept = [Iterates(operator.rows, W, U, V)]
        U = W if element is None else element.elements(W, U)
        center = row.center(W, V)
        # Rows that play the same part differ by rounding alone, which must not decide between them.
        norms = np.round(row_norms(center, contest.groups_of(operator.rows)), _DIGITS)
        alive, largest_dropped = contest.survivors(norms, operator)
        survival.record(norms, alive, operator.rows)
        weight = float(strength_for_threshold(largest_dropped, p)) / row.step
        is_forced = contest.forced[operator.rows]
        factor = _survivors_factor(norms, alive, is_forced, weight * row.step, p)
        V = center
        V *= factor[:, None]

        W, SW, U, V = operator.drop(alive, W, SW, U, V)
        if w_step.starts_on_manifold:
            # W must be a frame over the remaining rows again.
            W = polar_factor(np.where(operator.alive[:, None], W, 0.0))
            SW = operator @ W
        penalty = RowPenalty(weight, p, groups=contest.groups_of(operator.rows))
        now = Problem(scatter, replace(row, penalty=penalty), element, tau)
        L = now.linear_term(W, U, V)
        L[~operator.alive] = 0.0
        W, SW = w_step(operator, W, SW, L)

        lambdas.append(weight)
        n_alive.append(contest.n_remaining)
        objectives.append(now.objective(W, SW, U, V))
        carried.append(float(np.vdot(W, SW)) / total_variance)
        U = W if element is None else U
        if n_keep is None and contest.n_remaining <= few_rows:
            kept.append(operator.iterates(W, U, V))
        if callback is not None and callback(
            Progress(
                len(lambdas), max_iter, objectives[-1], contest.n_remaining, operator.rows, W, U, V
            )
        ):
            reason = "callback"
            break

    if n_keep is not None and not kept:
        kept = [Iterates(operator.rows, W, U, V)]
    if reason == "path_complete":
        last = operator.rows[operator.alive] if lambdas else contest.all_rows()
        # Rows of S for more columns in groups than that would be larger than the data.
        if groups is None or last.size <= scatter.max_rank:
            survival.settle(_by_regression(scatter, last, contest.forced))
    return PathResult(
        lambda_row=np.array(lambdas),
        n_alive=np.array(n_alive, dtype=np.intp),
        component_variance_ratio=np.array(carried),
        objective_history=np.array(objectives),
        iterates=kept,
        n_iter=len(lambdas),
        stopping_reason=reason,
        survival=survival,
        groups=groups,
    )


class _Remaining:
    """S over the rows that remain. Eliminated ones are zero until taking them out pays.

    A single step needs products no better than the data; steps until W stands still do.
    """

    def __init__(self, scatter: Scatter, precision: Any) -> None:
        self.scatter = scatter
        self._precision = precision
        self.rows: Indices = np.arange(scatter.shape[0])
        self.alive: Mask = np.ones(self.rows.size, dtype=bool)

    def __matmul__(self, W: Array) -> Array:
        product = self.scatter @ W.astype(self._precision, copy=False)
        product[~self.alive] = 0.0
        return product.astype(np.float64, copy=False)

    def drop(self, alive: Mask, W: Array, *others: Array) -> tuple[Array, ...]:
        """Eliminate all but some rows; return the iterates without those that are taken out.

        Where the rows stay, they become zero in place, but in W.
        """
        self.alive = alive
        if 1.0 - np.count_nonzero(alive) / alive.size <= self.scatter.restriction_pays:
            for A in others:
                if A is not W:
                    A[~alive] = 0.0
            return W, *others
        kept = np.flatnonzero(alive)
        self.scatter = self.scatter.restricted(kept)
        self.rows = self.rows[kept]
        self.alive = np.ones(kept.size, dtype=bool)
        return tuple(A.take(kept, axis=0) for A in (W, *others))

    def iterates(self, *arrays: Array) -> Iterates:
        return Iterates(self.rows[self.alive], *(A[self.alive] for A in arrays))


class _Contest:
    """Which rows, or groups of rows, can be eliminated, and how many remain after the step."""

    def __init__(
        self, d: int, m: int, forced: Mask | None, barred: Mask | None, groups: Indices | None
    ) -> None:
        self.forced = np.zeros(d, dtype=bool) if forced is None else forced
        self._competing = ~self.forced if barred is None else ~self.forced & ~barred
        self._n_components = m
        self._groups = groups
        self._n_forced = self._count(self.forced)
        self._n_competing = self._count(self._competing)
        self._fewest = m - self._n_forced
        self._limit_to_frames(np.arange(d)[self._competing])

    @property
    def n_remaining(self) -> int:
        return self._n_competing + self._n_forced

    @property
    def is_over(self) -> bool:
        return self._n_competing <= max(1, self._fewest)

    def lower_number(self, drop_rate: float) -> None:
        """Eliminate a share of the rows, but leave enough for a frame."""
        left = self._n_competing - max(1, round(drop_rate * self._n_competing))
        if self._n_competing > _MANY_ROWS:
            several = round((1.0 - drop_rate) ** _STEPS_AT_ONCE * self._n_competing)
            left = min(left, max(several, _MANY_ROWS))
        self._n_competing = max(left, self._fewest)

    def survivors(self, norms: Array, now: _Remaining) -> tuple[Mask, float]:
        """Return which rows remain, and the largest norm among those that are eliminated."""
        competing = self._competing[now.rows] & now.alive
        groups = self.groups_of(now.rows)
        if groups is None:
            strongest, largest_dropped = _largest(norms, competing, self._n_competing)
        else:
            # One row of each group speaks for all of them.
            _, first, group = np.unique(groups, return_index=True, return_inverse=True)
            speaks = np.zeros(norms.size, dtype=bool)
            speaks[first] = True
            strongest, largest_dropped = _largest(norms, competing & speaks, self._n_competing)
            strongest = strongest[first][group]
            self._limit_to_frames(now.rows[strongest])
        return strongest | self.forced[now.rows], largest_dropped

    def groups_of(self, rows: Indices) -> Indices | None:
        return None if self._groups is None else self._groups[rows]

    def _count(self, rows: Mask) -> int:
        if self._groups is None:
            return int(np.count_nonzero(rows))
        return np.unique(self._groups[rows]).size

    def _limit_to_frames(self, competing: Indices) -> None:
        """Let so many groups remain that they have rows enough for a frame, whichever they are."""
        if self._groups is not None:
            sizes = np.unique(self._groups[competing], return_counts=True)[1]
            spare = competing.size + np.count_nonzero(self.forced) - self._n_components
            droppable = np.searchsorted(np.cumsum(np.sort(sizes)[::-1]), spare, side="right")
            self._fewest = sizes.size - int(droppable)

    def all_rows(self) -> Indices:
        """Return the rows that are there before the first step."""
        return np.flatnonzero(self._competing | self.forced)


def _by_regression(scatter: Scatter, rows: Indices, forced: Mask) -> Indices:
    """Order rows so that each explains most of what those before it leave; forced ones first."""
    across = scatter.rows(rows)
    among = across[:, rows]
    floor = 1e-10 * among.diagonal()
    order = []
    waiting = np.ones(rows.size, dtype=bool)
    for _ in range(rows.size):
        left = among.diagonal()
        candidates = waiting & forced[rows] if (waiting & forced[rows]).any() else waiting
        gain = np.einsum("ij,ij->i", across, across) / np.maximum(left, floor + (floor == 0))
        best = int(
            np.argmax(np.where(candidates, np.round(gain / (gain.max() or 1.0), _DIGITS), -1.0))
        )
        order.append(best)
        waiting[best] = False
        if left[best] > floor[best]:
            share = among[:, best] / left[best]
            across = across - np.multiply.outer(share, across[best])
            among = among - np.multiply.outer(share, among[best])
    return rows[order]


def _largest(norms: Array, competing: Mask, count: int) -> tuple[Mask, float]:
    """Return the `count` competing rows of largest norm, and the largest norm among the others."""
    # A partition instead of a sort: with many millions of rows this is what takes time.
    keys = np.where(competing, -norms, np.inf)
    alive = np.zeros(norms.size, dtype=bool)
    if count:
        last = np.partition(keys, count - 1)[count - 1]
        alive = keys < last
        level = np.flatnonzero(keys == last)
        alive[level[: count - np.count_nonzero(alive)]] = True
    return alive, -float(keys[~alive].min())


def _survivors_factor(norms: Array, alive: Mask, forced: Mask, strength: float, p: float) -> Array:
    """Return the factor of each row: the proximal map's if it remains, one if it is forced."""
    factor = shrink_factor(norms, strength, p)
    # At the threshold itself zero and the branch above are both minimizers; a row that remains and
    # ties with one that is eliminated takes the branch.
    factor = np.where(alive, np.maximum(factor, 2.0 * (1.0 - p) / (2.0 - p)), 0.0)
    return np.where(forced, 1.0, factor)
