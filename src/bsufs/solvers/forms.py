"""Quadratic forms of data: to multiply with, and to solve with when a diagonal is added.

With more features than samples most directions are invisible: every centered sample is orthogonal
to them, any quadratic form of the data vanishes there, and a method that looks for its lowest
eigenvectors would find nothing else. Restricted to the row space of the data the problem is as
well posed as for many samples.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy import linalg, sparse

from bsufs._linalg import Map, cholesky_solver
from bsufs._typing import Array
from bsufs.graphs import in_safe_units
from bsufs.scatter import Scatter

# Singular values of the standardized data below this share of the largest are rounding.
_RANK_TOLERANCE = 1e-9


class QuadraticForm(ABC):
    """A symmetric d x d matrix M in a space of some dimension, with a bound on eigenvalues."""

    n_features: int
    dimension: int
    lower_bound: float = 0.0

    @abstractmethod
    def product(self, W: Array) -> Array:
        """Return M W."""

    @abstractmethod
    def inverse(self, diagonal: Array) -> Map:
        """Return the map b -> (M + diag(diagonal))^(-1) b; LinAlgError unless positive definite."""


class DenseForm(QuadraticForm):
    """M as a d x d matrix."""

    def __init__(self, M: Array, lower_bound: float = 0.0) -> None:
        self.M = M
        self.n_features = self.dimension = M.shape[0]
        self.lower_bound = lower_bound

    def product(self, W: Array) -> Array:
        """Return M W."""
        return self.M @ W

    def inverse(self, diagonal: Array) -> Map:
        """Return the map b -> (M + diag(diagonal))^(-1) b."""
        total = self.M.diagonal() + diagonal
        if not (total > 0).all():
            raise np.linalg.LinAlgError("the diagonal is not positive")
        # With a unit diagonal the weights, which span many orders of magnitude, do no harm.
        scale = 1.0 / np.sqrt(total)
        matrix = self.M * scale
        matrix *= scale[:, None]
        np.fill_diagonal(matrix, 1.0)
        inside = cholesky_solver(matrix)
        return lambda b: (inside((b.T * scale).T).T * scale).T


class FactoredForm(QuadraticForm):
    """M = A'A or M = -A'A for a wide A: X as it is or, if X is sparse, with centered columns.

    Solved with by the Woodbury identity, which needs an r x r factor for the r rows of A, and no
    d x d array.
    """

    def __init__(self, X: Any, *, negative: bool = False, lower_bound: float = 0.0) -> None:
        self.X = X
        self.n_features = self.dimension = X.shape[1]
        self.sign = -1.0 if negative else 1.0
        self.lower_bound = lower_bound

    def _centered(self, Y: Array) -> Array:
        """Take the means off the columns of a product with X from the left, if X is sparse."""
        return Y - Y.mean(axis=0) if sparse.issparse(self.X) else Y

    def product(self, W: Array) -> Array:
        """Return M W."""
        return np.asarray(self.sign * (self.X.T @ self._centered(self.X @ W)))

    def inverse(self, diagonal: Array) -> Map:
        """Return the map b -> (M + diag(diagonal))^(-1) b."""
        if not (diagonal > 0).all():
            raise np.linalg.LinAlgError("the diagonal is not positive")
        reciprocal = 1.0 / diagonal
        half = self.X @ sparse.diags_array(np.sqrt(reciprocal))
        gram = half @ half.T
        if sparse.issparse(gram):
            gram = self._centered(self._centered(gram.toarray()).T)
        # (D + s A'A)^(-1) = D^(-1) - s D^(-1) A' (I + s A D^(-1) A')^(-1) A D^(-1), s = 1 or -1,
        # and for positive D the inner matrix is positive definite if and only if the outer one is.
        inside = cholesky_solver(np.eye(len(gram)) + self.sign * gram)

        def solve(b: Array) -> Array:
            scaled = (b.T * reciprocal).T
            correction: Array = self.X.T @ inside(self._centered(self.X @ scaled))
            return scaled - self.sign * (correction.T * reciprocal).T

        return solve


class RowSpaceForm(QuadraticForm):
    """A form that lives in a subspace: M = V K V', and infinite outside the span of V."""

    def __init__(self, K: Array, basis: Array) -> None:
        self.K = K
        self.basis = basis
        self.n_features, self.dimension = basis.shape

    def product(self, W: Array) -> Array:
        """Return M W."""
        return self.basis @ (self.K @ (self.basis.T @ W))

    def inverse(self, diagonal: Array) -> Map:
        """Return the map b -> (M + diag(diagonal))^(-1) b."""
        inside = cholesky_solver(self.K + (self.basis.T * diagonal) @ self.basis)
        return lambda b: self.basis @ inside(self.basis.T @ b)


def centered(X: Array) -> Array:
    """Return the columns minus their means, constant ones exactly zero, in safe units."""
    constant = (X[0] == X).all(axis=0)
    X = in_safe_units(X)
    Xc: Array = np.ascontiguousarray(X - X.mean(axis=0))
    # The mean of what is left is the rounding error of the mean.
    Xc -= Xc.mean(axis=0)
    Xc[:, constant] = 0.0
    return Xc


def short_root(X: Array) -> Array:
    """Return a matrix with the products X'X and no more rows than columns."""
    n, d = X.shape
    return X if n <= d else np.asarray(linalg.qr(X, mode="r", check_finite=False)[0][:d])


def row_space(X: Array) -> Array | None:
    """Return an orthonormal basis of the span of the centered samples; None for the whole space."""
    d = X.shape[1]
    Xc = centered(X)
    lengths = np.linalg.norm(Xc, axis=0)
    Xc /= np.where(lengths > 0, lengths, 1.0)
    _, values, right = linalg.svd(short_root(Xc), full_matrices=False, check_finite=False)
    vectors = right[values > _RANK_TOLERANCE * values[0]].T
    if vectors.shape[1] == d:
        return None
    basis: Array = linalg.qr(lengths[:, None] * vectors, mode="economic", check_finite=False)[0]
    basis[lengths == 0] = 0.0
    return basis


def samples_form(X: Array, L: Any, basis: Array | None) -> QuadraticForm:
    """Return the form X'LX, restricted to a subspace if one is given."""
    n, d = X.shape
    if basis is not None:
        return RowSpaceForm(symmetric_product(X @ basis, L), basis)
    if d <= n:
        return DenseForm(symmetric_product(X, L))
    values, vectors = linalg.eigh(L.toarray(), check_finite=False)
    return FactoredForm((np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T) @ X)


def symmetric_product(X: Array, L: Any) -> Array:
    """Return X'LX, symmetric to the last digit."""
    product: Array = X.T @ (L @ X)
    return 0.5 * (product + product.T)


def scatter_form(
    scatter: Scatter, X: Any, *, negative: bool = False, lower_bound: float = 0.0
) -> QuadraticForm:
    """Return S or -S of rows without weights: a matrix unless there are more features than rows."""
    n, d = X.shape
    if d <= n:
        S = scatter.rows(np.arange(d))
        return DenseForm(-S if negative else S, lower_bound)
    X = in_safe_units(X) if sparse.issparse(X) else centered(X)
    return FactoredForm(X, negative=negative, lower_bound=lower_bound)
