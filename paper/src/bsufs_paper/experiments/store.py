"""Where results stay: one parquet part for each finished task, written as a whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from bsufs._atomic import LEFTOVERS, atomic_write
from bsufs_paper.experiments.tasks import Task

_META = b"bsufs"


class Status(StrEnum):
    """How a task ended."""

    DONE = "done"
    FAILED = "failed"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Outcome:
    """What came of a task."""

    status: Status
    reason: str = ""
    seconds: float = 0.0
    columns: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """A stored outcome."""

    task: Task
    status: Status
    reason: str
    seconds: float
    warnings: tuple[str, ...]
    table: pa.Table

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The result as a data frame; made when first asked for, as there are many parts."""
        return self.table.to_pandas()

    def column(self, name: str) -> NDArray[Any]:
        """Return one column of the result."""
        return self.table.column(name).to_numpy()


class ResultStore:
    """A folder of parts, each named by the key of its task.

    Parts are written to a temporary file, forced to the disk and renamed, so that a run that is
    killed at any moment leaves whole parts only. Parts are read once and kept.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._parts = self.folder / "parts"
        self._parts.mkdir(parents=True, exist_ok=True)
        self._known: dict[str, Part] = {}
        self._unreadable: set[Path] = set()
        self._read_new_parts()

    def _read_new_parts(self) -> None:
        for path in sorted(self._parts.glob("*.parquet")):
            if path.stem not in self._known and path not in self._unreadable:
                part = _read(path)
                if part is None:
                    self._unreadable.add(path)
                # What another release, other data or another meaning gave does not count.
                elif _is_current(part, path.stem):
                    self._known[path.stem] = part

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs out of the folder while this one writes."""
        try:
            lock = FileLock(self.folder / ".lock").acquire(timeout=0)
        except Timeout:
            raise BlockingIOError(
                f"another run is writing to {self.folder}. Wait for it, or give another folder."
            ) from None
        with lock:
            # What another run has done since the folder was opened.
            self._read_new_parts()
            for path in self._unreadable:
                # Never deleted: someone may want to know what happened to it.
                os.replace(path, path.with_suffix(f".{time.time_ns()}.unreadable"))
            self._unreadable.clear()
            # Left by a run that was killed while it wrote; nobody else can be writing now.
            for stale in self._parts.glob(LEFTOVERS):
                stale.unlink()
            yield

    def get(self, task: Task) -> Part | None:
        """Return what is stored of a task."""
        return self._known.get(task.key)

    def done(self, task: Task) -> pd.DataFrame | None:
        """Return the result of a task."""
        part = self.get(task)
        return part.frame if part is not None and part.status is Status.DONE else None

    def parts(self) -> list[Part]:
        """Return all that is stored."""
        return [self._known[key] for key in sorted(self._known)]

    def write(self, task: Task, outcome: Outcome) -> None:
        """Store an outcome."""
        if self.done(task) is not None and outcome.status is not Status.DONE:
            return
        meta = {
            "kind": task.kind,
            "arguments": task.text,
            "status": outcome.status.value,
            "reason": outcome.reason,
            "seconds": outcome.seconds,
            "warnings": list(outcome.warnings),
        }
        table = pa.table(outcome.columns).replace_schema_metadata(
            {_META: json.dumps(meta).encode()}
        )
        with atomic_write(self._parts / f"{task.key}.parquet") as stream:
            pq.write_table(table, stream)
        self._known[task.key] = _part(meta, table)


def _part(meta: dict[str, Any], table: pa.Table) -> Part:
    return Part(
        task=Task(meta["kind"], meta["arguments"]),
        status=Status(meta["status"]),
        reason=meta["reason"],
        seconds=meta["seconds"],
        warnings=tuple(meta["warnings"]),
        table=table,
    )


def _is_current(part: Part, key: str) -> bool:
    try:
        return part.task.key == key
    except (ValueError, KeyError):  # of a dataset or a kind that is no longer there
        return False


def _read(path: Path) -> Part | None:
    """Return a part; None if it is none. A file that cannot be opened is no bad part."""
    content = path.read_bytes()
    try:
        table = pq.read_table(pa.BufferReader(content))
        return _part(json.loads(table.schema.metadata[_META]), table)
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError):
        return None
