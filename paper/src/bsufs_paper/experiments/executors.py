"""Where tasks are done: on this machine, or on the cluster of a Dask scheduler."""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib import import_module
from typing import Any

from joblib import cpu_count

import bsufs
from bsufs._extras import needs
from bsufs_paper.experiments.store import Outcome, Status
from bsufs_paper.experiments.tasks import Task
from bsufs_paper.experiments.worker import IsolatedWorker

# Called with a task when it begins (None) and when it has ended, from any thread.
Watch = Callable[[Task, Outcome | None], None]
# Does tasks, each with its timeout, in any order; tells of each when it begins and has ended.
Execute = Callable[[Sequence[tuple[Task, float | None]], Watch], None]


@contextlib.contextmanager
def local_workers(n_jobs: int = -1) -> Iterator[Execute]:
    """Do tasks for `run_specs` on this machine, `n_jobs` at once (-1: as many as there are cores).

    Each is done in a process of its own. One that dies or hangs is replaced, and its neighbors
    notice nothing.
    """
    if n_jobs != -1 and n_jobs < 1:
        raise ValueError(f"n_jobs must be -1 or at least 1, got {n_jobs}.")
    workers = [IsolatedWorker() for _ in range(cpu_count() if n_jobs == -1 else n_jobs)]

    def execute(tasks: Sequence[tuple[Task, float | None]], watch: Watch) -> None:
        left = deque(tasks)

        def look_after(worker: IsolatedWorker) -> None:
            while left:
                try:
                    task, timeout = left.popleft()
                except IndexError:  # another thread was faster
                    return
                watch(task, None)
                watch(task, worker.run(task, timeout))

        with ThreadPoolExecutor(len(workers)) as threads:
            try:
                for ended in as_completed([threads.submit(look_after, w) for w in workers]):
                    ended.result()
            except BaseException:
                left.clear()
                for worker in workers:
                    worker.stop()
                raise

    try:
        yield execute
    finally:
        for worker in workers:
            worker.close()


@contextlib.contextmanager
def dask_workers(address: str, data_home: str | None = None) -> Iterator[Execute]:
    """Do tasks for `run_specs` on the workers of a Dask scheduler, each in a process of its own.

    Results come back over the network and are written here, so the machines need no common
    folder; each needs the datasets, in `data_home` or in its folder ``BSUFS_DATA``.
    """
    with needs("The address of a scheduler", "dask"):
        distributed: Any = import_module("distributed")
    try:
        client = distributed.Client(address, timeout=10, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ConnectionError(
            f"no Dask scheduler answers at {address} ({error}). Start one with `dask scheduler`, "
            "and workers with `dask worker ADDRESS`."
        ) from error
    # Other runs may use the same cluster: what is closed at the end is this one's alone.
    token = secrets.token_hex(8)

    def execute(tasks: Sequence[tuple[Task, float | None]], watch: Watch) -> None:
        waiting: dict[Any, Task] = {}
        for task, timeout in tasks:
            call = (_run_on_worker, task, timeout, data_home, token)
            waiting[client.submit(*call, key=f"bsufs-{token}-{task.key}", pure=False)] = task
            watch(task, None)
        ended = distributed.as_completed(list(waiting), with_results=True, raise_errors=False)
        try:
            for future, result in ended:
                task = waiting.pop(future)
                if isinstance(result, Outcome):
                    watch(task, result)
                elif client.status != "running" or future.status == "cancelled":
                    raise ConnectionError(
                        f"the Dask scheduler at {address} was lost. What was done is kept; start "
                        "the same command again to go on."
                    )
                else:
                    watch(task, Outcome(Status.FAILED, _in_words(result)))
                # Let go, so that a worker that dies later does not take a result with it.
                future.release()
        except BaseException:
            with contextlib.suppress(Exception):  # the scheduler may be gone
                client.cancel(list(waiting), force=True)
            raise

    with client, client.as_current():
        others = set(client.run(_release).values()) - {_release()}
        if others:
            raise ValueError(
                f"the workers of {address} must have bsufs {_release()} as here, got "
                f"{', '.join(sorted(others))}. Install the same release everywhere."
            )
        try:
            yield execute
        finally:
            with contextlib.suppress(Exception):  # nobody waits for this
                client.run(_close_workers_of, token, on_error="ignore")


def _release() -> str:
    return bsufs.__version__


def _in_words(result: Any) -> str:
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
