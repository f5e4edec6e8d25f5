"""SPCAFS: principal components with a row penalty."""

from dataclasses import dataclass

from bsufs._typing import Array
from bsufs.penalties import row_norms
from bsufs.selectors._base import ScoringSelector
from bsufs.selectors._data import FitData
from bsufs.selectors._parameters import NUMBER_OF_COMPONENTS, constraints
from bsufs.solvers.components import principal_frame
from bsufs.solvers.forms import scatter_form
from bsufs.solvers.reweighted import reweighted_eigenvectors


@dataclass(repr=False, eq=False, kw_only=True)
class SPCAFS(ScoringSelector):
    r"""Unsupervised feature selection by sparse PCA with an l2,p penalty on the rows.

    Looks for m orthonormal components that explain much variance with few features,

    .. math:: \min_{W'W = I} -\operatorname{tr}(W'SW) + \gamma \sum_i \|w^i\|^p

    with S the scatter matrix of the centered data, by majorization: each iteration is an
    eigenproblem whose diagonal holds the slopes of the penalty, and none increases the objective.

    Parameters
    ----------
    %(n_features_to_select)s
    %(n_components)s
    gamma : float or "auto", default="auto"
        Weight of the row penalty, in the units of S. "auto" makes the penalty of the principal
        components a tenth of the variance they explain.
    p : float, default=0.5
        Exponent of the row penalty, above 0 and at most 1; smaller is sparser.
    %(compat)s
    max_iter : int, default=50
        Iterations at most.
    tol : float, default=1e-6
        Stop when the objective changes by less, as a share of the total variance; with
        ``compat="reference"`` in absolute terms.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Squared row norms of W: larger is better.
    %(fitted)s
    %(components_)s
    gamma_ : float
        The weight used, in the units of S as the objective; infinite or zero if out of range.
    %(solution)s

    Notes
    -----
    The public code stops by the value with p = 1 whatever p is, and by an absolute tolerance, which
    for data of ordinary size means that all iterations run; so does ``compat="reference"``. For
    more features than samples its general eigensolver may return the wrong end of the spectrum;
    this is not reproduced. It calls `n_components` proj_dim, and fixes p = 1.

    References
    ----------
    Li, Z., Nie, F., Bian, J., Wu, D., Li, X. (2023). Sparse PCA via l2,p-norm regularization for
    unsupervised feature selection. IEEE Transactions on Pattern Analysis and Machine Intelligence
    45(4).

    %(example)s
    """

    n_components: int | float | str = "auto"
    gamma: float | str = "auto"
    p: float = 0.5
    compat: str = "publication"
    max_iter: int = 50
    tol: float = 1e-6

    _accepts_sparse = True
    _parameter_constraints = constraints(n_components=NUMBER_OF_COMPONENTS)

    def _score(self, data: FitData) -> Array:
        scatter = data.scatter
        eigenvalues, frame = principal_frame(scatter, self.n_components)
        penalty = float((row_norms(frame) ** self.p).sum())
        reference = self.compat == "reference"
        solution = reweighted_eigenvectors(
            scatter_form(scatter, data.ordered, negative=True, lower_bound=-eigenvalues[0]),
            eigenvalues.size,
            gamma=self._keep_gamma(float(eigenvalues.sum()), penalty, scatter.unit_exponent),
            p=self.p,
            max_iter=self.max_iter,
            tol=self.tol if reference else self.tol * scatter.trace(),
            plain_value=reference,
        )
        return self._keep_frame(solution, scatter.unit_exponent)
