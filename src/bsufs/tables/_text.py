"""Delimited text: encodings, delimiters, and every cell as the characters it was."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from bsufs.tables._errors import TableError
from bsufs.tables._table import check_names

# Columns of text that stand for row names in files of pandas and R have no name of their own.
ROW_NAMES = ""

GZIP = b"\x1f\x8b"
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_OTHER_KINDS = {
    b"PAR1": "a Parquet file: name it .parquet",
    b"ARROW1": "a Feather file: name it .feather",
    b"\x93NUMPY": "a NumPy file: name it .npy",
    b"PK\x03\x04": "a zip archive, such as an Excel workbook or .npz: save the sheet as CSV",
    b"\x89HDF": "an HDF5 file: name it .h5ad if that is what it is",
    b"MATLAB": "a MATLAB file: name it .mat",
}
_DELIMITERS = ",\t;|"
# Rows may be as long as a block; more blocks than one are read where a file is larger.
_BLOCK_BYTES = 2**26


@dataclass(frozen=True)
class Cells:
    """The cells of a file as they were read.

    Parameters
    ----------
    table : pyarrow.Table
        The columns under their names.
    row_names : tuple of str
        Columns that are row names by the conventions of the format.
    notices : tuple of str
        What the user should know.
    is_text : bool
        Whether the cells are the characters of a text file.
    """

    table: Any
    row_names: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    is_text: bool = True


def read_text(data: bytes, source: str, delimiter: str | None, header: bool) -> Cells:
    """Read delimited text; every column is a column of strings.

    Parameters
    ----------
    data : bytes
        The file.
    source : str
        Its name, for messages.
    delimiter : str or None
        None to take the one that is most frequent in the first line.
    header : bool
        Whether the first line holds the names.

    Returns
    -------
    Cells
        All columns.
    """
    encoded, notices = _as_utf8(_unzipped(data, source), source)
    encoded = encoded.lstrip(b"\r\n")
    if not encoded.strip():
        raise TableError(f"{source}: the file is empty.")
    layout = read_layout(lambda: io.BytesIO(encoded), source, delimiter, header)
    table = _parsed(encoded, layout, source)
    if table.num_rows == 0:
        raise TableError(no_row_below(layout, source))
    return Cells(table, layout.row_names, notices)


@dataclass(frozen=True)
class Layout:
    """How the cells of a text file stand in its lines.

    Parameters
    ----------
    names : tuple of str
        Names of the columns.
    delimiter : str
        The mark between two cells.
    header : bool
        Whether the first line holds the names.
    """

    names: tuple[str, ...]
    delimiter: str
    header: bool

    @property
    def row_names(self) -> tuple[str, ...]:
        """The first column, where it has no name."""
        return (ROW_NAMES,) if self.names[0] == ROW_NAMES else ()


def read_layout(
    open_text: Callable[[], BinaryIO], source: str, delimiter: str | None, header: bool
) -> Layout:
    """Find the names of the columns and the mark between cells.

    Parameters
    ----------
    open_text : callable
        Returns the text from its beginning, as UTF-8.
    source : str
        The file, for messages.
    delimiter : str or None
        None to take the one that is most frequent in the first line.
    header : bool
        Whether the first line holds the names.

    Returns
    -------
    Layout
        Names that all differ.
    """
    line = open_text().readline().removesuffix(b"\n").decode("utf-8")
    if delimiter is None:
        delimiter = max(_DELIMITERS, key=line.count)
    first = _first_record(open_text(), delimiter, source)
    _require_several_columns(first, line, delimiter, source)
    names = first if header else [f"x{number}" for number in range(len(first))]
    layout = Layout(tuple(names), delimiter, header)
    check_names(names[1:] if layout.row_names else names, source)
    return layout


def no_row_below(layout: Layout, source: str) -> str:
    """Return the complaint about a file that holds names and nothing else.

    Parameters
    ----------
    layout : Layout
        Its names.
    source : str
        The file.

    Returns
    -------
    str
        One line.
    """
    return f"{source}: there is a header of {len(layout.names)} names, but no row below it."


def _unzipped(data: bytes, source: str) -> bytes:
    if not data.startswith(GZIP):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise TableError(f"{source}: the gzip file is truncated or damaged ({error}).") from error


def _as_utf8(data: bytes, source: str) -> tuple[bytes, tuple[str, ...]]:
    if data.startswith(UTF_16):
        try:
            return data.decode("utf-16").encode(), ()
        except UnicodeDecodeError as error:
            raise TableError(
                f"{source}: it begins as UTF-16 text, but is not ({error.reason})."
            ) from error
    data = data.removeprefix(codecs.BOM_UTF8)
    refuse_other_kinds(data[:8], b"\0" in data, source)
    if data.isascii():
        return data, ()
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return data.decode("latin-1").encode(), (latin_1_notice(line, source),)
    return data, ()


def refuse_other_kinds(head: bytes, has_zeros: bool, source: str) -> None:
    """Raise an error where a file is no text.

    Parameters
    ----------
    head : bytes
        How it begins, without a byte order mark.
    has_zeros : bool
        Whether there is a zero byte anywhere in it.
    source : str
        The file, for messages.
    """
    for magic, kind in _OTHER_KINDS.items():
        if head.startswith(magic) and (has_zeros or magic == b"PAR1"):
            raise TableError(f"{source}: this is no text but {kind}.")
    if has_zeros:
        raise TableError(f"{source}: this is no text, it holds zero bytes. Is the name right?")


def latin_1_notice(line: int, source: str) -> str:
    """Return what to say of a file that is not UTF-8.

    Parameters
    ----------
    line : int
        The first line that is not.
    source : str
        The file.

    Returns
    -------
    str
        One line.
    """
    return f"{source} is not UTF-8 (line {line}) and is read as Latin-1; what is written is UTF-8."


def _records(stream: BinaryIO, delimiter: str) -> Any:
    return csv.reader(io.TextIOWrapper(stream, encoding="utf-8", newline=""), delimiter=delimiter)


def _first_record(stream: BinaryIO, delimiter: str, source: str) -> list[str]:
    try:
        return list(next(_records(stream, delimiter)))
    except csv.Error as error:
        raise TableError(f"{source}: the first line cannot be read ({error}).") from error


def _require_several_columns(first: list[str], line: str, delimiter: str, source: str) -> None:
    if len(first) > 1:
        return
    others = [mark for mark in (*_DELIMITERS, " ") if mark in line and mark != delimiter]
    if others:
        shown = {"\t": "a tab", " ": "a space"}.get(others[0], f"{others[0]!r}")
        cure = f"Its first line has {shown}: name the right mark with --delimiter."
    else:
        cure = "There must be at least two to select from."
    raise TableError(f"{source}: the table has one column when split at {delimiter!r}. {cure}")


def _parsed(encoded: bytes, layout: Layout, source: str) -> Any:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    try:
        table = arrow_csv.read_csv(pa.BufferReader(encoded), **arrow_options(layout, _BLOCK_BYTES))
    except pa.ArrowInvalid as error:
        raise TableError(what_is_uneven(io.BytesIO(encoded), layout, source, error)) from error
    return table.rename_columns(list(layout.names))


def arrow_options(layout: Layout, block_bytes: int, columns: Sequence[int] = ()) -> dict[str, Any]:
    """Return the options that make Arrow hand out every cell as the characters it was.

    Parameters
    ----------
    layout : Layout
        How the cells stand in the lines.
    block_bytes : int
        Bytes to parse at a time; no row may be longer.
    columns : sequence of int, default=()
        Numbers of the columns to hand out; none for all.

    Returns
    -------
    dict
        Keyword arguments of its functions that read CSV. Columns are named by their numbers, so
        that any name will do.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    numbers = [str(number) for number in range(len(layout.names))]
    return {
        "read_options": arrow_csv.ReadOptions(
            column_names=numbers,
            skip_rows_after_names=int(layout.header),
            block_size=block_bytes,
        ),
        "parse_options": arrow_csv.ParseOptions(
            delimiter=layout.delimiter, newlines_in_values=True
        ),
        "convert_options": arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(numbers, pa.string()),
            strings_can_be_null=False,
            include_columns=[numbers[column] for column in columns],
        ),
    }


def what_is_uneven(stream: BinaryIO, layout: Layout, source: str, error: Exception) -> str:
    """Return the complaint about text that Arrow could not parse.

    Parameters
    ----------
    stream : binary file
        The text, as UTF-8.
    layout : Layout
        How the cells should stand in the lines.
    source : str
        The file.
    error : Exception
        What Arrow said.

    Returns
    -------
    str
        One line, which names the line that is wrong.
    """
    records = _records(stream, layout.delimiter)
    try:
        for record in records:
            if record and len(record) != len(layout.names):
                return (
                    f"{source}: line {records.line_num} has {len(record)} values, but the first "
                    f"line has {len(layout.names)}. Every line must have as many."
                )
    except csv.Error as problem:
        return f"{source}: line {records.line_num} cannot be read ({problem})."
    return f"{source}: the text cannot be read ({error})."
