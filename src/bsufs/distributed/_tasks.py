"""Running graphs of small tasks: sums as trees, and errors a user can act on."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

# Dask has type hints for some of its functions only.
_dask: Any = import_module("dask")

# So many parts are added by one task: a worker holds this many sums at once and no more.
_FAN_IN = 8
# Vectors with an entry per feature travel inside the graph. They are meant to; Dask warns for less.
_SETTINGS = {"distributed.admin.large-graph-warning-threshold": "1GiB"}
_LOST = frozenset(
    {
        "CommClosedError",
        "FutureCancelledError",
        "FuturesCancelledError",
        "CancelledError",
        "ClosedClientError",
    }
)


def task(function: Any, *arguments: Any) -> Any:
    """Return a lazy call of a pure function.

    Parameters
    ----------
    function : callable
        What to call.
    *arguments : object
        Lazy or plain arguments.

    Returns
    -------
    dask.delayed.Delayed
        The call.
    """
    return _dask.delayed(function, pure=False, traverse=False)(*arguments)


def merged(parts: Sequence[Any], merge: Any) -> Any:
    """Merge lazy parts by a tree of tasks.

    Parameters
    ----------
    parts : sequence of dask.delayed.Delayed
        What to merge, at least one; neighbours are merged first.
    merge : callable
        Takes a list of up to eight parts and returns one.

    Returns
    -------
    dask.delayed.Delayed
        All of them.
    """
    parts = list(parts)
    while len(parts) > 1:
        parts = [
            task(merge, parts[i : i + _FAN_IN]) if len(parts[i : i + _FAN_IN]) > 1 else parts[i]
            for i in range(0, len(parts), _FAN_IN)
        ]
    return parts[0]


def tree_sum(parts: Sequence[Any]) -> Any:
    """Add lazy arrays by a tree of tasks.

    Parameters
    ----------
    parts : sequence of dask.delayed.Delayed
        Arrays of one shape, at least one.

    Returns
    -------
    dask.delayed.Delayed
        Their sum, in an order of addition that depends on their number alone.
    """
    return merged(parts, _added)


def _added(arrays: list[Any]) -> Any:
    total = arrays[0] + arrays[1]
    for array in arrays[2:]:
        total += array
    return total


def persist(*lazy: Any) -> tuple[Any, ...]:
    """Have lazy objects computed where they are, and return them with no past.

    Parameters
    ----------
    *lazy : dask.delayed.Delayed, or lists of them
        What to compute in one graph.

    Returns
    -------
    tuple
        The same, each now a graph of one task whose result is (or will be) with a worker.
    """
    with _readable_errors():
        results: tuple[Any, ...] = _dask.persist(*lazy)
    return results


def compute(*lazy: Any) -> tuple[Any, ...]:
    """Compute lazy objects and bring the results here.

    Parameters
    ----------
    *lazy : dask.delayed.Delayed, or lists of them
        What to compute in one graph.

    Returns
    -------
    tuple
        The results.
    """
    with _readable_errors():
        results: tuple[Any, ...] = _dask.compute(*lazy)
    return results


@contextmanager
def _readable_errors() -> Iterator[None]:
    """Turn what Dask raises when a scheduler or all workers are gone into a sentence."""
    try:
        # Without a cluster there is no such setting, and making one up would hide the others.
        with _dask.config.set(_SETTINGS if "distributed" in sys.modules else {}):
            yield
    except BaseException as error:
        kind = type(error).__name__
        if kind in _LOST or isinstance(error, OSError | TimeoutError):
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
