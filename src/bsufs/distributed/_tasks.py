"""Running graphs of small tasks: sums as trees, and errors a user can act on."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from uuid import uuid4

# Dask has type hints for some of its functions only.
_dask: Any = import_module("dask")

# So many parts are added by one task: a worker holds this many sums at once and no more.
_FAN_IN = 8
# Vectors with an entry per feature travel inside the graph. They are meant to; Dask warns for less.
_SETTINGS = {"distributed.admin.large-graph-warning-threshold": "1GiB"}
# What Dask raises when the scheduler is gone; by name, since its cluster may not be installed.
_LOST = frozenset(
    {
        "CommClosedError",
        "FutureCancelledError",
        "FuturesCancelledError",
        "CancelledError",
        "ClosedClientError",
    }
)


@dataclass(frozen=True, eq=False)
class Lazy:
    """A task that has not been run, or one whose result is kept where it was computed.

    Dask's own `delayed` copies the graph so far with every call; with many blocks that would cost
    more than the tasks. Here a call costs nothing but itself, and the graph is collected once.
    """

    key: str
    content: Any
    has_run: bool


def task(function: Any, *arguments: Any) -> Lazy:
    """Return a lazy call of a pure function."""
    name = getattr(function, "__name__", "task").strip("_")
    return Lazy(f"bsufs-{name}-{uuid4().hex}", (function, *arguments), False)


def shared(value: Any) -> Lazy:
    """Return a value as a task of its own: each worker gets it once, not once for every block."""
    return task(_same, value)


def _same(value: Any) -> Any:
    return value


class _Bundle:
    """Some lazy objects as one collection, as Dask's protocol wants it."""

    def __init__(self, graph: dict[str, Any], keys: list[str]) -> None:
        self.graph = graph
        self.keys = keys

    @classmethod
    def of(cls, lazy: Sequence[Any]) -> _Bundle:
        """Collect the graph that leads to some lazy objects."""
        graph: dict[str, Any] = {}
        waiting = list(lazy)

        def reference(argument: Any) -> Any:
            if isinstance(argument, list):
                return [reference(one) for one in argument]
            if isinstance(argument, Lazy) or _dask.is_dask_collection(argument):
                waiting.append(argument)
                return argument.key
            return argument

        while waiting:
            now = waiting.pop()
            if now.key in graph:
                continue
            if not isinstance(now, Lazy):
                graph.update(now.__dask_graph__())
            elif now.has_run:
                graph[now.key] = now.content
            else:
                function, *arguments = now.content
                graph[now.key] = (function, *(reference(argument) for argument in arguments))
        return cls(graph, [one.key for one in lazy])

    @staticmethod
    def __dask_optimize__(graph: Any, keys: Any, **options: Any) -> Any:
        # Every task has its place in the plan: there is nothing to fuse or to leave out.
        return graph

    def __dask_graph__(self) -> dict[str, Any]:
        return self.graph

    def __dask_keys__(self) -> list[str]:
        return self.keys

    def __dask_tokenize__(self) -> tuple[str, ...]:
        return tuple(self.keys)

    @staticmethod
    def __dask_scheduler__(graph: Any, keys: Any, **options: Any) -> Any:
        return import_module("dask.threaded").get(graph, keys, **options)

    def __dask_postcompute__(self) -> tuple[Any, tuple[()]]:
        return list, ()

    def __dask_postpersist__(self) -> tuple[Any, tuple[()]]:
        return self._rebuilt, ()

    def _rebuilt(self, graph: Any, rename: Any = None) -> list[Lazy]:
        return [Lazy(key, graph[key], True) for key in self.keys]


def merged(parts: Sequence[Any], merge: Any) -> Any:
    """Merge lazy parts by a tree of tasks."""
    parts = list(parts)
    while len(parts) > 1:
        parts = [
            task(merge, parts[i : i + _FAN_IN]) if len(parts[i : i + _FAN_IN]) > 1 else parts[i]
            for i in range(0, len(parts), _FAN_IN)
        ]
    return parts[0]


def tree_sum(parts: Sequence[Any]) -> Any:
    """Add lazy arrays by a tree of tasks."""
    return merged(parts, _added)


def _added(arrays: list[Any]) -> Any:
    total = arrays[0] + arrays[1]
    for array in arrays[2:]:
        total += array
    return total


def persist(*lists: Sequence[Any]) -> tuple[list[Any], ...]:
    """Have lazy objects computed where they are, and return them with no past."""
    with _readable_errors():
        (kept,) = _dask.persist(_Bundle.of([one for given in lists for one in given]))
    results = iter(kept)
    return tuple([next(results) for _ in given] for given in lists)


def compute(*lazy: Any) -> list[Any]:
    """Compute lazy objects and bring the results here."""
    futures = [one.content for one in lazy if isinstance(one, Lazy) and one.has_run]
    with _readable_errors():
        if futures and len(futures) == len(lazy) and hasattr(futures[0], "client"):
            # They are with the workers of a cluster: fetched as they are, with no task to pass on.
            return list(futures[0].client.gather(futures))
        (results,) = _dask.compute(_Bundle.of(lazy))
    return list(results)


@contextmanager
def _readable_errors() -> Iterator[None]:
    """Turn what Dask raises when a scheduler or all workers are gone into a sentence."""
    try:
        # Without a cluster there is no such setting, and making one up would hide the others.
        with _dask.config.set(_SETTINGS if "distributed" in sys.modules else {}):
            yield
    except BaseException as error:
        kind = type(error).__name__
        if kind in _LOST:
            raise ConnectionError(
                "the Dask scheduler was lost in the middle of the fit, and what the workers held "
                "with it. Nothing was selected. Start a scheduler and workers again, connect a new "
                f"distributed.Client and call fit once more ({kind}: {error})."
            ) from None
        if kind == "KilledWorker":
            raise MemoryError(
                "the same task ended several Dask workers one after another, most likely for want "
                "of memory. Give the workers more, or cut X into smaller chunks with X.rechunk "
                f"({error})."
            ) from None
        raise
