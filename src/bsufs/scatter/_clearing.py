"""Clearing X of what is known of it: a common level of each row, and what regressors explain."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from bsufs._typing import Array, Indices, Mask

# Of a column that is explained completely, rounding leaves less than this share of its variance.
_NOTHING_LEFT = 1e-12
# Regressors that are collinear but for rounding count once.
_COLLINEAR = 1e-10


@dataclass(frozen=True)
class Clearing:
    """X turned into X - (X level) e' - Z coefficients, where e marks the columns with a level."""

    level: Array
    coefficients: Array

    def at(self, columns: Indices) -> "Clearing":
        """Return the same for some columns, among which are all with a level."""
        return Clearing(self.level[columns], self.coefficients[:, columns])

    def parts(self, X: Any, Z: Array) -> tuple[Array, Array]:
        """Return L and R such that X - L R' are the cleared rows."""
        return np.column_stack([X @ self.level, Z]), self.by_column

    @property
    def by_column(self) -> Array:
        """What is taken off each column, as multiples of the row means and of the regressors."""
        return np.vstack([self.level > 0, self.coefficients]).T


class Beside:
    """Rows with those of regressors behind them, put together only where they are asked for."""

    dtype = np.dtype(np.float64)

    def __init__(self, X: Array, Z: Array) -> None:
        self.X, self.Z = X, Z
        self.shape = (X.shape[0], X.shape[1] + Z.shape[1])

    def __getitem__(self, rows: Any) -> Array:
        return np.hstack([self.X[rows], self.Z[rows]])

    def min(self, axis: int) -> Array:
        """Return the smallest entry of each column."""
        return np.concatenate([self.X.min(axis=axis), self.Z.min(axis=axis)])

    def max(self, axis: int) -> Array:
        """Return the largest entry of each column."""
        return np.concatenate([self.X.max(axis=axis), self.Z.max(axis=axis)])


def whitening(gram: Array) -> Array:
    """Return T such that Z T is an orthonormal basis of the regressors Z with this Gram matrix."""
    lengths = np.sqrt(gram.diagonal())
    lengths = np.where(lengths > 0, lengths, 1.0)
    values, vectors = linalg.eigh(gram / np.multiply.outer(lengths, lengths), check_finite=False)
    sound = values > _COLLINEAR * values.max(initial=1.0)
    return vectors[:, sound] / np.sqrt(values[sound]) / lengths[:, None]


def nothing_left(before: Array, after: Array) -> Mask:
    """Tell which columns are explained completely, from their sums of squares."""
    return after <= _NOTHING_LEFT * before


def clear_matrix(joint: Array, level: Array) -> tuple[Array, Clearing]:
    """Clear the first columns of a scatter matrix, in place, of the others behind them."""
    d = level.size
    S, across, gram = joint[:d, :d], joint[d:, :d], joint[d:, d:]
    before = S.diagonal().copy()
    marked = np.asarray(level > 0, dtype=np.float64)
    if marked.any():
        with_level = S @ level
        of_level = float(level @ with_level)
        S -= np.multiply.outer(with_level, marked)
        S -= np.multiply.outer(marked, with_level - of_level * marked)
        across = across - np.multiply.outer(across @ level, marked)
    basis = whitening(gram)
    shadow = basis.T @ across
    S -= shadow.T @ shadow
    gone = nothing_left(before, S.diagonal())
    S[gone] = 0.0
    S[:, gone] = 0.0
    return S, Clearing(level, basis @ shadow)


def clear_rows(joint: Array, level: Array) -> tuple[Array, Clearing]:
    """Clear the first columns of centered rows, in place, of the others behind them."""
    X, Z = joint[:, : level.size], joint[:, level.size :]
    before = np.einsum("ij,ij->j", X, X)
    if level.any():
        means, marked = X @ level, level > 0
        for row, mean in zip(X, means, strict=True):
            row[marked] -= mean
    basis = whitening(Z.T @ Z)
    coefficients = basis @ (basis.T @ (Z.T @ X))
    for row, regressors in zip(X, Z, strict=True):
        row -= regressors @ coefficients
    X[:, nothing_left(before, np.einsum("ij,ij->j", X, X))] = 0.0
    return X, Clearing(level, coefficients)


def weighted_mean(X: Array, weight: Array | None) -> Array:
    """Return the mean of each column."""
    mean: Array = X.mean(axis=0) if weight is None else weight @ X / weight.sum()
    return mean
