"""The process in which tasks are done: ``python -m bsufs_paper.experiments.worker``.

It says that it is ready, then reads a task in a line of JSON from its input, does it, and answers
in a line of JSON. It ends when its input ends, also in the middle of a task (as soon as the
interpreter gets its turn): if whoever started it is killed, no computation goes on that nobody
waits for.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import time
import traceback
import warnings
from typing import Any, TextIO

import numpy as np

from bsufs_paper.experiments.tasks import SkippedTask, Task


def serve(requests: TextIO, answers: TextIO) -> None:
    """Do tasks until there are no more."""
    # Whoever waits for an answer need not count the time that it takes to get ready.
    answers.write("ready\n")
    answers.flush()
    waiting: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(requests, waiting), daemon=True).start()
    while True:
        request = json.loads(waiting.get())
        task = Task(request["kind"], request["arguments"])
        answers.write(json.dumps(answer(task, request["data_home"])) + "\n")
        answers.flush()


def answer(task: Task, data_home: str | None) -> dict[str, Any]:
    """Do a task and tell what came of it, whatever it was."""
    start = time.perf_counter()
    columns: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            columns = _plain(task.perform(data_home))
            status, reason = "done", ""
        except SkippedTask as skipped:
            status, reason = "skipped", str(skipped)
        except Exception as error:  # a failure of any kind is a result, and the run goes on
            status, reason = "failed", f"{type(error).__name__}: {error}"
            traceback.print_exc()
    return {
        "status": status,
        "reason": reason,
        "seconds": time.perf_counter() - start,
        "columns": columns,
        "warnings": sorted({str(warning.message) for warning in caught}),
    }


def _plain(found: dict[str, Any]) -> dict[str, Any]:
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


def _listen(requests: TextIO, waiting: queue.Queue[str]) -> None:
    for line in requests:
        waiting.put(line)
    # With all that the task has started.
    os.killpg(0, signal.SIGKILL)


def _main() -> None:
    # Whatever a task prints must not get into the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(sys.stdin, answers)


if __name__ == "__main__":
    _main()
