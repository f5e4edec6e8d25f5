"""Writing a table: kept cells go out as they came in."""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse

from bsufs.tables._arrays import CARRIED_NAMES, FEATURE_NAMES
from bsufs.tables._atomic import check_target, write_atomically
from bsufs.tables._errors import TableError
from bsufs.tables._numbers import numbers
from bsufs.tables._read import PARQUET
from bsufs.tables._table import Table, joined

STDOUT = "-"
_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
_ARRAYS = (".npy", ".npz")
WRITABLE = (*_DELIMITERS, *PARQUET, ".feather", ".arrow", *_ARRAYS)
# Rows are turned into Python lists so many at a time.
_BATCH = 10_000


def check_output(path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Raise an error where a table could not be written, before work is done for it."""
    if os.fspath(path) == STDOUT:
        return
    _kind(path)
    check_target(path, force=force)


def write_table(table: Table, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write all columns of a table, in its order; the extension says how.

    Text (.csv, .tsv, .txt, each also with .gz) is UTF-8; cells that were read from text have the
    same characters again. In .parquet and .feather columns keep their types; where they come from
    text, features become integers or floats, and carried columns too if no character is lost. A
    .npy holds the features alone, a .npz also the names and the carried columns.

    Parameters
    ----------
    table : Table
        The table.
    path : path-like
        The file; "-" for CSV on standard output.
    force : bool, default=False
        Whether an old file may be replaced.
    """

    def once() -> Iterator[Table]:
        return iter([table])

    if os.fspath(path) != STDOUT and _kind(path) in _ARRAYS:
        with write_atomically(path, force=force) as stream:
            if _kind(path) == ".npy":
                stream.write(_npy(_matrix(table)))
            else:
                np.savez_compressed(stream, allow_pickle=False, **_parts(table))
        return
    write_batches(once, path, force=force)


def write_batches(
    batches: Callable[[], Iterable[Table]],
    path: str | os.PathLike[str],
    *,
    force: bool = False,
    group_bytes: int = 2**26,
    plain: bool = False,
) -> None:
    """Write a table that comes in batches of rows, as `write_table` would write all of them.

    The file takes its place when the last batch is in it. How a column is written may depend on
    all its rows (the type that text has, whether cells are quoted); then the batches are gone
    through once more beforehand.
    """
    if os.fspath(path) == STDOUT:
        _write_text(batches, sys.stdout.buffer, ",", plain)
        sys.stdout.buffer.flush()
        return
    kind = _kind(path)
    check_batchwise(path)
    with write_atomically(path, force=force) as stream:
        if kind in _DELIMITERS and os.fspath(path).lower().endswith(".gz"):
            # No time and no name inside, so that equal tables give equal files.
            with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as zipped:
                _write_text(batches, zipped, _DELIMITERS[kind], plain)
        elif kind in _DELIMITERS:
            _write_text(batches, stream, _DELIMITERS[kind], plain)
        else:
            _write_columnar(batches, stream, kind, group_bytes)


def check_batchwise(path: str | os.PathLike[str]) -> None:
    """Raise an error where a file can only be written from a table that is in memory."""
    if os.fspath(path) != STDOUT and _kind(path) in _ARRAYS:
        raise TableError(
            f"{path}: a {_kind(path)} file cannot be written in batches of rows. Write .parquet, "
            ".feather or .csv, or raise --memory so that the table is read at once."
        )


def _npy(matrix: Any) -> bytes:
    # Written to a file by NumPy, a full disk is an error that does not say so.
    memory = io.BytesIO()
    np.save(memory, matrix, allow_pickle=False)
    return memory.getvalue()


def _kind(path: str | os.PathLike[str]) -> str:
    name = Path(path).name.lower()
    kind = Path(name.removesuffix(".gz")).suffix
    if kind in (_DELIMITERS if name.endswith(".gz") else WRITABLE):
        return kind
    raise TableError(
        f"{path}: the extension must say what to write, one of {' '.join(WRITABLE)} (text also "
        "with .gz)."
    )


def _write_text(
    batches: Callable[[], Iterable[Table]], stream: Any, delimiter: str, plain: bool
) -> None:
    # The writer quotes a line feed where it must, but a carriage return only when told to.
    returns = not plain and any(map(_has_carriage_returns, batches()))
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    writer = None
    for table in batches():
        if writer is None:
            quoted = returns or any("\r" in name for name in table.order)
            writer = csv.writer(
                text,
                delimiter=delimiter,
                lineterminator="\n",
                quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL,
            )
            writer.writerow(table.order)
        columns = _text_columns(table)
        for start in range(0, table.n_rows, _BATCH):
            cells = [column.slice(start, _BATCH).to_pylist() for column in columns]
            writer.writerows(zip(*cells, strict=True))
    text.flush()
    # The stream belongs to the caller, who closes it.
    text.detach()


def _text_columns(table: Table) -> list[Any]:
    named = zip(table.order, table.as_read(table.order), strict=True)
    return [_as_text(name, column) for name, column in named]


def _has_carriage_returns(table: Table) -> bool:
    return any(map(_has_carriage_return, _text_columns(table)))


def _has_carriage_return(column: Any) -> bool:
    from pyarrow import compute

    return bool(compute.any(compute.match_substring(column, "\r")).as_py())


def _chunked(column: Any) -> Any:
    import pyarrow as pa

    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([pa.array(column)])


def _as_text(name: str, column: Any) -> Any:
    import pyarrow as pa
    from pyarrow import compute

    column = _chunked(column)
    try:
        return compute.fill_null(column.cast(pa.string()), "")
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise TableError(
            f"column {name!r} of type {column.type} cannot be written as text. Write a .parquet "
            "or .feather file."
        ) from error


def _typed(table: Table, names: Sequence[str]) -> list[Any]:
    """Return columns with a type: their own, or for text the one that the cells have."""
    return _typed_as(table, names, _lossless_types([table], names))


def _typed_as(table: Table, names: Sequence[str], types: Mapping[str, Sequence[Any]]) -> list[Any]:
    columns = [_chunked(column) for column in table.as_read(names)]
    if not table.is_text:
        return columns
    carried = set(table.carried.column_names)
    return [
        _typed_text(column, types[name], name in carried)
        for name, column in zip(names, columns, strict=True)
    ]


def _lossless_types(tables: Iterable[Table], names: Sequence[str]) -> dict[str, list[Any]]:
    """Return the types that columns of text can have without the loss of a character."""
    import pyarrow as pa

    types: dict[str, list[Any]] = {name: [pa.int64(), pa.float64()] for name in names}
    for table in tables:
        if not table.is_text:
            break
        for name, column in zip(names, table.as_read(names), strict=True):
            types[name] = [kind for kind in types[name] if _is_lossless(_known(column), kind)]
    return types


def _known(column: Any) -> Any:
    import pyarrow as pa
    from pyarrow import compute

    return compute.if_else(compute.equal(column, ""), pa.scalar(None, pa.string()), column)


def _is_lossless(known: Any, kind: Any) -> bool:
    import pyarrow as pa

    try:
        return bool(known.cast(kind).cast(pa.string()).equals(known))
    except pa.ArrowInvalid:
        return False


def _typed_text(column: Any, types: Sequence[Any], is_carried: bool) -> Any:
    import pyarrow as pa

    if types:
        return _known(column).cast(types[0])
    if is_carried:
        return column
    return pa.chunked_array([pa.array(numbers(column), from_pandas=True)])


def _write_columnar(
    batches: Callable[[], Iterable[Table]], stream: BinaryIO, kind: str, group_bytes: int
) -> None:
    import pyarrow as pa
    from pyarrow import ipc, parquet

    types: dict[str, list[Any]] | None = None
    writer: Any = None
    for table in _grouped(batches(), group_bytes):
        if types is None:
            types = _lossless_types(batches() if table.is_text else (), table.order)
        typed = pa.table(_typed_as(table, table.order, types), names=list(table.order))
        if writer is None and kind in PARQUET:
            writer = parquet.ParquetWriter(stream, typed.schema)
        elif writer is None:
            compressed = ipc.IpcWriteOptions(compression="lz4")
            writer = ipc.new_file(stream, typed.schema, options=compressed)
        try:
            writer.write_table(typed)
        except pa.ArrowInvalid as error:
            raise TableError(
                f"the rows cannot be written to a {kind} file batch by batch ({error}). Write a "
                ".parquet file, or raise --memory so that the table is read at once."
            ) from error
    writer.close()


def _grouped(batches: Iterable[Table], group_bytes: int) -> Iterator[Table]:
    """Join small batches, so that a file is not made of many small groups of rows."""
    waiting: list[Table] = []
    size = 0
    for table in batches:
        waiting.append(table)
        size += 0 if not hasattr(table.originals, "nbytes") else int(table.originals.nbytes)
        size += int(table.carried.nbytes)
        if size >= group_bytes:
            yield joined(waiting)
            waiting, size = [], 0
    if waiting:
        yield joined(waiting)


def _matrix(table: Table) -> Any:
    """Return the features as one array of the type that holds them all."""
    if isinstance(table.originals, np.ndarray):
        return table.originals
    if sparse.issparse(table.originals):
        return table.originals.toarray()
    return np.column_stack([column.to_numpy() for column in _typed(table, table.names)])


def _parts(table: Table) -> dict[str, Any]:
    names = {FEATURE_NAMES: np.array(table.names)}
    carried = {}
    if table.carried.num_columns:
        names[CARRIED_NAMES] = np.array(table.carried.column_names)
        columns = _typed(table, table.carried.column_names)
        carried = {f"carried_{number}": _vector(column) for number, column in enumerate(columns)}
    if not sparse.issparse(table.originals):
        return {"X": _matrix(table), **names, **carried}
    # As scipy.sparse.save_npz writes it, so that its load_npz reads it.
    matrix = table.originals
    stored = {"indices": matrix.indices, "indptr": matrix.indptr, "data": matrix.data}
    layout = {"format": np.array(b"csr"), "shape": np.array(matrix.shape)}
    return {**stored, **layout, **names, **carried}


def _vector(column: Any) -> Any:
    """Return a carried column as numbers or strings: arrays of objects would need pickling."""
    values = column.to_numpy()
    if values.dtype.kind in "biufM":
        return values
    return np.array(_as_text("", column).to_pylist(), dtype=str)
