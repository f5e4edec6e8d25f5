"""Dask arrays and data frames as data to fit: checked, cut into blocks, and never in one place.

Nothing here imports Dask before a Dask collection is at hand.
"""

import copy
import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from bsufs import _dask
from bsufs._dask import call, compute, merged, persist, total
from bsufs._memory import KnownSize
from bsufs._typing import Array, Indices
from bsufs.scatter import Scatter, ScatterAccumulator, safe_unit_exponent
from bsufs.scatter._accumulate import centered_rows
from bsufs.scatter._columns import Block, ColumnScatter
from bsufs.selectors._cluster_shares import Clusters, LocalRows, SampleOfRows
from bsufs.selectors._columns import ContentKey
from bsufs.selectors._data import ColumnProblem, FitData
from bsufs.selectors._nuisance import KnownColumns, Nuisance, is_number
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
        bad = [str(name) for name, kind in meta.dtypes.items() if not is_number(kind, "buif")]
        if bad:
            raise ValueError(
                f"X must hold numbers only. The columns {bad[:5]}"
                f"{' ...' if len(bad) > 5 else ''} are not numeric. Encode text as numbers or "
                "leave such columns out."
            )
        sample = meta
    else:
        if not isinstance(meta, np.ndarray) or not is_number(meta.dtype, "buif"):
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
    columns = np.flatnonzero(support)
    return X.iloc[:, list(columns)] if _is_frame(X) else X[:, columns]


class DaskData(FitData):
    """A Dask collection: its scatter, and rows where they are.

    With at least as many rows as columns S is small, and a tree of partial sums over blocks of
    rows gives it in one pass. With more columns than rows, X is cut by columns and stays with the
    workers. The shorter axis is never cut: what the workers exchange has its length.

    `values` returns what to adjust for that is no column of X, given a number of rows and their
    weights.
    """

    def __init__(
        self,
        X: Any,
        sample_weight: Any,
        names: Any,
        known: KnownColumns,
        values: Callable[[int, Array | None], Array],
    ) -> None:
        super().__init__(X, names=names)
        self._known = known
        self._by_columns = not _is_frame(X) and bool(X.shape[0] < X.shape[1])
        if self._by_columns:
            n_rows = int(X.shape[0])
        else:
            self._blocks, self._lengths = _row_blocks(X)
            n_rows = sum(self._lengths)
        require_two_rows(n_rows)
        self.sample_weight = _weight_here(sample_weight, n_rows)
        self._Z = Nuisance(known, values(n_rows, self.sample_weight)).basis(self.sample_weight)
        self.order, joint = self._columns_apart() if self._by_columns else self._rows_summed()
        self.scatter = known.cleared(joint, self.order)

    @property
    def kept_shape(self) -> tuple[int, int]:
        # Of many rows no more than S is kept.
        return self.scatter.max_rank, self.n_features

    def _rows_summed(self) -> tuple[Indices, Scatter]:
        """Return an order of the columns, and S in it with the regressors behind."""
        facts = self._row_facts()
        if facts.wrong is not None:
            raise facts.wrong.error(self.names)
        exponent = safe_unit_exponent(facts.sums.largest(self.n_features))
        if exponent and self._Z.size:
            # Beside columns of another size all that regressors explain is lost in rounding.
            self._Z = np.ldexp(self._Z, exponent)
            facts = self._row_facts()
        order = np.argsort(facts.key, kind="stable")
        behind = np.arange(order.size, order.size + self._Z.shape[1])
        wanted = np.concatenate([order, self._known.named(order), behind])
        return order, facts.sums.scatter().restricted(wanted)

    def _row_facts(self) -> "_RowFacts":
        weight, Z = self.sample_weight, self._Z
        # The key of a column weighs every row by its number, so a block must know its first one.
        parts = [
            call(
                _row_facts,
                block,
                rows.start,
                None if weight is None else weight[rows],
                Z[rows] if Z.size else None,
            )
            for block, rows in self._blocks_with_rows()
        ]
        (facts,) = compute([merged(parts, _merged_facts)])
        return facts

    def _blocks_with_rows(self) -> Iterator[tuple[Any, slice]]:
        ends = itertools.accumulate(self._lengths)
        for block, length, end in zip(self._blocks, self._lengths, ends, strict=True):
            yield block, slice(end - length, end)

    def _columns_apart(self) -> tuple[Indices, Scatter]:
        """Return an order of the columns, and S in it with the regressors behind."""
        weight, Z = self.sample_weight, self._Z
        n_rows, total_weight = Z.shape[0], float(Z.shape[0])
        if weight is not None:
            n_rows, total_weight = int(np.count_nonzero(weight)), float(weight.sum())
            Z = (np.sqrt(weight)[:, None] * Z)[weight > 0]
        X = _in_few_column_blocks(self.X)
        prepared = persist([call(_prepared_columns, block, weight) for block in _lazy_blocks(X)])
        facts = compute([call(operator.itemgetter(1), pair) for pair in prepared])
        firsts = np.cumsum(X.chunks[1]) - X.chunks[1]
        wrong = [
            fact.wrong.moved(0, int(first))
            for fact, first in zip(facts, firsts, strict=True)
            if fact.wrong is not None
        ]
        if wrong:
            raise functools.reduce(NonFinite.earlier, wrong).error(self.names)
        order = np.argsort(np.concatenate([fact.key for fact in facts]), kind="stable")
        exponent = safe_unit_exponent(max(fact.largest for fact in facts))
        place = np.argsort(order)
        diagonal = np.empty(order.size)
        diagonal[place] = np.concatenate(
            [np.ldexp(fact.squares, 2 * (fact.exponent - exponent)) for fact in facts]
        )
        columns = persist([call(_in_units, pair, exponent) for pair in prepared])
        blocks = [
            Block(block, place[first : first + fact.key.size])
            for block, fact, first in zip(columns, facts, firsts, strict=True)
        ]
        scatter = ColumnScatter(blocks, n_rows, total_weight, diagonal)
        named = scatter.columns(place[self._known.named(order)])
        joint = scatter.beside(np.hstack([named, Z])).here_if_small()
        joint.unit_exponent = exponent
        return order, joint

    def some_rows(self, sample: RowSample, problem: ColumnProblem) -> SampleOfRows:
        weight = self.sample_weight
        if not self._by_columns:
            numbers = sample.among(self._Z.shape[0], weight)
            numbers = np.arange(self._Z.shape[0]) if numbers is None else numbers
            rows = self._gathered(numbers)
            Z = np.hstack([rows[:, self._known.named(self.order)], self._Z[numbers]])
            return problem.local_rows(rows, Z, None if weight is None else weight[numbers])
        # The workers hold no rows without weight.
        weight = None if weight is None else weight[weight > 0]
        numbers = sample.numbers(self.X.shape[0] if weight is None else weight.size)
        held = problem.scatter.centered_rows()
        if held is not None:
            return _as_local_rows(held, numbers, weight)
        return DaskRows(self.scatter, problem.places, numbers, weight)

    def _gathered(self, numbers: Indices) -> Array:
        """Bring some rows here."""
        wanted = []
        for block, rows in self._blocks_with_rows():
            first, last = np.searchsorted(numbers, [rows.start, rows.stop])
            if first < last:
                wanted.append(call(_some_rows, block, numbers[first:last] - rows.start))
        return np.concatenate(compute(wanted))


class DaskRows:
    """Rows of data in column blocks: every worker has some columns of all of them."""

    def __init__(
        self, scatter: Any, places: Indices, rows: Indices | None, weight: Array | None
    ) -> None:
        self._scatter = scatter
        self._places = places
        self._rows = rows
        self._all_weights = weight
        self.n_rows = scatter.n_rows if rows is None else rows.size
        self.weight = weight if weight is None or rows is None else weight[rows]

    def __matmul__(self, V: Array) -> Array:
        spread = np.zeros((self._scatter.shape[0], V.shape[1]))
        spread[self._places] = V
        pieces = self._scatter.pieces(spread)
        lazy = self._scatter.each(_image, self._rows, self._all_weights, pieces)
        return compute([total(lazy)])[0]

    def shares_beyond_chance(self, found: Sequence[Clusters]) -> Array:
        lazy = self._scatter.each(_shares, self._rows, self._all_weights, tuple(found))
        return self._scatter.gathered(lazy)[self._places]

    def columns(self, places: Indices) -> Array:
        columns = self._scatter.columns(self._places[places])
        everything = np.arange(places.size)
        return _as_local_rows(columns, self._rows, self._all_weights).columns(everything)


def _as_local_rows(X: Array, rows: Indices | None, weight: Array | None) -> LocalRows:
    """Return centered rows, which are scaled by the roots of their weights, as they are."""
    X = X if rows is None else X[rows]
    if weight is None:
        return LocalRows.of(X, 0)
    weight = weight if rows is None else weight[rows]
    return LocalRows.of(X / np.sqrt(weight)[:, None], 0, weight)


def _image(X: Array, rows: Indices | None, weight: Array | None, V: Array) -> Array:
    return _as_local_rows(X, rows, weight) @ V


def _shares(
    X: Array, rows: Indices | None, weight: Array | None, found: Sequence[Clusters]
) -> Array:
    return _as_local_rows(X, rows, weight).shares_beyond_chance(found)


def _is_frame(X: Any) -> bool:
    return hasattr(X, "npartitions") and hasattr(X, "columns")


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


def _in_few_column_blocks(X: Any) -> Any:
    """Cut X by columns alone, into as many blocks as workers unless these would be large."""
    n, d = X.shape
    n_blocks = max(_dask.n_workers(), math.ceil(8 * n * d / _BLOCK_BYTES))
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


def _in_units(pair: tuple[Array, _ColumnFacts], exponent: int) -> Array:
    Xc, facts = pair
    return np.ldexp(Xc, facts.exponent - exponent) if facts.exponent != exponent else Xc


# ----------------------------------------------------------------------------------- blocks of rows


@dataclass
class _RowFacts(KnownSize):
    """What some rows tell; merged pairwise up to those of all."""

    sums: ScatterAccumulator
    key: Array
    wrong: NonFinite | None


def _merged_facts(parts: list[_RowFacts]) -> _RowFacts:
    # Calls may be run twice when a worker dies: what they get must stay as it is.
    whole = copy.deepcopy(parts[0])
    for part in parts[1:]:
        whole.sums.merge(part.sums)
        whole.key += part.key
        whole.wrong = NonFinite.earlier(whole.wrong, part.wrong)
    return whole


def _row_blocks(X: Any) -> tuple[list[Any], list[int]]:
    """Return the blocks of X, cut by rows alone, and how many rows each has."""
    if not _is_frame(X) and X.numblocks[1] > 1:
        X = X.rechunk({0: "auto" if X.numblocks[0] == 1 else X.chunks[0], 1: -1})
    blocks = _lazy_blocks(X)
    if _is_frame(X) or math.isnan(X.shape[0]):
        return blocks, compute([call(len, block) for block in blocks])
    return blocks, list(X.chunks[0])


def _some_rows(block: Any, numbers: Indices) -> Any:
    return _as_floats(block.iloc[numbers] if hasattr(block, "iloc") else block[numbers])


def _row_facts(
    block: Any, first_row: int, weight: Array | None, Z: Array | None = None
) -> _RowFacts:
    X = _as_floats(block)
    key = ContentKey(X.shape[1], first_row)
    key.add(X)
    wrong = non_finite(X)
    joint = X if Z is None else np.hstack([X, Z])
    sums = ScatterAccumulator(joint.shape[1])
    if wrong is None:
        sums.add(joint, weight)
    return _RowFacts(sums, key.values, wrong and wrong.moved(first_row, 0))


def _weight_here(sample_weight: Any, n_rows: int) -> Array | None:
    """Return the weights, of which there are no more than rows, as a checked array."""
    if sample_weight is None:
        return None
    weight = sample_weight.compute() if is_dask(sample_weight) else sample_weight
    weight = checked_weight(weight, n_rows)
    require_positive_weight(weight)
    return weight


def _as_floats(block: Any) -> Any:
    """Return a block as a NumPy array of single or double precision."""
    if hasattr(block, "to_numpy"):
        # Columns of different types, and missing values of the types that have one of their own.
        if all(kind == np.float32 for kind in block.dtypes):
            return block.to_numpy()
        return block.to_numpy(dtype=np.float64, na_value=np.nan)
    return block if block.dtype in (np.float64, np.float32) else block.astype(np.float64)
