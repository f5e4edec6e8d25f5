"""The sparsity path: lambda_row follows from how many rows should die.

The same alternation as with fixed weights, but each iteration sets lambda_row so that a given share
of the living rows falls below the threshold. One run, from the PCA start to a single row, ranks all
features for every k, and no weight has to be guessed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bsufs._typing import Array, Indices, Mask
from bsufs.penalties import RowPenalty, row_norms, shrink_factor, strength_for_threshold
from bsufs.scatter import Scatter
from bsufs.solvers.alternation import Callback, Coupling, Problem, Progress
from bsufs.solvers.survival import Survival
from bsufs.solvers.w_steps import PolarStep, WStep


@dataclass(frozen=True)
class PathResult:
    """The whole path, one entry per step, and where it ended.

    Parameters
    ----------
    lambda_row : array of shape (n_iter,)
        The weight of the row penalty that each step used.
    n_alive : array of int of shape (n_iter,)
        Living rows after the step.
    explained_variance_ratio : array of shape (n_iter + 1,)
        tr(W'SW) / tr(S) at the start and after each step.
    objective_history : array of shape (n_iter + 1,)
        f at the start and after each step, with the weight of that step.
    W, U, V : arrays of shape (d, m)
        The last frame and its copies.
    n_iter : int
        Steps done.
    stopping_reason : str
        "path_complete", "max_iter" or "callback".
    survival : Survival
        How long each row stayed alive.
    """

    lambda_row: Array
    n_alive: Indices
    explained_variance_ratio: Array
    objective_history: Array
    W: Array
    U: Array
    V: Array
    n_iter: int
    stopping_reason: str
    survival: Survival

    def smallest_faithful(self, share: float) -> int:
        """Return the fewest living rows with which W still carries most of the start's variance.

        Parameters
        ----------
        share : float
            How much of the variance at the start of the path must be left.

        Returns
        -------
        int
            A number of features.
        """
        carried = self.explained_variance_ratio[1:]
        faithful = np.flatnonzero(carried >= share * self.explained_variance_ratio[0])
        if faithful.size == 0:
            return int(self.n_alive[0]) if self.n_iter else 1
        return int(self.n_alive[faithful[-1]])


def sparsity_path(
    scatter: Scatter,
    W: Array,
    *,
    p: float,
    beta_row: float,
    tau: float,
    element: Coupling | None = None,
    death_rate: float = 0.05,
    forced: Mask | None = None,
    barred: Mask | None = None,
    w_step: WStep | None = None,
    max_iter: int = 500,
    callback: Callback | None = None,
) -> PathResult:
    """Follow the path from all rows to one.

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
    death_rate : float, default=0.05
        Share of the living rows that die in a step; at least one does.
    forced, barred : arrays of bool of shape (d,), optional
        Rows that never die, and rows that are never alive.
    w_step : WStep, optional
        How W is updated; one polar step by default.
    max_iter : int, default=500
        Steps at most.
    callback : callable, optional
        Called with a `Progress` after each step; a true answer stops the run.

    Returns
    -------
    PathResult
        The path, the last iterates and the survival of each row.
    """
    d = W.shape[0]
    w_step = PolarStep() if w_step is None else w_step
    forced = np.zeros(d, dtype=bool) if forced is None else forced
    barred = np.zeros(d, dtype=bool) if barred is None else barred
    competing = np.flatnonzero(~forced & ~barred)
    step = 1.0 / (beta_row + tau)
    total = scatter.trace()

    U, V, SW = W, W, scatter @ W
    survival = Survival(d)
    lambdas: list[float] = []
    living: list[int] = []
    objectives = [-float(np.vdot(W, SW))]
    explained = [-objectives[0] / total]
    n_alive = competing.size
    reason = "path_complete"

    while n_alive > 1:
        if len(lambdas) == max_iter:
            reason = "max_iter"
            break
        n_alive -= max(1, round(death_rate * n_alive))
        if element is not None:
            U = element.penalty.prox(element.centre(W, U), element.step)
        Z = (beta_row * W + tau * V) * step
        norms = row_norms(Z)
        alive = forced.copy()
        survivors, largest_dying = _largest(norms[competing], n_alive)
        alive[competing[survivors]] = True
        strength = float(strength_for_threshold(largest_dying, p))
        V = Z * _survivors_factor(norms, alive, forced, strength, p)[:, None]
        survival.record(norms, alive)

        row = Coupling(RowPenalty(strength / step, p), beta_row, tau)
        problem = Problem(scatter, row, element, tau)
        W, SW = w_step(scatter, W, SW, problem.linear_term(W, U, V))
        lambdas.append(strength / step)
        living.append(int(np.count_nonzero(alive)))
        objectives.append(problem.objective(W, SW, U, V))
        explained.append(float(np.vdot(W, SW)) / total)
        progress = Progress(len(lambdas), max_iter, objectives[-1], living[-1], W, U, V)
        if callback is not None and callback(progress):
            reason = "callback"
            break

    return PathResult(
        lambda_row=np.array(lambdas),
        n_alive=np.array(living, dtype=np.intp),
        explained_variance_ratio=np.array(explained),
        objective_history=np.array(objectives),
        W=W,
        U=W if element is None else U,
        V=V,
        n_iter=len(lambdas),
        stopping_reason=reason,
        survival=survival,
    )


def _largest(norms: Array, count: int) -> tuple[Indices, float]:
    """Return the positions of the `count` largest norms, earlier ones first in a tie.

    Also returns the largest norm that is not among them.
    """
    # Descending by norm; among equals the stable sort keeps the order of the rows.
    order = np.argsort(-norms, kind="stable")
    return order[:count], float(norms[order[count]])


def _survivors_factor(norms: Array, alive: Mask, forced: Mask, strength: float, p: float) -> Array:
    """Return the factor of each row: the proximal map's for the living, one for the forced."""
    factor = shrink_factor(norms, strength, p)
    # At the threshold itself zero and the branch above are both minimisers; a living row that ties
    # with a dying one takes the branch.
    factor = np.where(alive, np.maximum(factor, 2.0 * (1.0 - p) / (2.0 - p)), 0.0)
    return np.where(forced, 1.0, factor)
