"""S = Xc'Xc as an operator: what a solver needs of the data, and nothing else.

Xc is X (n_samples, n_features) with its weighted column means taken off and row i scaled by the
square root of its weight, so that a weight w counts like w copies of the row; S is not divided by
n. (The paper's X is the transpose of ours.) A solver multiplies with S, asks for its trace, its
diagonal and its leading eigenvectors, and never learns which kind it holds:

- `DenseScatter`: the d x d matrix, for d <= n;
- `FactoredScatter`: Xc itself, S W = Xc'(Xc W), for d > n;
- `SparseScatter`: a sparse X with the centring done implicitly, never densified.

`make_scatter` picks one. `ScatterAccumulator` builds the first two from row batches in one pass,
by pairwise updates of mean and S that stay exact when the mean dwarfs the deviation.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from bsufs._linalg import some_eigenpairs
from bsufs._typing import Array, Indices, Mask
from bsufs.stiefel import with_positive_peaks

# Row batches of about this many bytes keep the temporary arrays out of the memory budget.
_BATCH_BYTES = 32 * 2**20
# Below this size a dense eigendecomposition is faster than Lanczos, and safer.
_SMALL = 128
# Squares of entries within this range neither overflow nor vanish, whatever is summed.
_SAFE_EXPONENT = 300
# Ridge, relative to the mean diagonal entry, that makes regression on collinear columns well posed.
RIDGE = 1e-12
# Regression on more columns than this costs more than a selection; nobody reads it off a plot.
_LARGEST_REGRESSION = 4096


class Scatter(ABC):
    """The operator S of some centred, weighted data, times a positive factor.

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
        values, vectors = self._leading(m)
        descending = np.argsort(-values, kind="stable")
        values = np.maximum(values[descending], 0.0) * self.factor
        return values, with_positive_peaks(vectors[:, descending])

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
    """S as a d x d matrix.

    Parameters
    ----------
    S : array of shape (d, d)
        The matrix; kept, not copied.
    total_weight : float
        Sum of the sample weights.
    max_rank : int, optional
        Bound on the rank; n_features by default.
    """

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
    """S as the product of the centred data with itself, for more features than samples.

    Parameters
    ----------
    Xc : array of shape (n, d)
        Centred rows, each scaled by the square root of its weight; kept, not copied.
    total_weight : float
        Sum of the sample weights.
    """

    # Xc is as large as the data; a second copy of most of it would be felt.
    costly_to_restrict = 0.7

    def __init__(self, Xc: Array, total_weight: float) -> None:
        n, d = Xc.shape
        self.Xc = Xc
        self.shape = (d, d)
        self.total_weight = total_weight
        # Centring costs one dimension.
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
    """S of a sparse X, centred implicitly: S W = X'(X W) - mu (1'X W) and never a dense X.

    Parameters
    ----------
    X : sparse matrix or array of shape (n, d)
        The data; kept as CSR, not densified.
    sample_weight : array of shape (n,), optional
        Non-negative weights.
    """

    def __init__(self, X: Any, sample_weight: Array | None = None) -> None:
        X = sparse.csr_array(X, dtype=np.float64)
        n, d = X.shape
        self.shape = (d, d)
        self.unit_exponent = safe_unit_exponent(float(np.abs(X.data).max(initial=0.0)))
        if self.unit_exponent:
            X = sparse.csr_array(
                (np.ldexp(X.data, -self.unit_exponent), X.indices, X.indptr), shape=X.shape
            )
        seen = X if sample_weight is None else X[np.flatnonzero(sample_weight)]
        low, high = (extreme(axis=0).toarray().ravel() for extreme in (seen.min, seen.max))
        self._constant: Mask = low == high
        root = np.ones(n) if sample_weight is None else np.sqrt(sample_weight)
        self.total_weight = float(n if sample_weight is None else sample_weight.sum())
        self._X = X if sample_weight is None else sparse.csr_array(X.multiply(root[:, None]))
        # CSC of the transpose is the same memory: both products run over stored rows.
        self._Xt = self._X.T
        self._root = root
        self._mean: Array = (self._Xt @ root) / self.total_weight
        self.max_rank = min(max(n - 1, 1), d)

    def _restricted(self, features: Mask | Indices) -> SparseScatter:
        other = copy.copy(self)
        columns = np.flatnonzero(features) if features.dtype == bool else features
        other._X = sparse.csr_array(self._X[:, columns])
        other._constant = self._constant[features]
        other._Xt = other._X.T
        other._mean = self._mean[features]
        other.shape = (other._mean.size, other._mean.size)
        other.max_rank = min(self.max_rank, other._mean.size)
        return other

    def _centred(self, W: Array) -> Array:
        centred: Array = self._X @ W - np.multiply.outer(self._root, self._mean @ W)
        return centred

    def _centred_transpose(self, Y: Array) -> Array:
        image: Array = self._Xt @ Y - np.multiply.outer(self._mean, self._root @ Y)
        return image

    def _product(self, W: Array) -> Array:
        return self._centred_transpose(self._centred(W))

    def _diagonal(self) -> Array:
        squares = np.asarray(self._X.multiply(self._X).sum(axis=0)).ravel()
        centred = squares - self.total_weight * self._mean**2
        # A column that varies keeps a trace of it, however much of it rounding has eaten.
        return np.where(self._constant, 0.0, np.maximum(centred, np.finfo(np.float64).tiny))

    def _block(self, rows: Any, columns: Any) -> Array:
        raw = (self._Xt[rows] @ self._X[:, columns]).toarray()
        block: Array = raw - self.total_weight * np.multiply.outer(
            self._mean[rows], self._mean[columns]
        )
        return block

    def _leading(self, m: int) -> tuple[Array, Array]:
        n, d = self._X.shape
        if min(n, d) <= _SMALL or m >= min(n, d) - 1:
            # The Gram matrix of the shorter side; the data stay sparse.
            if d <= n:
                S = self._block(slice(None), slice(None))
                return some_eigenpairs(S, d - m, d - 1)
            gram = self._centred(self._centred_transpose(np.eye(n)))
            values, left = some_eigenpairs(gram, max(n - m, 0), n - 1)
            return _from_left_vectors(values, self._centred_transpose(left), m)
        if d <= n:
            return _lanczos(self._product, d, m)
        values, left = _lanczos(lambda v: self._centred(self._centred_transpose(v)), n, m)
        return _from_left_vectors(values, self._centred_transpose(left), m)


def ridged_cholesky(A: Array) -> Array:
    """Return the lower Cholesky factor of a semidefinite matrix, with the ridge that it needs.

    Parameters
    ----------
    A : array of shape (k, k)
        Symmetric, positive semidefinite up to rounding.

    Returns
    -------
    array of shape (k, k)
        The factor.
    """
    ridge = RIDGE * A.trace()
    while True:
        ridged = A.copy()
        ridged[np.diag_indices_from(A)] += ridge
        try:
            lower: Array = linalg.cholesky(ridged, lower=True, check_finite=False)
        except linalg.LinAlgError:
            # Implicit centring leaves more rounding than the smallest eigenvalue can take.
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
    """Normalise vectors given in descending order; fill up to m in the null space."""
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
    """Return which eigenvalues are more than rounding of the largest.

    Parameters
    ----------
    values : array of shape (m,)
        Eigenvalues.
    size : int
        Size of the matrix.

    Returns
    -------
    array of bool of shape (m,)
        True for those that are.
    """
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
        self._note_extremes(X)
        self.n_rows += X.shape[0]
        self._kept.append((X, sample_weight))
        if self._S is not None or tall or self.n_rows >= self.n_features:
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
                batch, mean, weight_sum = centred_rows(self._in_units(X[rows]), weight)
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
        _, _, total = centred_rows(Xc, None if (weights == 1.0).all() else weights, out=Xc)
        Xc[:, constant] = 0.0
        return FactoredScatter(Xc, total)


def centred_rows(
    X: Array, weight: Array | None, out: Array | None = None
) -> tuple[Array, Array, float]:
    """Return the centred rows scaled by the roots of their weights, the means, the weight sum.

    Parameters
    ----------
    X : array of shape (n, d)
        The rows.
    weight : array of shape (n,), optional
        Positive weights.
    out : array of shape (n, d), optional
        Where to put the centred rows.

    Returns
    -------
    centred : array of shape (n, d)
        The rows less the mean, by the roots of the weights.
    mean : array of shape (d,)
        The weighted mean.
    total : float
        Sum of the weights.
    """
    total = float(X.shape[0]) if weight is None else float(weight.sum())
    mean = X.mean(axis=0) if weight is None else weight @ X / total
    centred = np.subtract(X, mean, out=out)
    # The mean of the residual is the rounding error of the mean.
    correction = centred.mean(axis=0) if weight is None else weight @ centred / total
    centred -= correction
    if weight is not None:
        centred *= np.sqrt(weight)[:, None]
    return centred, mean + correction, total


def safe_unit_exponent(largest: float) -> int:
    """Return e such that entries of this size in units of 2**e can be squared and summed.

    Parameters
    ----------
    largest : float
        The largest modulus in the data.

    Returns
    -------
    int
        Zero for all but very large and very small data.
    """
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
        X = sparse.csr_array(X)
        return SparseScatter(X if order is None else X[:, order], sample_weight)
    n, d = X.shape
    accumulator = ScatterAccumulator(d, order)
    accumulator.add(X, sample_weight, tall=n >= d)
    return accumulator.scatter()
