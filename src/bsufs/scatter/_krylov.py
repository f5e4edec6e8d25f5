"""The largest eigenpairs of a large symmetric operator, as many as turn out to be wanted.

How many pairs are wanted is often known only from the eigenvalues themselves. One Krylov space
serves until they are enough, where solving for 32, 64, 128 pairs in turn starts anew each time and
spends most on pairs that nobody asked for. Vectors are added one at a time: a sparse matrix takes
as long for a block as for its vectors one by one, and a block converges later.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg

from bsufs._typing import Array

# Vectors at the start, and the share of those there are, between two looks at the convergence.
_FIRST_LOOK, _SHARE_PER_LOOK = 32, 0.2
# The basis may take this many bytes, or what is needed to hold twice the pairs that are wanted.
_BASIS_BYTES = 2**29
# Residuals relative to the largest eigenvalue: eigenvalues are then exact to rounding.
_TOLERANCE = 1e-12
_MOST_RESTARTS = 100


class KrylovSpace:
    """A Krylov space with full orthogonalization, restarted from its best vectors when full."""

    def __init__(self, product: Callable[[Array], Array], size: int) -> None:
        self._product = product
        self._size = size
        start = np.random.default_rng(0).standard_normal(size)
        self._next = start / np.linalg.norm(start)
        self._basis = np.empty((size, 0), order="F")
        self._projected = np.zeros((0, 0))
        self._used = 0
        self._coupling = 0.0

    def largest(self, n_wanted: Callable[[Array], int]) -> tuple[Array, Array]:
        """Return the largest eigenpairs."""
        n_restarts = 0
        while True:
            values, rotation = self._expanded()
            wanted = n_wanted(values)
            if wanted <= values.size:
                # The operator leaves the space only by way of the last vector.
                residuals = self._coupling * np.abs(rotation[-1, :wanted])
                if (residuals <= _TOLERANCE * values[0]).all():
                    break
            if self._used == self._size or n_restarts == _MOST_RESTARTS:
                wanted = min(wanted, values.size)
                break
            n_restarts += self._make_room(min(wanted, values.size), values, rotation)
        return values[:wanted], self._basis[:, : self._used] @ rotation[:, :wanted]

    def _expanded(self) -> tuple[Array, Array]:
        """Add vectors to the space; return the eigenpairs of the operator projected on it."""
        goal = self._used + max(_FIRST_LOOK, int(_SHARE_PER_LOOK * self._used))
        self._reserve(min(goal, self._size))
        while self._used < min(goal, self._size):
            self._add_vector()
        projected = self._projected[: self._used, : self._used]
        values, rotation = linalg.eigh(projected, check_finite=False)
        return values[::-1], rotation[:, ::-1]

    def _add_vector(self) -> None:
        old = self._used
        self._basis[:, old] = self._next
        self._used = old + 1
        basis = self._basis[:, : self._used]
        image = self._product(self._next)
        shadow = basis.T @ image
        self._projected[: self._used, old] = self._projected[old, : self._used] = shadow
        image = image - basis @ shadow
        self._coupling = float(np.linalg.norm(image))
        # Where nothing is left but rounding, the space goes on from a fresh direction.
        if self._coupling <= np.finfo(np.float64).eps * float(np.linalg.norm(shadow)):
            image = np.random.default_rng(old).standard_normal(self._size)
        # Once more: what rounding left of the basis is large where little else was left.
        for _ in range(2):
            image /= np.linalg.norm(image)
            image -= basis @ (basis.T @ image)
        self._next = image / np.linalg.norm(image)

    def _reserve(self, n_columns: int) -> None:
        if n_columns <= self._basis.shape[1]:
            return
        used = self._used
        basis = np.empty((self._size, n_columns), order="F")
        basis[:, :used] = self._basis[:, :used]
        projected = np.zeros((n_columns, n_columns))
        projected[:used, :used] = self._projected[:used, :used]
        self._basis, self._projected = basis, projected

    def _make_room(self, wanted: int, values: Array, rotation: Array) -> bool:
        """Keep only the best vectors where there is no room for more; tell whether that was so."""
        most = max(2 * wanted + 3 * _FIRST_LOOK, _BASIS_BYTES // (8 * self._size))
        if self._used * (1 + _SHARE_PER_LOOK) <= most:
            return False
        kept = min(wanted + (most - wanted) // 3, self._used)
        self._basis[:, :kept] = self._basis[:, : self._used] @ rotation[:, :kept]
        self._projected[:] = 0.0
        self._projected[np.diag_indices(kept)] = values[:kept]
        self._used = kept
        return True
