"""S = Xc'Xc as an operator: what a solver needs of the data, and nothing else.

Xc is X (n_samples, n_features) with its weighted column means taken off and row i scaled by the
square root of its weight, so that a weight w counts like w copies of the row; S is not divided by
n. (The paper's X is the transpose of ours.) A solver multiplies with S, asks for its trace, its
diagonal and its leading eigenvectors, and never learns which kind it holds:

- `DenseScatter`: the d x d matrix, for d <= n;
- `FactoredScatter`: Xc itself, S W = Xc'(Xc W), for d > n;
- `SparseScatter`: a sparse X with the centering done implicitly, never densified.

`make_scatter` picks one. `ScatterAccumulator` builds the first two from row batches in one pass,
by pairwise updates of mean and S that stay exact when the mean dwarfs the deviation.
"""

from __future__ import annotations

import copy
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from bsufs._krylov import KrylovSpace
from bsufs._linalg import some_eigenpairs
from bsufs._memory import available_memory, size_in_words
from bsufs._typing import Array, Indices, Mask
from bsufs.stiefel import flip_signs

# Row batches of about this many bytes keep the temporary arrays out of the memory budget.
_BATCH_BYTES = 32 * 2**20
# Below this size a dense eigendecomposition is faster than Lanczos, and safer.
_SMALL = 128
# Eigenpairs to compute first where it is not known how many are wanted.
_FIRST_GUESS = 32
# Beyond this share of all eigenpairs a Krylov space is no saving.
_KRYLOV_SHARE = 0.2
# Squares of entries within this range neither overflow nor vanish, whatever is summed.
_SAFE_EXPONENT = 300
# Ridge, relative to the mean diagonal entry, that makes regression on collinear columns well posed.
RIDGE = 1e-12
# Regression on more columns than this costs more than a selection; nobody reads it off a plot.
_LARGEST_REGRESSION = 4096
# Solving takes so many times the memory of S, or of the data where these are smaller.
_COPIES_TO_SOLVE = 4
# Below this nobody needs to ask how much memory there is.
_SURELY_FITS = 2**28


class Scatter(ABC):
    """The operator S of some centered, weighted data, times a positive factor.

    Attributes
    ----------
    shape : tuple of int
        (n_features, n_features).
    dtype : numpy.dtype
        The type of the products, float64.
    total_weight : float
        Sum of the sample weights; the number of samples when there are none.
    max_rank : int
        No more than this many eigenvalues of S can be non-zero.
    factor : float
        The number that scales S.
    unit_exponent : int
        The data were divided by 2**unit_exponent so that squares of very large or very small
        entries stay in range; multiply S by 4**unit_exponent for the scatter as they came.
    """

    shape: tuple[int, int]
    dtype = np.dtype(np.float64)
    total_weight: float
    max_rank: int
    factor: float = 1.0
    unit_exponent: int = 0
    # Share of the columns that must go before `restricted` is worth its memory.
    costly_to_restrict: float = 0.0
    # So many rows of S are best asked for at a time.
    rows_at_once: int = 1

    @abstractmethod
    def _product(self, W: Array) -> Array:
        """Return S W without the factor."""

    @abstractmethod
    def _diagonal(self) -> Array:
        """Return the diagonal of S without the factor."""

    @abstractmethod
    def _leading(self, m: int) -> tuple[Array, Array]:
        """Return m leading eigenpairs in any order and with any sign, without the factor."""

    @abstractmethod
    def _block(self, rows: Any, columns: Any) -> Array:
        """Return S[rows, columns] without the factor; rows and columns are indices or slices."""

    @abstractmethod
    def _restricted(self, features: Mask | Indices) -> Scatter:
        """Return the operator of some columns, without the factor."""

    def restricted(self, features: Mask | Indices) -> Scatter:
        """Return the operator of some columns only.

        Parameters
        ----------
        features : array of bool of shape (n_features,), or of int
            The columns to keep, or their numbers in the order wanted.

        Returns
        -------
        Scatter
            S[features, features], of the same kind, with memory of its own.
        """
        other = self._restricted(features)
        other.factor, other.unit_exponent = self.factor, self.unit_exponent
        return other

    def __matmul__(self, W: Array) -> Array:
        product = self._product(W)
        return product if self.factor == 1.0 else product * self.factor

    def diagonal(self) -> Array:
        """Return the diagonal of S, the sums of squared deviations of the columns.

        Returns
        -------
        array of shape (n_features,)
            Non-negative numbers.
        """
        return self._diagonal() * self.factor

    def rows(self, features: Indices) -> Array:
        """Return some rows of S as a matrix.

        Parameters
        ----------
        features : array of int of shape (k,)
            Which rows.

        Returns
        -------
        array of shape (k, n_features)
            S[features], with memory of its own.
        """
        return self._block(features, slice(None)) * self.factor

    def regression_rows(self, features: Indices) -> tuple[Array, Array]:
        """Return what regression of all columns on some of them, step by step, has to know.

        Parameters
        ----------
        features : array of int of shape (k,)
            Which columns.

        Returns
        -------
        across : array of shape (k, l)
            Vectors with the lengths and angles of the rows S[features]; here these rows.
        among : array of shape (k, k)
            S[features, features].
        """
        across = self.rows(features)
        return across, across[:, features]

    def trace(self) -> float:
        """Return the trace of S, the total sum of squared deviations.

        Returns
        -------
        float
            The sum of the diagonal.
        """
        return float(self.diagonal().sum())

    def leading_eigenvectors(self, m: int) -> tuple[Array, Array]:
        """Return the m largest eigenvalues and their eigenvectors.

        Parameters
        ----------
        m : int
            How many, from 1 to n_features.

        Returns
        -------
        values : array of shape (m,)
            In descending order.
        vectors : array of shape (n_features, m)
            Orthonormal, each signed so that its entry of largest modulus is positive.
        """
        if not 1 <= m <= self.shape[0]:
            raise ValueError(f"m must be from 1 to n_features = {self.shape[0]}, got {m}.")
        return self._in_order(*self._leading(m))

    def _in_order(self, values: Array, vectors: Array) -> tuple[Array, Array]:
        descending = np.argsort(-values, kind="stable")
        values = np.maximum(values[descending], 0.0) * self.factor
        return values, flip_signs(vectors[:, descending])

    def leading_eigenvectors_until(
        self, enough: Callable[[Array], bool], most: int
    ) -> tuple[Array, Array]:
        """Return the largest eigenpairs, as many as it takes.

        Parameters
        ----------
        enough : callable
            Whether some of the largest eigenvalues, in descending order, are all that are wanted.
        most : int
            This many pairs are enough in any case; at most n_features.

        Returns
        -------
        values : array of shape (m,)
            In descending order; no fewer than are enough.
        vectors : array of shape (n_features, m)
            See `leading_eigenvectors`.
        """
        size = min(_FIRST_GUESS, most)
        while True:
            values, vectors = self.leading_eigenvectors(size)
            if size == most or enough(values):
                return values, vectors
            size = min(2 * size, most)

    def frame(self, W: Array) -> Any:
        """Return a matrix in the form in which this operator gives its eigenvectors.

        Parameters
        ----------
        W : array of shape (n_features, m)
            The matrix.

        Returns
        -------
        array of shape (n_features, m)
            Here the array itself.
        """
        return W

    def scaled(self, factor: float) -> Self:
        """Return factor * S, sharing all memory with this operator.

        Parameters
        ----------
        factor : float
            A positive number.

        Returns
        -------
        Scatter
            The scaled operator.
        """
        other = copy.copy(self)
        other.factor = self.factor * factor
        return other

    def explained_curve(self, features: Indices) -> Array:
        """Return the share of the total variance that the first 1, 2, ... of some columns explain.

        Explained by linear regression of all columns on them. One Cholesky factor L of S in the
        order given serves every number of columns: the first k explain the squared entries of the
        first k columns of L.

        Parameters
        ----------
        features : array of int of shape (k,)
            The columns to regress on, in order. Those beyond the rank bound of S are taken
            together: the curve has the value of the whole set from there on.

        Returns
        -------
        array of shape (k,)
            tr(S_A' S_AA^+ S_A) / tr(S), non-decreasing, between 0 and 1; NaN beyond 4096 columns
            unless the rank is smaller, since such a regression costs more than it tells.
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
        curve: Array = np.minimum(np.cumsum(gains) / diagonal.sum(), 1.0)
        return curve

    def explained_share(self, features: Indices) -> float:
        """Return the share of the total variance that linear regression on some columns explains.

        Parameters
        ----------
        features : array of int
            The columns to regress all columns on.

        Returns
        -------
        float
            Between 0 and 1.
        """
        return float(self.explained_curve(features)[-1])

    def _explained_gains(self, features: Indices) -> Array:
        """Return what each column adds to what those before it explain, block by block."""
        among = self._block(features, features)
        lower = ridged_cholesky(among)
        gains = np.zeros(features.size)
        for block in _batches(self.shape[0], features.size):
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


class DenseScatter(Scatter):
    """S as a d x d matrix."""

    def __init__(self, S: Array, total_weight: float, max_rank: int | None = None) -> None:
        self.S = S
        self.shape = (S.shape[0], S.shape[0])
        self.total_weight = total_weight
        self.max_rank = S.shape[0] if max_rank is None else min(max_rank, S.shape[0])

    def _product(self, W: Array) -> Array:
        return self.S @ W

    def _diagonal(self) -> Array:
        return self.S.diagonal()

    def _block(self, rows: Any, columns: Any) -> Array:
        if isinstance(rows, slice) or isinstance(columns, slice):
            return np.array(self.S[rows, columns])
        return np.array(self.S[np.ix_(rows, columns)])

    def _restricted(self, features: Mask | Indices) -> DenseScatter:
        return DenseScatter(self.S[np.ix_(features, features)], self.total_weight, self.max_rank)

    def _leading(self, m: int) -> tuple[Array, Array]:
        d = self.shape[0]
        if d <= _SMALL or m > d // 5:
            return some_eigenpairs(self.S, d - m, d - 1)
        return _lanczos(lambda v: self.S @ v, d, m)


class FactoredScatter(Scatter):
    """S as the product of the centered data with itself, for more features than samples."""

    # Xc is as large as the data; a second copy of most of it would be felt.
    costly_to_restrict = 0.7

    def __init__(self, Xc: Array, total_weight: float) -> None:
        n, d = Xc.shape
        self.Xc = Xc
        self.shape = (d, d)
        self.total_weight = total_weight
        # Centering costs one dimension.
        self.max_rank = min(max(n - 1, 1), d)

    def _product(self, W: Array) -> Array:
        return self.Xc.T @ (self.Xc @ W)

    def _diagonal(self) -> Array:
        diagonal: Array = np.einsum("ij,ij->j", self.Xc, self.Xc)
        return diagonal

    def _block(self, rows: Any, columns: Any) -> Array:
        return self.Xc[:, rows].T @ self.Xc[:, columns]

    def _restricted(self, features: Mask | Indices) -> FactoredScatter:
        return FactoredScatter(self.Xc[:, features], self.total_weight)

    def _leading(self, m: int) -> tuple[Array, Array]:
        n = self.Xc.shape[0]
        if n <= _SMALL or m > n // 5:
            _, singular, right = linalg.svd(self.Xc, full_matrices=False, check_finite=False)
            return _completed(singular**2, right.T, m)
        # Lanczos on the side of the samples: its basis is n x 2m where that of S is d x 2m.
        values, left = _lanczos(lambda v: self.Xc @ (self.Xc.T @ v), n, m)
        return _from_left_vectors(values, self.Xc.T @ left, m)

    def _explained_by_many(self, features: Indices) -> float:
        # Their span is at most n-dimensional; its basis is smaller than X, where S_AA is larger.
        basis, singular, _ = linalg.svd(
            self.Xc[:, features], full_matrices=False, check_finite=False
        )
        basis = basis[:, singular > math.sqrt(RIDGE) * singular[0]]
        explained = 0.0
        for block in _batches(self.shape[0], self.Xc.shape[0]):
            shadow = basis.T @ self.Xc[:, block]
            explained += float(np.vdot(shadow, shadow))
        return explained


class SparseScatter(Scatter):
    """S of a sparse X, centered implicitly: S W = X'(X W) - mu (1'X W) and never a dense X.

    The non-zeros are shared with the caller's matrix where that is CSR of float64; only their
    column numbers are copied, to bring the columns in order. Products run over blocks of rows, so
    that beside X and the result there is no array as long as X.
    """

    # A copy of the non-zeros pays when about half of them have gone.
    costly_to_restrict = 0.5

    def __init__(
        self, X: Any, sample_weight: Array | None = None, order: Indices | None = None
    ) -> None:
        if sample_weight is not None and not sample_weight.all():
            X, sample_weight = X.tocsr()[sample_weight > 0], sample_weight[sample_weight > 0]
        X = _without_duplicates(sparse.csr_array(X))
        n, d = X.shape
        self.shape = (d, d)
        self.max_rank = min(max(n - 1, 1), d)
        self.total_weight = float(n if sample_weight is None else sample_weight.sum())
        data = X.data.astype(np.float64, copy=False)
        largest = max(float(data.max(initial=0.0)), -float(data.min(initial=0.0)))
        self.unit_exponent = safe_unit_exponent(largest)
        if self.unit_exponent:
            data = np.ldexp(data, -self.unit_exponent)
        # Half the memory of the numbers that NumPy prefers, and faster products.
        small = np.int32 if max(n, d, X.nnz) < 2**31 else np.int64
        indices, indptr = X.indices, X.indptr.astype(small, copy=False)
        if order is None:
            indices = indices.astype(small, copy=False)
        else:
            place = np.empty(d, dtype=small)
            place[order] = np.arange(d, dtype=small)
            indices = place[indices]
        self._X = _csr(data, indices, indptr, d)
        self._weight = sample_weight
        self._mean: Array = self._column_sums() / self.total_weight
        self._variation: Array = self._squared_deviations()

    def _column_sums(self) -> Array:
        weight = np.ones(self._X.shape[0]) if self._weight is None else self._weight
        sums: Array = self._X.T @ weight
        return sums

    def _squared_deviations(self) -> Array:
        """Return the diagonal of S, exactly zero for constant columns.

        Stored entries and the zeros between them are summed apart, so that no large numbers are
        subtracted from each other.
        """
        n, d = self._X.shape
        squares, stored_weight = np.zeros(d), np.zeros(d)
        stored = np.zeros(d, dtype=np.intp)
        sample = np.zeros(d)
        varies = np.zeros(d, dtype=bool)
        for rows, block in self._row_blocks(_BATCH_BYTES // 64):
            columns = block.indices.astype(np.intp, copy=False)
            sample[columns[stored[columns] == 0]] = block.data[stored[columns] == 0]
            varies[columns[block.data != sample[columns]]] = True
            counts = np.bincount(columns, minlength=d)
            stored += counts
            deviations = block.data - self._mean[columns]
            deviations *= deviations
            if self._weight is None:
                stored_weight += counts
            else:
                weight = np.repeat(self._weight[rows], np.diff(block.indptr))
                deviations *= weight
                stored_weight += np.bincount(columns, weight, minlength=d)
            squares += np.bincount(columns, deviations, minlength=d)
        squares += np.maximum(self.total_weight - stored_weight, 0.0) * self._mean**2
        varies |= (stored < n) & (sample != 0)
        # A column that varies keeps a trace of it, however much of it rounding has eaten.
        return np.where(varies, np.maximum(squares, np.finfo(np.float64).tiny), 0.0)

    def _row_blocks(self, size: int) -> Iterator[tuple[slice, Any]]:
        """Go through blocks of rows with about so many non-zeros; all of them share memory."""
        X = self._X
        n, d = X.shape
        cuts = np.searchsorted(X.indptr, np.arange(size, X.nnz, size))
        bounds = np.unique(np.concatenate([[0], cuts, [n]]))
        for first, last in itertools.pairwise(bounds.tolist()):
            start, stop = int(X.indptr[first]), int(X.indptr[last])
            indptr = X.indptr[first : last + 1] - X.indptr[first]
            yield (
                slice(first, last),
                _csr(X.data[start:stop], X.indices[start:stop], indptr, d),
            )

    def _restricted(self, features: Mask | Indices) -> SparseScatter:
        other = copy.copy(self)
        columns = np.flatnonzero(features) if features.dtype == bool else features
        if columns.size == self.shape[0] == np.unique(columns).size:
            # Only the order changes, and the non-zeros stay where they are.
            place = np.empty(columns.size, dtype=self._X.indices.dtype)
            place[columns] = np.arange(columns.size, dtype=place.dtype)
            X = self._X
            other._X = _csr(X.data, place[X.indices], X.indptr, columns.size)
        else:
            other._X = sparse.csr_array(self._X[:, columns])
        other._mean = self._mean[columns]
        other._variation = self._variation[columns]
        other.shape = (columns.size, columns.size)
        other.max_rank = min(self.max_rank, columns.size)
        return other

    def _centered(self, W: Array) -> Array:
        """Return Xc W, for more features than samples."""
        centered: Array = self._X @ W
        centered -= self._mean @ W
        if self._weight is not None:
            centered *= _as_column(np.sqrt(self._weight), centered)
        return centered

    def _centered_transpose(self, Y: Array) -> Array:
        """Return Xc'Y."""
        if self._weight is not None:
            Y = Y * _as_column(np.sqrt(self._weight), Y)
        image: Array = self._X.T @ Y
        image -= np.multiply.outer(self._mean, Y.sum(axis=0))
        return image

    def _product(self, W: Array) -> Array:
        n, d = self._X.shape
        shift = self._mean @ W
        product, left = np.zeros(W.shape), np.zeros(W.shape[1:])
        width = max(1, W.size // d)
        # As many rows at a time as keep X W small, but no smaller than the result it is added to.
        n_blocks = math.ceil(n / max(_BATCH_BYTES // (8 * width), d))
        for rows, block in self._row_blocks(max(1, math.ceil(self._X.nnz / n_blocks))):
            centered = block @ W
            centered -= shift
            if self._weight is not None:
                centered *= _as_column(self._weight[rows], centered)
            product += block.T @ centered
            left += centered.sum(axis=0)
        # What is left of the sum over rows is rounding, which a large mean would blow up.
        product -= np.multiply.outer(self._mean, left)
        return product

    def _diagonal(self) -> Array:
        return self._variation

    def _block(self, rows: Any, columns: Any) -> Array:
        block = np.zeros((self._mean[rows].size, self._mean[columns].size))
        everything = block.shape[1] == self.shape[0] and isinstance(columns, slice)
        for samples, X in self._row_blocks(_BATCH_BYTES // 8):
            left = X[:, rows]
            if self._weight is not None:
                left.data *= np.repeat(self._weight[samples], np.diff(left.indptr))
            block += (left.T @ (X if everything else X[:, columns])).toarray()
        block -= self.total_weight * np.multiply.outer(self._mean[rows], self._mean[columns])
        return block

    def _leading(self, m: int) -> tuple[Array, Array]:
        n, d = self._X.shape
        if min(n, d) <= _SMALL or m >= min(n, d) - 1:
            # The Gram matrix of the shorter side; the data stay sparse.
            if d <= n:
                S = self._block(slice(None), slice(None))
                return some_eigenpairs(S, d - m, d - 1)
            gram = self._centered(self._centered_transpose(np.eye(n)))
            values, left = some_eigenpairs(gram, max(n - m, 0), n - 1)
            return _from_left_vectors(values, self._centered_transpose(left), m)
        if m > _KRYLOV_SHARE * min(n, d):
            if d <= n:
                return _lanczos(self._product, d, m)
            values, left = _lanczos(self._product_of_samples, n, m)
            return _from_left_vectors(values, self._centered_transpose(left), m)
        return self._krylov(lambda values: m)

    def leading_eigenvectors_until(
        self, enough: Callable[[Array], bool], most: int
    ) -> tuple[Array, Array]:
        """Return the largest eigenpairs, as many as it takes, from one Krylov space."""
        limit = int(_KRYLOV_SHARE * min(self._X.shape))
        if limit <= _SMALL // 4:
            return super().leading_eigenvectors_until(enough, most)

        def n_wanted(values: Array) -> int:
            scaled = np.maximum(values, 0.0) * self.factor
            tried = range(1, min(values.size, most, limit) + 1)
            first = next((m for m in tried if enough(scaled[:m])), values.size + 1)
            return min(first, most, limit)

        values, vectors = self._in_order(*self._krylov(n_wanted))
        if values.size < most and not enough(values):
            return super().leading_eigenvectors_until(enough, most)
        return values, vectors

    def _krylov(self, n_wanted: Callable[[Array], int]) -> tuple[Array, Array]:
        n, d = self._X.shape
        if d <= n:
            return KrylovSpace(self._product, d).largest(n_wanted)
        values, left = KrylovSpace(self._product_of_samples, n).largest(n_wanted)
        return _from_left_vectors(values, self._centered_transpose(left), values.size)

    def _product_of_samples(self, Y: Array) -> Array:
        return self._centered(self._centered_transpose(Y))


def _csr(data: Array, indices: Any, indptr: Any, d: int) -> Any:
    """Return a CSR array over memory that is there, without the checks of its constructor."""
    X = sparse.csr_array((indptr.size - 1, d), dtype=np.float64)
    X.data, X.indices, X.indptr = data, indices, indptr
    return X


def _without_duplicates(X: Any) -> Any:
    """Return a CSR array in which no entry is stored in several parts."""
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def _as_column(weight: Array, Y: Array) -> Array:
    return weight if Y.ndim == 1 else weight[:, None]


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


def _lanczos(product: Any, size: int, m: int) -> tuple[Array, Array]:
    """Return the m largest eigenpairs of a symmetric operator, to rounding."""
    start = np.random.default_rng(0).standard_normal(size)
    operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
    values, vectors = eigsh(operator, k=m, which="LA", v0=start)
    return values, vectors


def _from_left_vectors(values: Array, images: Array, m: int) -> tuple[Array, Array]:
    """Return m eigenpairs of Xc'Xc from eigenvalues of Xc Xc' and the images Xc' u."""
    descending = np.argsort(-values, kind="stable")
    return _completed(values[descending], images[:, descending], m)


def _completed(values: Array, vectors: Array, m: int) -> tuple[Array, Array]:
    """Normalize vectors given in descending order; fill up to m in the null space."""
    values = values[:m]
    sound = sound_values(values, max(vectors.shape))
    basis = vectors[:, :m][:, sound]
    missing = m - basis.shape[1]
    if missing:
        filler = np.random.default_rng(0).standard_normal((vectors.shape[0], missing))
        filler -= basis @ np.linalg.lstsq(basis, filler, rcond=None)[0]
        basis = np.hstack([basis, filler])
    # Householder QR leaves an orthonormal set as it is, up to sign.
    frame, _ = linalg.qr(basis, mode="economic", check_finite=False)
    return np.concatenate([values[sound], np.zeros(missing)]), frame


def sound_values(values: Array, size: int) -> Mask:
    """Return which eigenvalues are more than rounding of the largest."""
    sound: Mask = values > np.finfo(np.float64).eps * values.max(initial=0.0) * size
    return sound


def _batches(total: int, width: int) -> Iterator[slice]:
    """Cut range(total) so that a block of float64 with `width` columns stays small."""
    size = max(1, _BATCH_BYTES // (8 * max(width, 1)))
    for start in range(0, total, size):
        yield slice(start, min(start + size, total))


class ScatterAccumulator:
    """Mean and scatter of rows that arrive in batches, exact for any batching.

    While there are fewer rows than features the rows themselves are kept, since they are smaller
    than S; from then on only the mean and S. Two batches with means a, b and weights v, w are
    merged by S = S_a + S_b + v w / (v + w) (a - b)(a - b)', which subtracts no large numbers.
    A column whose smallest and largest entry agree is constant, whatever rounding says.

    Parameters
    ----------
    n_features : int
        Number of columns.
    order : array of int of shape (n_features,), optional
        The column that comes first, second and so on in the operator; as they come by default.
    """

    def __init__(self, n_features: int, order: Indices | None = None) -> None:
        self.n_features = n_features
        self.order = order
        self.n_rows = 0
        self.total_weight = 0.0
        self.unit_exponent = 0
        self._low = np.full(n_features, np.inf)
        self._high = np.full(n_features, -np.inf)
        self._mean = np.zeros(n_features)
        self._S: Array | None = None
        self._kept: list[tuple[NDArray[Any], Array | None]] = []

    def add(
        self, X: NDArray[Any], sample_weight: Array | None = None, *, tall: bool = False
    ) -> None:
        """Take in a batch of rows.

        Parameters
        ----------
        X : array of shape (n, n_features)
            The rows; may be kept, so hand in a copy if it will be written to.
        sample_weight : array of shape (n,), optional
            Non-negative weights.
        tall : bool, default=False
            Whether the caller knows that there will be at least as many rows as features, so that
            keeping rows would be in vain.
        """
        if sample_weight is not None and not sample_weight.all():
            X, sample_weight = X[sample_weight > 0], sample_weight[sample_weight > 0]
        if X.shape[0] == 0:
            return
        folds = self._S is not None or tall or self.n_rows + X.shape[0] >= self.n_features
        if folds and self._S is None:
            _require_memory_for_square(self.n_features)
        self._note_extremes(X)
        self.n_rows += X.shape[0]
        self._kept.append((X, sample_weight))
        if folds:
            self._fold_kept_rows()

    def merge(self, other: ScatterAccumulator) -> None:
        """Take in the rows of another accumulator, as if they had come here as further batches.

        Parameters
        ----------
        other : ScatterAccumulator
            Of the same columns in the same order; not changed, but its rows may be kept.
        """
        if self.n_features != other.n_features:
            raise ValueError(
                f"other must have {self.n_features} columns to be merged, got {other.n_features}."
            )
        self._widen(other._low, other._high)
        self.n_rows += other.n_rows
        self._kept += other._kept
        if other._S is not None:
            shift = other.unit_exponent - self.unit_exponent
            S, mean = other._S, other._mean
            if shift:
                S, mean = np.ldexp(S, 2 * shift), np.ldexp(mean, shift)
            if self._S is None:
                self._S = np.zeros_like(S)
            self._S += S
            self._shift_mean(self._S, mean, other.total_weight)
        if self._S is not None or self.n_rows >= self.n_features:
            self._fold_kept_rows()

    def _note_extremes(self, X: NDArray[Any]) -> None:
        self._widen(self._ordered(X.min(axis=0)), self._ordered(X.max(axis=0)))

    def _widen(self, low: NDArray[Any], high: NDArray[Any]) -> None:
        """Note the smallest and largest entries of new rows; choose the unit anew."""
        self._low = np.minimum(self._low, low)
        self._high = np.maximum(self._high, high)
        largest = max(-float(self._low.min()), float(self._high.max()))
        exponent = safe_unit_exponent(largest) if np.isfinite(largest) else 0
        if exponent != self.unit_exponent:
            shift = self.unit_exponent - exponent
            self._mean = np.ldexp(self._mean, shift)
            if self._S is not None:
                self._S = np.ldexp(self._S, 2 * shift)
            self.unit_exponent = exponent

    def _ordered(self, A: NDArray[Any]) -> NDArray[Any]:
        return A if self.order is None else np.take(A, self.order, axis=-1)

    def _in_units(self, X: NDArray[Any]) -> Array:
        X = np.asarray(self._ordered(X), dtype=np.float64)
        return np.ldexp(X, -self.unit_exponent) if self.unit_exponent else X

    def _fold_kept_rows(self) -> None:
        S = np.zeros((self.n_features, self.n_features)) if self._S is None else self._S
        for X, sample_weight in self._kept:
            for rows in _batches(X.shape[0], self.n_features):
                weight = None if sample_weight is None else sample_weight[rows]
                batch, mean, weight_sum = centered_rows(self._in_units(X[rows]), weight)
                S += batch.T @ batch
                self._shift_mean(S, mean, weight_sum)
        self._S = S
        self._kept = []

    def _shift_mean(self, S: Array, mean: Array, weight: float) -> None:
        """Bring in rows of which S has the deviations from their own mean."""
        if not weight:
            return
        step = mean - self._mean
        share = weight / (self.total_weight + weight)
        if self.total_weight:
            S += np.multiply.outer(step * (self.total_weight * share), step)
        self._mean = self._mean + step * share
        self.total_weight += weight

    def scatter(self) -> Scatter:
        """Return the operator of all rows so far.

        Returns
        -------
        Scatter
            Dense or factored, whichever is smaller; valid until the next batch comes in.
        """
        constant = self._low == self._high
        scatter: Scatter
        if self._S is None:
            scatter = self._factored(constant)
        else:
            S = self._S.copy() if constant.any() else self._S
            S[constant] = 0.0
            S[:, constant] = 0.0
            scatter = DenseScatter(S, self.total_weight, max(self.n_rows - 1, 1))
        scatter.unit_exponent = self.unit_exponent
        return scatter

    def _factored(self, constant: Mask) -> FactoredScatter:
        Xc = np.empty((self.n_rows, self.n_features))
        weights = np.empty(self.n_rows)
        row = 0
        for X, weight in self._kept:
            for rows in _batches(X.shape[0], self.n_features):
                end = row + rows.stop - rows.start
                Xc[row:end] = self._in_units(X[rows])
                weights[row:end] = 1.0 if weight is None else weight[rows]
                row = end
        _, _, total = centered_rows(Xc, None if (weights == 1.0).all() else weights, out=Xc)
        Xc[:, constant] = 0.0
        return FactoredScatter(Xc, total)


def centered_rows(
    X: Array, weight: Array | None, out: Array | None = None
) -> tuple[Array, Array, float]:
    """Return the centered rows scaled by the roots of their weights, the means, the weight sum."""
    total = float(X.shape[0]) if weight is None else float(weight.sum())
    mean = X.mean(axis=0) if weight is None else weight @ X / total
    centered = np.subtract(X, mean, out=out)
    # The mean of the residual is the rounding error of the mean.
    correction = centered.mean(axis=0) if weight is None else weight @ centered / total
    centered -= correction
    if weight is not None:
        centered *= np.sqrt(weight)[:, None]
    return centered, mean + correction, total


def memory_for_scatter(n_samples: int, n_features: int) -> int:
    """Return how many bytes it takes to stream dense rows and to solve."""
    return _COPIES_TO_SOLVE * 8 * n_features * min(n_samples, n_features)


def _require_memory_for_square(d: int) -> None:
    """Raise an error where S and one copy of it do not fit, instead of dying half-way."""
    needed = 2 * 8 * d * d
    if needed < _SURELY_FITS or needed <= (available := available_memory()):
        return
    raise MemoryError(
        f"{d} features with as many rows need a scatter matrix of {d} x {d}: with a copy "
        f"{size_in_words(needed)}, but {size_in_words(available)} of memory is available. Pass a "
        "sparse matrix, of which no such matrix is made, fewer rows than features, or fewer "
        "features (drop those of least variance first)."
    )


def safe_unit_exponent(largest: float) -> int:
    """Return e such that entries of this size in units of 2**e can be squared and summed."""
    exponent = math.frexp(largest)[1]
    return exponent if abs(exponent) > _SAFE_EXPONENT and largest > 0 else 0


def make_scatter(
    X: Any, sample_weight: Array | None = None, order: Indices | None = None
) -> Scatter:
    """Return the scatter operator of some data, of the kind that suits their shape.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Finite numbers; never changed.
    sample_weight : array of shape (n_samples,), optional
        Non-negative weights, not all zero.
    order : array of int of shape (n_features,), optional
        The column that comes first, second and so on in the operator; as they come by default.

    Returns
    -------
    Scatter
        Sparse for sparse data, factored for more features than samples, else dense.

    Examples
    --------
    >>> import numpy as np
    >>> from bsufs.scatter import make_scatter
    >>> scatter = make_scatter(np.array([[0.0, 1.0], [2.0, 1.0], [4.0, 4.0]]))
    >>> scatter @ np.eye(2)
    array([[8., 6.],
           [6., 6.]])
    """
    if sparse.issparse(X):
        return SparseScatter(X, sample_weight, order)
    n, d = X.shape
    accumulator = ScatterAccumulator(d, order)
    accumulator.add(X, sample_weight, tall=n >= d)
    return accumulator.scatter()
