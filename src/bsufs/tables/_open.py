"""Opening a table: the file says by its name what it is."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np

from bsufs._atomic import STANDARD
from bsufs._memory import available_memory, size_in_words
from bsufs._names import did_you_mean
from bsufs.tables._arrays import ANNDATA, ArrayRows, array_rows
from bsufs.tables._columnar import ColumnarRows, FrameRows, excel_rows
from bsufs.tables._files import EXCEL, PACKED, TEXT, RawFile, TableError, kind_of, listed
from bsufs.tables._kinds import ASKED, Kind
from bsufs.tables._prepare import Missing, Scale
from bsufs.tables._rows import ROW_NAMES, Rows
from bsufs.tables._table import Table
from bsufs.tables._text import TextRows

_ARRAYS = (".npy", ".npz", ".mat", *ANNDATA)
_MATRICES = (".npz", ".mat", *ANNDATA)
# What pandas calls a column of a sheet that has no name.
_UNNAMED = re.compile(r"Unnamed: \d+")
_URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
# The share of the free memory that a table may take where nothing else is said.
_SHARE_OF_MEMORY = 0.25


def open_table(
    path: str | os.PathLike[str] | BinaryIO,
    *,
    ignore: Sequence[str] = (),
    adjust_for: Sequence[str] = (),
    batch_key: Sequence[str] = (),
    label: str | None = None,
    missing: Missing | None = None,
    scale: Scale = "none",
    kinds: Mapping[str, Kind] = MappingProxyType({}),
    strict: bool = False,
    delimiter: str | None = None,
    header: bool = True,
    array: str | None = None,
    file_format: str | None = None,
    transpose: bool = False,
    names_from: str | None = None,
    memory: int | None = None,
    batch_rows: int | None = None,
    whole_for: str | None = None,
    progress: Callable[[str], None] = lambda detail: None,
) -> Table:
    r"""Open a table; its extension says what it is.

    Text (.csv, .tsv, .txt, each also packed as .gz, .bz2, .xz or .zip) is UTF-8, UTF-16 with a byte
    order mark, or else Latin-1, with a notice; in front of it, lines that begin with # and a line
    such as "sep=;" are no rows. Also .parquet, .feather, .npy, .npz, .mat, .h5ad and .zarr (extra
    ``h5ad``, which version 7.3 of .mat needs too) and .xlsx (extra ``excel``). Nothing is ever
    unpickled. Text and Parquet files that do not fit into memory are read again for every pass,
    with the same numbers.

    Parameters
    ----------
    path : path-like or binary file
        The file; "-" for text from standard input. An open file holds text.
    ignore, adjust_for, batch_key : sequence of str, default=()
        Columns that are no features, or to adjust for; carried along as they are. Those of
        `batch_key` are groups to adjust for, even where they are numbers.
    label : str, optional
        A column of classes, carried along as well.
    missing : {"error", "keep", "median", "drop-rows", "drop-columns"}, optional
        What to do about missing and infinite values: "error" is the default if `strict`; "median",
        otherwise, fills the numbers alone, so that what is written keeps its gaps, and leaves out
        columns that are mostly missing; "keep" leaves NaN and inf.
    scale : {"auto", "none", "standard", "noise"}, default="none"
        "standard" gives all features mean 0 (unless sparse) and variance 1; "auto" does so where
        they plainly share no unit. "noise" divides each by the standard deviation that is usual for
        features of its mean, unless there are entries below zero.
    kinds : mapping of str to {"number", "category", "date"}, optional
        What columns are, whatever they look like.
    strict : bool, default=False
        Whether it is an error if a column holds no numbers. By default text with few different
        values is a category, dates are days, and columns that name or count the rows, free text
        and columns without values are left out and carried along: see `Table.columns`.
    delimiter : str, optional
        One character between the cells of text. By default a tab for .tsv, and else whichever of
        comma, tab, semicolon and bar is most frequent in the first line.
    header : bool, default=True
        Whether the first line of text holds the names. Without, they are x0, x1, and so on.
    array : str, optional
        Which matrix of a .npz or .mat file, layer of a .h5ad or .zarr file, or sheet of a .xlsx
        file to take.
    file_format : str, optional
        What the file is, such as "csv", where its name does not say it.
    transpose : bool, default=False
        Whether the rows of the file are the features, such as genes, with their names in its first
        column; those of a .npy, .npz or .mat file are numbered. The table is held then.
    names_from : str, optional
        The column of `var` in a .h5ad or .zarr file that names the features.
    memory : int, optional
        How many bytes the table may take to be held; by default a quarter of what is free.
    batch_rows : int, optional
        Rows in a batch of a table that is not to be held, however small; by default by `memory`.
    whole_for : str, optional
        What needs the whole table: it is held then, or an error raised.
    progress : callable, optional
        Called now and then with how far it has been read or written, such as "1,000 rows".

    Returns
    -------
    Table
        The table. A first column of text without a name and the index of a pandas frame are row
        names and are carried.

    Raises
    ------
    TableError
        If the file does not hold a table with two columns to select from; the message says where
        and why in one line. Where it is not held, this may come with its batches.
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> import io
    >>> from bsufs.tables import open_table
    >>> table = open_table(io.BytesIO(b"id,a,b\nu,1,2\nv,3,4\n"), ignore=["id"])
    >>> table.names, table.values.tolist()
    (('a', 'b'), [[1.0, 2.0], [3.0, 4.0]])
    """
    if delimiter is not None and len(delimiter) != 1:
        raise TableError(f"delimiter must be one character, got {delimiter!r}.")
    if batch_rows is not None and batch_rows < 1:
        raise TableError(f"batch_rows must be at least 1, got {batch_rows}.")
    most = available_memory() if memory is None else memory
    limit = int(most * _SHARE_OF_MEMORY) if memory is None else memory
    kind = _kind(path, file_format)
    for option, is_given, suited, what in (
        ("--delimiter", delimiter is not None, tuple(TEXT), "text"),
        ("--no-header", not header, tuple(TEXT), "text"),
        ("--array", array is not None, (*_MATRICES, *EXCEL), "matrices, layers and sheets"),
        ("--names-from", names_from is not None, ANNDATA, ".h5ad files"),
    ):
        if is_given and kind not in suited:
            raise TableError(f"{path}: {option} is for {what} only, and this is a {kind} file.")
    file = RawFile(path, most, progress)
    rows: Rows
    if kind in _ARRAYS:
        rows = array_rows(file, kind, array, names_from, transpose)
    elif kind in TEXT:
        rows = TextRows(file, delimiter or (None if kind == ".csv" else TEXT[kind]), header)
    elif kind in EXCEL:
        rows = excel_rows(file, array)
    else:
        rows = ColumnarRows(file, kind)
    if transpose and (kind in ANNDATA or kind not in _ARRAYS):
        rows = _transposed(rows, most)
    source, needed = rows.file.source, rows.memory_to_hold or 0
    asked = {
        "--ignore": ignore,
        "--label": [] if label is None else [label],
        "--adjust-for": adjust_for,
        "--batch-key": batch_key,
    }
    carried = _columns_to_carry(rows, asked, kinds)
    can_stream = rows.memory_to_hold is not None and not rows.file.is_held
    if batch_rows is not None and not can_stream:
        raise TableError(
            f"{source}: only text and .parquet files can be read in batches, no pipes. Write it as "
            "a .parquet file."
        )
    if whole_for is not None and can_stream and needed > most:
        free = size_in_words(most)
        but = f"{free} is free. Do without it."
        if memory is not None:
            but = f"--memory is {free}. Raise --memory, or do without it."
        raise TableError(
            f"{source}: {whole_for} needs the whole table in memory, {size_in_words(needed)} or "
            f"more, but {but}"
        )
    fits = whole_for is not None or not can_stream or needed <= limit
    hold = fits and batch_rows is None
    table = Table(
        rows, carried, limit, missing, scale, kinds, strict, hold=hold, batch_rows=batch_rows
    )
    table.batch_key = frozenset(batch_key)
    return table


def prepare(
    frame: Any,
    *,
    ignore: Sequence[str] = (),
    missing: Missing | None = None,
    scale: Scale = "auto",
    kinds: Mapping[str, Kind] = MappingProxyType({}),
    strict: bool = False,
) -> Table:
    """Turn a data frame with columns of all kinds into numbers to select from.

    Parameters
    ----------
    frame : data frame of pandas or polars, pyarrow.Table, or what pandas makes a data frame of
        The table, with a name for every column. It is not changed.
    ignore : sequence of str, default=()
        Columns that are no features.
    missing, scale, kinds, strict : as for `open_table`
        What to do about missing values, units, and columns that hold no numbers.

    Returns
    -------
    Table
        Its `values` are the matrix, `groups` says which columns of it belong together (hand it to
        the selector), `names` are the features, and `columns` is the record of every decision.

    Examples
    --------
    >>> import pandas as pd
    >>> from bsufs.tables import prepare
    >>> frame = pd.DataFrame({"id": range(20), "x": [1.5, 2, 4, 1] * 5, "kind": ["a", "b"] * 10})
    >>> table = prepare(frame)
    >>> table.names, table.values.shape
    (('x', 'kind'), (20, 2))
    >>> table.columns[0].kind, table.columns[0].why
    ('left out', 'it counts the rows')
    """
    rows = FrameRows(frame)
    carried = _columns_to_carry(rows, {"--ignore": ignore}, kinds)
    return Table(rows, carried, available_memory(), missing, scale, kinds, strict)


def _transposed(rows: Rows, memory: int) -> Rows:
    """Return the columns of a file as rows; the first column holds the names of the others."""
    _check_names(rows)
    table = Table(rows, rows.names[:1], memory, "keep")
    names = [str(cell) for cell in table.others.iloc[:, 0]]
    vectors = {ROW_NAMES: np.array(table.names)}
    return ArrayRows(rows.file, table.values.T, vectors, names, [ROW_NAMES])


def _kind(path: Any, file_format: str | None) -> str:
    if file_format is not None:
        try:
            return kind_of(f"x.{file_format.lstrip('.')}", (*_ARRAYS, *EXCEL), "")
        except TableError as error:
            raise TableError(
                f"--format {file_format!r} is not known; it is what the name of a file would end "
                "with, such as csv, tsv, txt, parquet, feather, xlsx, npy, npz, mat or h5ad."
            ) from error
    if hasattr(path, "read") or os.fspath(path) == STANDARD:
        return ".txt"
    if _URL.match(os.fspath(path)):
        raise TableError(f"{path}: tables are not downloaded. Download it, and name the file.")
    try:
        cure = " Rename the file, or say what it is with --format, as in --format csv."
        if Path(path).suffix.lower() == ".loom":
            cure = " Save a .loom file as .h5ad: anndata.io.read_loom(...).write_h5ad(...)."
        return kind_of(path, (*_ARRAYS, *EXCEL), "the file is", cure, PACKED)
    except TableError:
        # The one member of an archive is text, or else refused.
        if Path(path).suffix.lower() == ".zip" and os.path.isfile(path):
            return ".csv"
        # Pipes have no name, and mostly hold text.
        is_pipe = os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
        if is_pipe or os.fspath(path) == "/dev/stdin":
            return ".txt"
        # A missing file or a folder is the better thing to complain about.
        with open(path, "rb"):
            raise


def _check_names(rows: Rows) -> None:
    source, names = rows.file.source, list(rows.features)
    if ROW_NAMES in rows.row_names and ROW_NAMES in names and not rows.ambiguous:
        names.remove(ROW_NAMES)
    values = ", or read the file with --no-header if its first line holds values"
    values = values if rows.is_text else ""
    unnamed = [name for name in names if not name or _UNNAMED.fullmatch(name)]
    if len(unnamed) > len(names) / 2:
        raise TableError(
            f"{source}: {len(unnamed)} of {len(names)} columns have no name in the first line. If "
            "a title stands above the names, delete it and the empty lines below it."
        )
    if "" in names:
        raise TableError(
            f"{source}: column {names.index('') + 1} of {len(names)} has no name"
            f"{' (a delimiter too many?)' if rows.is_text else ''}. Give it one{values}."
        )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise TableError(
            f"{source}: column names must differ, but {listed(twice)} occurs more than once. "
            f"{rows.how_to_rename}{values}."
        )


def _columns_to_carry(
    rows: Rows, asked: Mapping[str, Sequence[str]], kinds: Mapping[str, Kind]
) -> tuple[str, ...]:
    """Return the columns that options say are no features, in the order of the file."""
    _check_names(rows)
    source, columns = rows.file.source, set(rows.names)
    if rows.n_rows == 0:
        raise TableError(f"{source}: {rows.empty}")
    named = {
        ASKED[kind][0]: [n for n in kinds if kinds[n] == kind]
        for kind in dict.fromkeys(kinds.values())
    }
    for option, names in {**asked, **named}.items():
        for name in names:
            if name not in columns:
                hint = did_you_mean(name, rows.names) or f" There are {listed(rows.names)}."
                raise TableError(f"{source}: {option} {name!r} is no column of the table.{hint}")
    wanted = set(rows.row_names).union(*asked.values())
    carried = tuple(name for name in rows.names if name in wanted)
    if rows.ambiguous & wanted:
        twice = listed(name for name in carried if name in rows.ambiguous)
        raise TableError(f"{source}: {twice} is a feature and a vector beside the matrix.")
    return carried
