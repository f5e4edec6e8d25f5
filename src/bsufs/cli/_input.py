"""Whether a table is read at once or in batches."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bsufs._memory import available_memory, parse_size, size_in_words
from bsufs.cli._base import Input
from bsufs.cli._console import Reporter
from bsufs.cli._options import Reading
from bsufs.cli._streamed import StreamedInput, batch_rows_for, check_width
from bsufs.cli._whole import read_input
from bsufs.tables import TableError, memory_to_hold, stream_table

# The share of the free memory that a table may take where nothing else is said.
SHARE_OF_MEMORY = 0.25
_STDIN = "-"
_CHUNK_BYTES = 2**20


def open_input(
    path: str,
    reading: Reading,
    report: Reporter,
    *,
    memory: str | None,
    needs_all: Sequence[str],
) -> Input:
    """Read a table, or open it to be read in batches where it is larger than is allowed."""
    available = available_memory()
    limit = int(available * SHARE_OF_MEMORY)
    if memory is not None:
        try:
            limit = parse_size(memory)
        except ValueError as error:
            raise ValueError(f"--memory: {error}") from error
    most = available if memory is None else limit
    if path == _STDIN:
        return read_input(path, reading, report, stdin=_LimitedInput(most))
    needed = memory_to_hold(path, most)
    if needed is None or needed <= limit or (needs_all and needed <= most):
        return read_input(path, reading, report)
    if needs_all:
        raise ValueError(
            f"{path}: {needs_all[0]} needs the whole table in memory, {size_in_words(needed)} or "
            f"more, but {'--memory is' if memory else 'there is free'} {size_in_words(most)}. "
            f"{'Raise --memory, or do without it.' if memory else 'Do without it.'}"
        )
    return _opened_stream(path, reading, report, limit, needed)


def _opened_stream(
    path: str, reading: Reading, report: Reporter, limit: int, needed: int
) -> StreamedInput:
    if reading.array is not None:
        raise TableError(f"{path}: --array is for .npz and .mat files only.")
    with report.busy(f"looking at {path}"):
        stream = stream_table(path, **reading.of_cells())
    stream.batch_rows = batch_rows_for(limit, len(stream.order))
    check_width(path, stream.most_rows, stream.n_features)
    for notice in stream.notices:
        report.say(notice)
    report.say(
        f"{path} would take {size_in_words(needed)} or more of memory and is read in batches of "
        f"{stream.batch_rows} rows"
    )
    found = StreamedInput(path, stream, reading.missing, limit, report)
    with report.busy(f"reading {path}"):
        found.prepare(reading.scale)
    return found


class _LimitedInput:
    """Standard input up to a size: it cannot be read twice, so it must be held."""

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def isatty(self) -> bool:
        return sys.stdin.buffer.isatty()

    def read(self) -> bytes:
        chunks: list[bytes] = []
        n_bytes = 0
        while chunk := sys.stdin.buffer.read(_CHUNK_BYTES):
            chunks.append(chunk)
            n_bytes += len(chunk)
            # Held as bytes and as cells, beside the numbers.
            if 3 * n_bytes > self._limit:
                raise TableError(
                    f"standard input is too large to hold in {size_in_words(self._limit)} of "
                    "memory and cannot be read twice. Write it to a file and select from that, or "
                    "raise --memory."
                )
        return b"".join(chunks)
