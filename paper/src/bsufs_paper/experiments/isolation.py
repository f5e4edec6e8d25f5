"""Doing a task in a process of its own, so that a crash or a hang stays there."""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import IO, Any

from bsufs_paper.experiments.store import Outcome, Status
from bsufs_paper.experiments.tasks import Task

# One thread each: the workers share the cores, and sums must not depend on their number.
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class IsolatedWorker:
    """A process that does one task after another, and is replaced when it dies or hangs."""

    def __init__(self, data_home: str | None = None) -> None:
        self._data_home = data_home
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._closed = threading.Event()

    def __enter__(self) -> IsolatedWorker:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def run(self, task: Task, timeout: float | None = None) -> Outcome:
        """Do a task, whatever happens to the process."""
        if self._closed.is_set():
            return Outcome(Status.INTERRUPTED, "the run was stopped before the task began")
        try:
            process = self._living_process()
        except OSError as error:
            self._discard()
            return Outcome(Status.FAILED, f"no worker process could be started: {error}")
        start = time.monotonic()
        said = self._n_said()
        request = {"kind": task.kind, "arguments": task.text, "data_home": self._data_home}
        try:
            assert process.stdin is not None  # a pipe, by the way it is opened
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            line = _read_line(process, timeout)
        except BrokenPipeError:
            line = b""
        except TimeoutError:
            self._discard()
            return Outcome(
                Status.TIMEOUT,
                f"not done after {timeout:g} s; to wait longer raise timeout in the spec and give "
                "--retry",
                time.monotonic() - start,
            )
        if not line.endswith(b"\n"):
            return self._death(time.monotonic() - start, said)
        answer: dict[str, Any] = json.loads(line)
        return Outcome(
            Status(answer["status"]),
            answer["reason"],
            answer["seconds"],
            answer["columns"],
            tuple(answer["warnings"]),
        )

    def stop(self) -> None:
        """Make a task that another thread runs here come back as interrupted, and take no more."""
        self._closed.set()
        process = self._process
        if process is not None:
            _kill_all(process)

    def close(self) -> None:
        """End the process."""
        self.stop()
        self._discard()

    def _living_process(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._discard()
            # A file, not a pipe: nobody has to read along for the worker to go on.
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bsufs_paper.experiments.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=os.environ | _ONE_THREAD,
                # Ctrl-C reaches the run, which then ends its workers in order.
                start_new_session=True,
            )
            if self._closed.is_set():  # stopped while the process was made
                _kill_all(self._process)
            _read_line(self._process, timeout=None)
        return self._process

    def _n_said(self) -> int:
        """Return how much the process has written on its error stream."""
        return 0 if self._errors is None else os.fstat(self._errors.fileno()).st_size

    def _death(self, seconds: float, said: int) -> Outcome:
        """Tell how the process died, with the last line that it wrote since the task began."""
        process, errors = self._process, self._errors
        if self._closed.is_set() or process is None:
            self._discard()
            return Outcome(Status.INTERRUPTED, "the run was stopped", seconds)
        code = process.wait()
        how = f"exit status {code}" if code >= 0 else f"signal {_signal_name(-code)}"
        last = ""
        if errors is not None:
            errors.seek(said)
            lines = errors.read().decode(errors="replace").strip().splitlines()
            last = f": {lines[-1][:300]}" if lines else ""
        self._discard()
        return Outcome(Status.FAILED, f"the worker process died ({how}){last}", seconds)

    def _discard(self) -> None:
        process, self._process = self._process, None
        errors, self._errors = self._errors, None
        if process is not None:
            _kill_all(process)
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
        if errors is not None:
            errors.close()


def _kill_all(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and those that it started, which are all in its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no names
        return str(number)


def _read_line(process: subprocess.Popen[bytes], timeout: float | None) -> bytes:
    """Read up to the end of a line, or of the process; give up after some seconds."""
    assert process.stdout is not None  # a pipe, by the way it is opened
    deadline = None if timeout is None else time.monotonic() + timeout
    line = bytearray()
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            left = math.inf if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            # Not for ever: a child of a dead process may keep the pipe open.
            if not ready.select(min(left, 1.0)):
                if process.poll() is not None:
                    break
                continue
            # Not through the buffer of the stream, which select does not see.
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            if not chunk:
                break
            line += chunk
    return bytes(line)
