"""The bytes of a table: of a file, or held where they come only once; and what text is written in.

Text is UTF-8 or UTF-16 where a byte order mark says so; else UTF-8 if all bytes are, and Latin-1 if
not.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from bsufs._memory import size_in_words

STDIN = "-"
_GZIP = b"\x1f\x8b"
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_OTHER_KINDS = {
    b"PAR1": "a Parquet file: name it .parquet",
    b"ARROW1": "a Feather file: name it .feather",
    b"\x93NUMPY": "a NumPy file: name it .npy",
    b"PK\x03\x04": "a zip archive, such as an Excel workbook or .npz: save the sheet as CSV",
    b"\x89HDF": "an HDF5 file: name it .h5ad if that is what it is",
    b"MATLAB": "a MATLAB file: name it .mat",
}
_CHUNK_BYTES = 2**20
# How many cells there are is estimated from the beginning of a text.
_SAMPLE_BYTES = 2**21
_SHOWN = 5


class TableError(ValueError):
    """A table cannot be read or written; the message is one line and names the cure."""


def listed(names: Iterable[str]) -> str:
    """Return the first few names in quotes, and how many more there are."""
    every = [repr(name) for name in names]
    more = len(every) - _SHOWN
    return ", ".join(every[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def unreadable_message(kind: str, error: Exception) -> str:
    """Return the complaint about a file that is not what its name says."""
    return (
        f"this cannot be read as a {kind} file, it is truncated or of another kind "
        f"({type(error).__name__}: {error})."
    )


class RawFile:
    """Bytes that can be read again and again: of a file, or held where they come only once."""

    def __init__(self, path: str | os.PathLike[str] | BinaryIO, most_bytes: float) -> None:
        self._data: bytes | None = None
        self.path: Any = path
        if hasattr(path, "read"):
            self.source = "the stream"
            self._data = _read_all(path, self.source, most_bytes)
        elif os.fspath(path) == STDIN:
            self.source = "standard input"
            if sys.stdin.buffer.isatty():
                raise TableError(
                    "standard input is a terminal: pipe a table in, as in 'bsufs select - < "
                    "table.csv'."
                )
            self._data = _read_all(sys.stdin.buffer, self.source, most_bytes)
        else:
            self.source = str(path)
            if not Path(path).is_file():
                with Path(path).open("rb") as stream:
                    self._data = _read_all(stream, self.source, most_bytes)
        self._state = self._stat()

    @property
    def is_held(self) -> bool:
        """Whether the bytes are in memory, since they could not be read twice."""
        return self._data is not None

    def open(self) -> BinaryIO:
        """Return the bytes from their beginning."""
        return Path(self.path).open("rb") if self._data is None else io.BytesIO(self._data)

    def check_unchanged(self) -> None:
        """Raise an error where somebody has written to the file since it was first looked at."""
        if self._stat() != self._state:
            raise TableError(
                f"{self.source}: the file has changed while it was read, which takes more than one "
                "pass. Start again when nothing writes to it."
            )

    def _stat(self) -> tuple[int, ...]:
        if self._data is not None:
            return ()
        found = os.stat(self.path)
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    def text_chunks(self) -> Iterator[bytes]:
        """Go through the bytes, unzipped and without the byte order mark of UTF-8."""
        with self.open() as stream:
            zipped = stream.read(len(_GZIP)) == _GZIP
            stream.seek(0)
            reader: Any = gzip.GzipFile(fileobj=stream) if zipped else stream
            try:
                head = reader.read(len(codecs.BOM_UTF8))
                if head and head != codecs.BOM_UTF8:
                    yield head
                while chunk := reader.read(_CHUNK_BYTES):
                    yield chunk
            # What the disk has to say is not the fault of gzip.
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise TableError(
                    f"{self.source}: the gzip file is truncated or damaged ({error})."
                ) from error

    def open_as_utf8(self, encoding: str) -> BinaryIO:
        """Return the text as UTF-8, from its first line with anything in it."""
        return io.BufferedReader(_Chunks(self._utf8_chunks(encoding)), _CHUNK_BYTES)

    def _utf8_chunks(self, encoding: str) -> Iterator[bytes]:
        decoder = codecs.getincrementaldecoder(encoding)()
        begun = False
        for chunk in self.text_chunks():
            text = chunk if encoding == "utf-8" else decoder.decode(chunk).encode()
            if not begun:
                text = text.lstrip(b"\r\n")
                begun = bool(text)
            if text:
                yield text


def _read_all(stream: Any, source: str, most_bytes: float) -> bytes:
    chunks: list[bytes] = []
    n_bytes = 0
    while chunk := stream.read(_CHUNK_BYTES):
        chunks.append(chunk)
        n_bytes += len(chunk)
        # Held as bytes, beside the numbers and what is made of them.
        if 3 * n_bytes > most_bytes:
            raise TableError(
                f"{source} is too large to hold in {size_in_words(most_bytes)} of memory and "
                "cannot be read twice. Write it to a file and select from that, or raise --memory."
            )
    return b"".join(chunks)


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


@dataclass(frozen=True)
class Sniffed:
    """What the bytes of a text say of it."""

    encoding: str
    notices: tuple[str, ...]
    n_lines: int
    has_carriage_returns: bool
    # The characters twice (as they are in the file, and in cells) and 12 bytes for each cell.
    memory_to_hold: int


def sniff_encoding(chunks: Iterable[bytes], source: str) -> Sniffed:
    """Look through a text once, for its encoding and whether it is text at all."""
    head = b""
    n_bytes = n_sampled = n_marks = 0
    n_lines, wrong_line = 1, None
    has_returns = has_zeros = has_ink = is_utf_16 = False
    decoder = codecs.getincrementaldecoder("utf-8")()
    # An empty chunk ends the text.
    for chunk in chain(chunks, [b""]):
        if not head and chunk.startswith(_UTF_16):
            is_utf_16 = True
            decoder = codecs.getincrementaldecoder("utf-16")()
        head += chunk[: 16 - len(head)]
        text, begun = "", len(decoder.getstate()[0])
        try:
            text = decoder.decode(chunk, final=not chunk) if wrong_line is None else ""
        except UnicodeDecodeError as error:
            if is_utf_16:
                raise TableError(
                    f"{source}: it begins as UTF-16 text, but is not ({error.reason})."
                ) from error
            wrong_line = n_lines + chunk[: max(0, error.start - begun)].count(b"\n")
        has_ink = has_ink or bool((text if is_utf_16 else chunk).strip())
        has_returns = has_returns or b"\r" in chunk
        has_zeros = has_zeros or b"\0" in chunk
        n_lines += chunk.count(b"\n")
        n_bytes += len(chunk)
        if n_bytes <= _SAMPLE_BYTES:
            n_sampled = n_bytes
            n_marks += sum(map(chunk.count, (b",", b"\t", b";", b"|", b"\n")))
    if not has_ink:
        raise TableError(f"{source}: the file is empty.")
    if not is_utf_16:
        _refuse_other_kinds(head, has_zeros, source)
    notices = []
    if wrong_line is not None:
        notices = [
            f"{source} is not UTF-8 (line {wrong_line}) and is read as Latin-1; what is written is "
            "UTF-8."
        ]
    return Sniffed(
        encoding="utf-16" if is_utf_16 else "utf-8" if wrong_line is None else "latin-1",
        notices=tuple(notices),
        n_lines=n_lines,
        has_carriage_returns=has_returns,
        memory_to_hold=int(n_bytes * (2.0 + 12.0 * n_marks / n_sampled)),
    )


def _refuse_other_kinds(head: bytes, has_zeros: bool, source: str) -> None:
    for magic, kind in _OTHER_KINDS.items():
        if head.startswith(magic) and (has_zeros or magic == b"PAR1"):
            raise TableError(f"{source}: this is no text but {kind}.")
    if has_zeros:
        raise TableError(f"{source}: this is no text, it holds zero bytes. Is the name right?")
