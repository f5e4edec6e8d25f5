"""The variances of the columns as scores."""

import numpy as np

from bsufs._typing import Array
from bsufs.selectors._base import ScoringSelector
from bsufs.selectors._data import FitData


class MaxVariance(ScoringSelector):
    r"""Unsupervised feature selection by variance.

    .. math:: \text{score}_i = \frac{1}{n} \sum_j (x_{ji} - \bar x_i)^2

    The simplest baseline: it sees one column at a time, so it neither avoids columns that repeat
    each other nor means anything for columns in different units.

    Parameters
    ----------
    %(n_features_to_select)s

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        The variances: larger is better.
    %(fitted)s

    Notes
    -----
    On standardized data all scores are equal and the choice is arbitrary, if reproducible.

    References
    ----------
    Guyon, I., Elisseeff, A. (2003). An introduction to variable and feature selection. Journal of
    Machine Learning Research 3.

    %(example)s
    """

    _accepts_sparse = True

    def _score(self, data: FitData) -> Array:
        # Squares of very large entries overflow; such columns tie at the top.
        return np.minimum(data.variances[data.order], np.finfo(np.float64).max)
