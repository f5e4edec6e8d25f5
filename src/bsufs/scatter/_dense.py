"""S as a matrix, for d <= n, and as the product of the centered data with itself, for d > n."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import linalg

from bsufs._typing import Array, Indices
from bsufs.scatter._base import RIDGE, Scatter, batches, ridged_cholesky
from bsufs.scatter._clearing import Clearing, clear_matrix, clear_rows
from bsufs.scatter._eigen import KrylovSpace, Pairs, Wanted, pairs_from_samples, pairs_of_matrix

# With more samples than this, products with the data are cheaper than their Gram matrix.
LARGEST_GRAM = 4096
_SMALL_COPY = 2**26
# So many products of single precision are summed before they are added in double precision; not
# those of columns with so many times the median variance, whose rounding would hide the others.
_SUMMED_IN_SINGLE, _OUTSTANDING = 2048, 100.0


class DenseScatter(Scatter):
    """S as a d x d matrix, which is kept, not copied."""

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

    def _restricted(self, features: Indices) -> "DenseScatter":
        return DenseScatter(self.S[np.ix_(features, features)], self.total_weight, self.max_rank)

    def _cleared(self, level: Array) -> "tuple[DenseScatter, Clearing]":
        S, clearing = clear_matrix(self.S, level)
        return DenseScatter(np.ascontiguousarray(S), self.total_weight, self.max_rank), clearing

    def _leading(self, wanted: Wanted) -> Pairs:
        return pairs_of_matrix(self.S, wanted)


class FewSamples(Scatter):
    """S = Xc'Xc of fewer rows than columns: what can be is computed on the side of the samples."""

    n_rows: int

    @abstractmethod
    def columns(self, features: Indices) -> Array:
        """Return some columns of Xc in double precision."""

    @abstractmethod
    def _gram(self, features: Indices | None = None) -> Array:
        """Return Xc Xc', of some columns or all."""

    @abstractmethod
    def _sample_product(self, y: Array) -> Array:
        """Return Xc Xc' y."""

    @abstractmethod
    def _images(self, vectors: Array) -> Array:
        """Return Xc' times the eigenvectors of Xc Xc'."""

    def _known_gram(self) -> Array:
        if "gram" not in self._remembered:
            self._remembered["gram"] = self._gram()
        return self._remembered["gram"]

    def _leading(self, wanted: Wanted) -> Pairs:
        if self.n_rows <= LARGEST_GRAM:
            found = pairs_of_matrix(self._known_gram(), wanted)
        else:
            found = KrylovSpace(self._sample_product, self.n_rows).largest(wanted)
        return pairs_from_samples(found, self._images(found.vectors), wanted)

    def leading_eigenvalues(self, m: int) -> Array:
        """Return the m largest eigenvalues, descending, where nobody needs the vectors."""
        n = self.n_rows
        if n > LARGEST_GRAM or m > n:
            return super().leading_eigenvalues(m)
        values = linalg.eigvalsh(self._known_gram(), subset_by_index=(n - m, n - 1))
        return np.maximum(values[::-1], 0.0) * self.factor

    def _explained_gains(self, features: Indices) -> Array:
        if "gram" not in self._remembered:
            return super()._explained_gains(features)
        # A direction u in the space of samples explains u'Gu: no product with Xc is needed.
        columns = self.columns(features)
        lower = ridged_cholesky(columns.T @ columns)
        directions = linalg.solve_triangular(lower, columns.T, lower=True, check_finite=False)
        return np.einsum("ij,ij->i", directions @ self._remembered["gram"], directions)

    def _explained_by_many(self, features: Indices) -> float:
        # Their span is at most n-dimensional; its basis is smaller than X, where S_AA is larger.
        values, basis = linalg.eigh(self._gram(features), check_finite=False)
        basis = basis[:, values > RIDGE * values[-1]]
        return float(np.vdot(basis, self._known_gram() @ basis))


class FactoredScatter(FewSamples):
    """S = Xc'Xc of centered rows, each scaled by the root of its weight; kept, not copied.

    Rows in single precision stay so, and so do products with a matrix of single precision; one of
    double precision is multiplied with some columns at a time.
    """

    def __init__(self, Xc: Array, total_weight: float) -> None:
        self.n_rows, d = Xc.shape
        self.Xc = Xc
        self.dtype = Xc.dtype
        # Xc is as large as the data; where these are large, a copy of most of it would be felt.
        self.restriction_pays = 0.15 if Xc.nbytes <= _SMALL_COPY else 0.6
        self.shape = (d, d)
        self.total_weight = total_weight
        # Centering costs one dimension.
        self.max_rank = min(max(self.n_rows - 1, 1), d)

    def centered_rows(self) -> Array:
        """Return the centered rows."""
        return self.Xc

    def _product(self, W: Array) -> Array:
        if self.dtype == W.dtype:
            # Products of few rows with the data run half again as fast as with few columns.
            return np.ascontiguousarray(((W.T @ self.Xc.T) @ self.Xc).T)
        Y = np.asarray(sum(block @ W[columns] for columns, block in self._in_double_precision()))
        return np.concatenate([block.T @ Y for _, block in self._in_double_precision()])

    def _in_double_precision(self) -> Iterator[tuple[slice, Array]]:
        """Go through the columns of Xc, so many at a time that a copy of them is small."""
        if self.dtype == np.float64:
            yield slice(None), self.Xc
            return
        for columns in batches(self.shape[0], self.Xc.shape[0]):
            yield columns, self.Xc[:, columns].astype(np.float64)

    def _diagonal(self) -> Array:
        if "diagonal" not in self._remembered:
            squares = np.einsum("ij,ij->j", self.Xc, self.Xc, dtype=np.float64)
            self._remembered["diagonal"] = squares
        return self._remembered["diagonal"]

    def _block(self, rows: Any, columns: Any) -> Array:
        return (self.Xc[:, rows].T @ self.Xc[:, columns]).astype(np.float64, copy=False)

    def _restricted(self, features: Indices) -> "FactoredScatter":
        return FactoredScatter(self.Xc.take(features, axis=1), self.total_weight)

    def _cleared(self, level: Array) -> "tuple[FactoredScatter, Clearing]":
        Xc, clearing = clear_rows(self.Xc, level)
        return FactoredScatter(Xc, self.total_weight), clearing

    def columns(self, features: Indices) -> Array:
        """Return some columns of Xc in double precision."""
        return self.Xc[:, features].astype(np.float64, copy=False)

    def _images(self, vectors: Array) -> Array:
        images = self.Xc.T @ vectors.astype(self.dtype, copy=False)
        return images.astype(np.float64, copy=False)

    def _gram(self, features: Indices | None = None) -> Array:
        Xc = self.Xc if features is None else self.Xc[:, features]
        if self.dtype == np.float64:
            return np.asarray(Xc @ Xc.T)
        gram = np.zeros((self.n_rows, self.n_rows))
        squares = self._diagonal() if features is None else self._diagonal()[features]
        outstanding = squares > _OUTSTANDING * np.median(squares)
        for start in range(0, Xc.shape[1], _SUMMED_IN_SINGLE):
            columns = slice(start, start + _SUMMED_IN_SINGLE)
            block, large = Xc[:, columns], outstanding[columns]
            if large.any():
                exact = block[:, large].astype(np.float64)
                gram += exact @ exact.T
                block = block[:, ~large]
            gram += block @ block.T
        return gram

    def _sample_product(self, y: Array) -> Array:
        products = (block @ (block.T @ y) for _, block in self._in_double_precision())
        return np.asarray(sum(products))
