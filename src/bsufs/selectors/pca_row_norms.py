"""Row norms of the principal components: PCA as a feature selector, with no penalty."""

from __future__ import annotations

from typing import Any, ClassVar

from bsufs._typing import Array
from bsufs.penalties import row_norms
from bsufs.selectors._base import NUMBER_OF_FEATURES, ScoringSelector
from bsufs.selectors._data import FitData
from bsufs.selectors._parameters import NUMBER_OF_COMPONENTS
from bsufs.solvers.principal import principal_frame


class PCARowNorms(ScoringSelector):
    r"""Unsupervised feature selection by the row norms of the principal components.

    The features that carry most of the m leading principal components,

    .. math:: \text{score}_i = \|w^i\|, \qquad W = \arg\max_{W'W = I} \operatorname{tr}(W'SW),

    with S the scatter matrix of the centered data. This is Case I of the BSUFS paper: both
    penalties switched off. It is what every sparse variant has to beat.

    Parameters
    ----------
    n_features_to_select : int, float or "auto", default="auto"
        How many features to keep: a number, a share of all, or "auto", half of them.
    n_components : int, float or "auto", default="auto"
        Number of components m; a share of the total variance that they reach; or "auto", the
        number of principal components above the noise edge (parallel analysis).

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Row norms of W, from 0 to 1: larger is better.
    ranking_ : array of int of shape (n_features,)
        1 for the best feature.
    support_ : array of bool of shape (n_features,)
        The selected features.
    selected_features_ : array of shape (n_features_to_select,)
        Names, or column numbers where there are no names, best first.
    components_ : array of shape (n_components, n_features)
        The orthonormal W, transposed.
    n_components_ : int
        The number of components.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : array of str
        Their names, if all are strings.

    Notes
    -----
    The rotation of the components within their span does not matter. For m = d all row norms are
    one and only the variances decide.

    References
    ----------
    Xiu, X., Huang, C., Shang, P., Liu, W. (2025). Bi-Sparse Unsupervised Feature Selection. IEEE
    Transactions on Image Processing.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bsufs.selectors import PCARowNorms
    >>> selector = PCARowNorms(2, n_components=1).fit(load_iris().data)
    >>> selector.selected_features_
    array([2, 0])
    """

    _accepts_sparse = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features_to_select": NUMBER_OF_FEATURES,
        "n_components": NUMBER_OF_COMPONENTS,
    }

    def __init__(
        self,
        n_features_to_select: int | float | str = "auto",
        *,
        n_components: int | float | str = "auto",
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_components = n_components

    def _score(self, data: FitData) -> Array:
        eigenvalues, W = principal_frame(data.scatter, self.n_components)
        self.components_ = W.T
        self.n_components_ = eigenvalues.size
        return row_norms(W)
