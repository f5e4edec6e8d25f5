"""Tables that are too large to hold, as batches of rows that can be gone through again and again.

What a batch cannot know is decided over the whole file, by the rules of `read_table`: the encoding
of text by a pass of its own, whether a column holds numbers when the last row has been seen.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bsufs.tables._encoding import is_zipped, raw_chunks
from bsufs.tables._errors import TableError
from bsufs.tables._numbers import NumericColumns
from bsufs.tables._read import (
    PARQUET,
    STDIN,
    TEXT_DELIMITERS,
    columns_to_carry,
    notices_of,
    opened_parquet,
    parquet_row_names,
    require_features,
    source_and_kind,
)
from bsufs.tables._table import Table, check_names
from bsufs.tables._text import check_delimiter
from bsufs.tables._text_stream import TextFile, open_text

# Numbers in a batch, unless the caller says how many rows: 32 MB of duplicates.
_BATCH_CELLS = 2**22
# Bytes of text that are read ahead take no more than the numbers of a batch.
_BYTES_PER_CELL = 8
# A column of a Parquet file is read through a window of so many bytes.
_WINDOW_BYTES = 2**16
# How wide cells are is estimated from the beginning of a text file.
_SAMPLE_BYTES = 2**20


def stream_table(
    path: str | os.PathLike[str],
    *,
    batch_rows: int | None = None,
    ignore: Sequence[str] = (),
    label: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
) -> TableStream:
    r"""Open a table that is larger than memory, to go through it in batches of rows.

    Reads text (.csv, .tsv, .txt, each also with .gz) and .parquet, by the rules of `read_table` and
    with the same numbers. The batches can be gone through any number of times; each pass reads the
    file again and raises an error if it has changed in between.

    Parameters
    ----------
    path : path-like
        The file.
    batch_rows : int, optional
        Rows in a batch; by default as many as make 32 MB of numbers.
    ignore : sequence of str, default=()
        Columns that are no features and are carried along as they are.
    label : str, optional
        A column of classes, carried along as well.
    delimiter : str, optional
        One character between the cells of text; see `read_table` for the default.
    header : bool, default=True
        Whether the first line of text holds the names. Without, they are x0, x1, and so on.

    Returns
    -------
    TableStream
        The batches, each a `Table`.

    Raises
    ------
    TableError
        If the file is of another kind or cannot be read twice. That a cell is no number is found
        when its batch is reached; the rest is then looked through so that the message is complete.

    Examples
    --------
    >>> import os, tempfile
    >>> from bsufs import BSUFS
    >>> from bsufs.tables import stream_table
    >>> path = os.path.join(tempfile.mkdtemp(), "table.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("id,a,b,c\nu,1,2,0\nv,3,5,0\nw,5,8,1\n")
    >>> stream, selector = stream_table(path, batch_rows=2, ignore=["id"]), BSUFS(1)
    >>> for batch in stream:
    ...     selector = selector.partial_fit(batch.values)
    >>> [stream.names[column] for column in selector.selected_features_]
    ['b']
    """
    check_delimiter(delimiter)
    if batch_rows is not None and batch_rows < 1:
        raise TableError(f"batch_rows must be at least 1, got {batch_rows}.")
    if os.fspath(path) == STDIN:
        raise TableError("standard input cannot be read twice: write it to a file first.")
    source, kind = source_and_kind(path)
    if not is_streamable(path):
        raise TableError(
            f"{source}: only text and .parquet files can be read in batches, no pipes. Write it "
            "as a .parquet file."
        )
    state = _State.of(path)
    rows: TextFile | _ParquetFile
    if kind in PARQUET:
        rows = _ParquetFile.open(Path(path), source)
        columns, row_names = rows.names, rows.row_names
    else:
        rows = open_text(path, source, delimiter or TEXT_DELIMITERS[kind], header)
        columns, row_names = rows.layout.names, rows.layout.row_names
    carried = columns_to_carry(columns, source, [*row_names, *ignore], label)
    left = set(carried)
    names = tuple(name for name in columns if name not in left)
    require_features(names, source)
    return TableStream(
        rows,
        state,
        names=names,
        carried_names=carried,
        order=columns,
        batch_rows=batch_rows or max(1, _BATCH_CELLS // len(columns)),
        notices=notices_of(rows.notices, row_names, source),
    )


def is_streamable(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is of a kind that can be read in batches, and more than once."""
    if os.fspath(path) == STDIN:
        return False
    kind = source_and_kind(path)[1]
    return kind in (*TEXT_DELIMITERS, *PARQUET) and Path(path).is_file()


def memory_to_hold(path: str | os.PathLike[str], enough: int) -> int | None:
    """Estimate how many bytes it takes to have a whole table in memory with `read_table`.

    For text that is its characters twice (as they are in the file, and in cells) and 12 bytes for
    each cell; for Parquet 16 bytes for each cell, or more where the file says so.
    """
    if not is_streamable(path):
        return None
    source, kind = source_and_kind(path)
    if kind not in PARQUET:
        return _memory_for_text(path, source, enough)
    with opened_parquet(Path(path), source) as file:
        about = file.metadata
        as_numbers = 8 * about.num_rows * about.num_columns
        groups = (about.row_group(number) for number in range(about.num_row_groups))
        as_stored = sum(group.total_byte_size for group in groups)
        return int(as_numbers + max(as_numbers, as_stored))


def _memory_for_text(path: str | os.PathLike[str], source: str, enough: int) -> int:
    n_bytes = n_marks = 0
    weight = 2.0
    for chunk in raw_chunks(path, source):
        n_bytes += len(chunk)
        if n_bytes <= 2 * _SAMPLE_BYTES:
            n_marks += sum(map(chunk.count, (b",", b"\t", b";", b"|", b"\n")))
            weight = 2.0 + 12.0 * n_marks / n_bytes
        if n_bytes >= _SAMPLE_BYTES and not is_zipped(path):
            return int(os.stat(path).st_size * weight)
        if n_bytes * weight > enough:
            break
    return int(n_bytes * weight)


class TableStream:
    """A table as batches of rows; each loop over it reads the file from the beginning.

    Parameters
    ----------
    rows : TextFile or _ParquetFile
        Where the rows come from.
    state : _State
        In which state the file must be at each pass.
    names : tuple of str
        Names of the features.
    carried_names : tuple of str
        Names of the other columns.
    order : tuple of str
        All names, in the order of the file.
    batch_rows : int
        Rows in a batch; the last one may have fewer.
    notices : tuple of str
        What the reader of the result should know about how the file is read.

    Attributes
    ----------
    n_rows : int or None
        Number of rows, None as long as it is not known: of text it is after the first pass.
    is_text : bool
        Whether the cells are the characters of a text file.
    """

    def __init__(
        self,
        rows: TextFile | _ParquetFile,
        state: _State,
        *,
        names: tuple[str, ...],
        carried_names: tuple[str, ...],
        order: tuple[str, ...],
        batch_rows: int,
        notices: tuple[str, ...] = (),
    ) -> None:
        self._rows = rows
        self.names = names
        self.carried_names = carried_names
        self.order = order
        self.batch_rows = batch_rows
        self.notices = notices
        self.is_text = isinstance(rows, TextFile)
        self.n_rows: int | None = None if isinstance(rows, TextFile) else rows.n_rows
        self._state = state

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.names)

    @property
    def most_rows(self) -> int:
        """The number of rows, or where it is not known one that it does not exceed."""
        if self.n_rows is not None:
            return self.n_rows
        return self._rows.n_lines if isinstance(self._rows, TextFile) else self._rows.n_rows

    @property
    def has_carriage_returns(self) -> bool:
        """Whether a cell may hold a carriage return, which must be quoted when it is written."""
        return self._rows.has_carriage_returns

    def __iter__(self) -> Iterator[Table]:
        return self.tables(self.names, check=True)

    def tables(self, features: Sequence[str], *, check: bool = False) -> Iterator[Table]:
        """Go through some of the features and all carried columns.

        Parameters
        ----------
        features : sequence of str
            The features wanted, in this order.
        check : bool, default=False
            Whether to raise an error, after the last row, where a column is no numbers.

        Yields
        ------
        Table
            A batch of rows; its `order` is that of the file.
        """
        wanted = {*features, *self.carried_names}
        order = tuple(name for name in self.order if name in wanted)
        reader = NumericColumns(self._rows.source)
        for cells in self._cells(order):
            originals = cells.select(list(features))
            values = reader.add(originals)
            if reader.is_sound or not check:
                yield Table(
                    values=values,
                    names=tuple(features),
                    originals=originals,
                    carried=cells.select(list(self.carried_names)),
                    order=order,
                    is_text=self.is_text,
                )
        if check:
            reader.check()

    def cells(self, names: Sequence[str]) -> Iterator[Any]:
        """Go through some columns as they are in the file.

        Parameters
        ----------
        names : sequence of str
            Names of features or carried columns, in the order wanted.

        Yields
        ------
        pyarrow.Table
            A batch of rows.
        """
        asked = set(names)
        for cells in self._cells(tuple(name for name in self.order if name in asked)):
            yield cells.select(list(names))

    def _cells(self, names: tuple[str, ...]) -> Iterator[Any]:
        self._check_unchanged()
        n_rows = 0
        everything = len(names) == len(self.order)
        try:
            if isinstance(self._rows, TextFile):
                memory = _BYTES_PER_CELL * self.batch_rows * len(self.order)
                batches = self._rows.batches(memory, None if everything else names)
            else:
                batches = self._rows.batches(self.batch_rows, None if everything else names)
            for cells in _recut(batches, self.batch_rows):
                n_rows += cells.num_rows
                yield cells
        except (TableError, OSError):
            # What makes no sense may do so because somebody writes to the file.
            self._check_unchanged()
            raise
        self._check_unchanged()
        self.n_rows = n_rows

    def _check_unchanged(self) -> None:
        if _State.of(self._rows.path) != self._state:
            raise TableError(
                f"{self._rows.source}: the file has changed while it was read, which takes more "
                "than one pass. Start again when nothing writes to it."
            )


@dataclass(frozen=True)
class _State:
    """What tells one state of a file from another."""

    device: int
    number: int
    size: int
    written: int

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> _State:
        found = os.stat(path)
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


@dataclass(frozen=True)
class _ParquetFile:
    """A Parquet file that is read in batches of rows, through a small window on each column."""

    path: Path
    source: str
    names: tuple[str, ...]
    row_names: tuple[str, ...]
    n_rows: int
    has_carriage_returns: bool
    notices: tuple[str, ...] = ()

    @classmethod
    def open(cls, path: Path, source: str) -> _ParquetFile:
        import pyarrow as pa

        with opened_parquet(path, source) as file:
            schema, n_rows = file.schema_arrow, file.metadata.num_rows
        names = tuple(schema.names)
        row_names = parquet_row_names(schema)
        check_names([name for name in names if name], source)
        if n_rows == 0:
            raise TableError(f"{source}: the table has no rows.")
        numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
        has_text = not all(any(is_kind(kind) for is_kind in numeric) for kind in schema.types)
        return cls(path, source, names, row_names, n_rows, has_text)

    def batches(self, batch_rows: int, columns: Sequence[str] | None) -> Iterator[Any]:
        with opened_parquet(
            self.path, self.source, buffer_size=_WINDOW_BYTES, pre_buffer=False
        ) as file:
            for batch in file.iter_batches(batch_rows, columns=columns, use_threads=False):
                # Asked for by name, columns inside others of that name would come as well.
                yield batch if columns is None else batch.select(list(columns))


def _recut(batches: Iterator[Any], n_rows: int) -> Iterator[Any]:
    """Join and cut batches so that each has the same number of rows."""
    import pyarrow as pa

    waiting: list[Any] = []
    count = 0
    for batch in batches:
        start = 0
        while count + batch.num_rows - start >= n_rows:
            part = batch.slice(start, n_rows - count)
            yield _without_metadata(pa.Table.from_batches([*waiting, part]))
            start += part.num_rows
            waiting, count = [], 0
        if start < batch.num_rows:
            waiting.append(batch.slice(start))
            count += batch.num_rows - start
    if waiting:
        yield _without_metadata(pa.Table.from_batches(waiting))


def _without_metadata(cells: Any) -> Any:
    return cells.replace_schema_metadata(None)
