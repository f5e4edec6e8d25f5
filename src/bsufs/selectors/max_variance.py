"""The variances of the columns as scores."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from bsufs._typing import Array
from bsufs.selectors._base import NUMBER_OF_FEATURES, ScoringSelector
from bsufs.selectors._columns import column_variances
from bsufs.selectors._data import FitData


class MaxVariance(ScoringSelector):
    r"""Unsupervised feature selection by variance.

    .. math:: \text{score}_i = \frac{1}{n} \sum_j (x_{ji} - \bar x_i)^2

    The simplest baseline: it sees one column at a time, so it neither avoids columns that repeat
    each other nor means anything for columns in different units.

    Parameters
    ----------
    n_features_to_select : int, float or "auto", default="auto"
        How many features to keep: a number, a share of all, or "auto", half of them.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        The variances: larger is better.
    ranking_ : array of int of shape (n_features,)
        1 for the best feature.
    support_ : array of bool of shape (n_features,)
        The selected features.
    selected_features_ : array of shape (n_features_to_select,)
        Names, or column numbers where there are no names, best first.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : array of str
        Their names, if all are strings.

    Notes
    -----
    On standardized data all scores are equal and the choice is arbitrary, if reproducible.

    References
    ----------
    Guyon, I., Elisseeff, A. (2003). An introduction to variable and feature selection. Journal of
    Machine Learning Research 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bsufs.selectors import MaxVariance
    >>> selector = MaxVariance(2).fit(load_iris().data)
    >>> selector.selected_features_
    array([2, 0])
    """

    _accepts_sparse = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features_to_select": NUMBER_OF_FEATURES,
    }

    def __init__(self, n_features_to_select: int | float | str = "auto") -> None:
        self.n_features_to_select = n_features_to_select

    def _score(self, data: FitData) -> Array:
        X = data.ordered
        # Squares of very large entries overflow; such columns tie at the top.
        return np.minimum(column_variances(X), np.finfo(np.float64).max)
