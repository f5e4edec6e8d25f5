"""Where tasks are done: on this machine, or on the cluster of a Dask scheduler."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, Protocol

from joblib import Parallel, cpu_count, delayed

from bsufs.experiments.isolation import IsolatedWorker
from bsufs.experiments.store import Outcome, Status
from bsufs.experiments.tasks import Task

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
    neighbours notice nothing.

    Parameters
    ----------
    n_jobs : int, default=-1
        How many at once; -1 for as many as there are cores.
    data_home : str, default=None
        The folder of the datasets to look into first.
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
        """Do all tasks; a keyboard interrupt ends those that are running.

        Parameters
        ----------
        tasks : sequence of tuple
            What to do, in this order as far as there are processes, and the seconds after which
            it is given up, or None.
        watch : callable
            Told of every task.
        """
        idle: queue.Queue[IsolatedWorker] = queue.Queue()
        for worker in self._workers:
            idle.put(worker)
        stopping = threading.Event()

        def do(task: Task, timeout: float | None) -> None:
            if stopping.is_set():
                return
            worker = idle.get()
            watch(task, None)
            try:
                watch(task, worker.run(task, timeout))
            except KeyboardInterrupt:  # in the main thread, where a single job runs
                watch(task, Outcome(Status.INTERRUPTED, "the run was stopped"))
                raise
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

    Parameters
    ----------
    address : str
        Address of the scheduler, such as ``tcp://10.0.0.1:8786``.
    data_home : str, default=None
        The folder of the datasets on the workers.
    """

    def __init__(self, address: str, data_home: str | None = None) -> None:
        try:
            distributed: Any = import_module("distributed")
        except ImportError as error:
            raise ImportError(
                'A scheduler address needs Dask: pip install "bsufs[dask]".'
            ) from error
        self.address = address
        self._data_home = data_home
        self._distributed = distributed

    def __enter__(self) -> DaskExecutor:
        return self

    def __exit__(self, *exception: object) -> None:
        """Leave: there is nothing to clear away, each `run` connects for itself."""

    def run(self, tasks: Sequence[tuple[Task, float | None]], watch: Watch) -> None:
        """Do all tasks.

        Parameters
        ----------
        tasks : sequence of tuple
            What to do, and the seconds after which it is given up, or None.
        watch : callable
            Told of every task.
        """
        with self._connected() as client:
            futures = {}
            for task, timeout in tasks:
                future = client.submit(
                    _run_on_worker, task, timeout, self._data_home, key=f"bsufs-{task.key}"
                )
                futures[future] = task
                watch(task, None)
            ended = self._distributed.as_completed(
                list(futures), with_results=True, raise_errors=False
            )
            try:
                for future, result in ended:
                    watch(futures[future], self._outcome(client, future, result))
            except BaseException:
                with contextlib.suppress(Exception):  # the scheduler may be gone
                    client.cancel(list(futures), force=True)
                raise
            finally:
                if client.status == "running":
                    client.run(_close_own_workers)

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
            yield client

    def _outcome(self, client: Any, future: Any, result: Any) -> Outcome:
        if future.status == "finished":
            return result  # type: ignore[no-any-return]  # what _run_on_worker returned
        if future.status in ("cancelled", "lost") or client.status != "running":
            raise ConnectionError(
                f"the Dask scheduler at {self.address} was lost. What was done is kept; start the "
                "same command again to go on."
            )
        error = result[1] if isinstance(result, tuple) else future.exception()
        return Outcome(Status.FAILED, f"{type(error).__name__}: {error}")


# The process of each thread of a Dask worker, by the thread's number.
_own: dict[int, IsolatedWorker] = {}


def _run_on_worker(task: Task, timeout: float | None, data_home: str | None) -> Outcome:
    """Do a task in a process that belongs to this thread of a Dask worker."""
    worker = _own.setdefault(threading.get_ident(), IsolatedWorker(data_home))
    return worker.run(task, timeout)


def _close_own_workers() -> None:
    """End the processes of a Dask worker that has nothing more to do."""
    while _own:
        _own.popitem()[1].close()
