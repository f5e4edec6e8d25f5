"""Writing a table: kept cells go out as they came in."""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse

from bsufs.tables._arrays import CARRIED_NAMES, FEATURE_NAMES
from bsufs.tables._atomic import check_target, write_atomically
from bsufs.tables._errors import TableError
from bsufs.tables._numbers import numbers
from bsufs.tables._table import Table

STDOUT = "-"
_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
WRITABLE = (*_DELIMITERS, ".parquet", ".pq", ".feather", ".arrow", ".npy", ".npz")
# Rows are turned into Python lists so many at a time.
_BATCH = 10_000


def check_output(path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Raise an error where a table could not be written, before work is done for it.

    Parameters
    ----------
    path : path-like
        The file; "-" for standard output.
    force : bool, default=False
        Whether an old file may be replaced.
    """
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
    if os.fspath(path) == STDOUT:
        _write_text(table, sys.stdout.buffer, ",")
        sys.stdout.buffer.flush()
        return
    kind = _kind(path)
    with write_atomically(path, force=force) as stream:
        if kind in _DELIMITERS and os.fspath(path).lower().endswith(".gz"):
            # No time and no name inside, so that equal tables give equal files.
            with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as zipped:
                _write_text(table, zipped, _DELIMITERS[kind])
        elif kind in _DELIMITERS:
            _write_text(table, stream, _DELIMITERS[kind])
        elif kind == ".npy":
            stream.write(_npy(_matrix(table)))
        elif kind == ".npz":
            np.savez_compressed(stream, allow_pickle=False, **_parts(table))
        else:
            _write_columnar(table, stream, kind)


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


def _write_text(table: Table, stream: Any, delimiter: str) -> None:
    columns = [
        _as_text(name, column)
        for name, column in zip(table.order, table.as_read(table.order), strict=True)
    ]
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    # The writer quotes a line feed where it must, but a carriage return only when told to.
    returns = any(map(_has_carriage_return, columns)) or any("\r" in name for name in table.order)
    writer = csv.writer(
        text,
        delimiter=delimiter,
        lineterminator="\n",
        quoting=csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL,
    )
    writer.writerow(table.order)
    for start in range(0, table.n_rows, _BATCH):
        cells = [column.slice(start, _BATCH).to_pylist() for column in columns]
        writer.writerows(zip(*cells, strict=True))
    text.flush()
    # The stream belongs to the caller, who closes it.
    text.detach()


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
    columns = [_chunked(column) for column in table.as_read(names)]
    if not table.is_text:
        return columns
    carried = set(table.carried.column_names)
    return [
        _typed_text(column, name in carried) for name, column in zip(names, columns, strict=True)
    ]


def _typed_text(column: Any, is_carried: bool) -> Any:
    import pyarrow as pa
    from pyarrow import compute

    known = compute.if_else(compute.equal(column, ""), pa.scalar(None, pa.string()), column)
    for kind in (pa.int64(), pa.float64()):
        try:
            parsed = known.cast(kind)
        except pa.ArrowInvalid:
            continue
        if parsed.cast(pa.string()).equals(known):
            return parsed
    if is_carried:
        return column
    return pa.chunked_array([pa.array(numbers(column), from_pandas=True)])


def _write_columnar(table: Table, stream: BinaryIO, kind: str) -> None:
    import pyarrow as pa
    from pyarrow import ipc, parquet

    typed = pa.table(_typed(table, table.order), names=list(table.order))
    if kind in (".parquet", ".pq"):
        parquet.write_table(typed, stream)
        return
    with ipc.new_file(
        stream, typed.schema, options=ipc.IpcWriteOptions(compression="lz4")
    ) as writer:
        writer.write_table(typed)


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
