"""Features at random: the floor under every comparison."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from bsufs._typing import Array
from bsufs.selectors._base import ScoringSelector
from bsufs.selectors._data import FitData
from bsufs.selectors._parameters import constraints


@dataclass(repr=False, eq=False, kw_only=True)
class RandomSelector(ScoringSelector):
    r"""Features at random.

    .. math:: \text{score}_i \sim \text{uniform on } [0, 1)

    A method that does no better than this has found nothing. Constant columns still come last.

    Parameters
    ----------
    %(n_features_to_select)s
    random_state : int, RandomState instance or None, default=None
        Seed; an int gives the same features every time.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Random numbers: larger is better.
    %(fitted)s

    Notes
    -----
    The numbers are drawn for the columns in an order that depends on their contents, so that with
    the same seed the same features are selected whatever order the columns come in.

    References
    ----------
    Guyon, I., Elisseeff, A. (2003). An introduction to variable and feature selection. Journal of
    Machine Learning Research 3.

    %(example)s
    """

    random_state: Any = None

    _accepts_sparse = True
    _parameter_constraints = constraints()

    def _score(self, data: FitData) -> Array:
        return np.asarray(check_random_state(self.random_state).uniform(size=data.n_features))
