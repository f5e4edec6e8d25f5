"""From cells to numbers, or to a message that says which cell is none."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

import numpy as np

from bsufs._typing import Array
from bsufs.tables._arrow import compute, pa
from bsufs.tables._files import TableError, listed

# What stands for a missing value in text, in lower case; a cell of blanks does too.
MISSING_WORDS = ("", "na", "n/a", "#n/a", "nan", "null", "none", "<na>", "?", "-")
TRUTH_WORDS = ("true", "false")

# How commas are used in numbers: the pattern of a cell, and the marks that are none of the number.
COMMA_STYLES = {
    "commas between thousands": (r"^[+-]?(\d+|[1-9]\d{0,2}(,\d{3})+)(\.\d*)?$", ","),
    "decimal commas": (r"^[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?$", "."),
}

# A number with the sign of a currency, a percent sign, degrees, or, after a blank, letters.
_MONEY, _LONGEST_NUMBER = "$€£¥₹₽₩₺", 40
_WITH_UNIT = re.compile(
    rf"[+-]?\s*([{_MONEY}]?)\s*[+-]?\d[\d.,\s]*?"
    rf"(\s*[{_MONEY}%‰]|\s*°\s?[CF]?|\s[^\W\d_](?:[^\W\d_]|/){{0,9}})?"
)

# Where the first cell of a column is that is no number, and what it holds.
_Cell = tuple[int, str]


class NumericColumns:
    """Turns rows of the same columns, batch by batch, into numbers.

    What a column is follows from all its rows: one that holds truth values in one batch and numbers
    in another is as little a column of numbers as if both had come at once. So `check` is to be
    called after the last batch.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._n_rows = 0
        self._names: list[str] = []
        # The columns that are none of numbers, as far as they have been seen.
        self.bad: dict[str, _Cell] = {}
        # The first truth value of each column that has a value, None where that is a number.
        self._truths: dict[str, _Cell | None] = {}

    def add(self, columns: Any) -> Array:
        """Return a batch of rows as numbers."""
        self._names = columns.column_names
        values = np.empty((columns.num_rows, columns.num_columns))
        for number, (name, column) in enumerate(zip(self._names, columns.columns, strict=True)):
            if name in self.bad:
                continue
            parsed, is_truth = _parsed(column)
            if parsed is None:
                self.bad[name] = self._truths.get(name) or self._first_bad_cell(column)
                continue
            values[:, number] = parsed
            if is_truth or parsed[0] == parsed[0] or not np.isnan(parsed).all():
                truth = self._first_bad_cell(column) if is_truth else None
                first = self._truths.setdefault(name, truth)
                if (first is None) == is_truth:
                    self.bad[name] = first or self._first_bad_cell(column)
        self._n_rows += columns.num_rows
        return values

    def _first_bad_cell(self, column: Any) -> _Cell:
        for row, cell in enumerate(column):
            text = str(cell.as_py())
            is_truth = text.strip().lower() in TRUTH_WORDS
            if cell.is_valid and (is_truth or numbers(column.slice(row, 1)) is None):
                return self._n_rows + row + 1, text
        return self._n_rows + 1, str(column.type)

    def check(self) -> None:
        """Raise an error where a column is no column of numbers."""
        if self.bad:
            bad = {name: self.bad[name] for name in self._names if name in self.bad}
            raise TableError(f"{self._source}: {_complaint(bad)}")


def numbers(column: Any) -> Array | None:
    """Return a column as numbers, NaN for missing values; None where a cell is no number."""
    return _parsed(column)[0]


def _parsed(column: Any) -> tuple[Array | None, bool]:
    """Return the numbers, and whether they are truth values that were written as words."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        return np.asarray(column.cast(pa.float64(), safe=False), dtype=np.float64), False
    except NotImplementedError:
        return None, False
    except pa.ArrowInvalid:
        return _leniently(column)


def known_texts(column: Any) -> Any:
    """Return cells as text without blanks around it, null where a value is missing."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    trimmed = compute.utf8_trim_whitespace(column.cast(pa.string()))
    missing = compute.is_in(compute.utf8_lower(trimmed), value_set=pa.array(MISSING_WORDS))
    return compute.if_else(missing, pa.scalar(None, pa.string()), trimmed)


def unit_of(cell: str) -> str:
    """Return the unit that is written before or behind a number, nothing where there is none."""
    found = _WITH_UNIT.fullmatch(cell) if len(cell) <= _LONGEST_NUMBER else None
    units = [unit.strip() for unit in found.groups(default="") if unit] if found else []
    return units[0] if len(units) == 1 else ""


def with_commas(column: Any, style: str, unit: str = "") -> Array | None:
    """Return numbers that are written with commas; None where a cell is no such number.

    With a unit, which every cell must have, there may also be blanks between thousands.
    """
    pattern, noise = COMMA_STYLES[style]
    known = known_texts(column)
    if unit:
        if compute.all(compute.equal(compute.count_substring(known, unit), 1)).as_py() is False:
            return None
        known = compute.utf8_trim_whitespace(compute.replace_substring(known, unit, ""))
        # Of three groups of digits the second would be part of two matches.
        for _ in range(2):
            known = compute.replace_substring_regex(known, r"(\d)[ \xa0\x{202f}](\d{3})\b", r"\1\2")
        known = compute.replace_substring_regex(known, r"^([+-])\s+", r"\1")
    if compute.all(compute.match_substring_regex(known, pattern)).as_py() is False:
        return None
    plain = compute.replace_substring(compute.replace_substring(known, noise, ""), ",", ".")
    return np.asarray(plain.cast(pa.float64()), dtype=np.float64)


def _leniently(column: Any) -> tuple[Array | None, bool]:
    """Parse text with blanks around numbers, words for missing values, or truth values."""
    try:
        known = compute.utf8_lower(known_texts(column))
        truths = compute.is_in(known, value_set=pa.array(TRUTH_WORDS))
        is_truth = 0 < (compute.sum(truths).as_py() or 0) == len(known) - known.null_count
        parsed = (compute.equal(known, "true") if is_truth else known).cast(pa.float64())
    except pa.ArrowInvalid:
        return None, False
    return np.asarray(parsed, dtype=np.float64), is_truth


def _complaint(bad: Mapping[str, _Cell]) -> str:
    for name, (row, cell) in bad.items():
        for style, (pattern, noise) in COMMA_STYLES.items():
            if "," in cell and re.match(pattern, cell.strip()):
                plain = cell.strip().replace(noise, "").replace(",", ".")
                return (
                    f"{cell!r} in column {name!r} (row {row}); {style} are not read with --strict, "
                    f"write {plain}."
                )
    names, (row, cell) = list(bad), next(iter(bad.values()))
    one = len(bad) == 1
    cell = cell if len(cell) <= 40 else f"{cell[:37]}..."
    ignore = shlex.quote(",".join(names)) if len(names) <= 5 else "@FILE, a name in each line"
    return (
        f"{'column' if one else f'{len(bad)} columns'} {listed(names)} "
        f"{'holds' if one else 'hold'} text, such as {cell!r} in row {row} of {names[0]!r}. Leave "
        f"{'it' if one else 'them'} out of the selection with --ignore {ignore}, or write numbers."
    )
