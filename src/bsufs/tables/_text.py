"""Delimited text: names, delimiters, and every cell as the characters it was."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from bsufs.tables._encoding import Look, as_utf8, pieces, raw_text
from bsufs.tables._errors import TableError
from bsufs.tables._table import check_names

# Columns of text that stand for row names in files of pandas and R have no name of their own.
ROW_NAMES = ""

_DELIMITERS = ",\t;|"
# Rows may be as long as a block; more blocks than one are read where a file is larger.
_BLOCK_BYTES = 2**26


@dataclass(frozen=True)
class Cells:
    """The cells of a file as they were read."""

    table: Any
    row_names: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    is_text: bool = True


def check_delimiter(delimiter: str | None) -> None:
    """Raise an error where the mark between cells is not one character."""
    if delimiter is not None and len(delimiter) != 1:
        raise TableError(f"delimiter must be one character, got {delimiter!r}.")


def read_text(data: bytes, source: str, delimiter: str | None, header: bool) -> Cells:
    """Read delimited text; every column is a column of strings."""
    data = raw_text(data, source)
    encoding, notices = Look.at(pieces(data), source).conclusion()
    encoded = b"".join(as_utf8([data], encoding))
    layout = read_layout(lambda: io.BytesIO(encoded), source, delimiter, header)
    table = _parsed(encoded, layout, source)
    if table.num_rows == 0:
        raise TableError(no_row_below(layout, source))
    return Cells(table, layout.row_names, notices)


@dataclass(frozen=True)
class Layout:
    """How the cells of a text file stand in its lines."""

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
    """Find the names of the columns and the mark between cells."""
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
    """Return the complaint about a file that holds names and nothing else."""
    return f"{source}: there is a header of {len(layout.names)} names, but no row below it."


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
    """Return the options that make Arrow hand out every cell as the characters it was."""
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
    """Return the complaint about text that Arrow could not parse."""
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
