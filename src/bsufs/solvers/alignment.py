"""Greedy kernel alignment: the columns in which a given structure of the samples shows best."""

from collections.abc import Callable

import numpy as np

from bsufs._linalg import group_sums
from bsufs._typing import Array, Indices, Mask
from bsufs.scatter import Scatter
from bsufs.scatter._base import BATCH_BYTES, batches
from bsufs.solvers.budget import Budget


def aligned_columns(
    scatter: Scatter,
    target: Array,
    n_picks: int,
    *,
    forced: Mask | None = None,
    barred: Mask | None = None,
    groups: Indices | None = None,
    budget: Budget | None = None,
) -> tuple[Indices, Array]:
    r"""Pick columns one by one so that their inner products are most like a target kernel.

    The columns of a set A make the kernel :math:`K_A = \sum_{i \in A} x_i x_i'` between samples.
    Its alignment with a kernel T is

    .. math:: \frac{\langle K_A, T \rangle}{\|K_A\|_F} =
        \frac{\sum_{i \in A} t_i}{\bigl(\sum_{i, j \in A} S_{ij}^2\bigr)^{1/2}},
        \qquad t_i = x_i' T x_i,

    so no kernel is ever formed: a pick costs one row of S. Columns in groups are picked as a whole;
    what is said of columns below then holds of groups, and a pick costs the rows of its columns.

    The target holds the numbers t, not negative, up to a common factor; `groups` the number of the
    group of each column, from 0. Forced columns are picked before all others, barred ones never.
    With a budget each pick gains most per cost among those that still fit. Returned are the columns
    in the order picked, the first one of equally good ones, and fewer than `n_picks` where the
    budget is spent; and for the columns not picked the alignment with one of them added.
    """
    kernels = _Kernels(scatter, np.arange(target.size) if groups is None else groups)
    return greedy_ratio(
        kernels.summed(target),
        kernels.own(),
        RowsAhead(kernels.products, kernels.at_once),
        n_picks,
        forced=forced,
        barred=barred,
        budget=budget,
    )


def greedy_ratio(
    target: Array,
    diagonal: Array,
    row: Callable[[int, Array], Array],
    n_picks: int,
    *,
    forced: Mask | None = None,
    barred: Mask | None = None,
    budget: Budget | None = None,
) -> tuple[Indices, Array]:
    r"""Pick one by one what makes :math:`\sum_A t_i / (\sum_{i, j \in A} G_{ij})^{1/2}` largest.

    G is given by its diagonal and a function that returns a row; it also gets the gains of those
    still free, -1 for all others, which tell whose rows may be asked for next. Everything else is
    as for `aligned_columns`.
    """
    crossed = np.zeros(target.size)
    free = np.ones(target.size, dtype=bool) if barred is None else ~barred
    first = np.zeros(target.size, dtype=bool) if forced is None else forced
    reached, squared, spent = 0.0, 0.0, 0.0
    picks: list[int] = []
    gains = np.zeros(target.size)
    n_forced = int(np.count_nonzero(first))
    while True:
        # What rounding leaves below zero is no length.
        lengths = np.sqrt(np.maximum(squared + 2.0 * crossed + diagonal, 0.0))
        np.divide(reached + target, lengths, out=gains, where=lengths > 0)
        open_to_choice = free & first if len(picks) < n_forced else free
        worth: Array = gains
        if budget is not None:
            open_to_choice = open_to_choice & budget.fits(spent)
            worth = budget.per_cost(gains - (reached / np.sqrt(squared) if squared else 0.0))
        if len(picks) == n_picks or not open_to_choice.any():
            return np.array(picks, dtype=np.intp), gains
        pick = int(np.argmax(np.where(open_to_choice, worth, -np.inf)))
        picks.append(pick)
        free[pick] = False
        reached += target[pick]
        squared += 2.0 * crossed[pick] + diagonal[pick]
        spent += 0.0 if budget is None else budget.costs[pick]
        crossed += row(pick, np.where(free, gains, -1.0))


class RowsAhead:
    """Rows of a matrix as asked for, each computed along with those that may be asked for next."""

    def __init__(self, rows: Callable[[Indices], Array], at_once: int) -> None:
        self._rows, self._at_once = rows, at_once
        self._known: dict[int, Array] = {}

    def __call__(self, pick: int, gains: Array) -> Array:
        """Return a row; the largest gains say which may be next."""
        if pick not in self._known:
            n_more = max(min(self._at_once, gains.size) - 1, 0)
            likely = np.argpartition(-gains, n_more)[:n_more] if n_more else np.empty(0, np.intp)
            wanted = np.unique(np.append(likely, pick))
            self._known = dict(zip(wanted.tolist(), self._rows(wanted), strict=True))
        return self._known[pick]


class _Kernels:
    """The inner products of the kernels of groups, sums of squared entries of S."""

    def __init__(self, scatter: Scatter, groups: Indices) -> None:
        self._scatter = scatter
        self._groups = groups
        self._members = np.argsort(groups, kind="stable")
        self._ends = np.cumsum(np.bincount(groups))
        self._sizes = np.diff(self._ends, prepend=0)
        self.at_once = scatter.rows_at_once // int(self._sizes.max())
        self._squares = scatter.diagonal()
        largest = self._squares.max()
        # In units of the largest variance nothing overflows.
        self._unit = 1.0 / largest if largest > 0 else 1.0
        self._are_columns = np.array_equal(groups, np.arange(self._ends.size))

    def columns(self, group: int) -> Indices:
        return self._members[self._ends[group] - self._sizes[group] : self._ends[group]]

    def summed(self, by_column: Array) -> Array:
        """Return the sum over each group."""
        if self._are_columns:
            return by_column
        return group_sums(self._groups, by_column, self._ends.size)

    def own(self) -> Array:
        """Return the product of each kernel with itself."""
        own = self.summed((self._squares * self._unit) ** 2)
        for group in np.flatnonzero(self._sizes > 1):
            columns = self.columns(int(group))
            parts = (columns[part] for part in batches(columns.size, columns.size))
            blocks = (self._scatter.block(part, columns) * self._unit for part in parts)
            own[group] = sum(float(np.vdot(block, block)) for block in blocks)
        return own

    def products(self, groups: Indices) -> Array:
        """Return the products of the kernels of some groups with all."""
        products = np.zeros((groups.size, self._ends.size))
        columns = np.concatenate([self.columns(int(group)) for group in groups])
        place = np.repeat(np.arange(groups.size), self._sizes[groups])
        step = max(self._scatter.rows_at_once, BATCH_BYTES // (8 * self._groups.size))
        for start in range(0, columns.size, step):
            part = slice(start, start + step)
            for at, row in zip(place[part], self._scatter.rows(columns[part]), strict=True):
                products[at] += self.summed((row * self._unit) ** 2)
        return products
