"""What text is written in: unzipped, looked at once, and handed on as UTF-8.

UTF-8 or UTF-16 where a byte order mark says so; else UTF-8 if all bytes are, and Latin-1 if not.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from bsufs.tables._errors import TableError

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


class Look:
    """What the bytes of a text file say about its encoding, and whether they are text at all."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.n_lines = 1
        self.has_carriage_returns = False
        self._head = b""
        self._is_utf_16 = False
        self._has_zeros = self._has_ink = False
        self._wrong_line: int | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    @classmethod
    def at(cls, chunks: Iterable[bytes], source: str) -> Look:
        """Look at a whole file."""
        look = cls(source)
        for chunk in chunks:
            look._add(chunk)
        return look

    def _add(self, chunk: bytes) -> None:
        if not self._head and chunk.startswith(_UTF_16):
            self._is_utf_16 = True
            self._decoder = codecs.getincrementaldecoder("utf-16")()
        self._head += chunk[: 16 - len(self._head)]
        self.has_carriage_returns |= b"\r" in chunk
        self._has_zeros |= b"\0" in chunk
        text = self._decoded(chunk)
        self._has_ink |= _has_ink(text.encode() if self._is_utf_16 else chunk)
        self.n_lines += chunk.count(b"\n")

    def _decoded(self, chunk: bytes, final: bool = False) -> str:
        """Return the next characters, nothing once there is a byte that is wrong."""
        if self._wrong_line is not None:
            return ""
        begun = len(self._decoder.getstate()[0])
        try:
            return self._decoder.decode(chunk, final)
        except UnicodeDecodeError as error:
            if self._is_utf_16:
                raise TableError(
                    f"{self.source}: it begins as UTF-16 text, but is not ({error.reason})."
                ) from error
            before = chunk[: max(0, error.start - begun)]
            self._wrong_line = self.n_lines + before.count(b"\n")
            return ""

    def conclusion(self) -> tuple[str, tuple[str, ...]]:
        """Return the encoding."""
        self._decoded(b"", final=True)
        if not self._has_ink:
            raise TableError(f"{self.source}: the file is empty.")
        if self._is_utf_16:
            return "utf-16", ()
        self._refuse_other_kinds()
        if self._wrong_line is None:
            return "utf-8", ()
        notice = (
            f"{self.source} is not UTF-8 (line {self._wrong_line}) and is read as Latin-1; what is "
            "written is UTF-8."
        )
        return "latin-1", (notice,)

    def _refuse_other_kinds(self) -> None:
        for magic, kind in _OTHER_KINDS.items():
            if self._head.startswith(magic) and (self._has_zeros or magic == b"PAR1"):
                raise TableError(f"{self.source}: this is no text but {kind}.")
        if self._has_zeros:
            raise TableError(
                f"{self.source}: this is no text, it holds zero bytes. Is the name right?"
            )


def _has_ink(data: bytes) -> bool:
    return bool(data) and not data.isspace()


def is_zipped(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is zipped by gzip."""
    with open(path, "rb") as stream:
        return stream.read(len(_GZIP)) == _GZIP


def raw_text(data: bytes, source: str) -> bytes:
    """Return the bytes of a text file, unzipped and without the byte order mark of UTF-8."""
    if data.startswith(_GZIP):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise _damaged(source, error) from error
    return data.removeprefix(codecs.BOM_UTF8)


def raw_chunks(path: str | os.PathLike[str], source: str) -> Iterator[bytes]:
    """Go through the bytes of a text file, unzipped and without the byte order mark of UTF-8."""
    zipped = is_zipped(path)
    with open(path, "rb") as stream:
        reader: Any = gzip.GzipFile(fileobj=stream) if zipped else stream
        try:
            head = reader.read(len(codecs.BOM_UTF8))
            if head and head != codecs.BOM_UTF8:
                yield head
            while chunk := reader.read(_CHUNK_BYTES):
                yield chunk
        # What the disk has to say is not the fault of gzip.
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise _damaged(source, error) from error


def _damaged(source: str, error: Exception) -> TableError:
    return TableError(f"{source}: the gzip file is truncated or damaged ({error}).")


def pieces(data: bytes) -> Iterator[bytes]:
    """Go through bytes as `raw_chunks` does, so that no second copy of all is made."""
    for start in range(0, len(data), _CHUNK_BYTES):
        yield data[start : start + _CHUNK_BYTES]


def as_utf8(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
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


def open_as_utf8(path: str | os.PathLike[str], source: str, encoding: str) -> BinaryIO:
    """Return the text of a file from its beginning, as UTF-8."""
    chunks = as_utf8(raw_chunks(path, source), encoding)
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
