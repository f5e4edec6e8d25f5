"""Column subset selection, greedy or by pivoted QR."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bsufs._typing import Array
from bsufs.selectors._base import ScoringSelector
from bsufs.selectors._data import FitData
from bsufs.selectors._parameters import constraints, one_of
from bsufs.solvers.column_subset import greedy_columns, pivoted_columns
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
        but prefers columns that nothing resembles.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Share of the features that come no sooner: (d - place) / d for the column picked at that
        place, counted from zero, and zero for columns never picked. Larger is better.
    %(fitted)s
    explained_variance_path_ : array
        Share of the total variance that regression on the first 1, 2, ... picks explains.

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

    _parameter_constraints = constraints(method=one_of("greedy", "pivoted-qr"))

    def _score(self, data: FitData) -> Array:
        pick = greedy_columns if self.method == "greedy" else pivoted_columns
        picked, explained = pick(centered(data.ordered))
        d = data.n_features
        scores = np.zeros(d)
        scores[picked] = 1.0 - np.arange(picked.size) / d
        # All that the last pick leaves is rounding, or columns would be left to pick.
        self.explained_variance_path_ = explained / explained[-1] if explained.size else explained
        return scores
