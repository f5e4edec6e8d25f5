"""Pure functions of blocks, run by whatever scheduler Dask has; errors a user can act on.

Dask is an optional package: it is imported by the first call, for whoever has a Dask collection.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

# So many parts are merged by one task: a worker holds this many at once and no more.
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


def _dask() -> Any:
    # Dask has type hints for some of its functions only.
    return import_module("dask")


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return a lazy call of a pure function."""
    return _dask().delayed(function, pure=False, traverse=False)(*arguments)


def compute(lazy: Sequence[Any]) -> list[Any]:
    """Compute lazy objects and bring the results here."""
    with _readable_errors():
        return list(_dask().compute(*lazy))


def persist(lazy: Sequence[Any]) -> list[Any]:
    """Have lazy objects computed where they are, and return them with no past."""
    with _readable_errors():
        return list(_dask().persist(*lazy))


def merged(parts: Sequence[Any], merge: Callable[[list[Any]], Any]) -> Any:
    """Merge lazy parts, in order, by a tree of calls."""
    parts = list(parts)
    while len(parts) > 1:
        groups = [parts[i : i + _FAN_IN] for i in range(0, len(parts), _FAN_IN)]
        parts = [call(merge, group) if len(group) > 1 else group[0] for group in groups]
    return parts[0]


def total(parts: Sequence[Any]) -> Any:
    """Return the sum of lazy arrays, not yet computed."""
    return merged(parts, _added)


def _added(arrays: list[Any]) -> Any:
    # Calls may be run twice when a worker dies: what they get must stay as it is.
    result = arrays[0] + arrays[1]
    for array in arrays[2:]:
        result += array
    return result


def n_workers() -> int:
    """Return how many workers there are: processes of a cluster, or threads here."""
    distributed = sys.modules.get("distributed")
    if distributed is not None:
        try:
            return max(1, len(distributed.get_client().nthreads()))
        except ValueError:
            pass
    return import_module("dask.system").CPU_COUNT


@contextmanager
def _readable_errors() -> Iterator[None]:
    """Turn what Dask raises when a scheduler or all workers are gone into a sentence."""
    try:
        # Without a cluster there is no such setting, and making one up would hide the others.
        with _dask().config.set(_SETTINGS if "distributed" in sys.modules else {}):
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
