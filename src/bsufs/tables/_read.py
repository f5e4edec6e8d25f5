"""Reading a table: the file says by its name what it is."""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse

from bsufs.tables._arrays import Arrays, read_h5ad, read_mat, read_npy, read_npz
from bsufs.tables._errors import TableError, listed
from bsufs.tables._numbers import numeric_matrix
from bsufs.tables._table import Table, check_names
from bsufs.tables._text import ROW_NAMES, Cells, check_delimiter, read_text

STDIN = "-"
# None stands for the delimiter that is most frequent in the first line.
TEXT_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": None}
PARQUET = (".parquet", ".pq")
_COLUMNAR = (*PARQUET, ".feather", ".arrow")
_ARRAYS = (".npy", ".npz", ".mat", ".h5ad")
READABLE = (*TEXT_DELIMITERS, *_COLUMNAR, *_ARRAYS)
# pandas names index columns so where they have no name.
_PANDAS_INDEX = "__index_level_"


def read_table(
    path: str | os.PathLike[str],
    *,
    ignore: Sequence[str] = (),
    label: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
    array: str | None = None,
    stdin: BinaryIO | None = None,
) -> Table:
    r"""Read a table; its extension says what it is.

    Text (.csv, .tsv, .txt, each also with .gz) is UTF-8, UTF-16 with a byte order mark, or else
    Latin-1, with a notice. Also .parquet, .feather, .npy, .npz, .mat (up to version 7) and .h5ad
    (needs the extra ``h5ad``). Nothing is ever unpickled.

    Parameters
    ----------
    path : path-like
        The file; "-" for text from standard input.
    ignore : sequence of str, default=()
        Columns that are no features and are carried along as they are.
    label : str, optional
        A column of classes, carried along as well.
    delimiter : str, optional
        One character between the cells of text. By default a comma for .csv, a tab for .tsv, and
        for .txt and standard input whichever of comma, tab, semicolon and bar is most frequent
        in the first line.
    header : bool, default=True
        Whether the first line of text holds the names. Without, they are x0, x1, and so on.
    array : str, optional
        Which matrix of a .npz or .mat file to take, where there are several.
    stdin : binary file, optional
        What "-" reads; by default standard input.

    Returns
    -------
    Table
        Numbers, NaN where a value is missing, and all columns as they were read. A first column
        of text without a name and the index of a pandas frame are row names and are carried.

    Raises
    ------
    TableError
        If the file does not hold a table of numbers with at least two columns; the message says
        where and why in one line.
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> import io
    >>> from bsufs.tables import read_table
    >>> table = read_table("-", ignore=["id"], stdin=io.BytesIO(b"id,a,b\nu,1,2\nv,3,4\n"))
    >>> table.names, table.values.tolist()
    (('a', 'b'), [[1.0, 2.0], [3.0, 4.0]])
    """
    check_delimiter(delimiter)
    source, kind = source_and_kind(path)
    if kind in _ARRAYS:
        found = _read_arrays(Path(path), source, kind, array)
        return _from_arrays(found, source, ignore, label)
    if array is not None:
        raise TableError(f"{source}: --array is for .npz and .mat files only.")
    if kind in _COLUMNAR:
        cells = _read_columnar(Path(path), source, kind)
    else:
        data = _read_stdin(stdin) if source == "standard input" else Path(path).read_bytes()
        cells = read_text(data, source, delimiter or TEXT_DELIMITERS[kind], header)
    return _from_cells(cells, source, ignore, label)


def source_and_kind(path: str | os.PathLike[str]) -> tuple[str, str]:
    """Return how a file is called in messages, and what it is by its name."""
    if os.fspath(path) == STDIN:
        return "standard input", ".txt"
    name = Path(path).name
    kind = Path(name.lower().removesuffix(".gz")).suffix
    zipped = name.lower().endswith(".gz")
    if kind in (TEXT_DELIMITERS if zipped else READABLE):
        return str(path), kind
    # A missing file or a folder is the better thing to complain about.
    with Path(path).open("rb"):
        pass
    raise TableError(
        f"{path}: the extension must say what the file is, one of {' '.join(READABLE)} "
        "(text also with .gz). Rename the file, or pipe text in and read '-'."
    )


def _read_stdin(stdin: BinaryIO | None) -> bytes:
    stream = sys.stdin.buffer if stdin is None else stdin
    if stream.isatty():
        raise TableError(
            "standard input is a terminal: pipe a table in, as in 'bsufs select - < table.csv'."
        )
    return stream.read()


def _read_columnar(path: Path, source: str, kind: str) -> Cells:
    import pyarrow as pa

    if kind in PARQUET:
        with opened_parquet(path, source) as file:
            table = file.read()
    else:
        with path.open("rb") as stream:
            try:
                table = _feather(stream)
            except (pa.ArrowException, OSError) as error:
                raise TableError(_unreadable(source, "Feather (version 2)", error)) from error
    check_names([name for name in table.column_names if name != ROW_NAMES], source)
    if table.num_rows == 0:
        raise TableError(f"{source}: the table has no rows.")
    row_names = parquet_row_names(table.schema)
    return Cells(table.replace_schema_metadata(None), row_names, is_text=False)


def _unreadable(source: str, kind: str, error: Exception) -> str:
    return (
        f"{source}: this cannot be read as a {kind} file, it is truncated or of another kind "
        f"({error})."
    )


def parquet_row_names(schema: Any) -> tuple[str, ...]:
    """Return the columns of a columnar file that are row names."""
    metadata = schema.pandas_metadata or {}
    index = {name for name in metadata.get("index_columns", ()) if isinstance(name, str)}
    index.add(ROW_NAMES)
    return tuple(name for name in schema.names if name in index or name.startswith(_PANDAS_INDEX))


@contextlib.contextmanager
def opened_parquet(path: Path, source: str, **options: Any) -> Iterator[Any]:
    """Open a Parquet file, and say in one line where it is none."""
    import pyarrow as pa
    from pyarrow import parquet

    with path.open("rb") as stream:
        try:
            yield parquet.ParquetFile(stream, **options)
        except (pa.ArrowException, OSError) as error:
            raise TableError(_unreadable(source, "Parquet", error)) from error


def _feather(stream: BinaryIO) -> Any:
    from pyarrow import ipc

    return ipc.open_file(stream).read_all()


def _read_arrays(path: Path, source: str, kind: str, array: str | None) -> Arrays:
    with path.open("rb") as stream:
        if kind == ".npy":
            return read_npy(stream, source)
        if kind == ".npz":
            return read_npz(stream, source, array)
        if kind == ".mat":
            return read_mat(stream, source, array)
    return read_h5ad(path, source)


def _from_cells(cells: Cells, source: str, ignore: Sequence[str], label: str | None) -> Table:
    columns = tuple(cells.table.column_names)
    carried = columns_to_carry(columns, source, [*cells.row_names, *ignore], label)
    names = tuple(name for name in columns if name not in set(carried))
    require_features(names, source)
    features = cells.table.select(list(names))
    return Table(
        values=numeric_matrix(features, source),
        names=names,
        originals=features,
        carried=cells.table.select(list(carried)),
        order=columns,
        is_text=cells.is_text,
        notices=notices_of(cells.notices, cells.row_names, source),
    )


def notices_of(notices: tuple[str, ...], row_names: Sequence[str], source: str) -> tuple[str, ...]:
    """Return what the reader of a result should know about how a table was read."""
    if ROW_NAMES not in row_names:
        return notices
    return (*notices, f"{source}: the first column has no name and is carried as row names.")


def _from_arrays(found: Arrays, source: str, ignore: Sequence[str], label: str | None) -> Table:
    import pyarrow as pa

    check_names(found.names, source)
    if found.matrix.shape[0] == 0:
        raise TableError(f"{source}: the matrix has no rows.")
    everything = (*found.vectors, *(name for name in found.names if name not in found.vectors))
    carried = columns_to_carry(everything, source, [*found.always_carried, *ignore], label)
    twice = [name for name in carried if name in found.vectors and name in found.names]
    if twice:
        raise TableError(f"{source}: {listed(twice)} is a feature and a vector beside the matrix.")
    kept = [number for number, name in enumerate(found.names) if name not in set(carried)]
    names = tuple(found.names[number] for number in kept)
    require_features(names, source)
    matrix = found.matrix if len(kept) == len(found.names) else found.matrix[:, kept]
    columns = [
        found.vectors[name] if name in found.vectors else _dense_column(found, name)
        for name in carried
    ]
    unused = [name for name in found.vectors if name not in carried]
    notice = f"{source}: {listed(unused)} not used; name it with --label or --ignore to carry it."
    return Table(
        values=_as_float(matrix),
        names=names,
        originals=matrix,
        carried=pa.table([pa.array(column) for column in columns], names=list(carried)),
        order=(*carried, *names),
        notices=(notice,) if unused else (),
    )


def _dense_column(found: Arrays, name: str) -> Any:
    column = found.matrix[:, [found.names.index(name)]]
    return (column.toarray() if sparse.issparse(column) else column).ravel()


def _as_float(matrix: Any) -> Any:
    return matrix.astype(np.float64)


def columns_to_carry(
    columns: Sequence[str], source: str, ignore: Sequence[str], label: str | None
) -> tuple[str, ...]:
    """Return the columns to carry, in the order of the file."""
    for option, asked in (("--ignore", ignore), ("--label", [label] if label is not None else [])):
        for name in asked:
            if name not in columns:
                near = difflib.get_close_matches(name, columns, n=1)
                hint = f"Did you mean {near[0]!r}?" if near else f"There are {listed(columns)}."
                raise TableError(f"{source}: {option} {name!r} is no column of the table. {hint}")
    wanted = {*ignore, label}
    return tuple(name for name in columns if name in wanted)


def require_features(names: Sequence[str], source: str) -> None:
    """Raise an error where there is nothing to choose between."""
    if len(names) < 2:
        raise TableError(
            f"{source}: at least two columns of numbers are needed to select from, got "
            f"{len(names)}."
        )
