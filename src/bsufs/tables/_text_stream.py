"""Delimited text that is too large to hold: the same cells as `read_text` gives, batch by batch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from bsufs._memory import size_in_words
from bsufs.tables._encoding import Look, open_as_utf8, raw_chunks
from bsufs.tables._errors import TableError
from bsufs.tables._text import Layout, arrow_options, no_row_below, read_layout, what_is_uneven

# Arrow reads so many blocks ahead of those that it hands out.
_BLOCKS_AHEAD = 32
_SMALLEST_BLOCK, _LARGEST_BLOCK = 2**16, 2**26
# A block must hold a row; this many times the first line leaves room for longer ones.
_LINES_IN_A_BLOCK = 8


@dataclass(frozen=True)
class TextFile:
    """A text file whose encoding and layout are known."""

    path: str | os.PathLike[str]
    source: str
    encoding: str
    layout: Layout
    n_lines: int
    first_line: int
    has_carriage_returns: bool
    notices: tuple[str, ...]

    def open(self) -> BinaryIO:
        """Return the text from its beginning, as UTF-8."""
        return open_as_utf8(self.path, self.source, self.encoding)

    def batches(self, memory: int, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Go through the rows."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        block = min(max(memory // _BLOCKS_AHEAD, _SMALLEST_BLOCK), _LARGEST_BLOCK)
        block = max(block, _LINES_IN_A_BLOCK * self.first_line)
        names = self.layout.names if columns is None else tuple(columns)
        place = {name: number for number, name in enumerate(self.layout.names)}
        wanted = [place[name] for name in names]
        n_rows = 0
        try:
            with arrow_csv.open_csv(
                self.open(), **arrow_options(self.layout, block, wanted)
            ) as reader:
                for batch in reader:
                    n_rows += batch.num_rows
                    if batch.num_rows:
                        yield batch.rename_columns(list(names))
        except pa.ArrowInvalid as error:
            if "straddling" in str(error):
                raise TableError(
                    f"{self.source}: a row is longer than the {size_in_words(block)} that are read "
                    "at a time. Raise --memory (batch_rows in Python)."
                ) from error
            raise TableError(
                what_is_uneven(self.open(), self.layout, self.source, error)
            ) from error
        if n_rows == 0:
            raise TableError(no_row_below(self.layout, self.source))


def open_text(
    path: str | os.PathLike[str], source: str, delimiter: str | None, header: bool
) -> TextFile:
    """Find out by one pass over a text file how it is to be read."""
    look = Look.at(raw_chunks(path, source), source)
    encoding, notices = look.conclusion()

    def open_from_the_start() -> BinaryIO:
        return open_as_utf8(path, source, encoding)

    layout = read_layout(open_from_the_start, source, delimiter, header)
    return TextFile(
        path=path,
        source=source,
        encoding=encoding,
        layout=layout,
        n_lines=look.n_lines,
        first_line=len(open_from_the_start().readline()),
        has_carriage_returns=look.has_carriage_returns,
        notices=notices,
    )
