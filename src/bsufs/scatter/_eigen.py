"""The largest eigenpairs of a symmetric matrix or operator, as many as turn out to be wanted.

They come in descending order. How many are wanted is often known only from the eigenvalues:
`n_wanted` is given some of the largest, in descending order, and says how many pairs are wanted;
more than it was given where that cannot be told yet.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg

from bsufs._linalg import some_eigenpairs
from bsufs._typing import Array
from bsufs.scatter._krylov import KrylovSpace

NumberWanted = Callable[[Array], int]

# Up to this size LAPACK takes no longer than Krylov methods, and misses no repeated eigenvalue.
_DENSE = 2048
# Eigenpairs to compute first where it is not known how many are wanted, and where few can be.
_FIRST_GUESS, _FEW = 32, 64


def pairs_of_matrix(A: Array, n_wanted: NumberWanted, most: int) -> tuple[Array, Array]:
    """Return the largest eigenpairs, never more than `most`, of a symmetric matrix."""
    size = A.shape[0]
    if size > _DENSE:
        return KrylovSpace(lambda v: A @ v, size).largest(n_wanted)
    count = min(most if most < _FEW else _FIRST_GUESS, size)
    while True:
        values, vectors = some_eigenpairs(A, size - count, size - 1)
        values, vectors = values[::-1], vectors[:, ::-1]
        wanted = n_wanted(values)
        if wanted <= count or count == size:
            return values[:wanted], vectors[:, :wanted]
        count = min(4 * count, size)


def from_other_side(
    values: Array, images: Array, n_wanted: NumberWanted, most: int
) -> tuple[Array, Array]:
    """Return eigenpairs of Xc'Xc from eigenvalues of Xc Xc' and the images Xc' u.

    Directions that the data do not have are filled up by random ones of the null space.
    """
    m = n_wanted(values)
    m = m if m <= values.size else most
    values = values[:m]
    # The others are rounding of the largest.
    sound = values > np.finfo(np.float64).eps * values.max(initial=0.0) * max(images.shape)
    basis = images[:, :m][:, sound]
    missing = m - basis.shape[1]
    if missing:
        filler = np.random.default_rng(0).standard_normal((images.shape[0], missing))
        filler -= basis @ np.linalg.lstsq(basis, filler, rcond=None)[0]
        basis = np.hstack([basis, filler])
    # Householder QR leaves an orthonormal set as it is, up to sign.
    frame, _ = linalg.qr(basis, mode="economic", check_finite=False)
    return np.concatenate([values[sound], np.zeros(missing)]), frame
