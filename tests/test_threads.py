"""One thread for small work, the caller's own number for large, and all of it given back."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from bsufs import BSUFS
from bsufs._threads import at_most_threads, threads_for

SMALL, LARGE = (100, 20), (10_000, 10_000)


def numbers(kind="blas"):
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == kind]


@pytest.fixture(autouse=True)
def _two_threads():
    with threadpool_limits(2):
        if max(numbers(), default=1) < 2:
            pytest.skip("this build of BLAS has one thread only")
        yield


@pytest.mark.parametrize("kind", ["blas", "openmp"])
def test_small_work_gets_one_thread_and_large_work_all(kind):
    before = numbers(kind)
    with threads_for(*LARGE):
        assert numbers(kind) == before
    with threads_for(*SMALL):
        assert set(numbers(kind)) <= {1}
        with threads_for(*LARGE):
            assert set(numbers(kind)) <= {1}
    assert numbers(kind) == before


def test_a_lower_limit_of_the_caller_holds():
    with at_most_threads(1):
        with threads_for(*SMALL):
            assert set(numbers()) == {1}
        with threads_for(*LARGE):
            assert set(numbers()) == {1}
        assert set(numbers()) == {1}
    with at_most_threads(None):
        assert max(numbers()) == 2


def test_the_limit_lasts_until_the_last_of_several_fits_has_ended():
    before, first_is_in, second_is_in = numbers(), threading.Event(), threading.Event()

    def first():
        with threads_for(*SMALL):
            first_is_in.set()
            second_is_in.wait(10)

    thread = threading.Thread(target=first)
    thread.start()
    first_is_in.wait(10)
    with threads_for(*SMALL):
        second_is_in.set()
        thread.join(10)
        assert set(numbers()) == {1}
    assert numbers() == before


@pytest.mark.parametrize("way", ["fit", "fit_batches"])
def test_fits_take_one_thread_for_small_tables_and_give_the_others_back(way):
    seen = []
    X = np.random.default_rng(0).standard_normal((40, 12))
    before = numbers()
    selector = BSUFS(3, callback=lambda _: seen.extend(numbers()))
    selector.fit(X) if way == "fit" else selector.fit_batches([X[:20], X[20:]])
    assert set(seen) == {1}
    assert numbers() == before


def test_a_fit_that_fails_gives_the_threads_back():
    before = numbers()
    with pytest.raises(ValueError, match="at least one column that varies"):
        BSUFS(1).fit(np.ones((5, 3)))
    assert numbers() == before
