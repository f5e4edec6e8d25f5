"""Greedy kernel alignment: the columns in which a given structure of the samples shows best."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bsufs._typing import Array, Indices, Mask
from bsufs.scatter import Scatter


def aligned_columns(
    scatter: Scatter,
    target: Array,
    n_picks: int,
    *,
    forced: Mask | None = None,
    barred: Mask | None = None,
) -> tuple[Indices, Array]:
    r"""Pick columns one by one so that their inner products are most like a target kernel.

    The columns of a set A make the kernel :math:`K_A = \sum_{i \in A} x_i x_i'` between samples.
    Its alignment with a kernel T is

    .. math:: \frac{\langle K_A, T \rangle}{\|K_A\|_F} =
        \frac{\sum_{i \in A} t_i}{\bigl(\sum_{i, j \in A} S_{ij}^2\bigr)^{1/2}},
        \qquad t_i = x_i' T x_i,

    so no kernel is ever formed: a pick costs one row of S.

    Parameters
    ----------
    scatter : Scatter
        The operator S.
    target : array of shape (d,)
        The numbers t, not negative, up to a common factor.
    n_picks : int
        How many to pick, at most the columns that are not barred.
    forced : array of bool of shape (d,), optional
        Columns to pick before all others.
    barred : array of bool of shape (d,), optional
        Columns not to pick.

    Returns
    -------
    picks : array of int of shape (n_picks,)
        The columns in the order picked; the first one of equally good ones.
    gains : array of shape (d,)
        For the columns not picked: the alignment with one of them added.

    Examples
    --------
    >>> import numpy as np
    >>> from bsufs.scatter import make_scatter
    >>> from bsufs.solvers.alignment import aligned_columns
    >>> X = np.array([[1.0, 1, 5], [1, 2, -5], [-1, -1, 5], [-1, -2, -5]])
    >>> halves = np.array([1.0, 1, -1, -1])  # T = halves halves'
    >>> picks, _ = aligned_columns(make_scatter(X), (halves @ X) ** 2, 2)
    >>> picks.tolist()
    [0, 1]
    """
    sizes = scatter.diagonal()
    largest = sizes.max()
    unit = 1.0 / largest if largest > 0 else 1.0
    known = _KnownRows(scatter)
    return greedy_ratio(
        target,
        (sizes * unit) ** 2,
        lambda pick, gains: (known.row(pick, gains) * unit) ** 2,
        n_picks,
        forced=forced,
        barred=barred,
    )


def greedy_ratio(
    target: Array,
    diagonal: Array,
    row: Callable[[int, Array], Array],
    n_picks: int,
    *,
    forced: Mask | None = None,
    barred: Mask | None = None,
) -> tuple[Indices, Array]:
    r"""Pick one by one what makes :math:`\sum_A t_i / (\sum_{i, j \in A} G_{ij})^{1/2}` largest.

    G is given by its diagonal and a function that returns a row; it also gets the gains of those
    still free, -1 for all others, which tell whose rows may be asked for next. Everything else is
    as for `aligned_columns`.
    """
    crossed = np.zeros(target.size)
    free = np.ones(target.size, dtype=bool) if barred is None else ~barred
    first = np.zeros(target.size, dtype=bool) if forced is None else forced
    reached, squared = 0.0, 0.0
    picks = np.empty(n_picks, dtype=np.intp)
    gains = np.zeros(target.size)
    n_forced = int(np.count_nonzero(first))
    for number in range(n_picks + 1):
        # What rounding leaves below zero is no length.
        lengths = np.sqrt(np.maximum(squared + 2.0 * crossed + diagonal, 0.0))
        np.divide(reached + target, lengths, out=gains, where=lengths > 0)
        if number == n_picks:
            break
        open_to_choice = free & first if number < n_forced else free
        pick = int(np.argmax(np.where(open_to_choice, gains, -1.0)))
        picks[number] = pick
        free[pick] = False
        reached += target[pick]
        squared += 2.0 * crossed[pick] + diagonal[pick]
        crossed += row(pick, np.where(free, gains, -1.0))
    return picks, gains


class _KnownRows:
    """Rows of S, of which those likely to be asked for next are fetched along with one."""

    def __init__(self, scatter: Scatter) -> None:
        self._scatter = scatter
        self._rows: dict[int, Array] = {}

    def row(self, pick: int, gains: Array) -> Array:
        if pick not in self._rows:
            n_more = min(self._scatter.rows_at_once, gains.size) - 1
            likely = np.argpartition(-gains, n_more)[:n_more] if n_more else np.empty(0, np.intp)
            wanted = np.unique(np.append(likely, pick))
            rows = self._scatter.rows(wanted)
            self._rows = dict(zip(wanted.tolist(), rows, strict=True))
        return self._rows[pick]
