"""Column subset selection, greedy or by pivoted QR."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from bsufs._typing import Array
from bsufs.scatter import safe_unit_exponent
from bsufs.selectors._base import NUMBER_OF_FEATURES, ScoringSelector
from bsufs.selectors._data import FitData
from bsufs.solvers.column_subset import greedy_columns, pivoted_columns


class ColumnSubset(ScoringSelector):
    r"""Unsupervised feature selection by column subset selection.

    The k columns from which linear regression best predicts all columns,

    .. math:: \min_{|A| = k} \|X_c - X_A X_A^+ X_c\|_F^2,

    with X_c the centered data and X_A its columns in A. The exact solution is out of reach; columns
    are picked one by one, which ranks them for every k at once.

    Parameters
    ----------
    n_features_to_select : int, float or "auto", default="auto"
        How many features to keep: a number, a share of all, or "auto", half of them.
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
    ranking_ : array of int of shape (n_features,)
        1 for the best feature.
    support_ : array of bool of shape (n_features,)
        The selected features.
    selected_features_ : array of shape (n_features_to_select,)
        Names, or column numbers where there are no names, best first.
    explained_variance_path_ : array
        Share of the total variance that regression on the first 1, 2, ... picks explains.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : array of str
        Their names, if all are strings.

    Notes
    -----
    Columns that are linear combinations of those picked (for more features than samples, all but
    n - 1) have nothing to add and are not picked; they rank behind all others, by variance.

    The greedy rule runs on a recursion in the scatter matrix: a pick costs one product with it and
    O(d) for each earlier pick, and the residual is not formed.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features_to_select": NUMBER_OF_FEATURES,
        "method": [StrOptions({"greedy", "pivoted-qr"})],
    }

    def __init__(
        self, n_features_to_select: int | float | str = "auto", *, method: str = "greedy"
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.method = method

    def _score(self, data: FitData) -> Array:
        X = data.ordered
        result = (
            greedy_columns(data.scatter)
            if self.method == "greedy"
            else pivoted_columns(_centered(X))
        )
        d = X.shape[1]
        scores = np.zeros(d)
        scores[result.picked] = 1.0 - np.arange(result.picked.size) / d
        self.explained_variance_path_ = result.explained
        if result.explained.size:
            # All that the last pick leaves is rounding, or columns would be left to pick.
            self.explained_variance_path_ = result.explained / result.explained[-1]
        return scores


def _centered(X: Any) -> Array:
    """Return the centered columns, in units that keep squares in range; exact zeros if constant."""
    X = np.asarray(X, dtype=np.float64)
    constant = X.min(axis=0) == X.max(axis=0)
    X = np.ldexp(X, -safe_unit_exponent(float(np.abs(X).max(initial=0.0))))
    Xc: Array = X - X.mean(axis=0)
    Xc[:, constant] = 0.0
    return Xc
