"""Dask arrays and data frames as input: what they hold, checked and cut into blocks, still lazy.

Nothing here imports Dask before a Dask collection is at hand.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from bsufs._memory import KnownSize
from bsufs._typing import Array, Indices
from bsufs.scatter import Scatter, ScatterAccumulator
from bsufs.selectors._columns import ContentKey
from bsufs.selectors._validation import (
    NonFinite,
    checked_weight,
    non_finite,
    require_positive_weight,
    require_two_rows,
)


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


def scatter_and_order(X: Any, sample_weight: Any, names: Any) -> tuple[Scatter, Indices]:
    """Return the scatter operator of a Dask collection, with its columns in canonical order.

    With at least as many rows as columns S is small, and a tree of partial sums over blocks of
    rows gives it in one pass. With more columns than rows, X is cut by columns and stays with the
    workers. The shorter axis is never cut: what the workers exchange has its length.
    """
    scatter = _by_columns if cut_by_columns(X) else _by_rows
    return scatter(X, sample_weight, names)


def cut_by_columns(X: Any) -> bool:
    """Return whether the columns of X stay with the workers, or S is summed over its rows."""
    return not _is_frame(X) and bool(X.shape[0] < X.shape[1])


def _is_frame(X: Any) -> bool:
    return hasattr(X, "npartitions") and hasattr(X, "columns")


def _is_number(kind: Any) -> bool:
    # Extension types of pandas say of themselves whether they are numbers.
    return bool(getattr(kind, "_is_numeric", getattr(kind, "kind", "O") in "buif"))


# -------------------------------------------------------------------------------- blocks of columns


@dataclass(frozen=True)
class _ColumnFacts:
    """What the client must know of a block of columns."""

    key: Array
    largest: float
    wrong: NonFinite | None


def _by_columns(X: Any, sample_weight: Any, names: Any) -> tuple[Scatter, Indices]:
    from bsufs.distributed._tasks import compute, persist, shared, task
    from bsufs.distributed.columns import scatter_of_columns

    n_rows = int(X.shape[0])
    require_two_rows(n_rows)
    weight = None
    if sample_weight is not None:
        if is_dask(sample_weight):
            sample_weight = sample_weight.compute()
        weight = checked_weight(sample_weight, n_rows)
        require_positive_weight(weight)
    if X.numblocks[0] > 1:
        X = X.rechunk({0: -1, 1: "auto" if X.numblocks[1] == 1 else X.chunks[1]})
    common = shared(weight)
    both = [task(_prepare_columns, block, common) for block in _lazy_blocks(X)]
    prepared, lazy_facts = persist(
        [task(_first, pair) for pair in both], [task(_second, pair) for pair in both]
    )
    facts = compute(*lazy_facts)
    ends = np.cumsum(X.chunks[1])
    _raise_if_wrong(
        [
            fact.wrong and fact.wrong.moved(0, int(end) - fact.key.size)
            for fact, end in zip(facts, ends, strict=True)
        ],
        names,
    )
    order = np.argsort(np.concatenate([fact.key for fact in facts]), kind="stable")
    place = np.argsort(order)
    rows = [place[end - fact.key.size : end] for fact, end in zip(facts, ends, strict=True)]
    largest = max(fact.largest for fact in facts)
    return scatter_of_columns(prepared, rows, largest, n_rows, weight), order


def _lazy_blocks(X: Any) -> list[Any]:
    """Return the blocks of a Dask collection, in order, as tasks."""
    blocks = list(np.ravel(X.to_delayed()))
    graph = blocks[0].__dask_graph__()
    if all(block.key in graph for block in blocks):
        return blocks
    # Blocks that a cluster holds already are left out of a graph when it is optimized.
    return list(np.ravel(X.to_delayed(optimize_graph=False)))


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]


def _prepare_columns(X: Any, weight: Array | None) -> tuple[Any, _ColumnFacts]:
    from bsufs.distributed.columns import PreparedColumns

    X = _as_floats(X)
    key = ContentKey(X.shape[1])
    key.add(X)
    wrong = non_finite(X)
    if wrong is not None or not X.shape[1]:
        return None, _ColumnFacts(key.values, 0.0, wrong)
    prepared = PreparedColumns.of(X, weight)
    return prepared, _ColumnFacts(key.values, prepared.largest, None)


# ----------------------------------------------------------------------------------- blocks of rows


@dataclass
class _RowFacts(KnownSize):
    """What some rows tell; merged pairwise up to those of all."""

    sums: ScatterAccumulator
    key: Array
    n_rows: int
    wrong: NonFinite | None

    def copy(self) -> _RowFacts:
        """Return facts of their own, to merge others into."""
        facts = copy.copy(self)
        facts.sums = copy.deepcopy(self.sums)
        facts.key = self.key.copy()
        return facts

    def merge(self, other: _RowFacts) -> None:
        """Take in the facts of other rows."""
        self.sums.merge(other.sums)
        self.key += other.key
        self.n_rows += other.n_rows
        self.wrong = NonFinite.earlier(self.wrong, other.wrong)


def _by_rows(X: Any, sample_weight: Any, names: Any) -> tuple[Scatter, Indices]:
    from bsufs.distributed._tasks import task
    from bsufs.distributed.rows import merged_here

    X = _cut_by_rows(X)
    n_features = X.shape[1]
    blocks = _lazy_blocks(X)
    lengths = None if _is_frame(X) or math.isnan(X.shape[0]) else X.chunks[0]
    weights = _weights_of_blocks(sample_weight, len(blocks), lengths)
    first_row: Any = 0
    parts = []
    for number, block in enumerate(blocks):
        weight = weights[number] if isinstance(weights, list) else weights
        parts.append(task(_row_facts, block, n_features, first_row, weight))
        # The key of a column weighs every row by its number, so a block must know its first one.
        if lengths is None:
            first_row = task(_next_first_row, first_row, block)
        else:
            first_row += lengths[number]
    facts = merged_here(parts)
    if isinstance(weights, _WholeWeights):
        weights.require_length(facts.n_rows)
    _raise_if_wrong([facts.wrong], names)
    require_two_rows(facts.n_rows)
    if sample_weight is not None and not facts.sums.n_rows:
        require_positive_weight(np.zeros(1))
    order = np.argsort(facts.key, kind="stable")
    return facts.sums.scatter().restricted(order), order


def _cut_by_rows(X: Any) -> Any:
    if _is_frame(X) or X.numblocks[1] == 1:
        return X
    return X.rechunk({0: "auto" if X.numblocks[0] == 1 else X.chunks[0], 1: -1})


def gathered_rows(X: Any, numbers_among: Callable[[int], Indices | None]) -> Array:
    """Bring some rows of a Dask collection here."""
    from bsufs.distributed._tasks import compute, task

    X = _cut_by_rows(X)
    blocks = _lazy_blocks(X)
    if _is_frame(X) or math.isnan(X.shape[0]):
        lengths = compute(*(task(len, block) for block in blocks))
    else:
        lengths = list(X.chunks[0])
    ends = np.cumsum(lengths)
    numbers = numbers_among(int(ends[-1]))
    numbers = np.arange(ends[-1]) if numbers is None else numbers
    first = np.searchsorted(numbers, ends - lengths)
    last = np.searchsorted(numbers, ends)
    wanted = [
        task(_some_rows, block, numbers[start:stop] - (end - length))
        for block, start, stop, end, length in zip(blocks, first, last, ends, lengths, strict=True)
        if start < stop
    ]
    return np.concatenate(compute(*wanted))


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
