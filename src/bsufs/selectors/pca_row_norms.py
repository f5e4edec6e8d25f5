"""Row norms of the principal components: PCA as a feature selector, with no penalty."""

from dataclasses import dataclass

from bsufs._typing import Array
from bsufs.penalties import row_norms
from bsufs.selectors._base import ScoringSelector
from bsufs.selectors._data import FitData
from bsufs.selectors._parameters import NUMBER_OF_COMPONENTS, constraints
from bsufs.solvers.components import principal_frame


@dataclass(repr=False, eq=False, kw_only=True)
class PCARowNorms(ScoringSelector):
    r"""Unsupervised feature selection by the row norms of the principal components.

    The features that carry most of the m leading principal components,

    .. math:: \text{score}_i = \|w^i\|, \qquad W = \arg\max_{W'W = I} \operatorname{tr}(W'SW),

    with S the scatter matrix of the centered data. This is Case I of the BSUFS paper: both
    penalties switched off. It is what every sparse variant has to beat.

    Parameters
    ----------
    %(n_features_to_select)s
    %(n_components)s

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Row norms of W, from 0 to 1: larger is better.
    %(fitted)s
    %(components_)s

    Notes
    -----
    The rotation of the components within their span does not matter. For m = d all row norms are
    one and only the variances decide.

    References
    ----------
    Xiu, X., Huang, C., Shang, P., Liu, W. (2025). Bi-Sparse Unsupervised Feature Selection. IEEE
    Transactions on Image Processing.

    %(example)s
    """

    n_components: int | float | str = "auto"

    _accepts_sparse = True
    _parameter_constraints = constraints(n_components=NUMBER_OF_COMPONENTS)

    def _score(self, data: FitData) -> Array:
        _, W = principal_frame(data.scatter, self.n_components)
        self.components_ = W.T
        self.n_components_ = W.shape[1]
        return row_norms(W)
