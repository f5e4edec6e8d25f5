"""Column subset selection: the columns that best explain all columns by linear regression.

Two rules for the next column, given the residuals E of all columns after regression on those
already picked: the greedy rule takes the column whose direction explains most of E, the largest
||E'e_j||^2 / ||e_j||^2; pivoted QR takes the longest residual, the largest ||e_j||^2.
"""

import numpy as np
from scipy import linalg

from bsufs._linalg import group_sums
from bsufs._typing import Array, Indices
from bsufs.solvers.budget import Budget
from bsufs.solvers.forms import short_root

# A column whose residual has this share of its own variance left is a combination of the others:
# what is left is rounding.
DEPENDENT = 1e-12
# The recursions for ||e_j||^2 and ||E'e_j||^2 lose the digits by which they have shrunk. Beyond
# this factor they are computed afresh, which happens a handful of times at most.
_STALE = 1e-7

# Gains that differ by less than this share are equal.
_TIED = 1e-10


def greedy_columns(Xc: Array) -> tuple[Indices, Array]:
    """Pick centered columns one by one, each explaining most of what is left of all columns.

    Returns the picks in order, until nothing is left to explain, and the variation of all columns
    that the picks up to each explain. Picking column l takes e w' off E, with e = e_l / ||e_l|| and
    w = E'e. Its gain is ||w||^2; ||e_j||^2 changes by -w_j^2, and ||E'e_j||^2 by
    -2 w_j (E'E w)_j + ||w||^2 w_j^2 (E before the pick), so that a pick costs a few products with E
    (Farahat, Ghodsi and Kamel, 2011).
    """
    n, d = Xc.shape
    # Lengths and angles are all that counts.
    E: Array = np.array(short_root(Xc), order="F")
    total, power = _measured(E)
    left, fresh = total, float(power.max(initial=0.0))
    picked: list[int] = []
    gains: list[float] = []
    for _ in range(min(n - 1, d)):
        free = left > DEPENDENT * total
        if not free.any():
            break
        if float(power[free].max()) < _STALE * fresh:
            left, power = _measured(E)
            fresh = float(power.max())
        gain = np.zeros(d)
        np.divide(power, left, out=gain, where=free)
        # The first of those that gain the same but for rounding, as duplicates do.
        best = int(np.argmax(gain >= (1.0 - _TIED) * gain.max()))
        direction = E[:, best] / linalg.norm(E[:, best])
        w = E.T @ direction
        gains.append(float(w @ w))
        power = np.maximum(power - w * (2.0 * (E.T @ (E @ w)) - gains[-1] * w), 0.0)
        left = np.maximum(left - w**2, 0.0)
        E = linalg.blas.dger(-1.0, direction, w, a=E, overwrite_a=1)
        E[:, best] = left[best] = 0.0
        picked.append(best)
    return np.array(picked, dtype=np.intp), np.cumsum(gains)


def greedy_groups(
    Xc: Array, groups: Indices, *, budget: Budget | None = None, by_length: bool = False
) -> tuple[Indices, Array]:
    """Pick groups of centered columns one by one, each explaining most of what is left.

    A group explains ||P E||^2 of the residuals E of all columns, with P the projection onto the
    span of its residuals; with `by_length` their joint length counts instead, as in pivoted QR.
    With a budget, the gain per cost counts, among the groups that still fit. Returns the groups in
    order, until nothing is left to explain or to spend, and the variation of all columns that those
    up to each explain.
    """
    E: Array = np.array(short_root(Xc), order="F")
    n_groups = int(groups.max()) + 1
    single = np.bincount(groups)[groups] == 1
    columns = [np.flatnonzero(groups == group) for group in np.unique(groups[~single])]
    total = group_sums(groups, np.einsum("ij,ij->j", E, E))
    free = total > 0
    picked: list[int] = []
    gains: list[float] = []
    spent = 0.0
    while True:
        squares = np.einsum("ij,ij->j", E, E)
        left = group_sums(groups, squares)
        free &= left > DEPENDENT * total
        open_to_choice = free if budget is None else free & budget.fits(spent)
        if not open_to_choice.any():
            return np.array(picked, dtype=np.intp), np.cumsum(gains)
        power = E @ E.T
        gain = np.zeros(n_groups)
        alone = single & (squares > 0)
        gain[groups[alone]] = np.einsum("ij,ij->j", E, power @ E)[alone] / squares[alone]
        for own in columns:
            if free[groups[own[0]]]:
                basis = _span(E[:, own], total[groups[own[0]]])
                gain[groups[own[0]]] = np.vdot(basis, power @ basis)
        worth = left if by_length else gain
        worth = np.where(open_to_choice, worth if budget is None else budget.per_cost(worth), 0.0)
        best = int(np.argmax(worth >= (1.0 - _TIED) * worth.max()))
        own = np.flatnonzero(groups == best)
        basis = _span(E[:, own], total[best])
        E -= basis @ (basis.T @ E)
        E[:, own] = 0.0
        free[best] = False
        spent += 0.0 if budget is None else budget.costs[best]
        picked.append(best)
        gains.append(float(gain[best]))


def _span(columns: Array, total: float) -> Array:
    """Return an orthonormal basis of what some columns span, but for rounding."""
    basis, lengths, _ = linalg.svd(columns, full_matrices=False, check_finite=False)
    return basis[:, lengths**2 > DEPENDENT * total]


def _measured(E: Array) -> tuple[Array, Array]:
    """Return ||e_j||^2 and ||E'e_j||^2 for all columns j."""
    return np.einsum("ij,ij->j", E, E), np.einsum("ij,ij->j", E, (E @ E.T) @ E)


def pivoted_columns(Xc: Array) -> tuple[Indices, Array]:
    """Pick columns one by one, each the longest after regression on those before."""
    R, order = linalg.qr(Xc, mode="r", pivoting=True, check_finite=False)
    R = R[: min(Xc.shape)]
    lengths = np.abs(R.diagonal())
    floor = np.finfo(np.float64).eps * max(Xc.shape) * lengths.max(initial=0.0)
    rank = int(np.count_nonzero(lengths > floor))
    explained = np.cumsum(np.einsum("ij,ij->i", R[:rank], R[:rank]))
    return order[:rank].astype(np.intp), explained
