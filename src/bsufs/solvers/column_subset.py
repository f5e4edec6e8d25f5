"""Column subset selection: the columns that best explain all columns by linear regression.

Two rules for the next column, given those already picked and the residual E of all columns after
regression on them: the greedy rule takes the column whose direction explains most of E,
||E'e_j||^2 / ||e_j||^2; pivoted QR takes the longest residual, ||e_j||^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from bsufs._typing import Array, Indices
from bsufs.scatter import DenseScatter, FactoredScatter, Scatter

# A column whose residual has this share of its own variance left is a combination of the others:
# what is left is rounding.
_DEPENDENT = 1e-12
# The recursion for ||E'e_j||^2 loses the digits by which it has shrunk. Beyond this factor the
# residual is taken as the new data, which happens a handful of times at most.
_STALE = 1e-7


@dataclass(frozen=True)
class ColumnSubsetResult:
    """The order in which columns were picked."""

    picked: Indices
    explained: Array


def greedy_columns(scatter: Scatter) -> ColumnSubsetResult:
    """Pick columns one by one, each explaining most of what is left of all columns.

    With G = E'E the criterion is f_j / g_j, f_j = ||G_j||^2 and g_j = G_jj. Picking l changes G by
    the rank-one term -w w', w = G_l / sqrt(G_ll), and so

        g_j -= w_j^2,   f_j -= 2 w_j (G w)_j - ||w||^2 w_j^2    (G before the pick),

    where G_l and G w come from S and the earlier w. The residual is not formed: a pick costs one
    product with S and O(d) for each earlier pick.

    Parameters
    ----------
    scatter : Scatter
        The operator S, dense or factored.

    Returns
    -------
    ColumnSubsetResult
        The picks, until nothing is left to explain.

    References
    ----------
    Farahat, A. K., Ghodsi, A., Kamel, M. S. (2011). An efficient greedy method for unsupervised
    feature selection. IEEE International Conference on Data Mining.
    """
    d = scatter.shape[0]
    total = scatter.diagonal()
    left = np.array(total)
    picked: list[int] = []
    explained: list[float] = []
    basis = np.empty((min(d, scatter.max_rank), d))
    n_basis = 0
    power = _squared_column_norms(scatter)
    fresh_power = float(power.max(initial=0.0))
    while len(picked) < min(d, scatter.max_rank):
        free = left > _DEPENDENT * total
        if not free.any():
            break
        if float(power[free].max()) < _STALE * fresh_power:
            scatter = _residual(scatter, basis[:n_basis], picked)
            n_basis = 0
            left = np.where(free, scatter.diagonal(), 0.0)
            power = _squared_column_norms(scatter)
            fresh_power = float(power.max())
            continue
        gain = np.zeros(d)
        np.divide(power, left, out=gain, where=free)
        best = int(np.argmax(gain))
        earlier = basis[:n_basis]
        unit = np.zeros((d, 1))
        unit[best] = 1.0
        column = (scatter @ unit)[:, 0] - earlier.T @ earlier[:, best]
        direction = column / np.sqrt(left[best])
        image = (scatter @ direction[:, None])[:, 0] - earlier.T @ (earlier @ direction)
        strength = float(direction @ direction)
        power = np.maximum(power - direction * (2.0 * image - strength * direction), 0.0)
        left = np.maximum(left - direction**2, 0.0)
        left[best] = 0.0
        basis[n_basis] = direction
        n_basis += 1
        picked.append(best)
        explained.append(strength)
    return ColumnSubsetResult(np.array(picked, dtype=np.intp), np.cumsum(explained))


def _squared_column_norms(scatter: Scatter) -> Array:
    """Return ||S_j||^2 for all columns j of S."""
    if isinstance(scatter, FactoredScatter):
        gram = scatter.Xc @ scatter.Xc.T
        norms: Array = np.einsum("ij,ij->j", scatter.Xc, gram @ scatter.Xc) * scatter.factor**2
        return norms
    S = scatter.S if isinstance(scatter, DenseScatter) else scatter @ np.eye(scatter.shape[0])
    squares: Array = np.einsum("ij,ij->j", S, S) * scatter.factor**2
    return squares


def _residual(scatter: Scatter, basis: Array, picked: list[int]) -> Scatter:
    """Return the operator of what the picked columns leave of all columns."""
    if isinstance(scatter, FactoredScatter):
        span = scatter.Xc[:, picked[-len(basis) :]]
        frame, _ = linalg.qr(span, mode="economic", check_finite=False)
        Xc = scatter.Xc - frame @ (frame.T @ scatter.Xc)
        # Twice is enough: the second pass takes off what rounding left of the first.
        Xc -= frame @ (frame.T @ Xc)
        Xc[:, picked] = 0.0
        return FactoredScatter(Xc, scatter.total_weight).scaled(scatter.factor)
    S = scatter.S if isinstance(scatter, DenseScatter) else scatter @ np.eye(scatter.shape[0])
    S = S * scatter.factor - basis.T @ basis
    S[picked] = 0.0
    S[:, picked] = 0.0
    return DenseScatter(S, scatter.total_weight, scatter.max_rank)


def pivoted_columns(Xc: Array) -> ColumnSubsetResult:
    """Pick columns one by one, each the longest after regression on those before."""
    R, order = linalg.qr(Xc, mode="r", pivoting=True, check_finite=False)
    R = R[: min(Xc.shape)]
    lengths = np.abs(R.diagonal())
    floor = np.finfo(np.float64).eps * max(Xc.shape) * lengths.max(initial=0.0)
    rank = int(np.count_nonzero(lengths > floor))
    explained = np.cumsum(np.einsum("ij,ij->i", R[:rank], R[:rank]))
    return ColumnSubsetResult(order[:rank].astype(np.intp), explained)
