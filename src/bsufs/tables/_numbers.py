"""From cells to numbers, or to a message that says which cell is none."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bsufs._typing import Array
from bsufs.tables._files import TableError, listed

# What stands for a missing value in text, in lower case; a cell of blanks does too.
MISSING_WORDS = ("", "na", "n/a", "#n/a", "nan", "null", "none", "<na>", "?", "-")
TRUTH_WORDS = ("true", "false")

_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+")


@dataclass(frozen=True)
class NotANumber:
    """The first cell of a column that is no number."""

    name: str
    row: int
    cell: str


class NumericColumns:
    """Turns rows of the same columns, batch by batch, into numbers.

    What a column is follows from all its rows: one that holds truth values in one batch and numbers
    in another is as little a column of numbers as if both had come at once. So `check` is to be
    called after the last batch.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self.n_rows = 0
        self._bad: dict[int, NotANumber] = {}
        self._first_truth: dict[int, NotANumber] = {}
        self._with_numbers: set[int] = set()

    @property
    def is_sound(self) -> bool:
        """Whether all columns have been numbers so far."""
        return not self._bad

    def add(self, columns: Any) -> Array:
        """Return a batch of rows as numbers."""
        values = np.full((columns.num_rows, columns.num_columns), np.nan)
        named = zip(columns.column_names, columns.columns, strict=True)
        for number, (name, column) in enumerate(named):
            if number in self._bad:
                continue
            parsed, is_truth = _parsed(column)
            if parsed is None:
                found = _first_bad_cell(name, column)
                self._bad[number] = self._first_truth.get(number, self._in_all_rows(found))
                continue
            values[:, number] = parsed
            if is_truth and number not in self._first_truth:
                found = _first_bad_cell(name, column)
                self._first_truth[number] = self._in_all_rows(found)
            elif not is_truth and not np.isnan(parsed).all():
                self._with_numbers.add(number)
            if number in self._first_truth and number in self._with_numbers:
                self._bad[number] = self._first_truth[number]
        self.n_rows += columns.num_rows
        return values

    def _in_all_rows(self, found: NotANumber) -> NotANumber:
        return replace(found, row=found.row + self.n_rows)

    def check(self) -> None:
        """Raise an error where a column is no column of numbers."""
        if self._bad:
            bad = [found for _, found in sorted(self._bad.items())]
            raise TableError(f"{self._source}: {_complaint(bad)}")


def numbers(column: Any) -> Array | None:
    """Return a column as numbers, NaN for missing values; None where a cell is no number."""
    return _parsed(column)[0]


def _parsed(column: Any) -> tuple[Array | None, bool]:
    """Return the numbers, and whether they are truth values that were written as words."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if str(column.type) == "string_view":
        column = column.cast(pa.string())
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if not is_text and not _is_number(column.type):
        return None, False
    try:
        parsed, is_truth = column.cast(pa.float64(), safe=False), False
    except pa.ArrowInvalid:
        parsed, is_truth = _leniently(column)
    return None if parsed is None else np.asarray(parsed, dtype=np.float64), is_truth


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    kinds = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(is_kind(kind) for is_kind in kinds)


def _leniently(column: Any) -> tuple[Any, bool]:
    """Parse text with blanks around numbers, words for missing values, or truth values.

    Also returns whether they are truth values.
    """
    import pyarrow as pa
    from pyarrow import compute

    trimmed = compute.utf8_lower(compute.utf8_trim_whitespace(column))
    missing = compute.is_in(trimmed, value_set=pa.array(MISSING_WORDS, type=trimmed.type))
    known = compute.if_else(missing, pa.scalar(None, type=trimmed.type), trimmed)
    truths = compute.is_in(known, value_set=pa.array(TRUTH_WORDS, type=trimmed.type))
    if 0 < (compute.sum(truths).as_py() or 0) == len(known) - known.null_count:
        return compute.equal(known, "true").cast(pa.float64()), True
    try:
        return known.cast(pa.float64()), False
    except pa.ArrowInvalid:
        return None, False


def _first_bad_cell(name: str, column: Any) -> NotANumber:
    import pyarrow as pa

    for row, cell in enumerate(column, start=1):
        single = pa.chunked_array([pa.array([cell.as_py()], type=column.type)])
        if cell.is_valid and (
            numbers(single) is None or str(cell.as_py()).strip().lower() in TRUTH_WORDS
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
