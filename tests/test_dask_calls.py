"""Lazy calls: sums as trees, parts that stay as they are, and errors a user can act on."""

import dask
import numpy as np
import pytest

from bsufs import _dask
from bsufs._dask import call, compute, merged, persist, total


@pytest.mark.parametrize(
    ("count", "expected"), [(1, 1), (2, 3), (8, 9), (9, 11), (64, 73), (65, 75)]
)
def test_sums_are_trees_of_fan_in_eight(count, expected):
    lazy = total([call(np.full, 3, i) for i in range(count)])
    assert len(dict(lazy.__dask_graph__())) == expected
    np.testing.assert_array_equal(compute([lazy])[0], np.full(3, sum(range(count))))


def test_a_sum_changes_none_of_its_parts():
    parts = persist([call(np.ones, 3) for _ in range(4)])
    for _ in range(2):
        np.testing.assert_array_equal(compute([total(parts)])[0], np.full(3, 4.0))
    np.testing.assert_array_equal(compute(parts[:1])[0], np.ones(3))


def test_parts_are_merged_in_order():
    (joined,) = compute([merged([call(str, i) for i in range(20)], "".join)])
    assert joined == "".join(map(str, range(20)))


def test_delayed_objects_of_dask_are_arguments_like_others():
    (found,) = compute([call(np.add, dask.delayed(np.ones)(2), np.ones(2))])
    np.testing.assert_array_equal(found, [2.0, 2.0])


class CommClosedError(Exception):
    """As Dask calls what it raises when the scheduler is gone."""


class KilledWorker(Exception):
    """As Dask calls what it raises when a task ends one worker after another."""


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (CommClosedError("gone"), ConnectionError, "scheduler was lost.*call fit once more"),
        (KilledWorker("task"), MemoryError, "ended several Dask workers.*smaller chunks"),
        (ValueError("mine"), ValueError, "^mine$"),
    ],
)
def test_errors_of_a_cluster_say_what_to_do(error, kind, message):
    with pytest.raises(kind, match=message), _dask._readable_errors():
        raise error
