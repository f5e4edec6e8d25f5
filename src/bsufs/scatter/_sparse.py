"""S of a sparse X: the centering is done implicitly, and nothing is densified."""

import copy
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from bsufs._typing import Array, Indices
from bsufs.scatter._accumulate import safe_unit_exponent
from bsufs.scatter._base import BATCH_BYTES, Scatter
from bsufs.scatter._clearing import Clearing, nothing_left, weighted_mean, whitening
from bsufs.scatter._eigen import KrylovSpace, Pairs, Wanted, pairs_from_samples, pairs_of_matrix

# Up to this size the Gram matrix of the shorter side is small beside what else is there.
_SMALL = 128
# Columns with a larger share of non-zeros are multiplied faster as dense ones.
_RATHER_DENSE = 0.125
# Vectors that are multiplied at a time in search of eigenpairs.
_WIDTH = 8
# Where a number of pairs is wanted, most lie in the noise and take some eight products each; an
# entry of X is multiplied ten times as fast in a dense matrix.
_PRODUCTS_PER_PAIR, _DENSE_IS_FASTER = 8, 10


@dataclass(frozen=True)
class _LowRank:
    """What is taken off centered rows: L R'; `across` is Xc'L and `gram` L'L, weighted."""

    left: Array
    right: Array
    across: Array
    gram: Array

    def at(self, columns: Indices) -> "_LowRank":
        return replace(self, right=self.right[columns], across=self.across[columns])

    def of_block(self, rows: Any, columns: Any) -> Array:
        """Return by how much (Xc - L R')'(Xc - L R') differs from Xc'Xc."""
        to_right = self.right[rows] @ self.gram - self.across[rows]
        return to_right @ self.right[columns].T - self.right[rows] @ self.across[columns].T

    def of_diagonal(self) -> Array:
        mixed = self.right @ self.gram - 2.0 * self.across
        return np.einsum("ij,ij->i", mixed, self.right)


class SparseScatter(Scatter):
    """S of a sparse X, centered implicitly: S W = X'(X W) - mu (1'X W) and never a dense X.

    The non-zeros are shared with the caller's matrix where that is CSR of float64; only their
    column numbers are copied. Products run over blocks of rows. What the data are cleared of is
    taken off the same way: Xc - L R' with few columns in L and R.
    """

    # A copy of the non-zeros pays when about half of them have gone.
    restriction_pays = 0.5
    # A pass over the data for many rows costs little more than for one.
    rows_at_once = 64

    def __init__(
        self, X: Any, sample_weight: Array | None = None, order: Indices | None = None
    ) -> None:
        if sample_weight is not None and not sample_weight.all():
            X, sample_weight = X.tocsr()[sample_weight > 0], sample_weight[sample_weight > 0]
        X = sparse.csr_array(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
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
        ones = np.ones(n) if sample_weight is None else sample_weight
        self._mean: Array = self._X.T @ ones / self.total_weight
        self._variation: Array = self._squared_deviations()
        self._low_rank: _LowRank | None = None

    def without(self, level: Array, regressors: Array, sample_weight: Array | None) -> Scatter:
        """Return the operator of the rows without their means and what regressors explain."""
        weight = self._weight
        Z = np.ldexp(regressors, -self.unit_exponent)
        if sample_weight is not None and not sample_weight.all():
            Z = Z[sample_weight > 0]
        left = np.column_stack([self._X @ level, Z])
        left -= weighted_mean(left, weight)
        weighted = left if weight is None else left * weight[:, None]
        across = self._X.T @ weighted - np.multiply.outer(self._mean, weighted.sum(axis=0))
        gram = left.T @ weighted
        basis = whitening(gram[1:, 1:])
        explained = across[:, 1:] - np.multiply.outer(level > 0, gram[0, 1:])
        clearing = Clearing(level, basis @ (explained @ basis).T)
        other = copy.copy(self)
        other.clearing = clearing
        other._low_rank = _LowRank(left, clearing.by_column, across, gram)
        after = self._variation + other._low_rank.of_diagonal()
        other._variation = np.where(nothing_left(self._variation, after), 0.0, after)
        return other

    def _squared_deviations(self) -> Array:
        """Return the diagonal of S, exactly zero for constant columns."""
        n, d = self._X.shape
        squares, stored_weight = np.zeros(d), np.zeros(d)
        stored = np.zeros(d, dtype=np.intp)
        sample = np.zeros(d)
        varies = np.zeros(d, dtype=bool)
        for rows, block in self._row_blocks(BATCH_BYTES // 64):
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
        # The zeros apart from what is stored: no large numbers are subtracted from each other.
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
            yield (slice(first, last), _csr(X.data[start:stop], X.indices[start:stop], indptr, d))

    def _restricted(self, columns: Indices) -> "SparseScatter":
        other = copy.copy(self)
        other.__dict__.pop("_memory", None)
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
        other._low_rank = None if self._low_rank is None else self._low_rank.at(columns)
        other.shape = (columns.size, columns.size)
        other.max_rank = min(self.max_rank, columns.size)
        return other

    def _centered(self, W: Array, rows: slice = slice(None), block: Any = None) -> Array:
        """Return Xc W, of all rows or of a block of them."""
        centered: Array = (self._X if block is None else block) @ W
        centered -= self._mean @ W
        if self._low_rank is not None:
            centered -= self._low_rank.left[rows] @ (self._low_rank.right.T @ W)
        if self._weight is not None:
            centered *= _as_column(np.sqrt(self._weight[rows]), centered)
        return centered

    def _centered_transpose(self, Y: Array, rows: slice = slice(None), block: Any = None) -> Array:
        """Return Xc'Y, of all rows or of a block of them."""
        if self._weight is not None:
            Y = Y * _as_column(np.sqrt(self._weight[rows]), Y)
        image: Array = (self._X if block is None else block).T @ Y
        image -= np.multiply.outer(self._mean, Y.sum(axis=0))
        if self._low_rank is not None:
            image -= self._low_rank.right @ (self._low_rank.left[rows].T @ Y)
        return image

    def _product(self, W: Array) -> Array:
        n, d = self._X.shape
        product = np.zeros(W.shape)
        # As many rows at a time as keep X W small, but no smaller than the result it is added to.
        n_blocks = math.ceil(n * W.size / (d * max(BATCH_BYTES // 8, W.size)))
        for block in self._row_blocks(max(1, math.ceil(self._X.nnz / n_blocks))):
            product += self._centered_transpose(self._centered(W, *block), *block)
        return product

    def _diagonal(self) -> Array:
        return self._variation

    def _block(self, rows: Any, columns: Any) -> Array:
        block = np.zeros((self._mean[rows].size, self._mean[columns].size))
        everything = block.shape[1] == self.shape[0] and isinstance(columns, slice)
        for samples, X in self._row_blocks(BATCH_BYTES // 8):
            left = X[:, rows]
            if self._weight is not None:
                left.data *= np.repeat(self._weight[samples], np.diff(left.indptr))
            right = X if everything else X[:, columns]
            if left.nnz > _RATHER_DENSE * math.prod(left.shape):
                block += (right.T @ left.toarray()).T
            else:
                block += (left.T @ right).toarray()
        block -= self.total_weight * np.multiply.outer(self._mean[rows], self._mean[columns])
        if self._low_rank is not None:
            block += self._low_rank.of_block(rows, columns)
        return block

    def _gram_pays(self, wanted: Wanted) -> bool:
        """Tell whether S as an array is no larger than X, and found sooner than its pairs."""
        (n, d), nnz = self._X.shape, self._X.nnz
        products = 4 * nnz * _PRODUCTS_PER_PAIR * wanted.most
        return not wanted.has_end and d * d < nnz and n * d * d < _DENSE_IS_FASTER * products

    def _gram(self) -> Array:
        """Return S as an array, from some dense rows of Xc at a time."""
        gram, n_blocks = np.zeros(self.shape), math.ceil(8 * math.prod(self._X.shape) / BATCH_BYTES)
        for rows, block in self._row_blocks(max(1, self._X.nnz // n_blocks)):
            centered = block.toarray() - self._mean
            if self._low_rank is not None:
                centered -= self._low_rank.left[rows] @ self._low_rank.right.T
            if self._weight is not None:
                centered *= np.sqrt(self._weight[rows, None])
            gram += centered.T @ centered
        return gram

    def _leading(self, wanted: Wanted) -> Pairs:
        n, d = self._X.shape
        if d <= n:
            if d <= _SMALL or self._gram_pays(wanted):
                return pairs_of_matrix(self._gram(), wanted)
            return KrylovSpace(self._product, d, _WIDTH).largest(wanted)
        if n <= _SMALL:
            gram = self._centered(self._centered_transpose(np.eye(n)))
            found = pairs_of_matrix(gram, wanted)
        else:
            space = KrylovSpace(lambda V: self._centered(self._centered_transpose(V)), n, _WIDTH)
            found = space.largest(wanted)
        return pairs_from_samples(found, self._centered_transpose(found.vectors), wanted)


def _csr(data: Array, indices: Any, indptr: Any, d: int) -> Any:
    """Return a CSR array over memory that is there, without the checks of its constructor."""
    X = sparse.csr_array((indptr.size - 1, d), dtype=np.float64)
    X.data, X.indices, X.indptr = data, indices, indptr
    return X


def _as_column(weight: Array, Y: Array) -> Array:
    return weight if Y.ndim == 1 else weight[:, None]
