"""Dask arrays and data frames as data to fit: checked, cut into blocks, and never in one place.

Nothing here imports Dask before a Dask collection is at hand.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from bsufs._memory import KnownSize
from bsufs._typing import Array, Indices
from bsufs.scatter import Scatter, ScatterAccumulator, safe_unit_exponent
from bsufs.scatter._accumulate import centered_rows
from bsufs.selectors._cluster_shares import Clusters, LocalRows, SampleOfRows
from bsufs.selectors._columns import ContentKey
from bsufs.selectors._data import FitData
from bsufs.selectors._row_sample import RowSample
from bsufs.selectors._validation import (
    NonFinite,
    checked_weight,
    non_finite,
    require_positive_weight,
    require_two_rows,
)

# A block of columns is no larger than this; a worker that holds several has room for one more.
_BLOCK_BYTES = 2**28


def is_dask(X: Any) -> bool:
    """Return whether something is a Dask collection, without importing Dask."""
    return hasattr(X, "__dask_graph__") and type(X).__module__.partition(".")[0].startswith("dask")


def check_columns(estimator: Any, X: Any, *, reset: bool) -> None:
    """Check the kind, the number and the names of the columns; compute nothing."""
    if getattr(X, "ndim", 0) != 2:
        raise ValueError(
            f"X must be a Dask array or data frame with two dimensions, got {type(X).__name__} "
            f"with {getattr(X, 'ndim', 'no')}. Pass a table: rows are samples."
        )
    meta = X._meta
    if _is_frame(X):
        bad = [str(name) for name, kind in meta.dtypes.items() if not _is_number(kind)]
        if bad:
            raise ValueError(
                f"X must hold numbers only. The columns {bad[:5]}"
                f"{' ...' if len(bad) > 5 else ''} are not numeric. Encode text as numbers or "
                "leave such columns out."
            )
        sample = meta
    else:
        if not isinstance(meta, np.ndarray) or not _is_number(meta.dtype):
            raise ValueError(
                "X must be a Dask array whose blocks are NumPy arrays of numbers, got blocks of "
                f"{type(meta).__name__} of {getattr(meta, 'dtype', 'no type')}. Convert them with "
                "X.map_blocks or X.astype."
            )
        if math.isnan(X.shape[1]):
            raise ValueError(
                "X must have a known number of columns, got unknown chunk sizes. Call "
                "X.compute_chunk_sizes() first."
            )
        sample = np.empty((0, X.shape[1]))
    if sample.shape[1] == 0:
        raise ValueError("X must have at least one column, got none. Pass the data.")
    validate_data(estimator, sample, reset=reset, skip_check_array=True)


def chosen_columns(X: Any, support: Any) -> Any:
    """Return some columns of a Dask collection, lazily."""
    columns = np.flatnonzero(support)
    return X.iloc[:, list(columns)] if _is_frame(X) else X[:, columns]


class DaskData(FitData):
    """A Dask collection: its scatter, and rows where they are.

    With at least as many rows as columns S is small, and a tree of partial sums over blocks of
    rows gives it in one pass. With more columns than rows, X is cut by columns and stays with the
    workers. The shorter axis is never cut: what the workers exchange has its length.
    """

    def __init__(self, X: Any, sample_weight: Any, names: Any) -> None:
        super().__init__(X, names=names)
        facts = _by_columns if self._cut_by_columns else _by_rows
        self.scatter, self.order = facts(X, sample_weight, names)

    @property
    def _cut_by_columns(self) -> bool:
        return cut_by_columns(self.X)

    def some_rows(self, sample: RowSample, places: Indices) -> SampleOfRows:
        """Return a sample of the rows, here or with the workers."""
        if self._cut_by_columns:
            scatter: Any = self.scatter
            return DaskRows(scatter, places, sample.numbers(self.X.shape[0]))
        rows = _gathered_rows(self.X, sample)
        return LocalRows(rows[:, self.order[places]], self.scatter.unit_exponent)


class DaskRows:
    """Rows of data in column blocks: every worker has some columns of all of them."""

    def __init__(self, scatter: Any, places: Indices, rows: Indices | None) -> None:
        self._scatter = scatter
        self._places = places
        self._rows = rows
        self.n_rows = scatter.n_rows if rows is None else rows.size

    def __matmul__(self, V: Array) -> Array:
        from bsufs._dask import compute, total

        spread = np.zeros((self._scatter.shape[0], V.shape[1]))
        spread[self._places] = V
        pieces = self._scatter.pieces(spread)
        (product,) = compute([total(self._scatter.each(_image, self._rows, pieces))])
        result: Array = product
        return result

    def shares_beyond_chance(self, found: Sequence[Clusters]) -> Array:
        """Return, for each column, the sum over clusterings of its share less that of chance."""
        lazy = self._scatter.each(_shares, self._rows, tuple(found))
        shares: Array = self._scatter.gathered(lazy)[self._places]
        return shares


def _image(X: Array, rows: Indices | None, V: Array) -> Array:
    return LocalRows(X if rows is None else X[rows], 0) @ V


def _shares(X: Array, rows: Indices | None, found: Sequence[Clusters]) -> Array:
    return LocalRows(X if rows is None else X[rows], 0).shares_beyond_chance(found)


def cut_by_columns(X: Any) -> bool:
    """Return whether the columns of X stay with the workers, or S is summed over its rows."""
    return not _is_frame(X) and bool(X.shape[0] < X.shape[1])


def _is_frame(X: Any) -> bool:
    return hasattr(X, "npartitions") and hasattr(X, "columns")


def _is_number(kind: Any) -> bool:
    # Extension types of pandas say of themselves whether they are numbers.
    return bool(getattr(kind, "_is_numeric", getattr(kind, "kind", "O") in "buif"))


def _lazy_blocks(X: Any) -> list[Any]:
    """Return the blocks of a Dask collection, in order, as tasks."""
    blocks = list(np.ravel(X.to_delayed()))
    graph = blocks[0].__dask_graph__()
    if all(block.key in graph for block in blocks):
        return blocks
    # Blocks that a cluster holds already are left out of a graph when it is optimized.
    return list(np.ravel(X.to_delayed(optimize_graph=False)))


# -------------------------------------------------------------------------------- blocks of columns


@dataclass(frozen=True)
class _ColumnFacts:
    """What the client must know of a block of columns."""

    key: Array
    squares: Array
    largest: float
    wrong: NonFinite | None

    @property
    def exponent(self) -> int:
        return safe_unit_exponent(self.largest)


def _by_columns(X: Any, sample_weight: Any, names: Any) -> tuple[Scatter, Indices]:
    from bsufs._dask import call, compute, persist
    from bsufs.scatter._columns import Block, ColumnScatter

    n_rows = int(X.shape[0])
    require_two_rows(n_rows)
    weight, total_weight = None, float(n_rows)
    if sample_weight is not None:
        weight = sample_weight.compute() if is_dask(sample_weight) else sample_weight
        weight = checked_weight(weight, n_rows)
        require_positive_weight(weight)
        n_rows, total_weight = int(np.count_nonzero(weight)), float(weight.sum())
    X = _in_few_column_blocks(X)
    prepared = persist([call(_prepared_columns, block, weight) for block in _lazy_blocks(X)])
    facts = compute([call(_second, pair) for pair in prepared])
    ends = np.cumsum(X.chunks[1])
    _raise_if_wrong(
        [
            fact.wrong and fact.wrong.moved(0, int(end) - fact.key.size)
            for fact, end in zip(facts, ends, strict=True)
        ],
        names,
    )
    order = np.argsort(np.concatenate([fact.key for fact in facts]), kind="stable")
    exponent = safe_unit_exponent(max(fact.largest for fact in facts))
    place = np.argsort(order)
    diagonal = np.empty(order.size)
    diagonal[place] = np.concatenate(
        [np.ldexp(fact.squares, 2 * (fact.exponent - exponent)) for fact in facts]
    )
    columns = persist([call(_in_units, pair, exponent) for pair in prepared])
    blocks = [
        Block(block, place[end - fact.key.size : end])
        for block, fact, end in zip(columns, facts, ends, strict=True)
    ]
    scatter = ColumnScatter(blocks, n_rows, total_weight, diagonal)
    scatter.unit_exponent = exponent
    return scatter, order


def _in_few_column_blocks(X: Any) -> Any:
    """Cut X by columns alone, into as many blocks as workers unless these would be large."""
    from bsufs._dask import n_workers

    n, d = X.shape
    n_blocks = max(n_workers(), math.ceil(8 * n * d / _BLOCK_BYTES))
    if X.numblocks[0] == 1 and X.numblocks[1] <= n_blocks:
        return X
    return X.rechunk({0: -1, 1: math.ceil(d / n_blocks)})


def _prepared_columns(X: Any, weight: Array | None) -> tuple[Any, _ColumnFacts]:
    """Return columns centered, weighted and in units of their own, and what they tell."""
    X = _as_floats(X)
    key = ContentKey(X.shape[1])
    key.add(X)
    wrong = non_finite(X)
    if wrong is not None or not X.shape[1]:
        return None, _ColumnFacts(key.values, np.empty(0), 0.0, wrong)
    if weight is not None and not weight.all():
        X, weight = X[weight > 0], weight[weight > 0]
    low, high = X.min(axis=0), X.max(axis=0)
    largest = max(-float(low.min()), float(high.max()))
    Xc = np.array(X, dtype=np.float64)
    np.ldexp(Xc, -safe_unit_exponent(largest), out=Xc)
    if weight is not None and (weight == 1.0).all():
        weight = None
    centered_rows(Xc, weight, out=Xc)
    Xc[:, low == high] = 0.0
    return Xc, _ColumnFacts(key.values, np.einsum("ij,ij->j", Xc, Xc), largest, None)


def _second(pair: tuple[Any, _ColumnFacts]) -> _ColumnFacts:
    return pair[1]


def _in_units(pair: tuple[Array, _ColumnFacts], exponent: int) -> Array:
    Xc, facts = pair
    return np.ldexp(Xc, facts.exponent - exponent) if facts.exponent != exponent else Xc


# ----------------------------------------------------------------------------------- blocks of rows


@dataclass
class _RowFacts(KnownSize):
    """What some rows tell; merged pairwise up to those of all."""

    sums: ScatterAccumulator
    key: Array
    n_rows: int
    wrong: NonFinite | None


def _merged_facts(parts: list[_RowFacts]) -> _RowFacts:
    # Calls may be run twice when a worker dies: what they get must stay as it is.
    merged = copy.deepcopy(parts[0])
    for part in parts[1:]:
        merged.sums.merge(part.sums)
        merged.key += part.key
        merged.n_rows += part.n_rows
        merged.wrong = NonFinite.earlier(merged.wrong, part.wrong)
    return merged


def _by_rows(X: Any, sample_weight: Any, names: Any) -> tuple[Scatter, Indices]:
    from bsufs._dask import call, compute, merged

    X = _in_row_blocks(X)
    n_features = X.shape[1]
    blocks = _lazy_blocks(X)
    lengths = None if _is_frame(X) or math.isnan(X.shape[0]) else X.chunks[0]
    weights = _weights_of_blocks(sample_weight, len(blocks), lengths)
    first_row: Any = 0
    parts = []
    for number, block in enumerate(blocks):
        weight = weights[number] if isinstance(weights, list) else weights
        parts.append(call(_row_facts, block, n_features, first_row, weight))
        # The key of a column weighs every row by its number, so a block must know its first one.
        if lengths is None:
            first_row = call(_next_first_row, first_row, block)
        else:
            first_row += lengths[number]
    (facts,) = compute([merged(parts, _merged_facts)])
    if isinstance(weights, _WholeWeights):
        weights.require_length(facts.n_rows)
    _raise_if_wrong([facts.wrong], names)
    require_two_rows(facts.n_rows)
    if sample_weight is not None and not facts.sums.n_rows:
        require_positive_weight(np.zeros(1))
    order = np.argsort(facts.key, kind="stable")
    return facts.sums.scatter().restricted(order), order


def _in_row_blocks(X: Any) -> Any:
    if _is_frame(X) or X.numblocks[1] == 1:
        return X
    return X.rechunk({0: "auto" if X.numblocks[0] == 1 else X.chunks[0], 1: -1})


def _gathered_rows(X: Any, sample: RowSample) -> Array:
    """Bring a sample of the rows here."""
    from bsufs._dask import call, compute

    X = _in_row_blocks(X)
    blocks = _lazy_blocks(X)
    if _is_frame(X) or math.isnan(X.shape[0]):
        lengths = compute([call(len, block) for block in blocks])
    else:
        lengths = list(X.chunks[0])
    ends = np.cumsum(lengths)
    numbers = sample.numbers(int(ends[-1]))
    numbers = np.arange(ends[-1]) if numbers is None else numbers
    first = np.searchsorted(numbers, ends - lengths)
    last = np.searchsorted(numbers, ends)
    wanted = [
        call(_some_rows, block, numbers[start:stop] - (end - length))
        for block, start, stop, end, length in zip(blocks, first, last, ends, lengths, strict=True)
        if start < stop
    ]
    return np.concatenate(compute(wanted))


def _some_rows(block: Any, numbers: Indices) -> Any:
    return _as_floats(block.iloc[numbers] if hasattr(block, "iloc") else block[numbers])


@dataclass(frozen=True)
class _WholeWeights:
    """All weights at once, for blocks that learn only when they are loaded which rows they hold."""

    values: Array

    def require_length(self, n_rows: int) -> None:
        if self.values.ndim and self.values.shape != (n_rows,):
            checked_weight(self.values, n_rows)


def _weights_of_blocks(sample_weight: Any, n_blocks: int, lengths: Any) -> Any:
    """Return the weights of each block in a list, or what all blocks can find theirs in."""
    if sample_weight is None:
        return None
    if not is_dask(sample_weight):
        if lengths is None:
            return _WholeWeights(np.asarray(sample_weight, dtype=np.float64))
        whole = checked_weight(sample_weight, sum(lengths))
        return np.split(whole, np.cumsum(lengths)[:-1])
    if lengths is not None and getattr(sample_weight, "shape", None) == (sum(lengths),):
        sample_weight = sample_weight.rechunk((lengths,))
    pieces = _lazy_blocks(sample_weight)
    if len(pieces) != n_blocks:
        raise ValueError(
            f"sample_weight must be cut into blocks as the rows of X are, {n_blocks} of them, got "
            f"{len(pieces)}. Call compute_chunk_sizes() on both, or pass a NumPy array."
        )
    return pieces


def _next_first_row(first_row: int, block: Any) -> int:
    return first_row + len(block)


def _row_facts(block: Any, n_features: int, first_row: int, weight: Any) -> _RowFacts:
    X = _as_floats(block)
    key = ContentKey(n_features, first_row)
    key.add(X)
    wrong = non_finite(X)
    sums = ScatterAccumulator(n_features)
    if isinstance(weight, _WholeWeights):
        weight = (
            weight.values[first_row : first_row + len(X)] if weight.values.ndim else (weight.values)
        )
    if weight is not None:
        weight = np.asarray(weight)
        if weight.ndim and weight.shape != (len(X),):
            raise ValueError(
                f"sample_weight must have one number for each row, got shape {weight.shape} for a "
                f"block of X with {len(X)} rows. Cut it as X is cut, or pass a NumPy array."
            )
        weight = checked_weight(weight, len(X))
    if wrong is None:
        sums.add(X, weight)
        return _RowFacts(sums, key.values, len(X), None)
    return _RowFacts(sums, key.values, len(X), wrong.moved(first_row, 0))


def _as_floats(block: Any) -> Any:
    """Return a block as a NumPy array of single or double precision."""
    if hasattr(block, "to_numpy"):
        # Columns of different types, and missing values of the types that have one of their own.
        if all(kind == np.float32 for kind in block.dtypes):
            return block.to_numpy()
        return block.to_numpy(dtype=np.float64, na_value=np.nan)
    return block if block.dtype in (np.float64, np.float32) else block.astype(np.float64)


def _raise_if_wrong(parts: list[NonFinite | None], names: Any) -> None:
    wrong = None
    for part in parts:
        wrong = NonFinite.earlier(wrong, part)
    if wrong is not None:
        raise wrong.error(names)
