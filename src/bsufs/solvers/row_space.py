"""Quadratic forms restricted to the row space of the data.

With more features than samples most directions are invisible: every centered sample is orthogonal
to them, any quadratic form of the data vanishes there, and a method that looks for its lowest
eigenvectors would find nothing else. In the row space the problem is as well posed as for
many samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from bsufs._typing import Array
from bsufs.solvers.reweighted import DenseForm, QuadraticForm, Solve

# Singular values of the standardized data below this share of the largest are rounding.
_RANK_TOLERANCE = 1e-9


class RowSpaceForm(QuadraticForm):
    """A form that lives in a subspace: M = V K V', and infinite outside the span of V.

    Its lowest eigenvectors are thus the lowest ones within the span.
    """

    def __init__(self, K: Array, basis: Array) -> None:
        self.K = K
        self.basis = basis
        self.n_features = basis.shape[0]
        self.lower_bound = 0.0

    def product(self, W: Array) -> Array:
        """Return M W."""
        return self.basis @ (self.K @ (self.basis.T @ W))

    def inverse(self, diagonal: Array) -> Solve:
        """Return the map b -> V (V'(M + diag(diagonal))V)^(-1) V'b."""
        inner = self.K + (self.basis.T * diagonal) @ self.basis
        factor = linalg.cholesky(inner, lower=True, check_finite=False)

        def solve(b: Array) -> Array:
            inside = linalg.cho_solve((factor, True), self.basis.T @ b, check_finite=False)
            solution: Array = self.basis @ inside
            return solution

        return solve


def row_space(X: Array) -> Array | None:
    """Return an orthonormal basis of the span of the centered samples.

    Whether a direction belongs to it is decided on standardized columns, so that the unit of a
    column does not matter.
    """
    n, d = X.shape
    centered = X - X.mean(axis=0)
    lengths = np.linalg.norm(centered, axis=0)
    constant = (X[0] == X).all(axis=0)
    centered[:, constant] = 0.0
    lengths[constant] = 0.0
    centered /= np.where(constant, 1.0, lengths)
    if d <= n:
        values, vectors = linalg.eigh(centered.T @ centered, check_finite=False)
        # Eigenvalues are squares, and their rounding hides smaller singular values.
        inside = values > max(_RANK_TOLERANCE**2, d * np.finfo(np.float64).eps) * values[-1]
        vectors = vectors[:, inside]
    else:
        _, values, right = linalg.svd(centered, full_matrices=False, check_finite=False)
        vectors = right[values > _RANK_TOLERANCE * values[0]].T
    if vectors.shape[1] == d:
        return None
    basis: Array = linalg.qr(lengths[:, None] * vectors, mode="economic", check_finite=False)[0]
    basis[constant] = 0.0
    return basis


class SampleForm(DenseForm):
    """A dense form under the name that `RowSpaceForm` has for it."""

    def __init__(self, K: Array) -> None:
        super().__init__(K)
        self.K = K


def factor_of_samples(X: Array, L: Any) -> Array:
    """Return A with A'A = X'LX and no more rows than there are samples."""
    values, vectors = linalg.eigh(L.toarray(), check_finite=False)
    factor: Array = (np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T) @ X
    return factor


def form_of_samples(X: Array, L: Any, basis: Array | None) -> RowSpaceForm | SampleForm:
    """Return the form X'LX, restricted to a subspace if one is given."""
    coordinates = X if basis is None else X @ basis
    K = coordinates.T @ (L @ coordinates)
    K = 0.5 * (K + K.T)
    return SampleForm(K) if basis is None else RowSpaceForm(K, basis)
