"""Delimited text: encodings, delimiters, and every cell as the characters it was."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from dataclasses import dataclass
from typing import Any

from bsufs.tables._errors import TableError
from bsufs.tables._table import check_names

# Columns of text that stand for row names in files of pandas and R have no name of their own.
ROW_NAMES = ""

_GZIP = b"\x1f\x8b"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
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
    if delimiter is None:
        delimiter = _most_frequent_delimiter(encoded)
    first = _first_record(encoded, delimiter, source)
    _require_several_columns(first, encoded, delimiter, source)
    names = first if header else [f"x{number}" for number in range(len(first))]
    named = names[1:] if names[0] == ROW_NAMES else names
    check_names(named, source)
    table = _parsed(encoded, names, delimiter, header, source)
    if table.num_rows == 0:
        raise TableError(f"{source}: there is a header of {len(names)} names, but no row below it.")
    return Cells(table, (ROW_NAMES,) if names[0] == ROW_NAMES else (), notices)


def _unzipped(data: bytes, source: str) -> bytes:
    if not data.startswith(_GZIP):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise TableError(f"{source}: the gzip file is truncated or damaged ({error}).") from error


def _as_utf8(data: bytes, source: str) -> tuple[bytes, tuple[str, ...]]:
    if data.startswith(_UTF16):
        try:
            return data.decode("utf-16").encode(), ()
        except UnicodeDecodeError as error:
            raise TableError(f"{source}: it begins as UTF-16 text, but is not: {error}.") from error
    data = data.removeprefix(codecs.BOM_UTF8)
    for magic, kind in _OTHER_KINDS.items():
        if data.startswith(magic) and (b"\0" in data or magic == b"PAR1"):
            raise TableError(f"{source}: this is no text but {kind}.")
    if b"\0" in data:
        raise TableError(f"{source}: this is no text, it holds zero bytes. Is the name right?")
    if data.isascii():
        return data, ()
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        notice = (
            f"{source} is not UTF-8 (line {line}) and is read as Latin-1; what is written is UTF-8."
        )
        return data.decode("latin-1").encode(), (notice,)
    return data, ()


def _first_line(encoded: bytes) -> str:
    return encoded.split(b"\n", 1)[0].decode("utf-8")


def _most_frequent_delimiter(encoded: bytes) -> str:
    line = _first_line(encoded)
    return max(_DELIMITERS, key=line.count)


def _records(encoded: bytes, delimiter: str) -> Any:
    lines = io.TextIOWrapper(io.BytesIO(encoded), encoding="utf-8", newline="")
    return csv.reader(lines, delimiter=delimiter)


def _first_record(encoded: bytes, delimiter: str, source: str) -> list[str]:
    try:
        return list(next(_records(encoded, delimiter)))
    except csv.Error as error:
        raise TableError(f"{source}: the first line cannot be read ({error}).") from error


def _require_several_columns(first: list[str], encoded: bytes, delimiter: str, source: str) -> None:
    if len(first) > 1:
        return
    line = _first_line(encoded)
    others = [mark for mark in (*_DELIMITERS, " ") if mark in line and mark != delimiter]
    if others:
        shown = {"\t": "a tab", " ": "a space"}.get(others[0], f"{others[0]!r}")
        cure = f"Its first line has {shown}: name the right mark with --delimiter."
    else:
        cure = "There must be at least two to select from."
    raise TableError(f"{source}: the table has one column when split at {delimiter!r}. {cure}")


def _parsed(encoded: bytes, names: list[str], delimiter: str, header: bool, source: str) -> Any:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    # Names are set afterwards: while reading, columns go by number, so that any name will do.
    numbers = [str(number) for number in range(len(names))]
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(encoded),
            read_options=arrow_csv.ReadOptions(
                column_names=numbers, skip_rows_after_names=int(header), block_size=_BLOCK_BYTES
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(numbers, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        raise TableError(_what_is_uneven(encoded, names, delimiter, source, error)) from error
    return table.rename_columns(names)


def _what_is_uneven(
    encoded: bytes, names: list[str], delimiter: str, source: str, error: Exception
) -> str:
    records = _records(encoded, delimiter)
    try:
        for record in records:
            if record and len(record) != len(names):
                return (
                    f"{source}: line {records.line_num} has {len(record)} values, but the first "
                    f"line has {len(names)}. Every line must have as many."
                )
    except csv.Error as problem:
        return f"{source}: line {records.line_num} cannot be read ({problem})."
    return f"{source}: the text cannot be read ({error})."
