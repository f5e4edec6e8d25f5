"""Symmetric eigenproblems, of which only some pairs are wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from bsufs._typing import Array

# Up to this size a full decomposition is the way out where Lanczos does not converge: so many
# restarts cost more.
_MODERATE = 4096
_MAX_RESTARTS = 40


def some_eigenpairs(A: Array, first: int, last: int) -> tuple[Array, Array]:
    """Return eigenpairs number `first` to `last`, counted from 0 in ascending order.

    LAPACK's routine for a range of eigenvalues may return too few pairs, without an error, where
    eigenvalues repeat; then all pairs are computed and the range is cut out.
    """
    values: Any
    vectors: Any
    count = last - first + 1
    values, vectors = linalg.eigh(A, subset_by_index=[first, last], check_finite=False)
    if values.size != count or not np.isfinite(values).all():
        values, vectors = linalg.eigh(A, driver="evd", check_finite=False)
        values, vectors = values[first : last + 1], vectors[:, first : last + 1]
    return values, vectors


def largest_eigenpairs(
    product: Callable[[Array], Array], d: int, count: int, start: Array
) -> tuple[Array, Array]:
    """Return the largest eigenpairs of a symmetric matrix that is known by its products.

    Eigenvalues over many orders of magnitude can leave no gap for Lanczos to converge by; then,
    where d is moderate, the matrix is formed and decomposed.
    """
    operator = LinearOperator((d, d), matvec=product, dtype=np.float64)
    dense_is_an_option = d <= _MODERATE
    values: Any
    vectors: Any
    try:
        values, vectors = eigsh(
            operator,
            k=count,
            which="LA",
            v0=start,
            ncv=min(d, 2 * count + 20),
            maxiter=_MAX_RESTARTS if dense_is_an_option else None,
        )
    except ArpackNoConvergence:
        if not dense_is_an_option:
            raise
        matrix = product(np.eye(d))
        return some_eigenpairs(0.5 * (matrix + matrix.T), d - count, d - 1)
    return values, vectors
