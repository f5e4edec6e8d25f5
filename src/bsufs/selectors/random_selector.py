"""Features at random: the floor under every comparison."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from bsufs._typing import Array
from bsufs.selectors._base import NUMBER_OF_FEATURES, ScoringSelector
from bsufs.selectors._data import FitData


class RandomSelector(ScoringSelector):
    r"""Features at random.

    .. math:: \text{score}_i \sim \text{uniform on } [0, 1)

    A method that does no better than this has found nothing. Constant columns still come last.

    Parameters
    ----------
    n_features_to_select : int, float or "auto", default="auto"
        How many features to keep: a number, a share of all, or "auto", half of them.
    random_state : int, RandomState instance or None, default=None
        Seed; an int gives the same features every time.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Random numbers: larger is better.
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
    The numbers are drawn for the columns in an order that depends on their contents, so that with
    the same seed the same features are selected whatever order the columns come in.

    References
    ----------
    Guyon, I., Elisseeff, A. (2003). An introduction to variable and feature selection. Journal of
    Machine Learning Research 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bsufs.selectors import RandomSelector
    >>> X = load_iris().data
    >>> RandomSelector(2, random_state=0).fit_transform(X).shape
    (150, 2)
    """

    _accepts_sparse = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features_to_select": NUMBER_OF_FEATURES,
        "random_state": ["random_state"],
    }

    def __init__(
        self, n_features_to_select: int | float | str = "auto", *, random_state: Any = None
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.random_state = random_state

    def _score(self, data: FitData) -> Array:
        X = data.ordered
        return np.asarray(check_random_state(self.random_state).uniform(size=X.shape[1]))
