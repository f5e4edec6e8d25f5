"""ClusterAlignment: it finds planted clusters, and keeps the promises of every selector."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from bsufs.metrics import batched_kmeans, clustering_accuracy
from bsufs.selectors import BSUFS, ClusterAlignment, cluster_alignment
from bsufs.selectors._row_sample import RowSample


def planted(n=240, n_classes=6, n_telling=30, n_noise=90, noise_sd=1.0, seed=0):
    """Return classes that show in the first columns, among columns that know nothing of them."""
    rng = np.random.default_rng(seed)
    classes = np.arange(n) % n_classes
    centers = 3.0 * rng.standard_normal((n_classes, 8))
    hidden = centers[classes] + rng.standard_normal((n, 8))
    telling = hidden @ rng.standard_normal((8, n_telling)) / np.sqrt(8)
    telling += 0.5 * rng.standard_normal((n, n_telling))
    noise = noise_sd * rng.standard_normal((n, n_noise))
    return np.hstack([telling, noise]), classes


@pytest.mark.parametrize("seed", range(3))
def test_planted_columns_are_found(seed):
    # The noise is as large as the signal, so variance alone says little.
    X, _ = planted(noise_sd=3.0, seed=seed)
    chosen = ClusterAlignment(12).fit(X).get_support(indices=True)
    assert (chosen < 30).all()


def test_clusters_show_in_few_columns():
    X, classes = planted()
    chosen = ClusterAlignment(10).fit(X).transform(X)
    runs = batched_kmeans(chosen, 6, n_runs=20, random_state=0)
    everything = batched_kmeans(X, 6, n_runs=20, random_state=0)
    found = clustering_accuracy(classes, runs.labels[runs.best])
    assert found > clustering_accuracy(classes, everything.labels[everything.best]) - 0.05
    assert found > 0.85


def test_shares_tell_signal_from_noise():
    X, _ = planted()
    shares = ClusterAlignment(10).fit(X).cluster_shares_
    assert (shares >= 0).all()
    assert (shares <= 1).all()
    assert shares[:30].min() > shares[30:].max()


def test_shares_are_those_of_one_clustering_where_it_is_the_only_one():
    # Two clouds far apart: every run of k-means finds them.
    rng = np.random.default_rng(0)
    classes = np.repeat([0, 1], 50)
    X = rng.standard_normal((100, 5)) + 40.0 * classes[:, None] * np.array([1, 1, 0, 0, 0])
    selector = ClusterAlignment(2, clusters=2, n_components=1).fit(X)
    between = sum(50 * (X[classes == c].mean(axis=0) - X.mean(axis=0)) ** 2 for c in (0, 1)) / (
        (X - X.mean(axis=0)) ** 2
    ).sum(axis=0)
    # What chance gives is taken off: one of 99 degrees of freedom.
    expected = np.maximum(between - 1 / 99, 0.0)
    np.testing.assert_allclose(selector.cluster_shares_, expected, rtol=1e-8, atol=1e-12)
    assert selector.n_clusters_ == [2]


@pytest.mark.parametrize("noise_sd", [1.0, 3.0])
def test_columns_that_show_no_more_than_chance_come_last_by_their_share(noise_sd):
    X, _ = planted(noise_sd=noise_sd)
    selector = ClusterAlignment(10).fit(X)
    # Chance leaves a share to many of them, but none that is worth a pick.
    assert (selector.cluster_shares_[30:] > 0).mean() > 0.3
    assert selector.ranking_[:30].max() == 30
    last = np.argsort(selector.ranking_)[30:]
    assert (np.diff(selector.cluster_shares_[last]) <= 0).all()


def test_as_many_as_are_asked_for_are_picked_one_by_one(monkeypatch):
    X, _ = planted()
    expected = ClusterAlignment(10).fit(X).selected_features_
    monkeypatch.setattr(cluster_alignment, "_MOST_PICKS", 2)
    np.testing.assert_array_equal(ClusterAlignment(10).fit(X).selected_features_, expected)
    # Without the later picks the order is another one.
    assert not np.array_equal(np.argsort(ClusterAlignment(3).fit(X).ranking_)[:10], expected)


@pytest.mark.parametrize(("n", "d"), [(90, 20), (20, 90)])
def test_directions_without_variance_are_not_clustered_on(n, d, monkeypatch):
    sizes = set()

    def spied(scores, *arguments, **settings):
        sizes.add(scores.shape[1])
        return batched_kmeans(scores, *arguments, **settings)

    monkeypatch.setattr(cluster_alignment, "batched_kmeans", spied)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3)) @ rng.standard_normal((3, d))
    ClusterAlignment(4, n_components=2).fit(X)
    assert sizes == {2, 3}


@pytest.mark.parametrize(("given", "expected"), [(3, 3), (0.3, None), (100, 24)])
def test_the_number_of_components_may_be_given(given, expected):
    X, _ = planted()
    selector = ClusterAlignment(10, n_components=given).fit(X)
    assert selector.n_components_ == (
        expected or BSUFS(10, n_components=given).fit(X).n_components_
    )
    assert ClusterAlignment(10).fit(X).n_components_ == BSUFS(10).fit(X).n_components_


def test_sparse_data_give_what_dense_data_give():
    rng = np.random.default_rng(1)
    X = planted(seed=1)[0] * (rng.random((240, 120)) < 0.4)
    dense = ClusterAlignment(15).fit(X)
    for form in (sparse.csr_array, sparse.csc_array):
        found = ClusterAlignment(15).fit(form(X))
        np.testing.assert_array_equal(found.ranking_, dense.ranking_)
        np.testing.assert_allclose(found.cluster_shares_, dense.cluster_shares_, rtol=1e-8)


@pytest.mark.parametrize("factor", [1e-150, 1e150])
def test_units_do_not_matter(factor):
    X, _ = planted()
    np.testing.assert_array_equal(
        ClusterAlignment(10).fit(X * factor).ranking_, ClusterAlignment(10).fit(X).ranking_
    )


def test_a_large_mean_does_not_matter():
    X, _ = planted()
    np.testing.assert_array_equal(
        ClusterAlignment(10).fit(X + 2.0**20).ranking_[:30],
        ClusterAlignment(10).fit(X).ranking_[:30],
    )


def test_copies_come_behind_distinct_columns():
    X, _ = planted()
    X = np.hstack([X, -2.0 * X[:, :5] + 1.0])
    ranking = ClusterAlignment(10).fit(X).ranking_
    # Of each pair the one of larger variance stands for both.
    assert sorted(ranking[:5]) == [121, 122, 123, 124, 125]


def test_never_keep_is_as_if_the_columns_were_not_there():
    X, _ = planted()
    barred = [0, 3, 50]
    selector = ClusterAlignment(10, never_keep=barred).fit(X)
    others = np.setdiff1d(np.arange(120), barred)
    np.testing.assert_array_equal(
        selector.get_support(indices=True),
        others[ClusterAlignment(10).fit(X[:, others]).get_support(indices=True)],
    )
    assert not selector.cluster_shares_[barred].any()


def test_must_keep_is_kept_and_the_others_still_tell():
    X, _ = planted()
    selector = ClusterAlignment(10, must_keep=[100, 101]).fit(X)
    assert set(np.flatnonzero(selector.ranking_ <= 2)) == {100, 101}
    assert np.count_nonzero(selector.support_[:30]) == 8


def test_what_must_be_kept_is_not_said_twice():
    X, _ = planted()
    # A noisy double of the feature that would come first, which stands for it then.
    first = int(np.argmin(ClusterAlignment(10).fit(X).ranking_))
    double = X[:, first] + 0.01 * np.random.default_rng(0).standard_normal(len(X))
    selector = ClusterAlignment(4, must_keep=[120]).fit(np.column_stack([X, double]))
    assert not selector.support_[first]


def test_many_rows_are_drawn_from():
    X, _ = planted(n=600)
    few = ClusterAlignment(10, max_samples=200).fit(X)
    assert (few.get_support(indices=True) < 30).all()
    again = ClusterAlignment(10, max_samples=200).fit(X)
    np.testing.assert_array_equal(few.ranking_, again.ranking_)
    every = ClusterAlignment(10).fit(X).cluster_shares_
    np.testing.assert_allclose(few.cluster_shares_, every, atol=0.2)


def test_few_rows_are_not_cut_into_small_clusters():
    X, _ = planted(n=48)
    assert ClusterAlignment(5).fit(X).n_clusters_ == [4]
    assert ClusterAlignment(5).fit(X[:14]).n_clusters_ == [2]
    assert ClusterAlignment(5).fit(planted(n=480)[0]).n_clusters_ == [32]


@pytest.mark.parametrize("clusters", [[], [1, 3], [2.5], [2, 999], [[2, 3]], [[2], [3, 4]], "many"])
def test_clusters_must_be_whole_numbers_in_range(clusters):
    with pytest.raises(ValueError, match="clusters"):
        ClusterAlignment(5, clusters=clusters).fit(planted()[0])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize("constant", [0.1, 0.3, 1e6 / 7])
def test_constant_columns_show_no_clusters(form, constant):
    X, _ = planted()
    X[:, 50] = constant
    selector = ClusterAlignment(10).fit(form(X))
    assert selector.cluster_shares_[50] == 0.0
    assert selector.ranking_[50] == 120


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_column_that_is_constant_among_the_rows_drawn_shows_no_clusters(form):
    X, _ = planted(n=600)
    drawn = RowSample(100, 0).numbers(600)
    # Varies in one row that is not drawn, so what is left of it among those drawn is rounding.
    X[:, 50] = 0.1
    X[np.setdiff1d(np.arange(600), drawn)[0], 50] = 5.0
    selector = ClusterAlignment(10, max_samples=100).fit(form(X))
    assert selector.cluster_shares_[50] == 0.0
    assert not selector.support_[50]


# ----------------------------------------------------------------------------------------- streams


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("max_samples", [90, 4096])
@pytest.mark.parametrize("edges", [(1, 2, 100), (120,), ()])
def test_partial_fit_is_fit_on_all_rows(kind, max_samples, edges):
    X = planted(seed=2)[0] + 50.0
    whole = ClusterAlignment(12, max_samples=max_samples).fit(X)
    stream = ClusterAlignment(12, max_samples=max_samples)
    for batch in np.split(X, edges):
        stream.partial_fit(kind(batch))
    np.testing.assert_array_equal(stream.ranking_, whole.ranking_)
    np.testing.assert_allclose(stream.cluster_shares_, whole.cluster_shares_, atol=1e-8)
    assert stream.n_clusters_ == whole.n_clusters_
    assert stream.n_components_ == whole.n_components_
    np.testing.assert_array_equal(stream.transform(X), whole.transform(X))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("max_samples", [90, 4096])
def test_partial_fit_goes_on_after_a_look(kind, max_samples):
    X = planted(seed=3)[0]
    selector = ClusterAlignment(8, max_samples=max_samples)
    stream = clone(selector).partial_fit(kind(X[:150]))
    np.testing.assert_array_equal(stream.ranking_, clone(selector).fit(X[:150]).ranking_)
    stream.partial_fit(kind(X[150:]))
    np.testing.assert_array_equal(stream.ranking_, clone(selector).fit(X).ranking_)
    with pytest.raises(AttributeError, match="no attribute 'nonsense_'"):
        _ = stream.nonsense_


def test_a_sample_of_the_rows_finds_what_all_rows_show():
    X, _ = planted(n=1500, noise_sd=3.0)
    chosen = ClusterAlignment(12, max_samples=400).fit(X).get_support(indices=True)
    assert (chosen < 30).all()


def test_a_first_batch_that_is_refused_leaves_nothing():
    selector = ClusterAlignment(3)
    with pytest.raises(ValueError, match="NaN"):
        selector.partial_fit(np.full((4, 5), np.nan))
    assert not hasattr(selector, "n_features_in_")
    with pytest.raises(ValueError, match="at most the number of features"):
        ClusterAlignment(30).partial_fit(np.eye(5))


def two_groupings(n=120, seed=0):
    """Return a strong grouping of the rows in columns 0 to 9, a weaker one in 10 to 19, noise."""
    rng = np.random.default_rng(seed)
    strong, weak = np.arange(n) % 2, np.arange(n) // 2 % 2
    X = rng.standard_normal((n, 40))
    X[:, :10] += 6.0 * strong[:, None]
    X[:, 10:20] += 4.0 * weak[:, None]
    return X, strong, weak


def test_components_are_looked_at_alone():
    X, _, _ = two_groupings()
    for component, columns in ((1, range(10)), (2, range(10, 20))):
        selector = ClusterAlignment(10, components=[component], clusters=2).fit(X)
        assert set(selector.selected_features_) == set(columns)


def test_all_components_in_one_view_are_those_of_the_default():
    X, _ = planted()
    # 240 rows allow 24 components, so both views are the same one.
    one = ClusterAlignment(8, n_components=24).fit(X)
    other = ClusterAlignment(8, components=range(1, 25)).fit(X)
    np.testing.assert_array_equal(one.ranking_, other.ranking_)


@pytest.mark.parametrize("components", [[0], [], [1.5], [1, 9], [[1, 2]], [[1], [2, 3]]])
def test_components_that_are_not_there_are_refused(components):
    X = np.random.default_rng(0).standard_normal((50, 8))
    with pytest.raises(ValueError, match="components must hold whole numbers from 1 to 8"):
        ClusterAlignment(2, components=components).fit(X)


def test_named_components_in_batches_and_on_dask():
    X, _, _ = two_groupings()
    selector = ClusterAlignment(6, components=[2, 3])
    held = clone(selector).fit(X).ranking_
    streamed = clone(selector).fit_batches(np.array_split(X, 5))
    np.testing.assert_array_equal(streamed.ranking_, held)
    array = pytest.importorskip("dask.array", reason="needs the extra dask")
    blocks = array.from_array(X, chunks=(40, 40))
    np.testing.assert_array_equal(clone(selector).fit(blocks).ranking_, held)


@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(7), 3)])
def test_auto_keeps_neither_copies_nor_constant_columns(groups):
    X = np.random.default_rng(0).standard_normal((60, 6))
    selector = ClusterAlignment(groups=groups).fit(np.hstack([X, 1 - 3 * X, np.ones((60, 9))]))
    distinct = selector.agreement_curve_["n_features_to_select"][-1]
    assert distinct == (6 if groups is None else 2)
    assert set(selector.get_support(indices=True)) <= set(range(6, 12))


@pytest.mark.parametrize("seed", range(4))
def test_columns_of_noise_do_not_inflate_the_automatic_number(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 100))
    X[:, :6] += 4.0 * rng.standard_normal((3, 6))[rng.integers(3, size=300)]
    selector = ClusterAlignment().fit(X)
    assert set(selector.selected_features_) <= set(range(6))
