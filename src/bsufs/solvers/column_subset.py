"""Column subset selection: the columns that best explain all columns by linear regression.

Two rules for the next column, given the residuals E of all columns after regression on those
already picked: the greedy rule takes the column whose direction explains most of E, the largest
||E'e_j||^2 / ||e_j||^2; pivoted QR takes the longest residual, the largest ||e_j||^2.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from bsufs._typing import Array, Indices
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
