"""Doing tasks in a process of its own, so that a crash or a hang stays with its task.

`IsolatedWorker` starts a process that runs `serve` and speaks with it in lines of JSON: the process
says that it is ready, then answers each task with its result. It ends when its input ends, also in
the middle of a task (as soon as the interpreter gets its turn): if whoever started it is killed, no
computation goes on that nobody waits for.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from typing import IO, Any, TextIO

import numpy as np

from bsufs_paper.experiments.store import Outcome, Status
from bsufs_paper.experiments.tasks import SkippedTask, Task

# One thread each: the workers share the cores, and sums must not depend on their number.
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class IsolatedWorker:
    """A process that does one task after another, and is replaced when it dies or hangs."""

    def __init__(self, data_home: str | None = None) -> None:
        self._environment = dict(_ONE_THREAD)
        if data_home is not None:
            folders = [data_home, os.environ.get("BSUFS_DATA", "")]
            self._environment["BSUFS_DATA"] = os.pathsep.join(folders)
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: queue.Queue[bytes] = queue.Queue()
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
            process, errors = self._living_process()
        except OSError as error:
            self._discard()
            return Outcome(Status.FAILED, f"no worker process could be started: {error}")
        start = time.monotonic()
        said = os.fstat(errors.fileno()).st_size
        request = {"kind": task.kind, "arguments": task.text, "key": task.key}
        with contextlib.suppress(OSError):  # a process that is gone gives no answer either
            assert process.stdin is not None  # a pipe, by the way it is opened
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        try:
            line = self._next_answer(process, timeout)
        except TimeoutError:
            self._discard()
            return Outcome(
                Status.TIMEOUT,
                f"not done after {timeout:g} s; to wait longer raise timeout in the spec and give "
                "--retry",
                time.monotonic() - start,
            )
        if line.endswith(b"\n"):
            answer: dict[str, Any] = json.loads(line)
            answer |= {"status": Status(answer["status"]), "warnings": tuple(answer["warnings"])}
            return Outcome(**answer)
        if self._closed.is_set():
            status, reason = Status.INTERRUPTED, "the run was stopped"
        else:
            status, reason = Status.FAILED, _how_it_died(process, errors, said)
        self._discard()
        return Outcome(status, reason, time.monotonic() - start)

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

    def _living_process(self) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
        if self._process is None or self._errors is None or self._process.poll() is not None:
            self._discard()
            # A file, not a pipe: nobody has to read along for the worker to go on.
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process
            self._answers = queue.Queue()
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from {__name__} import serve; serve()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=os.environ | self._environment,
                # Ctrl-C reaches the run, which then ends its workers in order.
                start_new_session=True,
            )
            listening = (self._process.stdout, self._answers)
            threading.Thread(target=_listen, args=listening, daemon=True).start()
            if self._closed.is_set():  # stopped while the process was made
                _kill_all(self._process)
            # The time that it takes to get ready does not count for the task.
            self._next_answer(self._process, timeout=None)
        return self._process, self._errors

    def _next_answer(self, process: subprocess.Popen[bytes], timeout: float | None) -> bytes:
        """Return a line of the process; an unfinished one, or none, if it ended."""
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            # Not for ever: a child of a dead process may keep the pipe open.
            with contextlib.suppress(queue.Empty):
                return self._answers.get(timeout=min(left, 1.0))
            if process.poll() is not None:
                return b""
        raise TimeoutError

    def _discard(self) -> None:
        process, self._process = self._process, None
        errors, self._errors = self._errors, None
        if process is not None:
            _kill_all(process)
            process.wait()
            if process.stdin is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()
        if errors is not None:
            errors.close()


def _listen(stream: IO[bytes], lines: queue.Queue[bytes]) -> None:
    with stream:
        for line in stream:
            lines.put(line)
    lines.put(b"")


def _kill_all(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and, where the system has sessions, those that it started."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _how_it_died(process: subprocess.Popen[bytes], errors: IO[bytes], said: int) -> str:
    """Tell how a process died, with the last line that it wrote since the task began."""
    errors.seek(said)
    code = process.wait()
    names = {number.value: number.name for number in signal.Signals}
    how = f"exit status {code}" if code >= 0 else f"signal {names.get(-code, -code)}"
    lines = errors.read().decode(errors="replace").strip().splitlines()
    return f"the worker process died ({how})" + (f": {lines[-1][:300]}" if lines else "")


# ------------------------------------------------------------------------------ in the process


def perform(task: Task, key: str) -> dict[str, Any]:
    """Do a task and return the fields of its outcome, whatever it was."""
    start = time.perf_counter()
    columns: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if task.key != key:
                raise SkippedTask("the data or the release here are not those of the run")
            columns = _as_lists(task.perform())
            status, reason = Status.DONE, ""
        except SkippedTask as skipped:
            status, reason = Status.SKIPPED, str(skipped)
        except Exception as error:  # a failure of any kind is a result, and the run goes on
            status, reason = Status.FAILED, f"{type(error).__name__}: {error}"
            traceback.print_exc()
    return {
        "status": status,
        "reason": reason,
        "seconds": time.perf_counter() - start,
        "columns": columns,
        "warnings": sorted({str(warning.message) for warning in caught}),
    }


def _as_lists(found: dict[str, Any]) -> dict[str, Any]:
    """Return the columns as lists, once they are fit to be stored."""
    columns = {name: np.asarray(values) for name, values in found.items()}
    for name, values in columns.items():
        if values.ndim != 1 or values.dtype.kind not in "biufUT":
            raise TypeError(
                f"the column {name!r} of a result must be numbers, truth values or strings in one "
                f"dimension, got {values.dtype} of shape {values.shape}"
            )
    sizes = {name: values.size for name, values in columns.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"the columns of a result must have one length, got {sizes}")
    return {name: values.tolist() for name, values in columns.items()}


def serve() -> None:
    """Do tasks until the process is ended."""
    # Whatever a task prints must not get into the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    waiting: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_receive, args=(sys.stdin, waiting), daemon=True).start()
    print("ready", file=answers, flush=True)
    while True:
        request = json.loads(waiting.get())
        task = Task(request["kind"], request["arguments"])
        print(json.dumps(perform(task, request["key"])), file=answers, flush=True)


def _receive(requests: TextIO, waiting: queue.Queue[str]) -> None:
    for line in requests:
        waiting.put(line)
    if hasattr(os, "killpg"):  # with all that the task has started
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
