"""ClusterAlignment on Dask collections: the same answers as on arrays, and no X in one place."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.callbacks import Callback

from bsufs.selectors import ClusterAlignment


def clustered(n, d, seed=0):
    """Return rows in five groups that show in a third of the columns."""
    rng = np.random.default_rng(seed)
    groups = 3.0 * rng.standard_normal((5, d)) * (np.arange(d) % 3 == 0)
    X = groups[np.arange(n) % 5] + rng.standard_normal((n, d)) + 4.0
    X[:, 7] = 3.0
    X[:, 8] = 1.0 - 2.0 * X[:, 0]
    return X


WIDE, TALL = clustered(60, 150), clustered(300, 40)


def assert_twins(X, expected, **parameters):
    found = ClusterAlignment(9, **parameters).fit(X)
    np.testing.assert_array_equal(found.ranking_, expected.ranking_)
    np.testing.assert_allclose(found.scores_, expected.scores_, atol=1e-8)
    np.testing.assert_allclose(found.cluster_shares_, expected.cluster_shares_, atol=1e-8)
    assert found.n_clusters_ == expected.n_clusters_
    assert list(found.selected_features_) == list(expected.selected_features_)


@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
@pytest.mark.parametrize("max_samples", [40, 4096])
@pytest.mark.parametrize(
    ("X", "chunks"),
    [
        (WIDE, (60, 40)),
        (WIDE, (60, (1, 100, 49))),
        (WIDE, (25, 150)),
        (TALL, (70, 40)),
        (TALL, ((1, 250, 49), 40)),
        (TALL, (300, 17)),
    ],
)
def test_any_cut_gives_the_same(X, chunks, max_samples, scheduler):
    expected = ClusterAlignment(9, max_samples=max_samples).fit(X)
    with dask.config.set(scheduler=scheduler):
        assert_twins(da.from_array(X, chunks=chunks), expected, max_samples=max_samples)


@pytest.mark.parametrize("X", [WIDE, TALL], ids=["wide", "tall"])
def test_features_that_must_or_must_not_be_kept(X):
    named = {"must_keep": [1], "never_keep": [0, 3, 20]}
    expected = ClusterAlignment(9, **named).fit(X)
    assert expected.support_[1]
    assert not expected.support_[[0, 3, 20]].any()
    assert_twins(da.from_array(X, chunks=(len(X), 30)), expected, **named)


@pytest.mark.parametrize("max_samples", [50, 4096])
def test_a_data_frame_gives_the_same_and_keeps_its_names(max_samples):
    frame = pd.DataFrame(TALL, columns=[f"gene {i}" for i in range(40)])
    expected = ClusterAlignment(9, max_samples=max_samples).fit(frame)
    lazy = dd.from_pandas(frame, npartitions=5)
    assert_twins(lazy, expected, max_samples=max_samples)
    # Partitions that turn out to be empty, and lengths that nobody knows.
    kept = frame[frame["gene 0"] > 3.5]
    filtered = lazy[lazy["gene 0"] > 3.5]
    expected = ClusterAlignment(9, max_samples=max_samples).fit(kept)
    assert_twins(filtered, expected, max_samples=max_samples)
    assert_twins(
        filtered.to_dask_array(),
        ClusterAlignment(9, max_samples=max_samples).fit(kept.to_numpy()),
        max_samples=max_samples,
    )


class LargestResult(Callback):
    """Notes the largest array that a task returned."""

    def __init__(self):
        super().__init__(posttask=self._look)
        self.nbytes = 0

    def _look(self, key, result, graph, state, worker):
        if isinstance(result, np.ndarray):
            self.nbytes = max(self.nbytes, result.nbytes)


def test_nobody_holds_all_columns(monkeypatch):
    monkeypatch.setattr("bsufs.scatter._columns._SMALL_HERE", 0)
    monkeypatch.setattr("bsufs._dask.n_workers", lambda: 15)
    X = clustered(60, 900)
    largest = LargestResult()
    with largest, dask.config.set(scheduler="synchronous"):
        ClusterAlignment(9, n_components=5).fit(da.from_array(X, chunks=(60, 60)))
    assert 0 < largest.nbytes < X.nbytes / 10


def test_what_is_wrong_is_said_before_anything_is_read():
    def fail(block):
        raise AssertionError("read")

    lazy = da.from_array(WIDE, chunks=(60, 40)).map_blocks(fail, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(ValueError, match="at most the number of features"):
        ClusterAlignment(200).fit(lazy)
