"""RNE: features in which samples are rebuilt from their neighbors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize
from sklearn.utils import check_random_state

from bsufs._typing import Array, Indices
from bsufs.graphs import directed_affinity, in_safe_units, nearest_samples, reconstruction_weights
from bsufs.selectors._base import ScoringSelector
from bsufs.selectors._data import FitData
from bsufs.selectors._parameters import (
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    checked_array,
    constraints,
    one_of,
)
from bsufs.solvers.neighborhood_embedding import neighborhood_embedding

# "auto" takes no more columns than this: time grows with their number.
_MOST_AUTO_COMPONENTS = 50


@dataclass(repr=False, eq=False, kw_only=True)
class RNE(ScoringSelector):
    r"""Robust neighborhood embedding.

    Each sample is rebuilt from its neighbors with weights R that sum to one, as in locally linear
    embedding; a non-negative, nearly orthonormal H, which picks features, is to keep that:

    .. math:: \min_{H \ge 0} \|(I - R) X H\|_1 + \frac{\alpha}{4} \|H'H - I\|_F^2.

    Parameters
    ----------
    %(n_features_to_select)s
    n_components : int or "auto", default="auto"
        Number of columns m of H; "auto" is the number of features to select, at most 50.
    %(n_neighbors)s
    alpha : float, default=1e3
        Weight of the orthogonality.
    mu : float, default=10.0
        First weight of the augmented Lagrangian.
    mu_growth : float, default=1.1
        What it is multiplied by after each outer iteration.
    ridge : float, default=1e-3
        Multiple of its trace that is added to the diagonal of each local Gram matrix.
    normalize_samples : bool, default=True
        Whether to scale each sample to unit length first.
    init : {"sine", "random"} or array of shape (n_features, n_components), default="sine"
        Where H starts: the numbers :math:`0.5 + 0.5 \sin(im + j)`, uniform random numbers, or
        non-negative numbers in the order of the columns of X.
    %(compat)s
    max_iter : int, default=50
        Outer iterations at most; with ``compat="reference"`` all of them are done.
    max_inner_iter : int, default=30
        Multiplicative steps in each outer iteration.
    tol : float, default=1e-4
        Stop when H changes, and the constraint is violated, relatively by less.
    %(random_state)s

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Squared row norms of H: larger is better.
    %(fitted)s
    components_ : array of shape (n_components, n_features)
        The non-negative H, transposed.
    n_components_ : int
        Its number of columns.
    objective_ : float
        The objective at the end.
    %(solution)s

    Notes
    -----
    The reference code uses (I - R')X, which compares no sample with its own reconstruction; it adds
    the ridge only if there are more neighbors than features, so that copies of a sample make the
    weights arbitrary (drop them first); and it starts at random. Here it is (I - R)X, always with
    the ridge, and the default start numbers columns by content, so that their order does not
    matter; with ``compat="reference"`` as they come, from 1. The reference runs call `n_neighbors`
    k and `n_components` m.

    For n_features > 3 n_samples, and above 8000 features, the multiplicative steps split the
    quadratic term so that no n_features x n_features matrix is needed; ``compat="reference"``
    always needs one, and two unless there are more features than samples.

    References
    ----------
    Liu, Y., Ye, D., Li, W., Wang, H., Gao, Y. (2020). Robust neighborhood embedding for
    unsupervised feature selection. Knowledge-Based Systems 193.

    %(example)s
    """

    n_components: int | str = "auto"
    n_neighbors: int = 5
    alpha: float = 1e3
    mu: float = 10.0
    mu_growth: float = 1.1
    ridge: float = 1e-3
    normalize_samples: bool = True
    init: Any = "sine"
    compat: str = "publication"
    max_iter: int = 50
    max_inner_iter: int = 30
    tol: float = 1e-4
    random_state: Any = None

    _parameter_constraints = constraints(
        alpha=NOT_NEGATIVE,
        ridge=POSITIVE,
        normalize_samples=["boolean"],
        init=[*one_of("sine", "random"), "array-like"],
        max_inner_iter=COUNT,
    )

    def _score(self, data: FitData) -> Array:
        X = in_safe_units(data.ordered)
        if self.normalize_samples:
            X = normalize(X)
        solution = neighborhood_embedding(
            self._reconstruction_errors(X),
            self._first_embedding(data.order),
            alpha=self.alpha,
            mu=self.mu,
            mu_growth=self.mu_growth,
            max_iter=self.max_iter,
            max_inner_iter=self.max_inner_iter,
            tol=self.tol,
            reference=self.compat == "reference",
        )
        self.objective_ = float(solution.objective_history[-1])
        return self._keep_frame(solution)

    def _reconstruction_errors(self, X: Array) -> Array:
        """Return what is left of each sample after its neighbors have rebuilt it."""
        n, d = X.shape
        k = min(self.n_neighbors, n - 1)
        reference = self.compat == "reference"
        ridge = 0.0 if reference and k <= d else self.ridge
        indices = nearest_samples(X, k + 1).others(reference=reference).indices
        try:
            R = directed_affinity(indices, reconstruction_weights(X, indices, ridge))
        except np.linalg.LinAlgError as error:
            raise ValueError(
                "compat must be 'publication' for these data, got 'reference', whose local systems "
                "are singular here. Repeated samples cause that: drop them, or use 'publication'."
            ) from error
        return np.asarray(X - (R.T if reference else R) @ X)

    def _first_embedding(self, order: Indices) -> Array:
        """Return where H starts, for columns in the given order."""
        d = order.size
        given = None if isinstance(self.n_components, str) else self.n_components
        if isinstance(self.init, str):
            name, m = "n_components", given or min(self._n_to_select(d), _MOST_AUTO_COMPONENTS)
        else:
            H = checked_array(
                "init",
                self.init,
                (d, given),
                "'sine', 'random', or an array of shape (n_features, n_components) = "
                f"({d}, {given or 'any number'})",
                "Use init='sine' if in doubt.",
                non_negative=True,
            )
            name, m = "the number of columns of init", H.shape[1]
        if m > d:
            raise ValueError(
                f"{name} must be at most the number of features, {d}, or the columns of H cannot "
                f"be orthonormal, got {m}. Ask for fewer, or use n_components='auto'."
            )
        if not isinstance(self.init, str):
            return H[order]
        if self.init == "random":
            return np.asarray(check_random_state(self.random_state).uniform(size=(d, m)))
        rows = (order if self.compat == "reference" else np.arange(d)) + 1
        return 0.5 + 0.5 * np.sin(np.add.outer(rows * m, np.arange(1, m + 1)))
