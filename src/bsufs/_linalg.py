"""Some eigenpairs of symmetric matrices, solves by the Cholesky factor, and sums over groups."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from bsufs._typing import Array, Indices

Map: TypeAlias = Callable[[Array], Array]

# Up to this size a full decomposition is as fast as Lanczos, and safer.
_SMALL = 256
# Up to this size a full decomposition is the way out where Lanczos does not converge: so many
# restarts cost more.
_MODERATE = 4096
_MAX_RESTARTS = 40


def some_eigenpairs(A: Array, first: int, last: int) -> tuple[Array, Array]:
    """Return eigenpairs number `first` to `last`, counted from 0 in ascending order."""
    count = last - first + 1
    values, vectors = linalg.eigh(A, subset_by_index=[first, last], check_finite=False)
    # LAPACK may return too few pairs, without an error, where eigenvalues repeat.
    if values.size != count or not np.isfinite(values).all():
        values, vectors = linalg.eigh(A, driver="evd", check_finite=False)
        values, vectors = values[first : last + 1], vectors[:, first : last + 1]
    return values, vectors


def largest_eigenpairs(
    product: Map, d: int, count: int, start: Array | None = None
) -> tuple[Array, Array]:
    """Return the largest eigenpairs, descending, of a symmetric matrix known by its products.

    The matrix is formed and decomposed if it is small or many pairs are wanted, and where
    eigenvalues over many orders of magnitude leave no gap for Lanczos to converge by.
    """
    if count == 0:
        return np.empty(0), np.empty((d, 0))
    if d > _SMALL and count <= d // 4:
        try:
            values, vectors = eigsh(
                LinearOperator((d, d), matvec=product, dtype=np.float64),
                k=count,
                which="LA",
                v0=np.random.default_rng(0).standard_normal(d) if start is None else start,
                ncv=min(d, 2 * count + 20),
                maxiter=_MAX_RESTARTS if d <= _MODERATE else None,
            )
            return values[::-1], vectors[:, ::-1]
        except ArpackNoConvergence:
            if d > _MODERATE:
                raise
    matrix = product(np.eye(d))
    values, vectors = some_eigenpairs(0.5 * (matrix + matrix.T), d - count, d - 1)
    return values[::-1], vectors[:, ::-1]


def cholesky_solver(A: Array) -> Map:
    """Return the map b -> A^(-1) b for a positive definite A, which is overwritten.

    Raises ``numpy.linalg.LinAlgError`` unless A is found positive definite.
    """
    # What LAPACK sees of a row-major matrix is its transpose, which is the same: no copy.
    factor = linalg.cho_factor(A.T, lower=True, overwrite_a=True, check_finite=False)
    return lambda b: np.asarray(linalg.cho_solve(factor, b, check_finite=False))


def group_sums(groups: Indices, values: Array, n_groups: int = 0) -> Array:
    """Return the sum of values over each group, of which there are at least so many."""
    return np.asarray(np.bincount(groups, values, minlength=n_groups), dtype=np.float64)
