"""The one table that the page is about, and the one job that may run."""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bsufs._memory import available_memory, size_in_words
from bsufs.app._jobs import Job
from bsufs.app._request import GROUPS_FILE, Reading, Settings, output_names, safe_name, shell_words

COLUMNS_FILE = "columns.json"
# A fit and its report take about so many times what the numbers of the table do.
TIMES_THE_TABLE = 6
MOST_BYTES_OF_GROUPS = 10**7


class Refusal(Exception):
    """Something that was asked for and is not done, with a status of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Session:
    """All that every tab shows; its files are in one folder, which nobody else may enter.

    A table that is named at the start is the only file outside of it that is ever opened.
    """

    def __init__(self, folder: Path, limit: int, file: Path | None = None) -> None:
        self.limit = limit
        self._folder = folder
        self._lock = threading.Lock()
        # Counts tables and readings, so that a tab sees that it shows an old one.
        self._number = 0
        self._uploading = False
        self._place: Path | None = None
        self._path = self._name = ""
        self._size = 0
        self._reading = Reading()
        self._read: Job | None = None
        self._read_number = 0
        self._facts: dict[str, Any] = {}
        self._run: Job | None = None
        self._settings = Settings()
        self._request: dict[str, Any] = {}
        self._files: dict[str, Path] = {}
        if file is not None:
            safe_name(file.name)
            self._place = self._new_place()
            self._path, self._name = str(file), file.name
            self._size = file.stat().st_size
            self.read(Reading())

    def state(self) -> dict[str, Any]:
        """Return all that a tab shows, but for the columns."""
        table = None
        if self._place is not None:
            table = {"name": self._name, "size": size_in_words(self._size)}
        reading = run = None
        if self._read is not None:
            reading = self._read.state() | {"number": self._read_number}
        if self._run is not None:
            run = self._run.state() | self._request
            files = self._files.items() if run["status"] == "done" else ()
            run["files"] = {key: path.name for key, path in files}
        return {
            "limit": self.limit,
            "uploading": self._uploading,
            "table": table,
            "options": asdict(self._reading),
            "reading": reading,
            "run": run,
        }

    async def upload(self, name: str, length: int | None, chunks: AsyncIterator[bytes]) -> None:
        """Take a new table in the place of the old one, and read it."""
        stored = safe_name(name)
        with self._alone():
            self._uploading, place = True, self._new_place()
        try:
            size = await self._store(place / stored, length, chunks, self.limit)
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        finally:
            self._uploading = False
        with self._alone():
            if self._place is not None:
                shutil.rmtree(self._place, ignore_errors=True)
            self._place, self._path, self._name = place, stored, name
            self._size = size
            self._start_reading(Reading())

    async def upload_groups(self, length: int | None, chunks: AsyncIterator[bytes]) -> None:
        """Take a file that says which columns belong together."""
        place = self._require_table()
        with self._alone():
            pass
        await self._store(place / GROUPS_FILE, length, chunks, MOST_BYTES_OF_GROUPS)

    async def _store(
        self, path: Path, length: int | None, chunks: AsyncIterator[bytes], limit: int
    ) -> int:
        size = 0
        too_large = Refusal(
            413,
            f"The file is larger than {size_in_words(limit)}. Start the app with a larger "
            "--limit-size, or name the file: bsufs app FILE.",
        )
        if length is not None and length > limit:
            raise too_large
        if (length or 0) > shutil.disk_usage(path.parent).free:
            raise Refusal(507, f"There is no room for the file in {path.parent.parent}.")
        with path.open("wb") as stream:
            async for chunk in chunks:
                size += len(chunk)
                if size > limit:
                    raise too_large
                stream.write(chunk)
        if length is not None and size != length:
            raise Refusal(400, "The upload was interrupted. Try again.")
        return size

    def read(self, reading: Reading) -> None:
        """Find out how the columns of the table are read."""
        self._require_table()
        with self._alone():
            self._start_reading(reading)

    def _start_reading(self, reading: Reading) -> None:
        place = self._require_table()
        self._number += 1
        self._read_number = self._number
        self._reading, self._facts, self._run = reading, {}, None
        words = ["columns", self._path, COLUMNS_FILE, json.dumps(reading.options)]
        self._read = Job(words, place, self._take_facts)

    def _take_facts(self) -> None:
        path = self._require_table() / COLUMNS_FILE
        self._facts = json.loads(path.read_text(encoding="utf-8"))

    @property
    def columns(self) -> Path:
        """How the columns were read."""
        if not self._facts:
            raise Refusal(404, "No table was read.")
        return self._require_table() / COLUMNS_FILE

    def start(self, settings: Settings) -> None:
        """Run the command that the settings make."""
        place = self._require_table()
        words, lists = shell_words(self._path, settings, self._reading)
        if settings.group_file and not (place / GROUPS_FILE).exists():
            raise Refusal(409, "The groups are to come from a file, but none was chosen.")
        with self._alone():
            if not self._facts:
                raise Refusal(409, "The table could not be read, so there is nothing to select.")
            self._check_memory(settings)
            self._run = None
            keep = {self._path, COLUMNS_FILE, GROUPS_FILE}
            for file in place.iterdir():
                if file.name not in keep:
                    file.unlink()
            for name, text in lists.items():
                (place / name).write_text(text, encoding="utf-8")
            self._number += 1
            self._request = {"number": self._number, "command": shlex.join(["bsufs", *words])}
            outputs = output_names(self._path, settings.report)
            self._files = {key: place / name for key, name in outputs.items()}
            self._files |= {name: place / name for name in lists}
            self._settings, self._run = settings, Job(words, place)

    @property
    def settings(self) -> Settings:
        """What the last run was asked for."""
        if self._run is None:
            raise Refusal(404, "Nothing was run.")
        return self._settings

    def _check_memory(self, settings: Settings) -> None:
        needed, free = TIMES_THE_TABLE * self._facts["memory"], available_memory()
        if needed <= free or (self._facts["can_stream"] and not settings.report):
            return
        cure = "Close other programs, or take a smaller table."
        if self._facts["can_stream"]:
            cure = "Close other programs, or leave the report out: then it is read in batches."
        raise Refusal(
            409,
            f"This takes about {size_in_words(needed)} of memory, and {size_in_words(free)} is "
            f"free. {cure}",
        )

    def cancel(self) -> None:
        """End what runs."""
        for job in (self._read, self._run):
            if job is not None and job.is_running:
                job.stop()

    def file(self, key: str) -> Path:
        """Return what a run has written."""
        if self._run is None or self._run.status != "done" or key not in self._files:
            raise Refusal(404, "There is no such file.")
        return self._files[key]

    def _require_table(self) -> Path:
        if self._place is None:
            raise Refusal(409, "There is no table yet.")
        return self._place

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Do something while nothing runs, and nothing else is begun."""
        with self._lock:
            jobs = (self._read, self._run)
            if self._uploading or any(job is not None and job.is_running for job in jobs):
                raise Refusal(409, "Something is under way: wait for it, or cancel it.")
            yield

    def _new_place(self) -> Path:
        self._number += 1
        place = self._folder / str(self._number)
        place.mkdir(mode=0o700)
        return place
