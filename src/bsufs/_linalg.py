"""Symmetric eigenproblems, of which only some pairs are wanted."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from bsufs._typing import Array


def some_eigenpairs(A: Array, first: int, last: int) -> tuple[Array, Array]:
    """Return eigenpairs number `first` to `last`, counted from 0 in ascending order.

    LAPACK's routine for a range of eigenvalues may return too few pairs, without an error, where
    eigenvalues repeat; then all pairs are computed and the range is cut out.

    Parameters
    ----------
    A : array of shape (d, d)
        A symmetric matrix.
    first, last : int
        The range, both ends included.

    Returns
    -------
    values : array of shape (last - first + 1,)
        In ascending order.
    vectors : array of shape (d, last - first + 1)
        Orthonormal.
    """
    values: Any
    vectors: Any
    count = last - first + 1
    values, vectors = linalg.eigh(A, subset_by_index=[first, last], check_finite=False)
    if values.size != count or not np.isfinite(values).all():
        values, vectors = linalg.eigh(A, driver="evd", check_finite=False)
        values, vectors = values[first : last + 1], vectors[:, first : last + 1]
    return values, vectors
