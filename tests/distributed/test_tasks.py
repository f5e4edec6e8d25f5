"""Lazy calls, sums as trees, and errors a user can act on."""

import dask
import numpy as np
import pytest

from bsufs.distributed import _tasks
from bsufs.distributed._tasks import compute, merged, persist, task, tree_sum


def add(a, b):
    return a + b


def fail(error):
    raise error


def depth(lazy):
    """How many sums lie between a total and its parts."""
    parts = lazy.content[1] if len(lazy.content) > 1 and isinstance(lazy.content[1], list) else []
    return 1 + max(map(depth, parts)) if parts else 0


@pytest.mark.parametrize(("count", "expected"), [(1, 0), (8, 1), (9, 2), (65, 3)])
def test_sums_are_trees_of_fan_in_eight(count, expected):
    total = tree_sum([task(np.full, (2,), float(i)) for i in range(count)])
    assert depth(total) == expected
    np.testing.assert_array_equal(compute(total)[0], np.full(2, count * (count - 1) / 2))


def test_a_sum_changes_none_of_its_parts():
    (parts,) = persist([task(np.ones, 2) for _ in range(5)])
    for _ in range(2):
        np.testing.assert_array_equal(compute(tree_sum(parts))[0], [5.0, 5.0])


def test_parts_are_merged_in_order():
    letters = [task(str, letter) for letter in "abcdefghijklmnopqrst"]
    assert compute(merged(letters, "".join)) == ["abcdefghijklmnopqrst"]


def test_what_is_persisted_has_no_past():
    a = task(add, 1, 2)
    (kept, others) = persist([a], [task(add, a, a), task(add, a, 1)])
    assert kept[0].has_run
    graph = _tasks._Bundle.of([task(add, others[0], kept[0])]).__dask_graph__()
    assert len(graph) == 3
    assert compute(*others, *kept) == [6, 4, 3]


def test_delayed_objects_of_dask_are_arguments_like_others():
    assert compute(task(sum, [dask.delayed(add)(1, 2), task(add, 3, 4), 5])) == [15]


class CommClosedError(OSError):
    """As distributed has it."""


class KilledWorker(Exception):
    """As distributed has it."""


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (CommClosedError("gone"), ConnectionError, r"scheduler was lost.*call fit once more"),
        (KilledWorker("task"), MemoryError, r"ended several Dask workers.*X\.rechunk"),
        (ValueError("as it is"), ValueError, "as it is"),
        (FileNotFoundError("part-7.npy"), FileNotFoundError, "part-7.npy"),
    ],
)
def test_errors_of_a_cluster_say_what_to_do(error, kind, message):
    with pytest.raises(kind, match=message) as caught:
        compute(task(fail, error))
    assert len(str(caught.value)) < 400
    with pytest.raises(kind, match=message):
        persist([task(fail, error)])
