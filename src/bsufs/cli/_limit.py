"""A limit on the time of some work, which is then done in a process that can be ended."""

import re
import signal
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

T = TypeVar("T")

TOO_SLOW = "too slow"
_SECONDS_IN = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600}
# Systems cannot wait for any length of time.
_LONGEST = 10_000 * 3600


def parse_limit(text: str | None) -> float | None:
    """Read a time such as 60, 60s or 2m, as seconds."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*(s|m|min|h|)", text.strip().lower(), re.ASCII)
    seconds = 0.0 if found is None else float(found[1]) * _SECONDS_IN[found[2]]
    if not 0 < seconds <= _LONGEST:
        raise ValueError(
            f"--limit must be a time such as 60, 60s, 2m or 1h, at most 10000h, got {text!r}."
        )
    return seconds


def within(limit: float | None, work: Callable[..., T], *arguments: Any) -> T:
    """Return what a function returns, or end it after so many seconds and raise an error.

    A limit takes a process of its own: on Linux a fork, which shares all data; elsewhere a new one,
    which gets a copy.
    """
    if limit is None:
        return work(*arguments)
    import multiprocessing

    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_send_result, args=(theirs, work, arguments), daemon=True)
    with warnings.catch_warnings():
        # Python warns of threads beside a fork; `_send_result` keeps clear of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    theirs.close()
    try:
        # The time to start a process is not that of the work.
        ours.recv()
        if not ours.poll(limit):
            raise ValueError(f"{TOO_SLOW}: stopped after {limit:g} s (--limit)")
        error, result = ours.recv()
    except EOFError as lost:
        process.join()
        raise ValueError(
            f"its process ended without a result (status {process.exitcode}); was there too little "
            "memory?"
        ) from lost
    finally:
        process.kill()
        process.join()
        ours.close()
    if error is not None:
        raise error
    return result


def _send_result(pipe: Any, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    # Ctrl-C comes to both processes, and the other one ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    pipe.send("ready")
    try:
        # Threads of OpenMP do not live on in a fork, and would be waited for forever.
        with import_module("threadpoolctl").threadpool_limits(1, user_api="openmp"):
            found = None, work(*arguments)
    except Exception as error:
        pipe.send((error, None))
    else:
        pipe.send(found)
