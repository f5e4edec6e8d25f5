"""Column subset selection, greedy or by pivoted QR."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bsufs._typing import Array, Indices
from bsufs.selectors._base import ScoringSelector
from bsufs.selectors._data import FitData
from bsufs.selectors._parameters import constraints, one_of
from bsufs.solvers.column_subset import DEPENDENT, greedy_columns, greedy_groups, pivoted_columns
from bsufs.solvers.forms import centered


@dataclass(repr=False, eq=False, kw_only=True)
class ColumnSubset(ScoringSelector):
    r"""Unsupervised feature selection by column subset selection.

    The k columns from which linear regression best predicts all columns,

    .. math:: \min_{|A| = k} \|X_c - X_A X_A^+ X_c\|_F^2,

    with X_c the centered data and X_A its columns in A. The exact solution is out of reach; columns
    are picked one by one, which ranks them for every k at once.

    Parameters
    ----------
    %(n_features_to_select)s
    method : {"greedy", "pivoted-qr"}, default="greedy"
        How the next column is picked, given the residuals E of all columns after regression on
        those before: "greedy" takes the one that explains most, the largest
        ||E'e_j||^2 / ||e_j||^2; "pivoted-qr" the longest, the largest ||e_j||^2, which is cheaper
        but prefers columns that nothing resembles. Of a group, what the span of its residuals
        explains, or their joint length.
    %(must_keep)s
    %(never_keep)s
    %(groups)s

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Share of the features that come no sooner: (d - place) / d for the column picked at that
        place, counted from zero, and zero for columns never picked. Larger is better.
    %(fitted)s
    explained_variance_path_ : array
        Share of the total variance that regression on the first 1, 2, ... picks explains; the
        picks are groups where there are any.

    Notes
    -----
    Columns that are linear combinations of those picked (for more features than samples, all but
    n - 1) have nothing to add and are not picked; they rank behind all others, by variance.

    References
    ----------
    Farahat, A. K., Ghodsi, A., Kamel, M. S. (2011). An efficient greedy method for unsupervised
    feature selection. IEEE International Conference on Data Mining.

    Golub, G. (1965). Numerical methods for solving linear least squares problems. Numerische
    Mathematik 7.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bsufs.selectors import ColumnSubset
    >>> selector = ColumnSubset(2).fit(load_iris().data)
    >>> selector.selected_features_
    array([2, 0])
    """

    method: str = "greedy"
    must_keep: Any = None
    never_keep: Any = None
    groups: Any = None
    costs: Any = None
    budget: float | None = None

    _parameter_constraints = constraints(method=one_of("greedy", "pivoted-qr"))

    def _score(self, data: FitData) -> Array:
        forced, barred = (mask[data.order] for mask in self._forced_and_barred())
        group, which = self._groups.among(data.order)
        Xc = centered(data.ordered)
        Xc[:, barred] = 0.0
        if forced.any():
            first, _ = self._picked(np.where(forced, Xc, 0.0), group, which, data)
            left = np.where(forced, 0.0, _without(Xc, Xc[:, first]))
            others, _ = self._picked(left, group, which, data)
            picked = np.concatenate([first, others])
            shadows = np.linalg.qr(Xc[:, picked])[0].T @ Xc
            ends = np.append(np.flatnonzero(np.diff(group[picked])), picked.size - 1)
            explained = np.cumsum(np.einsum("ij,ij->i", shadows, shadows))[ends]
        else:
            picked, explained = self._picked(Xc, group, which, data)
        d = data.n_features
        scores = np.zeros(d)
        scores[picked] = 1.0 - np.arange(picked.size) / d
        # All that the last pick leaves is rounding, or columns would be left to pick.
        whole = np.vdot(Xc, Xc) if self._budget is not None else explained[-1:]
        self.explained_variance_path_ = explained / whole if explained.size else explained
        return scores

    def _picked(
        self, Xc: Array, group: Indices, which: Indices, data: FitData
    ) -> tuple[Indices, Array]:
        """Pick columns, or groups of them, and return what the picks up to each explain."""
        if which.size == group.size and self._budget is None:
            return (greedy_columns if self.method == "greedy" else pivoted_columns)(Xc)
        budget = None if self._budget is None else self._budget.of(which)
        by_length = self.method == "pivoted-qr"
        groups, explained = greedy_groups(Xc, group, budget=budget, by_length=by_length)
        place = np.full(which.size, which.size)
        place[groups] = np.arange(groups.size)
        variances = data.variances[data.order]
        picked = np.lexsort((np.arange(group.size), -variances, place[group]))
        return picked[place[group[picked]] < which.size], explained


def _without(Xc: Array, chosen: Array) -> Array:
    """Return what regression on some columns leaves of all, zero where that is rounding."""
    basis, _ = np.linalg.qr(chosen)
    left = Xc - basis @ (basis.T @ Xc)
    before, after = (np.einsum("ij,ij->j", E, E) for E in (Xc, left))
    return np.where(after > DEPENDENT * before, left, 0.0)
