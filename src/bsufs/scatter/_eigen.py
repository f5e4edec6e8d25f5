"""The largest eigenpairs of a symmetric matrix or operator, as many as turn out to be wanted.

One Krylov space serves until they are enough, where solving for 32, 64, 128 pairs in turn would
spend most on pairs that nobody asked for.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy import linalg

from bsufs._linalg import some_eigenpairs
from bsufs._typing import Array

Product: TypeAlias = Callable[[Array], Array]

# Up to the first size LAPACK is the fastest. Up to the second it is the way out where the Krylov
# space has to grow beyond a share of the size, or may have missed a repeated eigenvalue.
_SMALL, _MODERATE, _LARGEST_SHARE = 384, 2048, 0.2
# Eigenpairs to compute first by LAPACK where many may be wanted, and where few can be.
_FIRST_GUESS, _FEW = 32, 64
# What is left of a matrix without its pairs may reach above them by this share, for rounding.
_SLACK = 1e-5
# Vectors at the start, and the share of those there are, between two looks at the convergence.
_FIRST_LOOK, _SHARE_PER_LOOK = 32, 0.2
# The basis may take this many bytes, or what is needed to hold twice the pairs that are wanted.
_BASIS_BYTES, _LARGE_BASIS, _ROWS_TURNED = 2**29, 2**26, 4096
# Residuals relative to the largest eigenvalue: eigenvalues are then exact to rounding. Where these
# decide how many pairs are wanted of large sparse data, the last are next to the noise, and a digit
# less does.
_TOLERANCE, _TOLERANCE_IN_NOISE = 1e-9, 1e-8
_MOST_RESTARTS = 100
# A vector of a block of which so little is left beside the others is made orthogonal again.
_DEPENDENT = 0.1
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Wanted:
    """Which pairs: the first so many, but only those above a level, and until they sum to a total.

    Where there is neither level nor total, and fewer than `most` can be had from a thin factor,
    directions of the null space take the place of the others.
    """

    most: int
    level: float = -math.inf
    total: float = math.inf

    @property
    def has_end(self) -> bool:
        """Whether the eigenvalues decide how many are wanted."""
        return self.level > -math.inf or self.total < math.inf

    def scaled(self, factor: float) -> "Wanted":
        """Return the same for a multiple of the operator."""
        return Wanted(self.most, self.level * factor, self.total * factor)

    def number(self, values: Array, bound: float = math.inf) -> int:
        """Tell by some of the largest eigenvalues, descending, how many pairs are wanted.

        One more than there are values where that cannot be told yet: no other exceeds the bound.
        """
        n_above = int(np.count_nonzero(values > self.level))
        n_enough = int(np.searchsorted(np.cumsum(values), self.total)) + 1
        number = min(n_above, n_enough, self.most)
        open_end = number == values.size < min(n_enough, self.most) and bound > self.level
        return number + 1 if open_end else number


@dataclass(frozen=True)
class Pairs:
    """Some largest eigenpairs, descending, and a bound that no other eigenvalue exceeds."""

    values: Array
    vectors: Array
    bound: float

    def first(self, number: int) -> "Pairs":
        """Return the first of them."""
        if number >= self.values.size:
            return self
        bound = float(self.values[number])
        return Pairs(self.values[:number], self.vectors[:, :number], bound)


def pairs_of_matrix(A: Array, wanted: Wanted) -> Pairs:
    """Return the largest eigenpairs of a symmetric matrix, semidefinite but for rounding."""
    size = A.shape[0]
    A = np.ascontiguousarray(A)
    # Half of a symmetric matrix is read from memory in less time than all of it.
    space = KrylovSpace(lambda v: np.asarray(linalg.blas.dsymv(1.0, A.T, v, lower=1)), size)
    if size > _MODERATE:
        return space.largest(wanted)
    if size > _SMALL and wanted.most <= _LARGEST_SHARE * size:
        found = space.largest(wanted, int(_LARGEST_SHARE * size))
        if space.has_converged and _are_largest(A, found, wanted):
            return found
    count = min(wanted.most if wanted.most < _FEW else _FIRST_GUESS, size)
    while True:
        values, vectors = some_eigenpairs(A, size - count, size - 1)
        values, vectors = values[::-1], vectors[:, ::-1]
        found = Pairs(values, vectors, float(values[-1]) if count < size else -math.inf)
        number = wanted.number(values, found.bound)
        if number <= count:
            return found.first(number)
        count = min(4 * count, size)


def _are_largest(A: Array, found: Pairs, wanted: Wanted) -> bool:
    """Tell whether level I - A + V diag(values) V' has a Cholesky factor, in single precision."""
    level = wanted.level
    if found.bound > level:
        level = float(found.values[-1]) * (1.0 + _SLACK)
    if level <= 0.0:
        return False
    left = (found.vectors * (found.values / level)) @ found.vectors.T - A / level
    left[np.diag_indices_from(left)] += 1.0
    factor = linalg.lapack.spotrf(left.astype(np.float32).T, lower=1, clean=0, overwrite_a=1)
    return bool(factor[1] == 0)


def pairs_from_samples(found: Pairs, images: Array, wanted: Wanted) -> Pairs:
    """Return eigenpairs of Xc'Xc from those of Xc Xc' and the images Xc' u of their vectors."""
    m = found.values.size if wanted.has_end else wanted.most
    # The others are rounding of the largest.
    least = _EPS * found.values.max(initial=0.0) * max(images.shape)
    sound = found.values > least
    basis = images[:, sound]
    missing = m - basis.shape[1]
    if missing:
        filler = np.random.default_rng(0).standard_normal((images.shape[0], missing))
        filler -= basis @ np.linalg.lstsq(basis, filler, rcond=None)[0]
        basis = np.hstack([basis, filler])
    # Householder QR leaves an orthonormal set as it is, up to sign.
    frame, _ = linalg.qr(basis, mode="economic", check_finite=False)
    values = np.concatenate([found.values[sound], np.zeros(missing)])
    return Pairs(values, frame, found.bound)


class KrylovSpace:
    """A Krylov space with full orthogonalization, restarted from its best vectors when full.

    Vectors are added in blocks of some width. A sparse matrix multiplies eight at once in the time
    of three, while the space needs up to three times as many where no gap helps, often less than
    twice. The product is given vectors where the width is 1, else matrices.
    """

    def __init__(self, product: Product, size: int, width: int = 1) -> None:
        self._product = product
        self._size = size
        self._width = width
        start = np.random.default_rng(0).standard_normal((size, min(width, size)))
        self._next = linalg.qr(start, mode="economic", check_finite=False)[0]
        self._basis = np.empty((size, 0), order="F")
        self._projected = np.zeros((0, 0))
        self._used = 0
        self._coupling: Array = np.zeros((1, 1))
        self.has_converged = False

    def largest(self, wanted: Wanted, most_vectors: int | None = None) -> Pairs:
        """Return the largest eigenpairs; give up where the space grows beyond `most_vectors`.

        Of the first that is not wanted it need only be told on which side of the level it is.
        """
        n_restarts = 0
        next_to_noise = wanted.has_end and self._width > 1 and self._size > _MODERATE
        tolerance = _TOLERANCE_IN_NOISE if next_to_noise else _TOLERANCE
        while True:
            values, rotation = self._expanded()
            is_all = self._used == self._size
            # The operator leaves the space only by way of the last block.
            last = rotation[-self._coupling.shape[1] :]
            residuals = np.linalg.norm(self._coupling @ last, axis=0) * (not is_all)
            residuals[residuals <= tolerance * values[0]] = 0.0
            number = wanted.number(values, -math.inf if is_all else math.inf)
            bound = -math.inf if is_all else float(values[-1])
            if number < values.size:
                bound = float(values[number] + residuals[number])
            self.has_converged = (
                number <= values.size
                and not residuals[:number].any()
                and wanted.number(values[:number], bound) == number
            )
            number = min(number, values.size)
            is_full = self._used >= (most_vectors or self._size)
            if self.has_converged or is_full or n_restarts == _MOST_RESTARTS:
                break
            n_restarts += self._make_room(number, values, rotation)
        vectors = self._basis[:, : self._used] @ rotation[:, :number]
        return Pairs(values[:number], vectors, bound)

    def _expanded(self) -> tuple[Array, Array]:
        """Add vectors to the space; return the eigenpairs of the operator projected on it."""
        goal = self._used + max(_FIRST_LOOK, int(_SHARE_PER_LOOK * self._used))
        self._reserve(min(goal + self._width, self._size))
        while self._used < min(goal, self._size):
            self._add_block()
        projected = self._projected[: self._used, : self._used]
        values, rotation = linalg.eigh(projected, check_finite=False)
        return values[::-1], rotation[:, ::-1]

    def _add_block(self) -> None:
        block = self._next
        old = slice(self._used, self._used + block.shape[1])
        self._basis[:, old] = block
        self._used = old.stop
        basis = self._basis[:, : self._used]
        image = np.array(self._product(block[:, 0] if self._width == 1 else block))
        image = image.reshape(block.shape)
        # First the two blocks that hold most of it, then what rounding left of all of them.
        nearest = basis[:, -2 * self._width :]
        shadow = np.zeros((self._used, block.shape[1]))
        shadow[-nearest.shape[1] :] = nearest.T @ image
        image -= nearest @ shadow[-nearest.shape[1] :]
        shadow += _made_orthogonal(image, basis)
        self._projected[: self._used, old] = shadow
        self._projected[old, : self._used] = shadow.T
        lengths = np.linalg.norm(image, axis=0)
        image, self._coupling = _orthonormal(image)
        image = image[:, : self._size - self._used]
        own = np.abs(np.diag(self._coupling))
        # Where nothing is left but rounding, the space goes on from a fresh direction.
        lost = (own <= _EPS * np.linalg.norm(shadow, axis=0))[: image.shape[1]]
        if lost.any():
            image[:, lost] = np.random.default_rng(old.start).standard_normal(
                (self._size, np.count_nonzero(lost))
            )
        if lost.any() or (own < _DEPENDENT * lengths).any():
            # Vectors of a block that are nearly dependent lose digits too.
            _made_orthogonal(image, basis)
            image = _orthonormal(image)[0]
        self._next = image

    def _reserve(self, n_columns: int) -> None:
        if n_columns <= self._basis.shape[1]:
            return
        used = self._used
        if 8 * self._size * n_columns > _LARGE_BASIS:
            # Memory that is not used yet costs nothing; to move the basis takes it twice.
            n_columns = max(n_columns, min(self._size, _BASIS_BYTES // (8 * self._size)))
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
        # Some rows at a time, so that there is never a second basis.
        for start in range(0, self._size, _ROWS_TURNED):
            rows = slice(start, start + _ROWS_TURNED)
            self._basis[rows, :kept] = self._basis[rows, : self._used] @ rotation[:, :kept]
        self._projected[:] = 0.0
        self._projected[np.diag_indices(kept)] = values[:kept]
        self._used = kept
        return True


def _made_orthogonal(vectors: Array, basis: Array) -> Array:
    """Take off vectors, in place, what they have of a basis, and return that."""
    shadow, lengths = np.zeros((basis.shape[1], vectors.shape[1])), np.linalg.norm(vectors, axis=0)
    for _ in range(3):
        before, more = lengths, basis.T @ vectors
        vectors -= basis @ more
        shadow += more
        lengths = np.linalg.norm(vectors, axis=0)
        # Once more where little is left: what rounding left of the basis is large beside it.
        if (lengths > 0.5 * before).all():
            break
    return shadow


def _orthonormal(block: Array) -> tuple[Array, Array]:
    """Return Q and R of a block; a single vector needs no more than its length."""
    if block.shape[1] != 1:
        frame, factor = linalg.qr(block, mode="economic", check_finite=False)
        return frame, factor
    length = float(np.linalg.norm(block))
    return block / (length or 1.0), np.full((1, 1), length)
