"""What a table asks of a file, whatever its kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from bsufs._typing import Array
from bsufs.tables._arrow import pa
from bsufs.tables._files import RawFile

# Columns that stand for row names in files of pandas and R have no name of their own.
ROW_NAMES = ""


class Rows(ABC):
    """The rows of a file, in record batches that can be gone through again and again."""

    file: RawFile
    # All columns, those that may be features, and those that are row names.
    names: tuple[str, ...]
    features: tuple[str, ...]
    row_names: tuple[str, ...]
    # Names of a feature and of another column alike.
    ambiguous: frozenset[str] = frozenset()
    empty = "the table has no rows."
    notices: tuple[str, ...] = ()
    # What to do about equal names.
    how_to_rename = "Rename them"
    is_text = False
    # How many rows there are, where that is known before they are read, and at most.
    n_rows: int | None = None
    most_rows = 0
    # How many bytes it takes to read all at once, None for what is never read in parts.
    memory_to_hold: int | None = None

    @abstractmethod
    def batches(
        self, names: Sequence[str], most_rows: int | None, numeric: Collection[str] = ()
    ) -> Iterator[Any]:
        """Go through some columns; record batches have about so many rows, None for no limit.

        Text comes as it is, but for columns that may come as the numbers they seem to hold.
        """

    def matrix(self, names: Sequence[str]) -> Any:
        """Return some features as the matrix that the file holds; None where it holds none."""
        return None

    def read_ahead(self, memory: int) -> None:  # noqa: B027 - most read nothing ahead
        """Let what is read ahead take so many bytes."""


def numbered_names(n_columns: int) -> tuple[str, ...]:
    """Return names for columns that have none."""
    return tuple(f"x{number}" for number in range(n_columns))


def joined(batches: Iterable[Any], enough_bytes: int) -> Iterator[Any]:
    """Join record batches to tables that are large enough to be worth the handling."""
    waiting: list[Any] = []
    total = 0
    for batch in batches:
        if waiting and batch.schema != waiting[0].schema:
            yield pa.Table.from_batches(waiting)
            waiting, total = [], 0
        waiting.append(batch)
        total += batch.nbytes
        if total >= enough_bytes:
            yield pa.Table.from_batches(waiting)
            waiting, total = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def regrouped(blocks: Iterable[Array], n_rows: int) -> Iterator[Array]:
    """Join and cut blocks of rows so that each has the same number, and the last what is left."""
    waiting: list[Array] = []
    count = 0
    for block in blocks:
        first = n_rows - count
        if waiting and len(block) >= first:
            yield np.concatenate([*waiting, block[:first]])
            waiting, count, block = [], 0, block[first:]
        if not waiting:
            n_whole = len(block) // n_rows * n_rows
            yield from (block[start : start + n_rows] for start in range(0, n_whole, n_rows))
            block = block[n_whole:]
        if len(block):
            waiting.append(block)
            count += len(block)
    if waiting:
        yield np.concatenate(waiting)
