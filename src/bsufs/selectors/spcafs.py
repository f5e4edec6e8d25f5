"""SPCAFS: principal components with a row penalty."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from bsufs._typing import Array
from bsufs.penalties import row_norms
from bsufs.selectors._base import NUMBER_OF_FEATURES, ScoringSelector
from bsufs.selectors._data import FitData
from bsufs.selectors._parameters import NUMBER_OF_COMPONENTS
from bsufs.solvers.principal import in_units_of, in_units_of_data, principal_frame
from bsufs.solvers.reweighted import negative_scatter, plain_value, reweighted_eigenvectors

# With gamma="auto" the penalty of the principal components is this share of the variance that they
# explain: enough to move them, not enough to drown the data.
_AUTO_SHARE = 0.1


class SPCAFS(ScoringSelector):
    r"""Unsupervised feature selection by sparse PCA with an l2,p penalty on the rows.

    Looks for m orthonormal components that explain much variance with few features,

    .. math:: \min_{W'W = I} -\operatorname{tr}(W'SW) + \gamma \sum_i \|w^i\|^p

    with S the scatter matrix of the centered data, by majorization: each iteration is an
    eigenproblem whose diagonal holds the slopes of the penalty, and none increases the objective.

    Parameters
    ----------
    n_features_to_select : int, float or "auto", default="auto"
        How many features to keep: a number, a share of all, or "auto", half of them.
    n_components : int, float or "auto", default="auto"
        Number of components m; a share of the total variance that they reach; or "auto", the
        number of principal components above the noise edge (parallel analysis).
    gamma : float or "auto", default="auto"
        Weight of the row penalty, in the units of S. "auto" makes the penalty of the principal
        components a tenth of the variance they explain.
    p : float, default=0.5
        Exponent of the row penalty, above 0 and at most 1; smaller is sparser.
    compat : {"publication", "reference"}, default="publication"
        Whether to watch the objective of the publication or the value of the public code (see
        Notes).
    max_iter : int, default=50
        Iterations at most.
    tol : float, default=1e-6
        Stop when the objective changes by less, as a share of the total variance; with
        ``compat="reference"`` in absolute terms.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Squared row norms of W: larger is better.
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
    gamma_ : float
        The weight used, in the units of S; infinite or zero if it is out of range.
    objective_history_ : array
        The objective after each iteration, likewise.
    n_iter_ : int
        Iterations done.
    stopping_reason_ : str
        "converged" or "max_iter".
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : array of str
        Their names, if all are strings.

    Notes
    -----
    The public code differs from the publication in three ways. It stops by the value with p = 1
    whatever p is, and by an absolute tolerance, which for data of ordinary size means that all
    iterations run; both are what ``compat="reference"`` does. And it hands a matrix that is
    symmetric but for rounding to a general eigensolver, which for more features than samples may
    return the wrong end of the spectrum; this is not reproduced: symmetric here in both modes.

    Its parameters gamma, proj_dim and p are `gamma`, `n_components` and `p`; the code fixes p = 1.

    For more features than samples each iteration solves with an n x n matrix by the Woodbury
    identity; no d x d array is formed.

    References
    ----------
    Li, Z., Nie, F., Bian, J., Wu, D., Li, X. (2023). Sparse PCA via l2,p-norm regularization for
    unsupervised feature selection. IEEE Transactions on Pattern Analysis and Machine Intelligence
    45(4).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bsufs.selectors import SPCAFS
    >>> selector = SPCAFS(2, n_components=2).fit(load_iris().data)
    >>> selector.selected_features_
    array([2, 0])
    """

    _accepts_sparse = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features_to_select": NUMBER_OF_FEATURES,
        "n_components": NUMBER_OF_COMPONENTS,
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "p": [Interval(Real, 0, 1, closed="right")],
        "compat": [StrOptions({"publication", "reference"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_features_to_select: int | float | str = "auto",
        *,
        n_components: int | float | str = "auto",
        gamma: float | str = "auto",
        p: float = 0.5,
        compat: str = "publication",
        max_iter: int = 50,
        tol: float = 1e-6,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_components = n_components
        self.gamma = gamma
        self.p = p
        self.compat = compat
        self.max_iter = max_iter
        self.tol = tol

    def _score(self, data: FitData) -> Array:
        scatter = data.scatter
        eigenvalues, frame = principal_frame(scatter, self.n_components)
        m = eigenvalues.size
        if isinstance(self.gamma, str):
            penalty = float((row_norms(frame) ** self.p).sum())
            gamma = _AUTO_SHARE * float(eigenvalues.sum()) / penalty or 1.0
            self.gamma_ = float(in_units_of_data(scatter, gamma))
        else:
            gamma = in_units_of(scatter, float(self.gamma))
            self.gamma_ = float(self.gamma)
        as_reference = self.compat == "reference"
        result = reweighted_eigenvectors(
            negative_scatter(scatter),
            m,
            gamma=gamma,
            p=self.p,
            max_iter=self.max_iter,
            tol=self.tol if as_reference else self.tol * scatter.trace(),
            value=plain_value(gamma) if as_reference else None,
        )
        self.components_ = result.W.T
        self.n_components_ = m
        self.objective_history_ = in_units_of_data(scatter, result.objective_history)
        self.n_iter_ = result.n_iter
        self.stopping_reason_ = result.stopping_reason
        return row_norms(result.W) ** 2
