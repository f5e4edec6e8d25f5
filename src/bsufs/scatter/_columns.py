"""S of data whose columns are with the workers of a Dask cluster: only products are distributed.

Every worker keeps blocks X_b of centered columns. A product S W sends each block its rows of W,
sums Y = sum_b X_b W_b of size n x m over the workers, and brings the rows X_b'Y back. Vectors and
frames, with an entry or a row per feature, are with the client; X and S never are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from bsufs._dask import call, compute, persist, total
from bsufs._typing import Array, Indices
from bsufs.scatter._base import Scatter, ridged_cholesky
from bsufs.scatter._clearing import nothing_left, whitening
from bsufs.scatter._dense import FactoredScatter, FewSamples

# So few bytes of columns are solved faster here than by sending products around.
_SMALL_HERE = 2**26
_BYTES_PER_ROUND = 2**23


@dataclass(frozen=True)
class Block:
    """Some columns of the centered data, with a worker, and their numbers."""

    X: Any
    features: Indices


class ColumnScatter(FewSamples):
    """S of centered data in blocks of columns."""

    restriction_pays = 0.5

    def __init__(self, blocks: Sequence[Block], n_rows: int, weight: float, diagonal: Array):
        self.blocks = [block for block in blocks if block.features.size]
        self.n_rows = n_rows
        self.total_weight = weight
        self.shape = (diagonal.size, diagonal.size)
        self.max_rank = min(max(n_rows - 1, 1), diagonal.size)
        self._squares = diagonal
        # A row takes a round among the workers, and so do several, as long as little is sent.
        self.rows_at_once = min(8, max(1, _BYTES_PER_ROUND // (8 * diagonal.size)))

    def each(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return lazy calls of a function of every block; a list has an argument for each."""
        return [
            call(function, block.X, *(a[i] if isinstance(a, list) else a for a in arguments))
            for i, block in enumerate(self.blocks)
        ]

    def pieces(self, by_feature: Array) -> list[Array]:
        """Cut an array with one row per feature into those of the blocks."""
        return [by_feature[block.features] for block in self.blocks]

    def gathered(self, lazy: Sequence[Any]) -> Array:
        """Compute what blocks tell of their features, and put it together."""
        pieces = compute(lazy)
        whole = np.empty((self.shape[0], *pieces[0].shape[1:]))
        for block, piece in zip(self.blocks, pieces, strict=True):
            whole[block.features] = piece
        return whole

    def columns(self, features: Indices) -> Array:
        """Bring some columns of the centered data here."""
        return compute([self._lazy_columns(features)])[0]

    def _lazy_columns(self, features: Indices) -> Any:
        """Return some columns of the centered data, put together by a task."""
        lazy, places = self._picked(features)
        used = [i for i, place in enumerate(places) if place.size]
        order = np.argsort(np.concatenate([places[i] for i in used])) if used else None
        return call(_put_together, [lazy[i] for i in used], order, self.n_rows)

    def _picked(self, features: Indices) -> tuple[list[Any], list[Indices]]:
        """Return what each block has of some columns, lazily, and their places among these."""
        place = np.full(self.shape[0], -1)
        place[features] = np.arange(features.size)
        targets = [place[block.features] for block in self.blocks]
        inside = [np.flatnonzero(target >= 0) for target in targets]
        return self.each(np.take, inside, 1), [target[target >= 0] for target in targets]

    def here_if_small(self) -> Scatter:
        """Return the operator of the same columns, here where they are few."""
        everything = np.arange(self.shape[0])
        return self.restricted(everything) if self._is_small(everything) else self

    def _is_small(self, features: Indices) -> bool:
        return 8 * self.n_rows * features.size <= _SMALL_HERE

    def _product(self, W: Array) -> Array:
        Y = total(self.each(np.matmul, self.pieces(W)))
        return self.gathered(self.each(_transposed_image, Y))

    def _diagonal(self) -> Array:
        return self._squares

    def _block(self, rows: Any, columns: Any) -> Array:
        left = self._lazy_columns(np.arange(self.shape[0])[rows])
        across = self.gathered(self.each(_transposed_image, left))
        return np.ascontiguousarray(across[columns].T)

    def _restricted(self, features: Indices) -> Scatter:
        if self._is_small(features):
            return FactoredScatter(self.columns(features), self.total_weight)
        lazy, places = self._picked(features)
        blocks = [Block(X, place) for X, place in zip(persist(lazy), places, strict=True)]
        return ColumnScatter(blocks, self.n_rows, self.total_weight, self._squares[features])

    def _cleared(self, level: Array) -> tuple[Scatter, None]:
        d = level.size
        Z = self.columns(np.arange(d, self.shape[0]))
        kept = [block for block in self.blocks if block.features[0] < d]
        before = ColumnScatter(kept, self.n_rows, self.total_weight, self._squares[:d])
        means = total(before.each(np.matmul, before.pieces(level)))
        basis = call(_same, Z @ whitening(Z.T @ Z))
        columns = before.each(
            _cleared_columns, before.pieces(level), means, basis, before.pieces(before._squares)
        )
        blocks = [Block(X, block.features) for X, block in zip(persist(columns), kept, strict=True)]
        after = ColumnScatter(blocks, self.n_rows, self.total_weight, before._squares)
        after._squares = after.gathered(after.each(_sums_of_squares))
        return after, None

    def beside(self, Z: Array) -> "ColumnScatter":
        """Return the operator with centered regressors behind the columns."""
        behind = np.arange(self.shape[0], self.shape[0] + Z.shape[1])
        squares = np.concatenate([self._squares, _sums_of_squares(Z)])
        blocks = [*self.blocks, Block(call(_same, Z), behind)]
        return ColumnScatter(blocks, self.n_rows, self.total_weight, squares)

    def _gram(self, features: Indices | None = None) -> Array:
        chosen = np.ones(self.shape[0], dtype=bool)
        if features is not None:
            chosen[:] = False
            chosen[features] = True
        return compute([total(self.each(_gram_of_some, self.pieces(chosen)))])[0]

    def _images(self, vectors: Array) -> Array:
        return self.gathered(self.each(_transposed_image, call(_same, vectors)))

    def _sample_product(self, y: Array) -> Array:
        return compute([total(self.each(_sample_image, call(_same, y)))])[0]

    def _explained_gains(self, features: Indices) -> Array:
        if "gram" in self._remembered:
            return super()._explained_gains(features)
        chosen = self.columns(features)
        lower = ridged_cholesky(chosen.T @ chosen)
        gains = self.each(_regression_gains, call(_same, chosen), call(_same, lower))
        return compute([total(gains)])[0]


def _same(value: Any) -> Any:
    """Make a value a task of its own: each worker gets it once, not once for every block."""
    return value


def _put_together(pieces: list[Array], order: Indices | None, n_rows: int) -> Array:
    return np.empty((n_rows, 0)) if order is None else np.hstack(pieces)[:, order]


def _transposed_image(X: Array, Y: Array) -> Array:
    return X.T @ Y


def _sums_of_squares(X: Array) -> Array:
    return np.einsum("ij,ij->j", X, X)


def _cleared_columns(X: Array, level: Array, means: Array, basis: Array, before: Array) -> Array:
    X = X - np.multiply.outer(means, level > 0)
    X -= basis @ (basis.T @ X)
    X[:, nothing_left(before, _sums_of_squares(X))] = 0.0
    return X


def _sample_image(X: Array, y: Array) -> Array:
    return X @ (X.T @ y)


def _gram_of_some(X: Array, chosen: Array) -> Array:
    X = X if chosen.all() else X[:, chosen]
    return X @ X.T


def _regression_gains(X: Array, chosen: Array, lower: Array) -> Array:
    whitened = linalg.solve_triangular(lower, chosen.T @ X, lower=True, check_finite=False)
    return np.einsum("ij,ij->i", whitened, whitened)
