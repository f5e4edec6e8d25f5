"""A command in a process of its own: what it does, how far it is, and how it ended."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bsufs._names import shortened

WORKER = [sys.executable, "-m", "bsufs.cli._worker"]
_FAR = re.compile(r"([\d,]+) of ([\d,]+)")
_MOST_LINES, _WIDEST = 200, 1000
_MEND = 2


class Job:
    """Starts at once; ends by itself, by an error, or when it is stopped.

    `when_done` is called, in another thread, before it is known to have ended well.
    """

    def __init__(
        self, words: Sequence[str], folder: Path, when_done: Callable[[], None] = lambda: None
    ) -> None:
        self.status, self.error = "running", ""
        self.steps: list[tuple[str, float]] = []
        self.detail = ""
        self.lines: deque[str] = deque(maxlen=_MOST_LINES)
        self._when_done = when_done
        self._started, self._ended = time.monotonic(), 0.0
        self._process = subprocess.Popen(
            [*WORKER, *words],
            cwd=folder,
            # It is never written to; the worker ends when it is closed.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A group of its own, which can be ended with all that it has started.
            start_new_session=True,
        )
        self._said = threading.Thread(target=self._read_words, daemon=True)
        self._followed = threading.Thread(target=self._follow, daemon=True)
        self._said.start()
        self._followed.start()

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self.status == "running"

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def stop(self) -> None:
        """End it, with all processes that it has started, and wait for that."""
        if self.is_running:
            self.status = "canceled"
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if hasattr(os, "killpg"):
                    os.killpg(self.pid, signal.SIGKILL)
                else:
                    self._process.kill()
        self.wait(2.0)

    def wait(self, seconds: float) -> None:
        """Wait until all that it had to say was read."""
        self._followed.join(seconds)

    def state(self) -> dict[str, Any]:
        """Return what the page shows."""
        now = self._ended or time.monotonic()
        begun = [start for _, start in self.steps] + [now]
        far = _FAR.search(self.detail)
        share = int(far[1].replace(",", "")) / int(far[2].replace(",", "")) if far else None
        return {
            "status": self.status,
            "error": self.error,
            "seconds": round(now - self._started, 1),
            "steps": [
                {"name": name, "seconds": round(begun[i + 1] - start, 1)}
                for i, (name, start) in enumerate(self.steps)
            ],
            "detail": self.detail,
            "share": share,
            "lines": list(self.lines),
        }

    def _follow(self) -> None:
        assert self._process.stdout is not None
        for line in _lines(self._process.stdout):
            # Whatever else is printed there is no news.
            with contextlib.suppress(ValueError, TypeError):
                doing, detail = map(str, json.loads(line))
                self.detail = detail
                if doing and (not self.steps or self.steps[-1][0] != doing):
                    self.steps.append((doing, time.monotonic()))
        self._said.join()
        status = self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        self._ended = time.monotonic()
        if self.status == "canceled":
            return
        if status == 0:
            self._when_done()
        self.error = self._error(status)
        self.status = "done" if status == 0 else "failed"

    def _error(self, status: int) -> str:
        if status == 0:
            return ""
        last = self.lines[-1] if self.lines else ""
        if status == _MEND:
            return last.removeprefix("bsufs: ").removeprefix("error: ")
        if status < 0:
            name = signal.Signals(-status).name
            return (
                f"The process that did the work was ended from outside ({name}). Was there too "
                "little memory? Nothing else was lost."
            )
        return f"The work ended with an unexpected error (status {status}): {last}"

    def _read_words(self) -> None:
        assert self._process.stderr is not None
        for line in _lines(self._process.stderr):
            if line.strip():
                self.lines.append(shortened(line, _WIDEST))


def _lines(stream: Any) -> Iterator[str]:
    """Go through the lines of a pipe; what is far too long for a line comes in parts."""
    while line := stream.readline(2**20):
        yield line.decode("utf-8", errors="replace").rstrip("\n")
