"""What a person sees while a run goes on: on a terminal a bar, elsewhere nothing."""

from __future__ import annotations

import threading
from collections import Counter

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from bsufs_paper.experiments.store import Outcome, Status
from bsufs_paper.experiments.tasks import Task


class ProgressBar:
    """Tasks done, running and failed, and the time left, on the standard error stream."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[detail]}"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
        )
        self._bar = self._progress.add_task("tasks", total=None, detail="")
        self._ended: Counter[Status] = Counter()
        self._running: set[str] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> ProgressBar:
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        # Older versions of rich leave an empty line where a bar is disabled.
        if not self._progress.disable:
            self._progress.stop()

    def __call__(self, n_tasks: int, task: Task, outcome: Outcome | None) -> None:
        """Take note of a task that begins or has ended."""
        with self._lock:
            self._progress.update(self._bar, total=n_tasks)
            if outcome is None:
                self._running.add(task.key)
            else:
                self._running.discard(task.key)
                self._ended[outcome.status] += 1
                self._progress.advance(self._bar)
            self._progress.update(self._bar, detail=self.summary())

    def summary(self) -> str:
        """Return the counts in words."""
        counts = [
            (len(self._running), "running"),
            *((self._ended[s], s.value) for s in Status if s is not Status.DONE),
        ]
        return ", ".join(f"{count} {name}" for count, name in counts if count)

    def totals(self) -> str:
        """Return how all tasks ended, in words."""
        return ", ".join(f"{self._ended[s]} {s.value}" for s in Status if self._ended[s]) or (
            "nothing was left to do"
        )
