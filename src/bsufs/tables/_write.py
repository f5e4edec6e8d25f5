"""Writing a table: kept cells go out as they came in, batch by batch."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from bsufs._atomic import STANDARD, checked_write
from bsufs.tables._arrays import CARRIED_NAMES, FEATURE_NAMES
from bsufs.tables._arrow import arrow_csv, compute, ipc, pa, parquet
from bsufs.tables._files import PARQUET, TEXT, TableError, kind_of, listed
from bsufs.tables._numbers import numbers
from bsufs.tables._rows import joined
from bsufs.tables._table import Table

_ARRAYS = (".npy", ".npz", ".h5ad")
# Rows are turned into Python's text so many at a time.
_ROWS_AT_ONCE = 2_000
# A group of rows in a file of columns has at most so many bytes.
_LARGEST_GROUP = 2**26


def write_table(
    table: Table,
    path: str | os.PathLike[str],
    features: ArrayLike | None = None,
    *,
    order: Literal["table", "rank"] = "table",
    force: bool = False,
) -> None:
    """Write some features of a table, and all carried columns; the extension says how.

    Text (.csv, .tsv, .txt, each also with .gz) is UTF-8; cells that were read from text have the
    same characters again. In .parquet and .feather columns keep their types; where they come from
    text, features become integers or floats, and carried columns too if no character is lost. A
    .npy holds the features alone, a .npz also the names and the carried columns, a .h5ad (of a
    table that comes from one) every annotation; these need a table that is held. The file takes its
    place when the last row is in it.

    Parameters
    ----------
    table : Table
        The table.
    path : path-like
        The file; "-" for CSV on standard output.
    features : array-like of int, optional
        Which features, best first; by default all.
    order : {"table", "rank"}, default="table"
        Whether the columns keep the order of the file, or carried ones come first and the features
        follow as given.
    force : bool, default=False
        Whether an old file may be replaced.
    """
    chosen = np.asarray(range(table.n_features) if features is None else features).tolist()
    chosen = sorted(chosen) if order == "table" else chosen
    kind = _kind(path)
    if kind in _ARRAYS and not table.is_held:
        raise TableError(
            f"{path}: a {kind} file cannot be written in batches of rows. Write .parquet, "
            ".feather or .csv, or raise --memory so that the table is read at once."
        )
    others = [table.names[one] for one in chosen if table.names[one] not in table.plain_numbers]
    if kind in _ARRAYS and others:
        raise TableError(
            f"{path}: a {kind} file holds numbers alone, and {listed(others)} among the features "
            "is none. Write .csv, .parquet or .feather."
        )
    names = [*table.carried_names, *(table.names[one] for one in chosen)]
    if order == "table":
        wanted = set(names)
        names = [name for name in table.rows.names if name in wanted]
    annotated = table.annotated(chosen) if kind == ".h5ad" else None
    with _target(path, force) as stream:
        if annotated is not None:
            _write_anndata(annotated, stream)
        elif kind in _ARRAYS:
            _write_array(table, chosen, stream, kind)
        elif kind in TEXT:
            _write_text(table.cells(names), names, stream, TEXT[kind] or "\t")
        else:
            _write_columnar(table, names, stream, kind)


@contextlib.contextmanager
def _target(path: str | os.PathLike[str], force: bool) -> Iterator[Any]:
    with checked_write(path, force=force) as stream:
        if not os.fspath(path).lower().endswith(".gz"):
            yield stream
            return
        # No time and no name inside, so that equal tables give equal files.
        with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as zipped:
            yield zipped


def needs_whole_table(path: str | os.PathLike[str]) -> bool:
    """Return whether a file of this kind can only be written from a table that is held."""
    return _kind(path) in _ARRAYS


def _kind(path: str | os.PathLike[str]) -> str:
    if os.fspath(path) == STANDARD:
        return ".csv"
    return kind_of(path, _ARRAYS, "to write")


def _write_text(batches: Iterable[Any], names: Sequence[str], stream: Any, delimiter: str) -> None:
    header = _quoted_lines([names], delimiter)
    for batch in batches:
        columns = map(_as_text, batch.schema.names, batch.columns)
        texts = pa.record_batch(list(columns), names=list(names))
        # Now that each is known to have a text: else not even the header is written.
        stream.write(header)
        header = b""
        for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
            stream.write(_lines(texts.slice(start, _ROWS_AT_ONCE), delimiter))
    stream.write(header)


def _lines(texts: Any, delimiter: str) -> bytes:
    """Return rows as lines of text, with quotes only around cells that need them."""
    content = io.BytesIO()
    options = arrow_csv.WriteOptions(
        include_header=False, delimiter=delimiter, quoting_style="none"
    )
    # An empty cell that is alone in its line has quotes.
    if texts.num_columns > 1:
        with contextlib.suppress(pa.ArrowInvalid):
            arrow_csv.write_csv(texts, content, options)
            return content.getvalue()
    return _quoted_lines(zip(*texts.to_pydict().values(), strict=True), delimiter)


def _quoted_lines(rows: Iterable[Any], delimiter: str) -> bytes:
    lines: list[str] = []
    # Cells with a character of the line end are quoted: both must be in it for that.
    target = SimpleNamespace(write=lambda line: lines.append(line.removesuffix("\r\n") + "\n"))
    csv.writer(target, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    return "".join(lines).encode()


def _as_text(name: str, column: Any) -> Any:
    try:
        return compute.fill_null(column.cast(pa.string()), "")
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise TableError(
            f"column {name!r} of type {column.type} cannot be written as text. Write a .parquet "
            "or .feather file."
        ) from error


def _write_columnar(table: Table, names: Sequence[str], stream: BinaryIO, kind: str) -> None:
    # The cells are read once where the whole table would fit into memory.
    held = list(table.cells(names)) if table.is_held else None
    types = _lossless_types(held or table.cells(names)) if table.rows.is_text else {}
    writer: Any = None
    # A file is not to be made of many small groups of rows.
    group_bytes = min(max(table.memory // 8, 2**20), _LARGEST_GROUP)
    for cells in joined(held or table.cells(names), group_bytes):
        # Batches have dictionaries of their own, a file has one.
        group = _typed(cells, types, table).unify_dictionaries()
        if writer is None and kind in PARQUET:
            writer = parquet.ParquetWriter(stream, group.schema)
        elif writer is None:
            compressed = ipc.IpcWriteOptions(compression="lz4")
            writer = ipc.new_file(stream, group.schema, options=compressed)
        try:
            writer.write_table(group)
        except pa.ArrowInvalid as error:
            raise TableError(
                f"the rows cannot be written to a {kind} file batch by batch ({error}). Write a "
                ".parquet file, or raise --memory so that the table is read at once."
            ) from error
    writer.close()


def _lossless_types(batches: Iterable[Any]) -> dict[str, Any]:
    """Return for columns of text the type of numbers that keeps every character, None for none."""
    types: dict[str, list[Any]] = {}
    for batch in batches:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            possible = types.get(name, [pa.int64(), pa.float64()])
            types[name] = [kind for kind in possible if _is_lossless(_known(column), kind)]
    return {name: (*kinds, None)[0] for name, kinds in types.items()}


def _typed(cells: Any, types: Mapping[str, Any], table: Table) -> Any:
    """Return columns of text as numbers, but for carried ones that would lose characters."""
    if not types:
        return cells
    columns = cells.columns
    for place, (name, kind) in enumerate(types.items()):
        if kind is not None:
            columns[place] = _known(columns[place]).cast(kind)
        elif name in table.plain_numbers:
            columns[place] = pa.array(numbers(columns[place]), from_pandas=True)
    return pa.table(columns, names=cells.column_names)


def _known(column: Any) -> Any:
    return compute.if_else(compute.equal(column, ""), None, column)


def _is_lossless(known: Any, kind: Any) -> bool:
    try:
        return bool(known.cast(kind).cast(pa.string()).equals(known))
    except pa.ArrowInvalid:
        return False


def _write_array(table: Table, features: Sequence[int], stream: BinaryIO, kind: str) -> None:
    names = [table.names[feature] for feature in features]
    matrix = table.matrix(features)
    if matrix is None:
        matrix = np.column_stack([column.to_numpy() for column in _columns(table, names)])
    if kind == ".npy":
        # Written to a file by NumPy, a full disk is an error that does not say so.
        content = io.BytesIO()
        dense = matrix.toarray() if sparse.issparse(matrix) else matrix
        np.save(content, dense, allow_pickle=False)
        stream.write(content.getvalue())
        return
    named = {FEATURE_NAMES: np.array(names)}
    if table.carried_names:
        named[CARRIED_NAMES] = np.array(table.carried_names)
        columns = _columns(table, table.carried_names)
        named |= {f"carried_{place}": _vector(column) for place, column in enumerate(columns)}
    stored: dict[str, Any] = {"X": matrix}
    if sparse.issparse(matrix):
        # As scipy.sparse.load_npz reads it.
        stored = {"indices": matrix.indices, "indptr": matrix.indptr, "data": matrix.data}
        stored |= {"format": np.array(b"csr"), "shape": np.array(matrix.shape)}
    np.savez_compressed(stream, allow_pickle=False, **stored, **named)


def _write_anndata(annotated: Any, stream: BinaryIO) -> None:
    # Its writer takes names of files alone.
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "panel.h5ad")
        annotated.write_h5ad(path)
        with open(path, "rb") as content:
            shutil.copyfileobj(content, stream)


def _columns(table: Table, names: Sequence[str]) -> list[Any]:
    """Return columns with a type: their own, or for text the one that the cells have."""
    batches = list(table.cells(names))
    types = _lossless_types(batches) if table.rows.is_text else {}
    return list(_typed(pa.Table.from_batches(batches), types, table).columns)


def _vector(column: Any) -> Any:
    """Return a carried column as numbers or strings: arrays of objects would need pickling."""
    values = column.to_numpy()
    if values.dtype.kind in "biufM":
        return values
    return np.array(_as_text("", column).to_pylist(), dtype=str)
