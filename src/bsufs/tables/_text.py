"""Delimited text: names, delimiters, and every cell as the characters it was."""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any

from bsufs._memory import size_in_words
from bsufs.tables._arrow import arrow_csv, pa
from bsufs.tables._files import RawFile, TableError, listed, sniff
from bsufs.tables._numbers import MISSING_WORDS
from bsufs.tables._rows import ROW_NAMES, Rows, numbered_names

_DELIMITERS = ",\t;|"
# Arrow reads so many blocks ahead of those that it hands out.
_BLOCKS_AHEAD = 32
_SMALLEST_BLOCK, _USUAL_BLOCK, _LARGEST_BLOCK = 2**16, 2**20, 2**26
# A block must hold a row; this many times the first line leaves room for longer ones.
_LINES_IN_A_BLOCK = 8
# With fewer, it takes longer to handle thousands of columns than to parse their cells.
_LINES_AT_ONCE = 256
# Written in another way, words for missing values are found when all is read as text.
_MISSING = [form(word) for word in MISSING_WORDS for form in (str.lower, str.upper, str.title)]


class TextRows(Rows):
    """The rows of a text file, whose encoding and layout are found when it is opened."""

    is_text = True

    def __init__(self, file: RawFile, delimiter: str | None, header: bool) -> None:
        self.file = file
        self._encoding, self.notices, n_lines, n_bytes = sniff(file)
        lines, self._n_before, named = self._first_lines()
        line, below = lines[0], lines[1:2]
        self._shortest_block = _LINES_IN_A_BLOCK * len(line)
        self._block = min(max(_USUAL_BLOCK, _LINES_AT_ONCE * len(line)), _LARGEST_BLOCK)
        self._may_grow, self._header = True, header
        self._delimiter = delimiter or named or most_frequent_mark(line)
        try:
            with self._records() as records:
                first = next(records)
                second = next(records, first) if below else first
        except csv.Error as error:
            raise TableError(f"{file.source}: the first line cannot be read ({error}).") from error
        if header and len(second) == len(first) + 1:
            # R writes no name above the names of the rows.
            first = [ROW_NAMES, *first]
        if len(first) < 2:
            raise TableError(_one_column(line, self._delimiter, file.source))
        # A cell takes a character at least, its mark.
        self.most_rows = min(n_lines, n_bytes // len(first) + 1)
        # The characters twice (as they are in the file, and in cells) and 12 bytes for each cell.
        self.memory_to_hold = 2 * n_bytes + 12 * self.most_rows * len(first)
        self.names = self.features = tuple(first) if header else numbered_names(len(first))
        self.row_names = (ROW_NAMES,) if self.names[0] == ROW_NAMES else ()
        # The columns that Arrow may try to read as numbers at once.
        cells = zip(self.names, second if header else first, strict=False)
        self._numeric = frozenset(name for name, cell in cells if _is_number(cell))
        self.empty = f"there is a header of {len(self.names)} names, but no row below it."
        if header and all(map(_is_number, first)):
            self.notices += (
                f"{file.source}: the first line holds numbers, {listed(first)}, and is taken as "
                "names: use --no-header if they are values.",
            )

    def _first_lines(self) -> tuple[list[str], int, str | None]:
        """Return the first two lines of the table, how many come before, and the mark they name."""
        before: list[str] = []
        mark = None
        with self.file.open_as_utf8(self._encoding) as text:
            lines = (line.decode().rstrip("\r\n") for line in text)
            for line in lines:
                if not before and line.lower().startswith("sep=") and len(line) == len("sep=") + 1:
                    mark = line[-1]
                elif not line.startswith("#"):
                    found = [line, *islice(lines, 1)]
                    break
                before.append(line)
            else:
                # Nothing but comments: the first may be a header with no row below.
                return before[:1], 0, ","
        # A header may begin like a comment, but has as many names as there are cells.
        likely = most_frequent_mark(found[0])
        n_marks = 0 if mark or likely == " " else found[0].count(likely)
        if before and n_marks and before[-1].count(likely) == n_marks:
            found = [before.pop(), *found]
        return found, len(before), mark

    def read_ahead(self, memory: int) -> None:
        self._block = min(max(memory // _BLOCKS_AHEAD, _SMALLEST_BLOCK), _LARGEST_BLOCK)
        self._may_grow = False

    def batches(
        self, names: Sequence[str], most_rows: int | None, numeric: Collection[str] = ()
    ) -> Iterator[Any]:
        n_given, block = 0, max(self._block, self._shortest_block)
        while True:
            parsed, n_seen = self._numeric.intersection(numeric), 0
            try:
                for batch in self._blocks(names, block, parsed):
                    n_known = min(n_given - n_seen, batch.num_rows)
                    n_seen += batch.num_rows
                    n_given = max(n_given, n_seen)
                    yield batch.slice(n_known) if n_known else batch
                return
            except pa.ArrowInvalid as error:
                # It goes on with the next row: as text, or in larger blocks.
                if parsed and "conversion error" in str(error):
                    self._numeric = frozenset()
                elif "straddling" not in str(error):
                    raise TableError(
                        f"{self.file.source}: {self._what_is_uneven(error)}"
                    ) from error
                elif self._may_grow and block < _LARGEST_BLOCK:
                    block = self._block = _LARGEST_BLOCK
                else:
                    raise TableError(
                        f"{self.file.source}: a row is longer than the {size_in_words(block)} that "
                        "are read at a time. Raise --memory (batch_rows in Python)."
                    ) from error

    def _blocks(self, names: Sequence[str], block: int, parsed: Collection[str]) -> Iterator[Any]:
        types = {name: pa.float64() if name in parsed else pa.string() for name in self.names}
        with (
            self.file.open_as_utf8_in_arrow(self._encoding) as text,
            arrow_csv.open_csv(
                text,
                read_options=arrow_csv.ReadOptions(
                    column_names=self.names,
                    skip_rows=self._n_before,
                    skip_rows_after_names=int(self._header),
                    block_size=block,
                ),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=self._delimiter, newlines_in_values=True
                ),
                # A text comes as the characters it was.
                convert_options=arrow_csv.ConvertOptions(
                    column_types=types,
                    null_values=_MISSING,
                    strings_can_be_null=False,
                    include_columns=list(names),
                ),
            ) as reader,
        ):
            yield from reader

    @contextlib.contextmanager
    def _records(self) -> Iterator[Any]:
        with (
            self.file.open_as_utf8(self._encoding) as text,
            io.TextIOWrapper(text, encoding="utf-8", newline="") as lines,
        ):
            for _ in range(self._n_before):
                lines.readline()
            yield csv.reader(lines, delimiter=self._delimiter)

    def _what_is_uneven(self, error: Exception) -> str:
        with self._records() as records:
            try:
                for record in islice(records, int(self._header), None):
                    if record and len(record) != len(self.names):
                        line = self._n_before + records.line_num
                        return (
                            f"line {line} has {len(record)} values, but the first line has "
                            f"{len(self.names)}. Every line must have as many."
                        )
            except csv.Error as problem:
                return f"line {self._n_before + records.line_num} cannot be read ({problem})."
        return f"the text cannot be read ({error})."


def most_frequent_mark(line: str) -> str:
    """Return what is most likely between the cells of a line."""
    bare = re.sub(r'"[^"]*"', "", line)
    # R writes blanks by default, which stand in names where there is another mark.
    has_mark = any(mark in bare for mark in _DELIMITERS)
    return " " if " " in bare and not has_mark else max(_DELIMITERS, key=bare.count)


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _one_column(line: str, delimiter: str, source: str) -> str:
    others = [mark for mark in (*_DELIMITERS, " ") if mark in line and mark != delimiter]
    cure = "There must be at least two to select from."
    if others:
        shown = {"\t": "a tab", " ": "a space"}.get(others[0], repr(others[0]))
        cure = f"Its first line has {shown}: name the right mark with --delimiter."
    return f"{source}: the table has one column when split at {delimiter!r}. {cure}"
