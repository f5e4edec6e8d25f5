"""The bytes of a table: of a file, or held where they come only once; and what text is written in.

Text is UTF-8 or UTF-16 where a byte order mark says so; else UTF-8 if all bytes are, and Latin-1 if
not.
"""

from __future__ import annotations

import bz2
import codecs
import contextlib
import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile, ZipFile

from bsufs._atomic import STANDARD
from bsufs._extras import MissingExtraError
from bsufs._memory import size_in_words
from bsufs.tables._arrow import pa

# Extensions and delimiters; None stands for the one that is most frequent in the first line, which
# is looked for in .csv files too.
TEXT = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": None}
PARQUET = (".parquet", ".pq")
FEATHER = (".feather", ".arrow")
EXCEL = (".xlsx", ".xlsm")
# What text may be packed in, by the first bytes.
_PACKED = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\0": ".xz", b"PK\x03\x04": ".zip"}
PACKED = tuple(_PACKED.values())
_OTHER_KINDS = {
    b"PAR1": "a Parquet file: name it .parquet",
    b"ARROW1": "a Feather file: name it .feather",
    b"\x93NUMPY": "a NumPy file: name it .npy",
    b"\x89HDF": "an HDF5 file: name it .h5ad if that is what it is",
    b"MATLAB": "a MATLAB file: name it .mat",
}
_CHUNK_BYTES = 2**20
_SHOWN = 5


class TableError(ValueError):
    """A table cannot be read or written; the message is one line and names the cure."""


def shortened_list(texts: Sequence[str], mark: str = ", ", most: int = 4) -> str:
    """Return the first few texts, and how many more there are."""
    more = len(texts) - most
    return mark.join(texts[:most]) + (f" and {more} more" if more > 0 else "")


def listed(names: Iterable[str]) -> str:
    """Return the first few names in quotes, and how many more there are."""
    return shortened_list([repr(name) for name in names], most=_SHOWN)


def kind_of(
    path: str | os.PathLike[str],
    others: Sequence[str],
    what: str,
    cure: str = "",
    packed: Collection[str] = (".gz",),
) -> str:
    """Return the extension that says what a file is; some kinds are known to readers alone."""
    name = Path(path).name.lower()
    is_packed = Path(name).suffix in packed
    kind = Path(Path(name).stem if is_packed else name).suffix
    known = (*TEXT, *PARQUET, *FEATHER, *others)
    if kind in (TEXT if is_packed else known):
        return kind
    raise TableError(
        f"{path}: the extension must say what {what}, one of {' '.join(known)} (text also with "
        f"{' '.join(packed)}).{cure}"
    )


@contextlib.contextmanager
def reading(
    source: str, kind: str, errors: tuple[type[Exception], ...] = (Exception,)
) -> Iterator[None]:
    """Say in one line that a file is not what its name says.

    What a reader raises on foreign bytes mostly depends on where they cease to make sense.
    """
    try:
        yield
    except (TableError, MissingExtraError):
        raise
    except errors as error:
        if "allow_pickle" in str(error):
            raise TableError(
                f"{source}: the file holds Python objects, which are never unpickled."
            ) from error
        raise TableError(
            f"{source}: this cannot be read as a {kind} file, it is truncated or of another kind "
            f"({type(error).__name__}: {error})."
        ) from error


class RawFile:
    """Bytes that can be read again and again."""

    def __init__(
        self,
        path: str | os.PathLike[str] | BinaryIO,
        most_bytes: float,
        progress: Callable[[str], None] = lambda detail: None,
    ) -> None:
        self.progress = progress
        self._data: bytes | None = None
        self.path: Any = path
        if hasattr(path, "read"):
            self._hold(path, "the stream", most_bytes)
        elif os.fspath(path) == STANDARD:
            if sys.stdin.buffer.isatty():
                raise TableError(
                    "standard input is a terminal: pipe a table in, as in 'bsufs select - < "
                    "table.csv'."
                )
            self._hold(sys.stdin.buffer, "standard input", most_bytes)
        else:
            self.source = str(path)
            # A .zarr is a folder, which its own reader opens.
            if not Path(path).is_file() and Path(path).suffix.lower() != ".zarr":
                with Path(path).open("rb") as stream:
                    self._hold(stream, str(path), most_bytes)
        # Whether the bytes are in memory, since they could not be read twice.
        self.is_held = self._data is not None
        self._state = self._stat()

    def _hold(self, stream: Any, source: str, most_bytes: float) -> None:
        """Read what can be read only once."""
        held = io.BytesIO()
        # Beside the bytes there will be the numbers, and what is made of them.
        while 3 * held.tell() <= most_bytes and held.write(stream.read(_CHUNK_BYTES)):
            self.progress(size_in_words(held.tell()))
        self.source, self._data = source, held.getvalue()
        if 3 * held.tell() > most_bytes:
            raise TableError(
                f"{source} is too large to hold in {size_in_words(most_bytes)} of memory and "
                "cannot be read twice. Write it to a file and select from that, or raise --memory."
            )

    def open(self) -> BinaryIO:
        """Return the bytes from their beginning."""
        return Path(self.path).open("rb") if self._data is None else io.BytesIO(self._data)

    def open_in_arrow(self) -> Any:
        """Return the bytes as a file of Arrow's own.

        Its threads would wait for Python in one of Python's, even while that ends.
        """
        if self._data is not None:
            return pa.BufferReader(self._data)
        # Python says best why a file cannot be opened.
        with self.open():
            return pa.OSFile(os.fsencode(self.path))

    @property
    def _packing(self) -> str:
        with self.open() as stream:
            head = stream.read(8)
        return next((kind for magic, kind in _PACKED.items() if head.startswith(magic)), "")

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

    @contextlib.contextmanager
    def open_unzipped(self) -> Iterator[Any]:
        """Open the bytes of a text, unzipped and without the byte order mark of UTF-8."""
        packing = self._packing
        with self.open() as stream:
            try:
                reader = io.BufferedReader(_unpacked(stream, packing, self.source))
                if reader.peek().startswith(codecs.BOM_UTF8):
                    reader.read(len(codecs.BOM_UTF8))
                yield reader
            # What the disk has to say is not the fault of the packing.
            except (EOFError, zlib.error, lzma.LZMAError, BadZipFile, OSError) as error:
                if isinstance(error, OSError) and error.errno is not None:
                    raise
                raise TableError(
                    f"{self.source}: the {packing} file is truncated or damaged ({error})."
                ) from error

    @contextlib.contextmanager
    def open_as_utf8(self, encoding: str) -> Iterator[Any]:
        """Open the text as UTF-8, from its first line with anything in it."""
        with self.open_unzipped() as text:
            if encoding != "utf-8":
                source = pa.PythonFile(text, "r")
                text = io.BufferedReader(pa.transcoding_input_stream(source, encoding, "utf-8"))
            while text.peek()[:1] in (b"\r", b"\n"):
                text.read(1)
            yield text

    @contextlib.contextmanager
    def open_as_utf8_in_arrow(self, encoding: str) -> Iterator[Any]:
        """Open the same for Arrow, by itself where nothing is to be unpacked or translated."""
        with self.open_as_utf8(encoding) as text:
            if self._packing or encoding != "utf-8":
                yield text
                return
            start = text.tell()
        with self.open_in_arrow() as own:
            own.seek(start)
            yield own


def _unpacked(stream: BinaryIO, packing: str, source: str) -> Any:
    if packing != ".zip":
        openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
        return openers[packing](stream) if packing else stream
    archive = ZipFile(stream)
    members = [one for one in archive.infolist() if not one.is_dir()]
    if len(members) != 1 or not members[0].filename.lower().endswith(tuple(TEXT)):
        raise TableError(
            f"{source}: this is a zip archive, which must hold one text file (.csv, .tsv, .txt), "
            f"but holds {listed(one.filename for one in members) or 'nothing'}. Unpack it, or name "
            "it .xlsx or .npz if that is what it is."
        )
    return archive.open(members[0])


def sniff(file: RawFile) -> tuple[str, tuple[str, ...], int, int]:
    """Look through a text once: its encoding, notices, and at most how many lines and bytes."""
    n_bytes = n_feeds = n_returns = 0
    has_zeros = has_ink = False
    notices: tuple[str, ...] = ()
    with file.open_unzipped() as stream:
        head = stream.peek()[:16]
        is_utf_16 = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        encoding = "utf-16" if is_utf_16 else "utf-8"
        decoder = codecs.getincrementaldecoder(encoding)()
        # An empty chunk ends the text.
        for chunk in chain(iter(lambda: stream.read(_CHUNK_BYTES), b""), [b""]):
            text = chunk
            try:
                decoded = decoder.decode(chunk, final=not chunk)
                text = decoded.encode() if is_utf_16 else chunk
            except UnicodeDecodeError as error:
                if is_utf_16:
                    raise TableError(
                        f"{file.source}: it begins as UTF-16 text, but is not ({error.reason})."
                    ) from error
                line = 1 + n_feeds + error.object[: error.start].count(b"\n")
                notices = (
                    f"{file.source} is not UTF-8 (line {line}) and is read as Latin-1; what is "
                    "written is UTF-8.",
                )
                encoding = "latin-1"
                decoder = codecs.getincrementaldecoder(encoding)()
            has_ink = has_ink or bool(text.strip())
            has_zeros = has_zeros or b"\0" in text
            n_feeds += text.count(b"\n")
            # Mostly there is none, which is found out much faster.
            n_returns += text.count(b"\r") if b"\r" in text else 0
            n_bytes += len(chunk)
            file.progress(size_in_words(n_bytes))
    if not has_ink:
        raise TableError(f"{file.source}: the file is empty.")
    if not is_utf_16:
        for magic, kind in _OTHER_KINDS.items():
            if head.startswith(magic) and (has_zeros or magic == b"PAR1"):
                raise TableError(f"{file.source}: this is no text but {kind}.")
        if has_zeros:
            raise TableError(
                f"{file.source}: this is no text, it holds zero bytes. Is the name right?"
            )
    # Lines end in either, or in both.
    return encoding, notices, 1 + max(n_feeds, n_returns), n_bytes
