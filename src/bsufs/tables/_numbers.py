"""From cells to numbers, or to a message that says which cell is none."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Any

import numpy as np

from bsufs._typing import Array
from bsufs.tables._errors import TableError, listed

# What stands for a missing value in text, in lower case; a cell of blanks does too.
MISSING_WORDS = ("", "na", "n/a", "#n/a", "nan", "null", "none", "<na>", "?", "-")

_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+")


@dataclass(frozen=True)
class NotANumber:
    """The first cell of a column that is no number."""

    name: str
    row: int
    cell: str


def numeric_matrix(columns: Any, source: str) -> Array:
    """Return the columns as numbers, NaN for missing values.

    Parameters
    ----------
    columns : pyarrow.Table
        Strings or numbers.
    source : str
        The file, for messages.

    Returns
    -------
    array of float64 of shape (n_rows, n_columns)
        The numbers.
    """
    values = np.empty((columns.num_rows, columns.num_columns))
    bad: list[NotANumber] = []
    for number, (name, column) in enumerate(
        zip(columns.column_names, columns.columns, strict=True)
    ):
        parsed = numbers(column)
        if parsed is None:
            bad.append(_first_bad_cell(name, column))
        else:
            values[:, number] = parsed
    if bad:
        raise TableError(f"{source}: {_complaint(bad)}")
    return values


def numbers(column: Any) -> Array | None:
    """Return a column as numbers, NaN for missing values; None where a cell is no number.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Strings or numbers. "true" and "false" count as 1 and 0.

    Returns
    -------
    array of float64 or None
        The numbers.
    """
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if not is_text and not _is_number(column.type):
        return None
    try:
        parsed = column.cast(pa.float64(), safe=False)
    except pa.ArrowInvalid:
        parsed = _leniently(column)
    return None if parsed is None else np.asarray(parsed.to_numpy(), dtype=np.float64)


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return any(
        is_kind(kind)
        for is_kind in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    ) or bool(types.is_null(kind))


def _leniently(column: Any) -> Any:
    """Parse text with blanks around numbers, words for missing values, or truth values."""
    import pyarrow as pa
    from pyarrow import compute

    trimmed = compute.utf8_lower(compute.utf8_trim_whitespace(column))
    missing = compute.is_in(trimmed, value_set=pa.array(MISSING_WORDS, type=trimmed.type))
    known = compute.if_else(missing, pa.scalar(None, type=trimmed.type), trimmed)
    words = set(compute.unique(known).to_pylist()) if _begins_as_truth(known) else set()
    if words and words <= {"true", "false", None}:
        return compute.equal(known, "true").cast(pa.float64())
    try:
        return known.cast(pa.float64())
    except pa.ArrowInvalid:
        return None


def _begins_as_truth(column: Any) -> bool:
    first = next((cell for cell in column.to_pylist() if cell is not None), None)
    return first in ("true", "false")


def _first_bad_cell(name: str, column: Any) -> NotANumber:
    import pyarrow as pa

    for row, cell in enumerate(column, start=1):
        single = pa.chunked_array([pa.array([cell.as_py()], type=column.type)])
        if cell.is_valid and (
            numbers(single) is None or str(cell.as_py()).strip().lower() in ("true", "false")
        ):
            return NotANumber(name, row, str(cell.as_py()))
    return NotANumber(name, 1, str(column.type))


def _complaint(bad: list[NotANumber]) -> str:
    for found in bad:
        where = f"{found.cell!r} in column {found.name!r} (row {found.row})"
        if _THOUSANDS.fullmatch(found.cell.strip()):
            plain = found.cell.strip().replace(",", "")
            return f"{where}; thousands separators are not read, write {plain}."
        if _DECIMAL_COMMA.fullmatch(found.cell.strip()):
            plain = found.cell.strip().replace(".", "").replace(",", ".")
            return f"{where}; decimal commas are not read, write {plain}."
    first, names = bad[0], [found.name for found in bad]
    one = len(bad) == 1
    cell = first.cell if len(first.cell) <= 40 else f"{first.cell[:37]}..."
    ignore = shlex.quote(",".join(names[:5])) + (",..." if len(names) > 5 else "")
    return (
        f"{'column' if one else f'{len(bad)} columns'} {listed(names)} "
        f"{'holds' if one else 'hold'} text, such as {cell!r} in row {first.row} of "
        f"{first.name!r}. Leave {'it' if one else 'them'} out of the selection with --ignore "
        f"{ignore}, or write numbers."
    )
