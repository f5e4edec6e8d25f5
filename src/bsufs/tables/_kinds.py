"""What the columns of a table hold: numbers, categories, dates, or nothing to select by.

All of it is learned batch by batch, so that it is the same whether a table is held or streamed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from bsufs._typing import Array
from bsufs.tables._arrow import compute, pa
from bsufs.tables._files import TableError, shortened_list
from bsufs.tables._numbers import (
    COMMA_STYLES,
    NumericColumns,
    known_texts,
    numbers,
    unit_of,
    with_commas,
)

Kind = Literal["number", "category", "date", "left out"]

# A text is a category if it has at most so many values, each in so many rows on average.
MOST_CATEGORIES, ROWS_PER_CATEGORY = 64, 4
# Where the user says that a column is a category, there may be more.
_MOST_IF_ASKED = 1000
_NUMBER = r"(?i)^[+-]?(\d+\.?\d*|\.\d+|inf(inity)?)(e[+-]?\d+)?$"
# A column with a larger share of missing values is left out.
MOST_MISSING = 0.5
# Whether numbers name the rows is looked up in the first ones; of few rows nobody can tell.
_FEWEST_ROWS, _FIRST_ROWS = 12, 1000
_IDENTIFIER = re.compile(
    r"(?i:(.*[\W_])?(id|ids|uuid|guid|index|row_?names?|unnamed: ?\d+))|.*[a-z]I[dD]"
)
_DATE_FORMATS = ("%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y")
# The option that says what a column is, and what it must hold for that.
ASKED = {
    "number": ("--numbers", "numbers"),
    "category": ("--categories", f"text of at most {_MOST_IF_ASKED} different values"),
    "date": ("--dates", "dates, such as 2024-05-31"),
}
_MICROSECONDS_PER_DAY = 86_400_000_000


@dataclass(frozen=True)
class Column:
    """What a column of a table was taken as.

    Parameters
    ----------
    name : str
        Its name.
    kind : {"number", "category", "date", "left out"}
        What it is to a selection.
    why : str
        Why it was left out, or how it was read.
    categories : tuple of str
        The values of a category, in the order of its columns in the matrix.
    reading : str, optional
        How its text is read, where that is not plain: the format of dates, or how commas are used
        in numbers.
    unit : str
        What is written before or behind each number, such as "$" or "%".
    """

    name: str
    kind: Kind
    why: str = ""
    categories: tuple[str, ...] = ()
    reading: str | None = field(default=None, repr=False)
    unit: str = field(default="", repr=False)

    @property
    def is_plain(self) -> bool:
        """Whether its cells are numbers as they are."""
        return self.kind == "number" and self.reading is None

    @property
    def width(self) -> int:
        """How many columns of the matrix it takes: two categories need one."""
        n_categories = len(self.categories)
        return n_categories if n_categories > 2 else int(self.kind != "left out")

    @property
    def matrix_names(self) -> list[str]:
        """Names of its columns in the matrix."""
        several = self.categories if self.width > 1 else ()
        return [f"{self.name}={one}" for one in several] or [self.name][: self.width]

    def encode(self, cells: Any) -> Array:
        """Return cells as numbers, (n_rows, width), NaN for missing values."""
        if self.kind == "date":
            return _days(cells, self.reading)[:, None]
        if self.kind == "category":
            return _indicators(cells, self.categories)
        if self.reading is None:
            return np.asarray(numbers(cells))[:, None]
        return np.asarray(with_commas(cells, self.reading, self.unit))[:, None]


class LearnedColumn:
    """Learns from all cells of a column that is none of numbers what else it is."""

    def __init__(self) -> None:
        self.n_known = 0
        self.values: set[str] | None = set()
        # The first cell that is no number, and how many there are.
        self.word, self.n_words = "", 0
        self.date_formats: list[str | None] = [None, *_DATE_FORMATS]
        self.comma_styles = list(COMMA_STYLES)
        # The first cells with a comma and a point, as examples.
        self.examples: dict[str, str] = {}
        # The unit in the first cell, which must be that of all.
        self.unit: str | None = None
        self.type: Any = None

    def add(self, column: Any) -> None:
        """Look at the next cells."""
        self.type = column.type
        if _is_text(column.type):
            known = known_texts(column).drop_null()
            self.date_formats = [one for one in self.date_formats if _are_dates(known, one)]
            if self.unit is None and len(known):
                self.unit = unit_of(known[0].as_py())
            unit = self.unit or ""
            self.comma_styles = [
                one for one in self.comma_styles if with_commas(known, one, unit) is not None
            ]
            for mark in {",", "."} - self.examples.keys():
                marked = known.filter(compute.match_substring(known, mark))
                if len(marked):
                    self.examples[mark] = marked[0].as_py()
            words = known.filter(compute.invert(compute.match_substring_regex(known, _NUMBER)))
            if len(words):
                self.word, self.n_words = self.word or words[0].as_py(), self.n_words + len(words)
            if self.values is not None:
                self.values.update(known.unique().to_pylist())
                if len(self.values) > _MOST_IF_ASKED:
                    self.values = None
        else:
            known = column.drop_null()
            self.values, self.comma_styles = None, []
            self.date_formats = [None] if pa.types.is_temporal(column.type) else []
        self.n_known += len(known)

    def decide(self, name: str, asked: Kind | None) -> Column:
        """Return what the column is."""
        if self.n_known == 0:
            return Column(name, "left out", "it has no values")
        if asked in (None, "date") and self.date_formats:
            reading = self.date_formats[0]
            return Column(name, "date", f"read as {reading}" if reading else "", reading=reading)
        # Whole numbers with a unit are the same in all styles.
        is_clear = len(self.comma_styles) == 1 or (self.unit and not self.examples)
        if asked in (None, "number") and self.comma_styles and is_clear:
            style, unit = self.comma_styles[0], self.unit or ""
            is_told = "," in self.examples or not unit
            why = [f"in {unit}"] * bool(unit) + [f"with {style}"] * is_told
            return Column(name, "number", " ".join(why), reading=style, unit=unit)
        if asked in (None, "category") and self.values is not None:
            return self._as_category(name, asked is not None)
        if asked is None:
            return Column(name, "left out", self._why())
        option, what = ASKED[asked]
        raise TableError(f"{option} {name}: the column must hold {what}; {self._why()}.")

    def _as_category(self, name: str, asked: bool) -> Column:
        values = sorted(self.values or ())
        if len(values) < 2:
            return Column(name, "left out", f"it is {values[0]!r} in every row")
        few = len(values) <= min(MOST_CATEGORIES, self.n_known / ROWS_PER_CATEGORY)
        if asked or (few and not self.comma_styles):
            return Column(name, "category", categories=tuple(values))
        return Column(name, "left out", self._why())

    def _why(self) -> str:
        if len(self.comma_styles) > 1:
            one = self.examples.get(",", self.examples.get(".", "") if self.unit else "")
            noise = [COMMA_STYLES[style][1] for style in self.comma_styles]
            could = " or ".join(one.replace(mark, "").replace(",", ".") for mark in noise)
            return f"{one} could be {could}" if one else "it holds numbers"
        if not _is_text(self.type):
            return f"it is of type {self.type}"
        if 0 < self.n_words < self.n_known / 2:
            return f"it holds numbers, but also {self.word!r}"
        if self.values is None:
            return f"it has more than {_MOST_IF_ASKED} different texts"
        if len(self.values) == self.n_known:
            return "it is different in every row"
        return f"it has {len(self.values)} different texts in {self.n_known} rows"


def _is_text(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return not (pa.types.is_nested(kind) or pa.types.is_temporal(kind) or "binary" in str(kind))


def _are_dates(known: Any, date_format: str | None) -> bool:
    try:
        _timestamps(known, date_format)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True


def _timestamps(known: Any, date_format: str | None) -> Any:
    """Return texts as points in time: ISO 8601 where no format is given."""
    if date_format is not None:
        return compute.strptime(known, format=date_format, unit="us", error_is_null=False)
    try:
        return known.cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        return known.cast(pa.timestamp("us", "UTC"))


def _days(column: Any, date_format: str | None) -> Array:
    """Return dates and times as days."""
    kind = column.type
    if pa.types.is_temporal(kind):
        exact = pa.timestamp("us", getattr(kind, "tz", None))
        exact = pa.time64("us") if pa.types.is_time(kind) else exact
        exact = pa.duration("us") if pa.types.is_duration(kind) else exact
        column = column.cast(exact, safe=False)
    else:
        column = _timestamps(known_texts(column), date_format)
    microseconds = column.cast(pa.int64()).cast(pa.float64(), safe=False)
    return np.asarray(microseconds) / _MICROSECONDS_PER_DAY


def _indicators(column: Any, categories: tuple[str, ...]) -> Array:
    """Return a column of zeros and ones for each category; of two, the second is enough."""
    place = compute.index_in(known_texts(column), value_set=pa.array(categories))
    codes = np.asarray(compute.fill_null(place, -1), dtype=np.intp).reshape(-1)
    shown = np.arange(len(categories))[1 if len(categories) == 2 else 0 :]
    return np.where(codes[:, None] < 0, np.nan, (codes[:, None] == shown).astype(np.float64))


class RowNumbers:
    """Looks in batches of numbers for columns that only count or name the rows."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._n_rows = 0
        self._last: Array | None = None
        # The columns in which every row adds one, and the first rows of those named like names.
        self._counting = np.arange(len(names))
        self._named = [i for i, name in enumerate(names) if _IDENTIFIER.fullmatch(name.strip())]
        self._head: list[Array] = []

    def add(self, values: Array) -> None:
        """Look at the next rows."""
        if self._n_rows < _FIRST_ROWS and self._named:
            self._head.append(values[: _FIRST_ROWS - self._n_rows, self._named])
        before = values[:1] - 1.0 if self._last is None else self._last
        # A few rows tell of nearly every column that it does not count.
        for n_rows in (3, len(values)):
            part = np.concatenate([before[:, self._counting], values[:n_rows, self._counting]])
            with np.errstate(invalid="ignore", over="ignore"):
                self._counting = self._counting[(np.diff(part, axis=0) == 1.0).all(axis=0)]
        self._last = values[-1:].copy()
        self._n_rows += len(values)

    def found(self) -> dict[str, str]:
        """Return the columns, and what they seem to do."""
        if self._n_rows < _FEWEST_ROWS:
            return {}
        why = {self._names[i]: "it counts the rows" for i in self._counting.tolist()}
        if self._named:
            head = np.concatenate(self._head)
            whole = (head == np.round(head)).all(axis=0)
            for i, cells, is_whole in zip(self._named, head.T, whole, strict=True):
                if is_whole and np.unique(cells).size > len(cells) / 2:
                    why.setdefault(self._names[i], "it names the rows")
        return why


def encoded(cells: Any, columns: Sequence[Column], reader: NumericColumns) -> Array:
    """Return cells as the columns of a matrix; `reader` remembers what is no number."""
    plain = [c.name for c in columns if c.is_plain]
    numeric = reader.add(cells.select(plain))
    if len(plain) == len(columns):
        return numeric
    values = np.empty((cells.num_rows, sum(column.width for column in columns)))
    place, next_number = 0, iter(numeric.T)
    for column in columns:
        end = place + column.width
        if column.is_plain:
            values[:, place] = next(next_number)
        else:
            values[:, place:end] = column.encode(cells.column(column.name))
        place = end
    return values


def in_words(columns: Iterable[Column]) -> str:
    """Return in one line what the columns of a table were taken as."""
    by_kind: dict[str, list[Column]] = {}
    for column in columns:
        by_kind.setdefault(column.kind, []).append(column)
    parts = []
    for kind, plural in (("number", "numbers"), ("category", "categories"), ("date", "dates")):
        by_why: dict[str, list[str]] = {}
        for column in by_kind.get(kind, ()):
            by_why.setdefault(f"{column.why}: " if column.why else "", []).append(column.name)
        n_columns = sum(map(len, by_why.values()))
        if kind == "number":
            # What is plain needs no name.
            by_why.pop("", None)
        told = "; ".join(why + shortened_list(names) for why, names in by_why.items())
        if n_columns:
            named = f" ({told})" if told else ""
            parts.append(f"{n_columns} {plural if n_columns > 1 else kind}{named}")
    if "left out" in by_kind:
        reasons = [f"{column.name}: {column.why}" for column in by_kind["left out"]]
        parts.append(f"{len(reasons)} left out ({shortened_list(reasons, '; ')})")
    return ", ".join(parts)
