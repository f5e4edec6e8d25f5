"""S of data whose columns are spread over workers: S W = sum over blocks of products with X_b.

Every worker keeps blocks X_b of centered columns and the matching rows of W. A product with S needs
one sum over blocks, Y = sum_b X_b W_b of size n x m, and rows of S W come out where the rows of W
are. Neither a d x d array nor X is ever in one place.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from bsufs._memory import KnownSize
from bsufs._typing import Array, Indices, Mask
from bsufs.distributed._tasks import compute, persist, shared, task, tree_sum
from bsufs.penalties import row_norms
from bsufs.scatter import (
    RIDGE,
    Scatter,
    centered_rows,
    ridged_cholesky,
    safe_unit_exponent,
    sound_values,
)
from bsufs.solvers.row_blocks import RowBlocks
from bsufs.solvers.w_steps import WStep

# With fewer samples than this, or than a block has columns, the Gram matrix of the samples is no
# larger than a block, and one pass over the data gives all eigenvectors.
_SMALL = 128
_LARGEST_GRAM = 2048
# Vectors beside those wanted that speed up the block Lanczos method, and its basis in blocks.
_GUARD = 8
_BASIS_BLOCKS = 4
# Residual, relative to the largest eigenvalue, at which an eigenpair counts as exact.
_EXACT = 1e-12
_MAX_PASSES = 500


@dataclass(frozen=True)
class Block:
    """Some columns of the centered data, with a worker."""

    X: Any
    rows: Indices


class BlockScatter(Scatter):
    """S of data in column blocks."""

    # As for data in one piece, so that both take dead rows out at the same step.
    costly_to_restrict = 0.7
    # A row takes two rounds among the workers, and so do as many as this.
    rows_at_once = 16

    def __init__(
        self, blocks: Sequence[Block], n_rows: int, total_weight: float, diagonal: Array
    ) -> None:
        self.blocks = [block for block in blocks if block.rows.size]
        self.n_rows = n_rows
        self.total_weight = total_weight
        self.shape = (diagonal.size, diagonal.size)
        self.max_rank = min(max(n_rows - 1, 1), diagonal.size)
        self._squares = diagonal

    # ------------------------------------------------------------- the operator, piece by piece

    def each(self, function: Any, *arguments: Any) -> list[Any]:
        """Return lazy calls of a function, one for each block."""
        return [
            task(
                function,
                block.X,
                *(given[i] if isinstance(given, list) else given for given in arguments),
            )
            for i, block in enumerate(self.blocks)
        ]

    def pieces(self, by_row: Any) -> list[Any]:
        """Cut an array with one row per feature into the pieces of the blocks."""
        return [by_row[block.rows] for block in self.blocks]

    def joined(self, pieces: Sequence[Any]) -> Any:
        """Put the pieces of the blocks together: the inverse of `pieces`."""
        whole = np.empty((self.shape[0], *pieces[0].shape[1:]), dtype=pieces[0].dtype)
        for block, piece in zip(self.blocks, pieces, strict=True):
            whole[block.rows] = piece
        return whole

    def gathered(self, lazy: Sequence[Any]) -> Any:
        """Compute pieces of the blocks and put them together here."""
        return self.joined(compute(*lazy))

    def columns(self, features: Indices) -> Array:
        """Bring some columns of the centered data here."""
        where = np.full(self.shape[0], -1)
        where[features] = np.arange(features.size)
        wanted, targets = [], []
        for block in self.blocks:
            target = where[block.rows]
            inside = np.flatnonzero(target >= 0)
            if inside.size:
                wanted.append(task(_some_columns, block.X, inside))
                targets.append(target[inside])
        gathered = np.empty((self.n_rows, features.size))
        for target, piece in zip(targets, compute(*wanted), strict=True):
            gathered[:, target] = piece
        return gathered

    def _product(self, W: Array) -> Array:
        Y = tree_sum(self.each(_image, self.pieces(W)))
        result: Array = self.gathered(self.each(_transposed_image, Y))
        return result

    def _diagonal(self) -> Array:
        return self._squares

    def _block(self, rows: Any, columns: Any) -> Array:
        everything = np.arange(self.shape[0])
        left = shared(self.columns(everything[rows]))
        across = self.gathered(self.each(_transposed_image, left))
        result: Array = np.ascontiguousarray(across[everything[columns]].T)
        return result

    def regression_rows(self, features: Indices) -> tuple[Array, Array]:
        """Return what regression of all columns on some of them, step by step, has to know.

        With X_A = Q R the rows S[features] are R'(Q'X), and a square root of the small matrix
        Q'XX'Q has the inner products of Q'X.
        """
        chosen = self.columns(features)
        Q, R = linalg.qr(chosen, mode="economic", check_finite=False)
        (inner,) = compute(tree_sum(self.each(_shadow_gram, shared(Q))))
        values, vectors = linalg.eigh(inner, check_finite=False)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return R.T @ root * self.factor, chosen.T @ chosen * self.factor

    def _restricted(self, features: Mask | Indices) -> BlockScatter:
        numbers = np.flatnonzero(features) if features.dtype == bool else features
        place = np.full(self.shape[0], -1)
        place[numbers] = np.arange(numbers.size)
        blocks = []
        for block in self.blocks:
            targets = place[block.rows]
            inside = np.flatnonzero(targets >= 0)
            if inside.size:
                X = task(_some_columns, block.X, inside)
                blocks.append(Block(X, targets[inside]))
        other = copy.copy(self)
        other.blocks = blocks
        other.shape = (numbers.size, numbers.size)
        other.max_rank = min(self.max_rank, numbers.size)
        other._squares = self._squares[numbers]
        return other

    def restricted(self, features: Mask | Indices) -> BlockScatter:
        """Return the operator of some columns only, persisted."""
        other = self._restricted(features)
        (kept,) = persist([block.X for block in other.blocks])
        other.blocks = [Block(X, block.rows) for X, block in zip(kept, other.blocks, strict=True)]
        return other

    # ------------------------------------------------------------------------------- eigenvectors

    def _leading(self, m: int) -> tuple[Array, Array]:
        """Return the leading eigenvalues and, on the side of the samples, the left vectors."""
        n = self.n_rows
        widest = max(block.rows.size for block in self.blocks)
        small = n <= max(_SMALL, min(widest, _LARGEST_GRAM))
        if small or _BASIS_BLOCKS * (m + _GUARD) >= n:
            (gram,) = compute(tree_sum(self.each(_sample_gram)))
            values, left = linalg.eigh(gram, check_finite=False)
            return values[::-1], left[:, ::-1]
        return block_lanczos(self._sample_product, n, m)

    def _sample_product(self, Y: Array) -> Array:
        """Return X X'Y, in one pass over the blocks."""
        (product,) = compute(tree_sum(self.each(_sample_image, shared(Y))))
        result: Array = product
        return result

    def leading_eigenvectors(self, m: int) -> tuple[Array, Any]:
        """Return the m largest eigenvalues and their eigenvectors, these in blocks."""
        if not 1 <= m <= self.shape[0]:
            raise ValueError(f"m must be from 1 to n_features = {self.shape[0]}, got {m}.")
        values, left = self._leading(m)
        values, left = np.maximum(values[:m], 0.0), left[:, :m]
        sound = sound_values(values, self.shape[0])
        missing = m - int(np.count_nonzero(sound))
        # Where S has no more directions, any others: the same random ones as for data at hand.
        random = np.random.default_rng(0)
        filler = self.pieces(random.standard_normal((self.shape[0], missing)))
        left = left[:, sound] / np.sqrt(values[sound])
        frame = BlockFrame(self, self.each(_images_and_filler, shared(left), filler), m)
        # Twice: the first round leaves the square of the condition number times rounding.
        for _ in range(2):
            frame = frame.turned(task(_inverse_root, frame.lazy_gram()), m)
        frame = frame.turned(task(_signs, frame.lazy_peaks()), m)
        padded = np.concatenate([values[sound], np.zeros(missing)])
        return padded * self.factor, frame.persisted()

    # --------------------------------------------------------------------------------- regression

    def _explained_gains(self, features: Indices) -> Array:
        chosen = self.columns(features)
        lower = ridged_cholesky(chosen.T @ chosen)
        gains = self.each(_regression_gains, shared(chosen), shared(lower))
        result: Array = compute(tree_sum(gains))[0]
        return result

    def _explained_by_many(self, features: Indices) -> float:
        # More columns than the rank bound are asked for only where n is small: the Gram matrix of
        # the samples over these columns is no larger than a regression on as many columns.
        chosen = np.zeros(self.shape[0], dtype=bool)
        chosen[features] = True
        (gram,) = compute(tree_sum(self.each(_sample_gram, self.pieces(chosen))))
        values, basis = linalg.eigh(gram, check_finite=False)
        basis = basis[:, values > RIDGE * values[-1]]
        (shadows,) = compute(tree_sum(self.each(_shadow_square, shared(basis))))
        return float(shadows)

    def frame(self, W: Array) -> BlockFrame:
        """Spread a frame over the blocks."""
        return BlockFrame(self, [shared(piece) for piece in self.pieces(W)], W.shape[1]).persisted()


class BlockFrame:
    """A d x m matrix whose rows are where the columns of the data are."""

    def __init__(self, scatter: BlockScatter, pieces: Sequence[Any], n_columns: int) -> None:
        self._scatter = scatter
        self.pieces = list(pieces)
        self.shape = (scatter.shape[0], n_columns)

    def turned(self, R: Any, n_columns: int) -> BlockFrame:
        """Return the frame times a small matrix."""
        products = [task(_product, piece, R) for piece in self.pieces]
        return BlockFrame(self._scatter, products, n_columns)

    def __matmul__(self, R: Array) -> BlockFrame:
        """Return the frame times a small matrix."""
        return self.turned(R, R.shape[1])

    def __rmul__(self, number: float) -> BlockFrame:
        """Return a multiple of the frame."""
        return self @ (number * np.eye(self.shape[1]))

    def __getitem__(self, key: tuple[slice, slice]) -> BlockFrame:
        """Return some columns of the frame, given as [:, columns]."""
        return self @ np.eye(self.shape[1])[:, key[1]]

    def persisted(self) -> BlockFrame:
        """Return the frame with its pieces computed where they are."""
        return BlockFrame(self._scatter, persist(self.pieces)[0], self.shape[1])

    def lazy_gram(self) -> Any:
        """Return W'W, not yet computed."""
        return tree_sum([task(gram, piece) for piece in self.pieces])

    def lazy_peaks(self) -> list[Any]:
        """Return the entries of largest modulus in each block, not yet computed."""
        pieces = zip(self.pieces, self._scatter.blocks, strict=True)
        return [task(_peaks, piece, block.rows) for piece, block in pieces]

    def row_norms(self) -> Array:
        """Return the norm of each row."""
        norms: Array = self._scatter.gathered([task(row_norms, piece) for piece in self.pieces])
        return norms

    def row_blocks(self, scatter: BlockScatter, w_step: WStep) -> RowBlocks:
        """Return the rows of the frame, ready to iterate."""
        # The module builds on this one.
        from bsufs.distributed.iteration import DaskRows

        return DaskRows(scatter, self, w_step)


def block_lanczos(product: Callable[[Array], Array], size: int, m: int) -> tuple[Array, Array]:
    """Return the m largest eigenpairs of a symmetric matrix known by products with blocks.

    A Krylov space of blocks with full orthogonalization and thick restarts: every product takes
    m + 8 vectors at once, so the number of passes over the data is that of the degree of the
    polynomial, not that of the vectors.
    """
    width = m + _GUARD
    start = np.random.default_rng(0).standard_normal((size, width))
    basis = linalg.qr(start, mode="economic", check_finite=False)[0]
    images = product(basis)
    for _ in range(_MAX_PASSES):
        inner = basis.T @ images
        values, turn = linalg.eigh(0.5 * (inner + inner.T), check_finite=False)
        values, turn = values[::-1], turn[:, ::-1]
        vectors, turned = basis @ turn[:, :width], images @ turn[:, :width]
        residuals = turned - vectors * values[:width]
        sizes = np.linalg.norm(residuals, axis=0)
        waiting = sizes > _EXACT * values[0]
        if not waiting[:m].any():
            break
        if basis.shape[1] + width > _BASIS_BLOCKS * width:
            kept = turn[:, : 2 * width]
            basis, images = basis @ kept, images @ kept
        fresh = _orthonormal_beside(basis, residuals[:, waiting] / sizes[waiting])
        if not fresh.shape[1]:
            break
        basis, images = np.hstack([basis, fresh]), np.hstack([images, product(fresh)])
    return values[:m], vectors[:, :m]


def _orthonormal_beside(basis: Array, fresh: Array) -> Array:
    """Return an orthonormal basis of what some vectors add to the span of others."""
    for _ in range(2):
        fresh = fresh - basis @ (basis.T @ fresh)
        fresh, R, _ = linalg.qr(fresh, mode="economic", pivoting=True, check_finite=False)
        sizes = np.abs(R.diagonal())
        fresh = fresh[:, sizes > 1e-12 * sizes.max(initial=0.0)]
    return fresh


def _inverse_root(gram_matrix: Array) -> Array:
    """Return the triangular T with W T orthonormal, as in a QR decomposition of W."""
    upper = linalg.cholesky(gram_matrix, check_finite=False)
    identity = np.eye(upper.shape[0])
    inverse: Array = linalg.solve_triangular(upper, identity, check_finite=False)
    return inverse


# ------------------------------------------------------------------ what a worker does with a block


def gram(A: Array) -> Array:
    """Return A'A."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        result: Array = A.T @ A
    return result


def _product(A: Array, R: Array) -> Array:
    return A @ R


def _image(X: Array, W: Array) -> Array:
    return X @ W


def _transposed_image(X: Array, Y: Array) -> Array:
    return X.T @ Y


def _sample_image(X: Array, Y: Array) -> Array:
    return X @ (X.T @ Y)


def _sample_gram(X: Array, chosen: Mask | None = None) -> Array:
    X = X if chosen is None else X[:, chosen]
    return X @ X.T


def _shadow_gram(X: Array, Q: Array) -> Array:
    shadow = X.T @ Q
    return gram(shadow)


def _shadow_square(X: Array, basis: Array) -> Any:
    shadow = basis.T @ X
    return np.float64(np.vdot(shadow, shadow))


def _some_columns(X: Array, columns: Indices) -> Array:
    return X[:, columns]


def _images_and_filler(X: Array, left: Array, filler: Array) -> Array:
    return np.hstack([X.T @ left, filler])


def _peaks(piece: Array, rows: Indices) -> tuple[Array, Indices]:
    """Return the entry of largest modulus in each column, and its row."""
    where = np.abs(piece).argmax(axis=0)
    return piece[where, np.arange(piece.shape[1])], rows[where]


def _signs(peaks: list[tuple[Array, Indices]]) -> Array:
    """Return the diagonal matrix that makes the largest entry of each column positive."""
    values, rows = (np.array(part) for part in zip(*peaks, strict=True))
    first = np.lexsort((rows, -np.abs(values)), axis=0)[0]
    return np.diag(np.where(values[first, np.arange(values.shape[1])] < 0, -1.0, 1.0))


def _regression_gains(X: Array, chosen: Array, lower: Array) -> Array:
    whitened = linalg.solve_triangular(lower, chosen.T @ X, lower=True, check_finite=False)
    gains: Array = np.einsum("ij,ij->i", whitened, whitened)
    return gains


@dataclass(frozen=True)
class PreparedColumns(KnownSize):
    """Some columns of the data, centered and weighted, in units of two to some power."""

    Xc: Array
    unit_exponent: int
    largest: float

    @classmethod
    def of(cls, X: Any, sample_weight: Array | None) -> PreparedColumns:
        """Prepare raw columns."""
        weight = sample_weight
        if weight is not None and not weight.all():
            X, weight = X[weight > 0], weight[weight > 0]
        low, high = X.min(axis=0), X.max(axis=0)
        largest = max(-float(low.min()), float(high.max()))
        exponent = safe_unit_exponent(largest)
        X = np.array(X, dtype=np.float64)
        if exponent:
            np.ldexp(X, -exponent, out=X)
        if weight is not None and (weight == 1.0).all():
            weight = None
        centered_rows(X, weight, out=X)
        X[:, low == high] = 0.0
        return cls(X, exponent, largest)

    def in_units(self, exponent: int) -> Array:
        """Return the columns in units of two to a given power."""
        shift = self.unit_exponent - exponent
        return np.ldexp(self.Xc, shift) if shift else self.Xc


def scatter_of_columns(
    prepared: Sequence[Any],
    rows: Sequence[Indices],
    largest: float,
    n_rows: int,
    sample_weight: Array | None,
) -> BlockScatter:
    """Return the scatter operator of data in column blocks."""
    exponent = safe_unit_exponent(largest)
    lazy = [task(PreparedColumns.in_units, block, exponent) for block in prepared]
    lazy, squares = persist(lazy, [task(_column_squares, X) for X in lazy])
    diagonal = np.empty(sum(numbers.size for numbers in rows))
    for numbers, piece in zip(rows, compute(*squares), strict=True):
        diagonal[numbers] = piece
    total = float(n_rows)
    if sample_weight is not None:
        positive = sample_weight[sample_weight > 0]
        n_rows, total = positive.size, float(positive.sum())
    blocks = [Block(X, numbers) for X, numbers in zip(lazy, rows, strict=True)]
    scatter = BlockScatter(blocks, n_rows, total, diagonal)
    scatter.unit_exponent = exponent
    return scatter


def _column_squares(X: Array) -> Array:
    squares: Array = np.einsum("ij,ij->j", X, X)
    return squares
