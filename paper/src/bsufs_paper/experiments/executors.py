"""Where tasks are done: on this machine, or on the cluster of a Dask scheduler."""

from __future__ import annotations

import contextlib
import queue
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, Protocol

from joblib import Parallel, cpu_count, delayed

import bsufs
from bsufs._extras import needs
from bsufs_paper.experiments.isolation import IsolatedWorker
from bsufs_paper.experiments.store import Outcome, Status
from bsufs_paper.experiments.tasks import Task

# Called with a task when it begins (None) and when it has ended, from any thread.
Watch = Callable[[Task, Outcome | None], None]


class Executor(Protocol):
    """What the engine needs of a place where tasks are done."""

    def __enter__(self) -> Executor: ...

    def __exit__(self, *exception: object) -> None: ...

    def run(self, tasks: Sequence[tuple[Task, float | None]], watch: Watch) -> None:
        """Do all tasks, each with its timeout, in any order; tell of each when it has ended."""
        ...


class LocalExecutor:
    """Do tasks on this machine, each in a process of its own.

    joblib's threads look after the processes: one that dies or hangs is replaced, and its
    neighbors notice nothing.
    """

    def __init__(self, n_jobs: int = -1, data_home: str | None = None) -> None:
        self.n_jobs = cpu_count() if n_jobs == -1 else n_jobs
        if self.n_jobs < 1:
            raise ValueError(f"n_jobs must be -1 or at least 1, got {n_jobs}.")
        self._workers = [IsolatedWorker(data_home) for _ in range(self.n_jobs)]

    def __enter__(self) -> LocalExecutor:
        return self

    def __exit__(self, *exception: object) -> None:
        for worker in self._workers:
            worker.close()

    def run(self, tasks: Sequence[tuple[Task, float | None]], watch: Watch) -> None:
        """Do all tasks; a keyboard interrupt ends those that are running."""
        idle: queue.Queue[IsolatedWorker] = queue.Queue()
        for worker in self._workers:
            idle.put(worker)
        stopping = threading.Event()

        def do(task: Task, timeout: float | None) -> None:
            if stopping.is_set():
                return
            worker = idle.get()
            try:
                watch(task, None)
                try:
                    outcome = worker.run(task, timeout)
                except KeyboardInterrupt:  # in the main thread, where a single job runs
                    watch(task, Outcome(Status.INTERRUPTED, "the run was stopped"))
                    raise
                watch(task, outcome)
            finally:
                idle.put(worker)

        ended = Parallel(n_jobs=self.n_jobs, backend="threading", return_as="generator_unordered")(
            delayed(do)(task, timeout) for task, timeout in tasks
        )
        try:
            for _ in ended:
                pass
        except BaseException:
            stopping.set()
            for worker in self._workers:
                worker.stop()
            raise
        finally:
            # All threads have let go of their processes before these can be cleared away.
            for _ in self._workers:
                idle.get()


class DaskExecutor:
    """Do tasks on the workers of a Dask scheduler, each in a process of its own there.

    Results come back over the network and are written here, so the machines need no common
    folder; each needs the datasets, in its folder ``BSUFS_DATA``.
    """

    def __init__(self, address: str, data_home: str | None = None) -> None:
        with needs("The address of a scheduler", "dask"):
            distributed: Any = import_module("distributed")
        self.address = address
        self._data_home = data_home
        self._distributed = distributed

    def __enter__(self) -> DaskExecutor:
        return self

    def __exit__(self, *exception: object) -> None:
        """Leave: there is nothing to clear away, each `run` connects for itself."""

    def run(self, tasks: Sequence[tuple[Task, float | None]], watch: Watch) -> None:
        """Do all tasks."""
        with self._connected() as client:
            # Other runs may use the same cluster: what is closed at the end is this one's alone.
            token = secrets.token_hex(8)
            waiting: dict[Any, Task] = {}

            def submit(task: Task, timeout: float | None) -> Any:
                key = f"bsufs-{token}-{task.key}"
                future = client.submit(
                    _run_on_worker, task, timeout, self._data_home, token, key=key, pure=False
                )
                waiting[future] = task
                return future

            ended = self._distributed.as_completed(with_results=True, raise_errors=False)
            for task, timeout in tasks:
                ended.add(submit(task, timeout))
                watch(task, None)
            try:
                for future, result in ended:
                    task = waiting.pop(future)
                    if isinstance(result, Outcome):
                        watch(task, result)
                    elif client.status != "running" or future.status == "cancelled":
                        raise self._lost()
                    else:
                        watch(task, Outcome(Status.FAILED, _told(result)))
                    # Let go, so that a worker that dies later does not take a result with it.
                    future.release()
            except BaseException:
                with contextlib.suppress(Exception):  # the scheduler may be gone
                    client.cancel(list(waiting), force=True)
                raise
            finally:
                with contextlib.suppress(Exception):  # nobody waits for this
                    client.run(_close_workers_of, token, on_error="ignore")

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Any]:
        try:
            client = self._distributed.Client(self.address, timeout=10, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise ConnectionError(
                f"no Dask scheduler answers at {self.address} ({error}). Start one with `dask "
                "scheduler`, and workers with `dask worker ADDRESS`."
            ) from error
        with client, client.as_current():
            others = set(client.run(_release).values()) - {_release()}
            if others:
                raise ValueError(
                    f"the workers of {self.address} must have bsufs {_release()} as here, got "
                    f"{', '.join(sorted(others))}. Install the same release everywhere."
                )
            yield client

    def _lost(self) -> ConnectionError:
        return ConnectionError(
            f"the Dask scheduler at {self.address} was lost. What was done is kept; start the same "
            "command again to go on."
        )


def _release() -> str:
    return bsufs.__version__


def _told(result: Any) -> str:
    """Return in words what Dask gives in the place of a result."""
    error = result[1] if isinstance(result, tuple) and len(result) > 1 else result
    return f"{type(error).__name__}: {error}"


# The processes of a Dask worker, by run and thread.
_own: dict[tuple[str, int], IsolatedWorker] = {}


def _run_on_worker(task: Task, timeout: float | None, data_home: str | None, token: str) -> Outcome:
    """Do a task in a process that belongs to this run and this thread of a Dask worker."""
    worker = _own.setdefault((token, threading.get_ident()), IsolatedWorker(data_home))
    return worker.run(task, timeout)


def _close_workers_of(token: str) -> None:
    """End the processes of a run that has nothing more to do here."""
    for name in [name for name in _own if name[0] == token]:
        _own.pop(name).close()
