"""Mean and scatter of rows that arrive in batches, in units that neither overflow nor vanish."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsufs._memory import available_memory, size_in_words
from bsufs._typing import Array, Indices, Mask
from bsufs.scatter._base import BATCH_BYTES, Scatter, batches
from bsufs.scatter._clearing import Beside
from bsufs.scatter._dense import DenseScatter, FactoredScatter

# Squares of entries within this range neither overflow nor vanish, whatever is summed.
_SAFE_EXPONENT, _SAFE_IN_SINGLE = 300, 30
# So much is still in the cache when the next step comes to it.
_CACHE_BYTES = 2**20
# Up to so many bytes in double precision, single precision saves nothing that is felt.
_SMALL_IN_DOUBLE = 2**26
# Solving takes so many times the memory of S, or of the data where these are smaller.
_COPIES_TO_SOLVE = 4
# Below this nobody needs to ask how much memory there is.
_SURELY_FITS = 2**28


class ScatterAccumulator:
    """Mean and scatter of rows that arrive in batches, exact for any batching.

    While there are fewer rows than features the rows themselves are kept, since they are smaller
    than S; from then on only the mean and S. Two batches with means a, b and weights v, w are
    merged by S = S_a + S_b + v w / (v + w) (a - b)(a - b)', which subtracts no large numbers.
    A column whose smallest and largest entry agree is constant, whatever rounding says. `order` is
    that of the columns in the operator; as they come by default.
    """

    def __init__(self, n_features: int, order: Indices | None = None) -> None:
        self.n_features = n_features
        self.order = order
        self.n_rows = 0
        self.total_weight = 0.0
        self.unit_exponent = 0
        self._safe = _SAFE_IN_SINGLE
        self._low = np.full(n_features, np.inf)
        self._high = np.full(n_features, -np.inf)
        self._largest = 0.0
        self._mean = np.zeros(n_features)
        self._S: Array | None = None
        self._kept: list[tuple[NDArray[Any] | Beside, Array | None]] = []

    def add(
        self, X: NDArray[Any] | Beside, sample_weight: Array | None = None, *, tall: bool = False
    ) -> None:
        """Take in rows, which may be kept; `tall` tells that there will be as many as features."""
        if sample_weight is not None and not sample_weight.all():
            X, sample_weight = X[sample_weight > 0], sample_weight[sample_weight > 0]
        if X.shape[0] == 0:
            return
        folds = self._S is not None or tall or self.n_rows + X.shape[0] >= self.n_features
        if folds and self._S is None:
            _require_memory_for_square(self.n_features)
        if X.dtype != np.float32:
            self._safe = _SAFE_EXPONENT
        self.n_rows += X.shape[0]
        self._kept.append((X, sample_weight))
        if folds:
            self._fold_kept_rows()
        else:
            low, high = self._ordered(X.min(axis=0)), self._ordered(X.max(axis=0))
            self._widen(slice(None), low, high)
            self._choose_unit(max(-float(low.min()), float(high.max())))

    def merge(self, other: "ScatterAccumulator") -> None:
        """Take in the rows of another accumulator, which is not changed, as further batches."""
        if self.n_features != other.n_features:
            raise ValueError(
                f"other must have {self.n_features} columns to be merged, got {other.n_features}."
            )
        self._safe = max(self._safe, other._safe)
        self._widen(slice(None), other._low, other._high)
        self._choose_unit(other._largest)
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

    def largest(self, n_columns: int) -> float:
        """Return the size of the largest entry of the first columns."""
        return float(max(self._high[:n_columns].max(), -self._low[:n_columns].min()))

    def _widen(self, columns: Any, low: NDArray[Any], high: NDArray[Any]) -> None:
        """Note the smallest and largest entries of some columns."""
        self._low[columns] = np.minimum(self._low[columns], low)
        self._high[columns] = np.maximum(self._high[columns], high)

    def _choose_unit(self, largest: float) -> None:
        """Choose the unit anew where there are rows with entries of this size."""
        self._largest = max(self._largest, largest)
        is_known = np.isfinite(self._largest)
        exponent = safe_unit_exponent(self._largest, self._safe) if is_known else 0
        if exponent != self.unit_exponent:
            shift = self.unit_exponent - exponent
            self._mean = np.ldexp(self._mean, shift)
            if self._S is not None:
                self._S = np.ldexp(self._S, 2 * shift)
            self.unit_exponent = exponent

    def _ordered(self, A: NDArray[Any]) -> NDArray[Any]:
        return A if self.order is None else np.take(A, self.order, axis=-1)

    def _in_units(self, X: Array) -> Array:
        return np.asarray(np.ldexp(X, -self.unit_exponent)) if self.unit_exponent else X

    def _fold_kept_rows(self) -> None:
        d = self.n_features
        if self._S is None:
            self._S = np.zeros((d, d))
        # Rows that stay in the cache from step to step, but enough to be worth a visit to S.
        size = max(_CACHE_BYTES, min(BATCH_BYTES, 4 * 8 * d * d))
        for X, sample_weight in self._kept:
            for rows in batches(X.shape[0], d, size):
                weight = None if sample_weight is None else sample_weight[rows]
                batch: Array = np.asarray(self._ordered(X[rows]), dtype=np.float64)
                # A column that is known to vary need not be looked at again.
                same = np.flatnonzero(self._low >= self._high)
                if same.size:
                    part = batch[:, same]
                    self._widen(same, part.min(axis=0), part.max(axis=0))
                self._choose_unit(max(-float(batch.min()), float(batch.max())))
                centered, mean, weight_sum = centered_rows(self._in_units(batch), weight)
                self._S += centered.T @ centered
                self._shift_mean(self._S, mean, weight_sum)
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
        """Return the operator of all rows so far; valid until the next batch comes in."""
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
        # Weights may span more than single precision holds.
        single = 8 * self.n_rows * self.n_features > _SMALL_IN_DOUBLE and all(
            X.dtype == np.float32 and weight is None for X, weight in self._kept
        )
        Xc = np.empty((self.n_rows, self.n_features), np.float32 if single else np.float64)
        weights = np.empty(self.n_rows)
        row = 0
        for X, weight in self._kept:
            for rows in batches(X.shape[0], self.n_features):
                end = row + rows.stop - rows.start
                Xc[row:end] = self._in_units(np.asarray(self._ordered(X[rows]), Xc.dtype))
                weights[row:end] = 1.0 if weight is None else weight[rows]
                row = end
        weight = None if (weights == 1.0).all() else weights
        for columns in batches(self.n_features, self.n_rows):
            # The mean is taken off in double precision, whatever is kept.
            block = Xc[:, columns].astype(np.float64, copy=False)
            centered_rows(block, weight, out=block)
            if single:
                Xc[:, columns] = block
        Xc[:, constant] = 0.0
        return FactoredScatter(Xc, float(weights.sum()))


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


def safe_unit_exponent(largest: float, safe: int = _SAFE_EXPONENT) -> int:
    """Return e such that entries of this size in units of 2**e can be squared and summed."""
    exponent = math.frexp(largest)[1]
    return exponent if abs(exponent) > safe and largest > 0 else 0
