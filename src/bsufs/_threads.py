"""How many threads linear algebra may use: one where matrices are small.

There more threads wait for each other longer than they work, on a busy machine by a factor of ten.
A fit only ever lowers the limit, so that a lower one of the caller's holds.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from importlib import import_module
from threading import Lock
from typing import Any

# Operations of a Gram matrix of the shorter side, below which a second thread does not pay.
_SMALL = 5e9


def at_most_threads(number: int | None) -> AbstractContextManager[Any]:
    """Limit the threads of linear algebra to what the caller asks for; None for no limit."""
    # Comes with scikit-learn, without type hints.
    limits = import_module("threadpoolctl").threadpool_limits
    return nullcontext() if number is None else limits(limits=number)


@contextmanager
def threads_for(n: int, d: int) -> Iterator[None]:
    """Take one thread where work on an n x d matrix is small, else as many as there are."""
    if n * d * min(n, d) >= _SMALL:
        yield
        return
    # The threads of OpenMP are a setting of each thread, those of BLAS one of the whole process.
    with _libraries("openmp").limit(limits=1), _single_blas_thread:
        yield


@cache
def _libraries(kind: str) -> Any:
    # To look for them takes a while. Whoever fits has loaded them all.
    return import_module("threadpoolctl").ThreadpoolController().select(user_api=kind)


class _SingleBlasThread:
    """The limit lasts until the last of those that asked for it at the same time has left."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._n_inside = 0
        self._before: list[int | None] = []

    def __enter__(self) -> None:
        with self._lock:
            if self._n_inside == 0:
                libraries = _libraries("blas").lib_controllers
                self._before = [library.get_num_threads() for library in libraries]
                self._set([1] * len(libraries))
            self._n_inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                self._set(self._before)

    def _set(self, numbers: Sequence[int | None]) -> None:
        for library, number in zip(_libraries("blas").lib_controllers, numbers, strict=True):
            # Newer versions listen to one thread only, but the last to leave may be another.
            let_all = getattr(library, "clear_controlling_thread", lambda force: None)
            let_all(force=True)
            if number is not None:
                library.set_num_threads(number)
            let_all(force=True)


_single_blas_thread = _SingleBlasThread()
