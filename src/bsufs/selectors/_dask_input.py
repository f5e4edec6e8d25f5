"""Dask arrays and data frames as data to fit: checked, cut into blocks, and never in one place.

Nothing here imports Dask before a Dask collection is at hand.
"""

import copy
import itertools
import math
from collections.abc import Callable, Sequence
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
from bsufs.selectors._data import ColumnProblem, FitData
from bsufs.selectors._nuisance import KnownColumns, Nuisance
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


# Returns what to adjust for that is no column of X, given a number of rows and their weights.
Values = Callable[[int, Array | None], Array]


class DaskData(FitData):
    """A Dask collection: its scatter, and rows where they are.

    With at least as many rows as columns S is small, and a tree of partial sums over blocks of
    rows gives it in one pass. With more columns than rows, X is cut by columns and stays with the
    workers. The shorter axis is never cut: what the workers exchange has its length.
    """

    def __init__(
        self, X: Any, sample_weight: Any, names: Any, known: KnownColumns, values: Values
    ) -> None:
        super().__init__(X, names=names)
        self._known = known
        facts = _by_columns if self._cut_by_columns else _by_rows
        self.scatter, self.order, self.sample_weight, self._Z = facts(
            X, sample_weight, names, self._known, values
        )

    @property
    def kept_shape(self) -> tuple[int, int]:
        """Rows and columns of what there is to work on: of many rows no more than S is kept."""
        return self.scatter.max_rank, self.n_features

    @property
    def _cut_by_columns(self) -> bool:
        """Whether the columns of X stay with the workers, or S is summed over its rows."""
        return not _is_frame(self.X) and bool(self.X.shape[0] < self.X.shape[1])

    def some_rows(self, sample: RowSample, problem: ColumnProblem) -> SampleOfRows:
        """Return a sample of the rows, here or with the workers."""
        weight = self.sample_weight
        if self._cut_by_columns:
            # The workers hold no rows without weight.
            weight = None if weight is None else weight[weight > 0]
            numbers = sample.numbers(self.X.shape[0] if weight is None else weight.size)
            held = problem.scatter.centered_rows()
            if held is not None:
                return _as_local_rows(held, numbers, weight)
            scatter: Any = self.scatter
            return DaskRows(scatter, problem.places, numbers, weight)
        rows, numbers = _gathered_rows(self.X, sample, weight)
        Z = np.hstack([rows[:, self._known.named(self.order)], self._Z[numbers]])
        return problem.local_rows(rows, Z, None if weight is None else weight[numbers])


class DaskRows:
    """Rows of data in column blocks: every worker has some columns of all of them."""

    def __init__(
        self, scatter: Any, places: Indices, rows: Indices | None, weight: Array | None
    ) -> None:
        self._scatter = scatter
        self._places = places
        self._rows = rows
        self.n_rows = scatter.n_rows if rows is None else rows.size
        self._all_weights = weight
        self.weight = weight if weight is None or rows is None else weight[rows]

    def __matmul__(self, V: Array) -> Array:
        from bsufs._dask import compute, total

        spread = np.zeros((self._scatter.shape[0], V.shape[1]))
        spread[self._places] = V
        pieces = self._scatter.pieces(spread)
        (product,) = compute(
            [total(self._scatter.each(_image, self._rows, self._all_weights, pieces))]
        )
        return product

    def shares_beyond_chance(self, found: Sequence[Clusters]) -> Array:
        """Return, for each column, the sum over clusterings of its share less that of chance."""
        lazy = self._scatter.each(_shares, self._rows, self._all_weights, tuple(found))
        return self._scatter.gathered(lazy)[self._places]

    def columns(self, places: Indices) -> Array:
        """Bring some columns here."""
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


def _by_columns(
    X: Any, sample_weight: Any, names: Any, known: KnownColumns, values: Values
) -> tuple[Scatter, Indices, Array | None, Array]:
    from bsufs._dask import call, compute, persist
    from bsufs.scatter._columns import Block, ColumnScatter

    n_rows = int(X.shape[0])
    require_two_rows(n_rows)
    total_weight = float(n_rows)
    weight = _weight_here(sample_weight, n_rows)
    Z = Nuisance(known, values(n_rows, weight)).basis(weight)
    if weight is not None:
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
    behind = Z if weight is None else (np.sqrt(weight)[:, None] * Z)[weight > 0]
    named = scatter.columns(place[known.named(order)])
    joint = scatter.beside(np.hstack([named, behind])).here_if_small()
    joint.unit_exponent = exponent
    return known.cleared(joint, order), order, weight, Z


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
    wrong: NonFinite | None


def _merged_facts(parts: list[_RowFacts]) -> _RowFacts:
    # Calls may be run twice when a worker dies: what they get must stay as it is.
    merged = copy.deepcopy(parts[0])
    for part in parts[1:]:
        merged.sums.merge(part.sums)
        merged.key += part.key
        merged.wrong = NonFinite.earlier(merged.wrong, part.wrong)
    return merged


def _by_rows(
    X: Any, sample_weight: Any, names: Any, known: KnownColumns, values: Values
) -> tuple[Scatter, Indices, Array | None, Array]:
    from bsufs._dask import call, compute, merged

    blocks, lengths = _row_blocks(X)
    ends = list(itertools.accumulate(lengths))
    weight = _weight_here(sample_weight, ends[-1])
    require_two_rows(ends[-1])
    Z = Nuisance(known, values(ends[-1], weight)).basis(weight)
    # The key of a column weighs every row by its number, so a block must know its first one.
    parts = [
        call(
            _row_facts,
            block,
            end - length,
            None if weight is None else weight[end - length : end],
            Z[end - length : end] if Z.size else None,
        )
        for block, length, end in zip(blocks, lengths, ends, strict=True)
    ]
    (facts,) = compute([merged(parts, _merged_facts)])
    _raise_if_wrong([facts.wrong], names)
    order = np.argsort(facts.key, kind="stable")
    behind = np.arange(order.size, order.size + Z.shape[1])
    joint = facts.sums.scatter().restricted(np.concatenate([order, known.named(order), behind]))
    return known.cleared(joint, order), order, weight, Z


def _row_blocks(X: Any) -> tuple[list[Any], list[int]]:
    """Return the blocks of X, cut by rows alone, and how many rows each has."""
    from bsufs._dask import call, compute

    if not _is_frame(X) and X.numblocks[1] > 1:
        X = X.rechunk({0: "auto" if X.numblocks[0] == 1 else X.chunks[0], 1: -1})
    blocks = _lazy_blocks(X)
    if _is_frame(X) or math.isnan(X.shape[0]):
        return blocks, compute([call(len, block) for block in blocks])
    return blocks, list(X.chunks[0])


def _gathered_rows(X: Any, sample: RowSample, weight: Array | None) -> tuple[Array, Indices]:
    """Bring a sample of the rows here; return their numbers too."""
    from bsufs._dask import call, compute

    blocks, lengths = _row_blocks(X)
    ends = np.cumsum(lengths)
    numbers = sample.among(int(ends[-1]), weight)
    numbers = np.arange(ends[-1]) if numbers is None else numbers
    first = np.searchsorted(numbers, ends - lengths)
    last = np.searchsorted(numbers, ends)
    wanted = [
        call(_some_rows, block, numbers[start:stop] - (end - length))
        for block, start, stop, end, length in zip(blocks, first, last, ends, lengths, strict=True)
        if start < stop
    ]
    return np.concatenate(compute(wanted)), numbers


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


def _raise_if_wrong(parts: list[NonFinite | None], names: Any) -> None:
    wrong = None
    for part in parts:
        wrong = NonFinite.earlier(wrong, part)
    if wrong is not None:
        raise wrong.error(names)
