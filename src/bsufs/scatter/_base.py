"""What a solver needs of the data: S = Xc'Xc as an operator, and nothing else.

Xc is X (n_samples, n_features) with its weighted column means taken off and row i scaled by the
square root of its weight, so that a weight w counts like w copies of the row; S is not divided by
n. (The paper's X is the transpose of ours.) A solver multiplies with S, asks for its trace, its
diagonal and its leading eigenvectors, and never learns which kind it holds.
"""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from scipy import linalg

from bsufs._typing import Array, Indices, Mask
from bsufs.scatter._clearing import Clearing
from bsufs.scatter._eigen import Pairs, Wanted
from bsufs.stiefel import flip_signs

# Batches of about this many bytes keep the temporary arrays out of the memory budget.
BATCH_BYTES = 32 * 2**20
# Ridge, relative to the mean diagonal entry, that makes regression on collinear columns well posed.
RIDGE = 1e-12
# Regression on more columns than this costs more than a selection; nobody reads it off a plot.
_LARGEST_REGRESSION = 4096


class Scatter(ABC):
    """The operator S of some centered, weighted data, times a positive factor.

    A kind of scatter knows its products, its diagonal, its blocks, its restriction to some columns
    and its leading eigenpairs; the rest follows from these.
    """

    #: (n_features, n_features).
    shape: tuple[int, int]
    #: The type of W with which products are fastest, float64 or float32.
    dtype: np.dtype[Any] = np.dtype(np.float64)
    #: Sum of the sample weights; the number of samples when there are none.
    total_weight: float
    #: No more than this many eigenvalues of S can be non-zero.
    max_rank: int
    #: The number that scales S.
    factor: float = 1.0
    #: The data were divided by 2**unit_exponent so that squares of very large or very small entries
    #: stay in range; multiply S by 4**unit_exponent for the scatter as they came.
    unit_exponent: int = 0
    #: What the data were cleared of, see `cleared`.
    clearing: Clearing | None = None
    #: Share of the columns that must go before `restricted` is worth its memory.
    restriction_pays: float = 0.2
    #: So many rows of S are best asked for at a time.
    rows_at_once: int = 1

    @abstractmethod
    def _product(self, W: Array) -> Array:
        """Return S W without the factor."""

    @abstractmethod
    def _diagonal(self) -> Array:
        """Return the diagonal of S without the factor."""

    @abstractmethod
    def _block(self, rows: Any, columns: Any) -> Array:
        """Return S[rows, columns] without the factor; rows and columns are indices or slices."""

    @abstractmethod
    def _restricted(self, features: Indices) -> "Scatter":
        """Return the operator of some columns, without the factor."""

    @abstractmethod
    def _leading(self, wanted: Wanted) -> Pairs:
        """Return the leading eigenpairs, with any sign and without the factor."""

    def __matmul__(self, W: Array) -> Array:
        product = self._product(W)
        if self.factor != 1.0:
            product *= product.dtype.type(self.factor)
        return product

    def diagonal(self) -> Array:
        """Return the diagonal of S, the sums of squared deviations of the columns."""
        return self._diagonal() * self.factor

    def trace(self) -> float:
        """Return the trace of S, the total sum of squared deviations."""
        return float(self.diagonal().sum())

    def rows(self, features: Indices) -> Array:
        """Return the rows S[features] as a matrix of their own."""
        return self.block(features, slice(None))

    def block(self, rows: Any, columns: Any) -> Array:
        """Return S[rows][:, columns]; rows and columns are numbers of features or slices."""
        return self._block(rows, columns) * self.factor

    def centered_rows(self) -> Array | None:
        """Return the centered rows, not to be changed, where the operator holds them."""
        return None

    def restricted(self, features: Mask | Indices) -> "Scatter":
        """Return S[features, features]; features are a mask, or numbers in the order wanted."""
        numbers: Any = np.flatnonzero(features) if features.dtype == bool else features
        other = self._restricted(numbers)
        other.factor, other.unit_exponent = self.factor, self.unit_exponent
        other.clearing = None if self.clearing is None else self.clearing.at(numbers)
        return other

    def cleared(self, level: Array) -> "Scatter":
        """Return the operator of the first columns, cleared of what the others behind them explain.

        `level` has the weights of the mean that is taken off each row first, see `Clearing`. This
        operator is not to be used again.
        """
        other, clearing = self._cleared(level)
        other.factor, other.unit_exponent = self.factor, self.unit_exponent
        other.clearing = clearing
        return other

    def _cleared(self, level: Array) -> "tuple[Scatter, Clearing | None]":
        raise NotImplementedError

    def scaled(self, factor: float) -> Self:
        """Return factor * S, sharing all memory with this operator."""
        other = copy.copy(self)
        other.factor = self.factor * factor
        return other

    def leading_eigenvectors(
        self, m: int, *, above: float = -math.inf, until: float = math.inf
    ) -> tuple[Array, Array]:
        """Return the m largest eigenvalues, descending, and their eigenvectors, (n_features, m).

        Fewer where only those `above` a level are wanted, or so many that they sum to `until`. The
        vectors are orthonormal, each signed so that its entry of largest modulus is positive. What
        was found is remembered: whoever asks for no more of it waits for nothing.
        """
        if not 1 <= m <= self.shape[0]:
            raise ValueError(f"m must be from 1 to n_features = {self.shape[0]}, got {m}.")
        wanted = Wanted(m, above, until).scaled(1.0 / self.factor)
        nothing = Pairs(np.empty(0), np.empty((self.shape[0], 0)), math.inf)
        known: Pairs = self._remembered.get("leading", nothing)
        if wanted.number(known.values, known.bound) > known.values.size:
            found = self._leading(wanted)
            known = Pairs(np.maximum(found.values, 0.0), flip_signs(found.vectors), found.bound)
            self._remembered["leading"] = known
        first = known.first(wanted.number(known.values, known.bound))
        return first.values * self.factor, first.vectors

    def leading_eigenvalues(self, m: int) -> Array:
        """Return the m largest eigenvalues, descending, where nobody needs the vectors."""
        return self.leading_eigenvectors(m)[0]

    @property
    def _remembered(self) -> dict[str, Any]:
        """What has been computed so far, shared with the scaled operators made of this one."""
        return self.__dict__.setdefault("_memory", {})

    def explained_curve(self, features: Indices) -> Array:
        """Return the share of the total variance that the first 1, 2, ... of some columns explain.

        Explained by linear regression of all columns on them, tr(S_A' S_AA^+ S_A) / tr(S). One
        Cholesky factor L of S in the order given serves every number of columns: the first k
        explain the squared entries of the first k columns of L. Columns beyond the rank bound of S
        are taken together: the curve has the value of the whole set from there on. Beyond 4096
        columns it is NaN unless the rank is smaller: such a regression costs more than it tells.
        """
        features = np.asarray(features)
        gains = np.zeros(features.size)
        diagonal = self._diagonal()
        varying = np.flatnonzero(diagonal[features] > 0)
        head = varying[: min(self.max_rank, _LARGEST_REGRESSION)]
        if head.size:
            gains[head] = self._explained_gains(features[head])
        if varying.size > head.size == _LARGEST_REGRESSION:
            gains[varying[head.size]] = np.nan
        elif varying.size > head.size:
            rest = varying[self.max_rank]
            gains[rest] = max(0.0, self._explained_by_many(features[varying]) - gains.sum())
        return np.minimum(np.cumsum(gains) / diagonal.sum(), 1.0)

    def explained_share(self, features: Indices) -> float:
        """Return the share of the total variance that regression on some columns explains."""
        return float(self.explained_curve(features)[-1])

    def unique_shares(self, features: Indices, n_first: int) -> Array:
        """Return what regression on some columns loses without each of the first of them.

        As a share of the total variance. With B = S_AA^-1 S_A the coefficients of the regression on
        the columns A and b_i its row i, it explains b_i b_i' / (S_AA^-1)_ii less without column i.
        """
        lower = ridged_cholesky(self._block(features, features))
        inverse = linalg.solve_triangular(lower, np.eye(features.size), lower=True)
        rows = inverse[:, :n_first].T @ inverse
        lost = np.zeros(n_first)
        for block in batches(self.shape[0], features.size):
            coefficients = rows @ self._block(features, block)
            lost += np.einsum("ij,ij->i", coefficients, coefficients)
        return np.minimum(lost / np.diag(rows) / self._diagonal().sum(), 1.0)

    def _explained_gains(self, features: Indices) -> Array:
        """Return what each column adds to what those before it explain, block by block."""
        among = self._block(features, features)
        lower = ridged_cholesky(among)
        gains = np.zeros(features.size)
        for block in batches(self.shape[0], features.size):
            whitened = linalg.solve_triangular(
                lower, self._block(features, block), lower=True, check_finite=False
            )
            gains += np.einsum("ij,ij->i", whitened, whitened)
        return gains

    def _explained_by_many(self, features: Indices) -> float:
        """Return what more columns than the rank bound explain."""
        among = self._block(features, features)
        _, pivots, rank, _ = linalg.lapack.dpstrf(among, lower=1)
        # The columns that pivoting takes first span all of them.
        return float(self._explained_gains(features[pivots[:rank] - 1]).sum())


def ridged_cholesky(A: Array) -> Array:
    """Return the lower Cholesky factor of a semidefinite matrix, with the ridge that it needs."""
    ridge = RIDGE * A.trace()
    while True:
        ridged = A.copy()
        ridged[np.diag_indices_from(A)] += ridge
        try:
            lower: Array = linalg.cholesky(ridged, lower=True, check_finite=False)
        except linalg.LinAlgError:
            # Implicit centering leaves more rounding than the smallest eigenvalue can take.
            ridge *= 10.0
        else:
            return lower


def batches(total: int, width: int, n_bytes: int = BATCH_BYTES) -> Iterator[slice]:
    """Cut range(total) so that a block of float64 with `width` columns stays small."""
    size = max(1, n_bytes // (8 * max(width, 1)))
    for start in range(0, total, size):
        yield slice(start, min(start + size, total))
