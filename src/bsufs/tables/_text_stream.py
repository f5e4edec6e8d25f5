"""Delimited text that is too large to hold: the same cells as `read_text` gives, batch by batch."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from bsufs._memory import size_in_words
from bsufs.tables._errors import TableError
from bsufs.tables._text import (
    GZIP,
    UTF_16,
    Layout,
    arrow_options,
    latin_1_notice,
    no_row_below,
    read_layout,
    refuse_other_kinds,
    what_is_uneven,
)

_CHUNK_BYTES = 2**20
# Arrow reads so many blocks ahead of those that it hands out.
_BLOCKS_AHEAD = 32
_SMALLEST_BLOCK, _LARGEST_BLOCK = 2**16, 2**26
# A block must hold a row; this many times the first line leaves room for longer ones.
_LINES_IN_A_BLOCK = 8


@dataclass(frozen=True)
class TextFile:
    """A text file whose encoding and layout are known.

    Parameters
    ----------
    path : path-like
        The file.
    source : str
        Its name, for messages.
    encoding : str
        What it is written in: utf-8, utf-16 or latin-1.
    layout : Layout
        How the cells stand in the lines.
    n_lines : int
        Number of lines.
    first_line : int
        Bytes of the first line, with its end.
    has_carriage_returns : bool
        Whether one occurs anywhere, be it at the ends of the lines.
    notices : tuple of str
        What the user should know.
    """

    path: str | os.PathLike[str]
    source: str
    encoding: str
    layout: Layout
    n_lines: int
    first_line: int
    has_carriage_returns: bool
    notices: tuple[str, ...]

    def open(self) -> BinaryIO:
        """Return the text from its beginning, as UTF-8.

        Returns
        -------
        binary file
            Without byte order mark and without empty lines in front.
        """
        return _opened(_as_utf8(raw_chunks(self.path, self.source), self.encoding))

    def batches(self, memory: int, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Go through the rows.

        Parameters
        ----------
        memory : int
            Bytes that may be taken by text that is read ahead.
        columns : sequence of str, optional
            The columns wanted; all by default.

        Yields
        ------
        pyarrow.RecordBatch
            Strings under the names of the columns.
        """
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
    """Find out by one pass over a text file how it is to be read.

    Parameters
    ----------
    path : path-like
        The file, which may be zipped by gzip.
    source : str
        Its name, for messages.
    delimiter : str or None
        None to take the one that is most frequent in the first line.
    header : bool
        Whether the first line holds the names.

    Returns
    -------
    TextFile
        The file.
    """
    look = _Look(source)
    for chunk in raw_chunks(path, source):
        look.add(chunk)
    encoding, notices = look.conclusion()

    def open_from_the_start() -> BinaryIO:
        return _opened(_as_utf8(raw_chunks(path, source), encoding))

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


class _Look:
    """What the bytes of a file say about its encoding; see `read_text` for the rules."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.n_lines = 1
        self.has_carriage_returns = False
        self._head = b""
        self._is_utf_16 = False
        self._has_zeros = self._has_ink = False
        self._wrong_line: int | None = None
        self._decoder: Any = None

    def add(self, chunk: bytes) -> None:
        if self._decoder is None:
            self._is_utf_16 = chunk.startswith(UTF_16)
            self._decoder = codecs.getincrementaldecoder("utf-16" if self._is_utf_16 else "utf-8")()
        self._head += chunk[: 16 - len(self._head)]
        self.has_carriage_returns |= b"\r" in chunk
        self._has_zeros |= b"\0" in chunk
        self._has_ink |= bool(chunk.strip())
        self._decode(chunk)
        self.n_lines += chunk.count(b"\n")

    def _decode(self, chunk: bytes, final: bool = False) -> None:
        if self._wrong_line is not None:
            return
        begun = len(self._decoder.getstate()[0])
        try:
            self._decoder.decode(chunk, final)
        except UnicodeDecodeError as error:
            if self._is_utf_16:
                raise TableError(
                    f"{self.source}: it begins as UTF-16 text, but is not ({error.reason})."
                ) from error
            before = chunk[: max(0, error.start - begun)]
            self._wrong_line = self.n_lines + before.count(b"\n")

    def conclusion(self) -> tuple[str, tuple[str, ...]]:
        if not self._has_ink:
            raise TableError(f"{self.source}: the file is empty.")
        self._decode(b"", final=True)
        if self._is_utf_16:
            return "utf-16", ()
        refuse_other_kinds(self._head, self._has_zeros, self.source)
        if self._wrong_line is not None:
            return "latin-1", (latin_1_notice(self._wrong_line, self.source),)
        return "utf-8", ()


def is_zipped(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is zipped by gzip.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    bool
        By its first bytes, whatever its name.
    """
    with open(path, "rb") as stream:
        return stream.read(len(GZIP)) == GZIP


def raw_chunks(path: str | os.PathLike[str], source: str) -> Iterator[bytes]:
    """Go through the bytes of a text file, unzipped and without the byte order mark of UTF-8.

    Parameters
    ----------
    path : path-like
        The file.
    source : str
        Its name, for messages.

    Yields
    ------
    bytes
        About a megabyte at a time.
    """
    zipped = is_zipped(path)
    with open(path, "rb") as stream:
        reader: Any = gzip.GzipFile(fileobj=stream) if zipped else stream
        try:
            head = reader.read(len(codecs.BOM_UTF8))
            if head and head != codecs.BOM_UTF8:
                yield head
            while chunk := reader.read(_CHUNK_BYTES):
                yield chunk
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise TableError(
                f"{source}: the gzip file is truncated or damaged ({error})."
            ) from error


def _as_utf8(chunks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Go through the same text as UTF-8, from its first line with anything in it."""
    decoder = codecs.getincrementaldecoder(encoding)()
    begun = False
    for chunk in chunks:
        text = chunk if encoding == "utf-8" else decoder.decode(chunk).encode()
        if not begun:
            text = text.lstrip(b"\r\n")
            begun = bool(text)
        if text:
            yield text


def _opened(chunks: Iterator[bytes]) -> BinaryIO:
    return io.BufferedReader(_Chunks(chunks), _CHUNK_BYTES)


class _Chunks(io.RawIOBase):
    """Pieces of bytes as a file."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            self._left = memoryview(next(self._chunks, b""))
        n_bytes = min(len(buffer), len(self._left))
        buffer[:n_bytes] = self._left[:n_bytes]
        self._left = self._left[n_bytes:]
        return n_bytes
