"""Batched k-means against Lloyd's iterations, one run after another."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans, kmeans_plusplus

from bsufs.metrics import batched_kmeans, kmeans


def overlapping_blobs(n, d, n_blobs, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    blobs = rng.normal(size=(n_blobs, d)) * spread
    return blobs[rng.integers(n_blobs, size=n)] + rng.normal(size=(n, d)) + 5.0


def sample_starts(X, k, n_runs, seed=0):
    rng = np.random.default_rng(seed)
    return np.stack([X[rng.permutation(len(X))[:k]] for _ in range(n_runs)])


def assert_equals_lloyd(X, starts, **settings):
    k = starts.shape[1]
    runs = batched_kmeans(X, k, init=starts, **settings)
    rival = {"max_iter": 200, "tol": 0, **settings}
    for run, start in enumerate(starts):
        expected = KMeans(k, init=start, n_init=1, algorithm="lloyd", **rival).fit(X)
        np.testing.assert_array_equal(runs.labels[run], expected.labels_)
        assert runs.inertia[run] == pytest.approx(expected.inertia_, rel=1e-9, abs=1e-12)
        np.testing.assert_allclose(
            runs.centers[run], expected.cluster_centers_, rtol=1e-9, atol=1e-9
        )
        assert runs.n_iter[run] == expected.n_iter_


@pytest.mark.parametrize(
    ("n", "d", "k"),
    [(300, 10, 6), (200, 1, 4), (150, 2, 15), (60, 40, 2), (50, 3, 1), (12, 3, 12), (400, 3, 70)],
)
def test_equals_lloyd_from_the_same_centers(n, d, k):
    X = overlapping_blobs(n, d, 6)
    assert_equals_lloyd(X, sample_starts(X, k, 8))


def test_equals_lloyd_where_single_precision_sees_no_difference():
    rng = np.random.default_rng(0)
    # Two places far apart with two clusters in each, a ten thousandth of the way from each other.
    sites = np.repeat([-1.0, 1.0], 60)[:, None]
    X = sites + 1e-4 * (rng.normal(size=(120, 3)) + 2.0 * (np.arange(120) % 2)[:, None])
    starts = np.stack([X[[i, i + 1, i + 60, i + 61]] for i in range(0, 16, 2)])
    assert_equals_lloyd(X, starts)


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize("settings", [{"max_iter": 1}, {"max_iter": 3}])
def test_equals_lloyd_when_stopped_early(settings):
    X = overlapping_blobs(300, 5, 6)
    assert_equals_lloyd(X, sample_starts(X, 6, 6), **settings)


def test_equals_lloyd_with_starts_away_from_the_samples():
    X = overlapping_blobs(200, 4, 4)
    starts = sample_starts(X, 4, 5) + np.random.default_rng(1).normal(size=(5, 4, 4))
    assert_equals_lloyd(X, starts)


def test_equals_lloyd_when_an_empty_cluster_is_refilled():
    X = overlapping_blobs(100, 3, 3)
    starts = sample_starts(X, 4, 3)
    starts[:, 3] = 1000.0
    runs = batched_kmeans(X, 4, init=starts)
    for run, start in enumerate(starts):
        expected = KMeans(4, init=start, n_init=1, tol=0).fit(X)
        np.testing.assert_array_equal(runs.labels[run], expected.labels_)
        assert runs.inertia[run] == pytest.approx(expected.inertia_)
        assert np.unique(runs.labels[run]).size == 4


def test_batches_change_nothing(monkeypatch):
    X = overlapping_blobs(200, 6, 5)
    starts = sample_starts(X, 5, 9)
    expected = batched_kmeans(X, 5, init=starts)
    monkeypatch.setattr(kmeans, "_BATCH_BYTES", 8 * 200 * 5 * 2)
    runs = batched_kmeans(X, 5, init=starts)
    np.testing.assert_array_equal(runs.labels, expected.labels)
    np.testing.assert_allclose(runs.inertia, expected.inertia)


@pytest.mark.parametrize("unit", [1e-200, 1e-30, 1e30, 1e150])
def test_units_change_nothing(unit):
    X = overlapping_blobs(100, 4, 3)
    expected = batched_kmeans(X, 3, n_runs=4, random_state=0)
    runs = batched_kmeans(X * unit, 3, n_runs=4, random_state=0)
    np.testing.assert_array_equal(runs.labels, expected.labels)
    np.testing.assert_allclose(runs.centers, expected.centers * unit)


@pytest.mark.parametrize("far", [1e12, 1e60])
def test_starts_far_from_the_data(far):
    X = overlapping_blobs(80, 2, 3, spread=10.0)
    starts = sample_starts(X, 3, 2)
    starts[:, 0] = far
    runs = batched_kmeans(X, 3, init=starts)
    assert np.isfinite(runs.inertia).all()
    assert (np.sort(np.unique(runs.labels)) == np.arange(3)).all()


@pytest.mark.parametrize("init", ["k-means++", "random", "greedy-k-means++"])
def test_more_clusters_than_distinct_samples(init):
    X = np.repeat([[0.1, 0.0], [1.0, 0.3], [5.0, 5.0]], 4, axis=0)
    runs = batched_kmeans(X, 6, n_runs=5, init=init, random_state=0)
    np.testing.assert_allclose(runs.inertia, 0.0, atol=1e-25)
    for labels, centers in zip(runs.labels, runs.centers, strict=True):
        np.testing.assert_allclose(centers[labels], X)
    assert (runs.n_iter < 10).all()


@pytest.mark.parametrize(
    ("samples", "start"),
    [([3, 1, 3, 2, 1, 1], [0, 4, 0, 1]), ([1, 2, 1, 2, 0, 2], [1, 4, 0, 0, 4])],
)
def test_equal_samples_end_in_one_cluster(samples, start):
    # Clusters that are empty take samples from copies of them, to which they go back.
    X = np.array(samples, dtype=float)[:, None]
    runs = batched_kmeans(X, len(start), init=np.array(start, dtype=float)[None, :, None])
    assert len(set(zip(samples, runs.labels[0].tolist(), strict=True))) == 3
    assert runs.inertia[0] == 0.0


def test_samples_that_do_not_vary():
    runs = batched_kmeans(np.full((5, 2), 3.0), 2, n_runs=3, random_state=0)
    np.testing.assert_array_equal(runs.inertia, 0.0)
    np.testing.assert_allclose(runs.centers, 3.0)


def test_an_empty_cluster_takes_the_farthest_sample():
    X = np.array([[0.0], [1.0], [2.0], [10.0]])
    runs = batched_kmeans(X, 2, init=[[[1.0], [100.0]]])
    np.testing.assert_array_equal(runs.labels, [[0, 0, 0, 1]])
    assert runs.inertia[0] == pytest.approx(2.0)


def test_no_cluster_gives_up_its_only_sample():
    X = np.array([[0.0], [1.0], [2.5], [10.0]])
    # The sample at 10 is the farthest from its center, and alone with it.
    runs = batched_kmeans(X, 3, init=[[[1.0], [7.0], [100.0]]])
    np.testing.assert_array_equal(runs.labels, [[0, 0, 2, 1]])
    np.testing.assert_allclose(runs.centers[0, :, 0], [0.5, 10.0, 2.5])


@pytest.mark.parametrize("init", ["k-means++", "random", "greedy-k-means++"])
def test_the_seed_decides_and_more_runs_keep_the_first(init):
    X = overlapping_blobs(120, 4, 5)
    first = batched_kmeans(X, 5, n_runs=6, init=init, random_state=3)
    again = batched_kmeans(X, 5, n_runs=6, init=init, random_state=3)
    fewer = batched_kmeans(X, 5, n_runs=2, init=init, random_state=3)
    other = batched_kmeans(X, 5, n_runs=6, init=init, random_state=4)
    np.testing.assert_array_equal(first.labels, again.labels)
    np.testing.assert_array_equal(first.labels[:2], fewer.labels)
    assert not np.array_equal(first.labels, other.labels)
    assert first.inertia[first.best] == first.inertia.min()


def starts_of(X, k, init, n_runs, seed=0):
    X = X - X.mean(axis=0)
    return kmeans._starts(X, k, n_runs, init, np.random.RandomState(seed))


def potential(X, starts):
    """Return the mean over the runs of the inertia before the first iteration."""
    X = X - X.mean(axis=0)
    distances = ((X[None, :, None] - starts[:, None]) ** 2).sum(axis=3)
    return distances.min(axis=2).sum(axis=1).mean()


def test_plain_seeding_draws_by_squared_distance():
    """From 0, 1 and 3 the second center follows from the first by known probabilities."""
    X = np.array([[0.0], [1.0], [3.0]])
    starts = starts_of(X, 2, "k-means++", 20000)[..., 0] + X.mean()
    firsts = np.array([np.isclose(starts[:, 0], x).mean() for x in X[:, 0]])
    np.testing.assert_allclose(firsts, 1 / 3, atol=0.015)
    after_zero = starts[np.isclose(starts[:, 0], 0.0), 1]
    assert np.isclose(after_zero, 3.0).mean() == pytest.approx(0.9, abs=0.015)
    after_three = starts[np.isclose(starts[:, 0], 3.0), 1]
    assert np.isclose(after_three, 0.0).mean() == pytest.approx(9 / 13, abs=0.02)


@pytest.mark.parametrize(("init", "trials"), [("k-means++", 1), ("greedy-k-means++", None)])
def test_seeding_is_as_good_as_that_of_scikit_learn(init, trials):
    X = overlapping_blobs(200, 3, 10, spread=6.0)
    rival = np.stack(
        [
            kmeans_plusplus(X - X.mean(axis=0), 10, random_state=seed, n_local_trials=trials)[0]
            for seed in range(200)
        ]
    )
    ours = potential(X, starts_of(X, 10, init, 200))
    assert ours == pytest.approx(potential(X, rival), rel=0.08)


def test_better_seeding_starts_lower():
    X = overlapping_blobs(200, 3, 10, spread=6.0)
    greedy, plain, random = (
        potential(X, starts_of(X, 10, init, 100))
        for init in ("greedy-k-means++", "k-means++", "random")
    )
    assert greedy < plain < random


@pytest.mark.parametrize("init", ["k-means++", "random", "greedy-k-means++"])
def test_starts_are_distinct_samples(init):
    X = overlapping_blobs(12, 2, 3)
    samples = np.unique(X - X.mean(axis=0), axis=0)
    for start in starts_of(X, 12, init, 5):
        np.testing.assert_allclose(np.unique(start, axis=0), samples, atol=1e-12)


def test_random_starts_are_uniform():
    starts = starts_of(np.arange(5.0)[:, None], 2, "random", 4000)[..., 0] + 2.0
    shares = np.bincount(np.rint(starts.ravel()).astype(int)) / starts.size
    np.testing.assert_allclose(shares, 0.2, atol=0.02)


def test_data_are_never_changed():
    X = overlapping_blobs(50, 3, 3)
    before = X.copy()
    starts = sample_starts(X, 3, 2)
    starts_before = starts.copy()
    batched_kmeans(X, 3, init=starts)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(starts, starts_before)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be a positive integer, got 0"),
        ({"n_clusters": 5}, "n_clusters must be at most n_samples = 4, got 5"),
        ({"n_runs": 0}, "n_runs must be a positive integer"),
        ({"max_iter": 1.5}, "max_iter must be a positive integer, got 1.5"),
        ({"init": "best"}, "init must be 'k-means"),
        ({"init": np.zeros((2, 3, 1))}, r"\(n_runs, 2, 1\), got \(2, 3, 1\)"),
        ({"init": np.full((1, 2, 1), np.nan)}, "finite"),
    ],
)
def test_unfit_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        batched_kmeans(np.arange(4.0)[:, None], **{"n_clusters": 2, **settings})


@pytest.mark.parametrize("init", ["k-means++", "greedy-k-means++"])
def test_weights_count_like_copies(init):
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(60, 3)), rng.integers(1, 5, 60)
    settings = {"n_runs": 6, "init": init, "random_state": 0}
    weighted = batched_kmeans(X, 4, sample_weight=weight, **settings)
    copies = batched_kmeans(X.repeat(weight, axis=0), 4, **settings)
    np.testing.assert_array_equal(weighted.labels.repeat(weight, axis=1), copies.labels)
    np.testing.assert_allclose(weighted.inertia, copies.inertia)
    np.testing.assert_allclose(weighted.centers, copies.centers)


@pytest.mark.parametrize("weight", [[1.0, 0.0, 1.0], [1.0, 2.0], [1.0, np.nan, 1.0]])
def test_weights_must_be_positive_numbers_of_all_samples(weight):
    with pytest.raises(ValueError, match="a positive number for each of the 3 samples"):
        batched_kmeans(np.eye(3), 2, sample_weight=weight)
