"""The process in which tasks are done: ``python -m bsufs.experiments.worker``.

It says that it is ready, then reads a task in a line of JSON from its input, does it, and answers
in a line of JSON. It ends when its input ends, also in the middle of a task: if whoever started it
is killed, no computation goes on that nobody waits for.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
import traceback
import warnings
from typing import Any, TextIO

import numpy as np

from bsufs.experiments.tasks import SkippedTask, Task


def serve(requests: TextIO, answers: TextIO) -> None:
    """Do tasks until there are no more.

    Parameters
    ----------
    requests : text stream
        Lines of JSON with `kind`, `arguments` (JSON in JSON) and `data_home`.
    answers : text stream
        Where a line goes at the beginning, and then for each.
    """
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
    """Do a task and tell what came of it, whatever it was.

    Parameters
    ----------
    task : Task
        The task.
    data_home : str or None
        The folder of the datasets.

    Returns
    -------
    dict
        `status`, `reason`, `seconds`, `columns` and `warnings`, as JSON can hold them.
    """
    start = time.perf_counter()
    columns: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = task.perform(data_home)
            columns = {name: np.asarray(values).tolist() for name, values in found.items()}
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


def _listen(requests: TextIO, waiting: queue.Queue[str]) -> None:
    for line in requests:
        waiting.put(line)
    os._exit(0)


def _main() -> None:
    # Whatever a task prints must not get into the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(sys.stdin, answers)


if __name__ == "__main__":
    _main()
