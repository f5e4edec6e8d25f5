"""Rows drawn from a stream: as many as asked for, each as likely, and the same for any batches."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from bsufs.selectors._row_sample import RowSample


def numbered(n):
    """Return rows that tell their number."""
    return np.arange(n, dtype=float)[:, None] * [1.0, -1.0]


def streamed(X, edges, size, seed):
    sample = RowSample(size, seed)
    for start, stop in itertools.pairwise([0, *edges, len(X)]):
        sample.add(X[start:stop])
    return sample.rows()


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    n=st.integers(1, 60),
    cuts=st.lists(st.integers(0, 60), max_size=6),
    size=st.integers(1, 70),
    seed=st.integers(0, 5),
)
def test_batches_do_not_matter(n, cuts, size, seed):
    X = numbered(n)
    at_once = RowSample(size, seed).of(X)
    edges = sorted(min(cut, n) for cut in cuts)
    np.testing.assert_array_equal(streamed(X, edges, size, seed), at_once)
    rows = at_once[:, 0]
    assert rows.size == min(n, size)
    assert (np.diff(rows) > 0).all()
    assert set(rows) <= set(range(n))


def test_a_sample_larger_than_any_table_takes_no_more_than_the_rows():
    sample = RowSample(10**12, 0)
    for start in range(0, 20, 5):
        sample.add(numbered(20)[start : start + 5])
    np.testing.assert_array_equal(sample.rows(), numbered(20))
    assert sample.of(numbered(20)).shape == (20, 2)


def test_every_row_is_as_likely_as_every_other():
    drawn = [streamed(numbered(12), [5, 6], 4, seed)[:, 0].astype(int) for seed in range(3000)]
    counts = np.bincount(np.concatenate(drawn), minlength=12)
    # Binomial with 3000 trials of 1/3: a standard deviation is 26.
    assert np.abs(counts - 1000).max() < 4 * 26


def test_the_same_rows_are_drawn_again():
    sample = RowSample(5, 0)
    first = sample.numbers(40)
    np.testing.assert_array_equal(sample.numbers(40), first)
    # Numbers are drawn in the order of the rows, so those that have come later change no others.
    assert set(sample.numbers(41)) <= {*first, 40}
    assert sample.numbers(5) is None


def test_sparse_rows_are_drawn_as_dense_ones_are():
    X = numbered(30)
    np.testing.assert_array_equal(
        RowSample(8, 3).of(sparse.csr_array(X)).toarray(), RowSample(8, 3).of(X)
    )


def test_a_generator_is_left_as_it_was():
    state = np.random.RandomState(4)
    first = RowSample(5, state).of(numbered(40))
    np.testing.assert_array_equal(RowSample(5, state).of(numbered(40)), first)
    assert state.randint(1000) == np.random.RandomState(4).randint(1000)
    assert not np.array_equal(RowSample(5, 5).of(numbered(40)), first)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_memory_of_a_batch_may_be_used_again(dtype):
    X = numbered(20).astype(dtype)
    sample = RowSample(6, 0)
    batch = np.empty((5, 2), dtype)
    for start in range(0, 20, 5):
        batch[:] = X[start : start + 5]
        sample.add(batch)
        batch[:] = np.nan
    np.testing.assert_array_equal(sample.rows(), RowSample(6, 0).of(X))
