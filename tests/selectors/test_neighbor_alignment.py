import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

from bsufs.selectors import NeighborAlignment, RandomSelector
from bsufs.tuning.criteria import NeighborOverlap


def on_a_ring(n=300, n_copies=3, seed=0):
    """Return rows on a closed curve of two columns, copies of the first with noise, and noise."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0.0, 2.0 * np.pi, n)
    ring = 4.0 * np.column_stack([np.cos(angle), np.sin(angle)])
    copies = ring[:, [0] * n_copies] + 0.2 * rng.standard_normal((n, n_copies))
    return np.column_stack([ring, copies, 0.3 * rng.standard_normal((n, 6))])


def test_both_coordinates_of_a_curve_come_first():
    X = on_a_ring()
    selector = NeighborAlignment(2).fit(X)
    chosen = set(selector.selected_features_.tolist())
    assert 1 in chosen
    assert chosen - {1} < {0, 2, 3, 4}
    signals = selector.neighbor_signals_
    assert signals.sum() == pytest.approx(1.0)
    assert signals[:5].min() > signals[5:].max()


def test_what_must_be_kept_counts_in_the_picks_that_follow():
    X = on_a_ring()
    # The copies say what column 0 says already.
    chosen = NeighborAlignment(2, must_keep=[0]).fit(X).selected_features_
    assert chosen.tolist() == [0, 1]
    chosen = NeighborAlignment(2, must_keep=[1]).fit(X).selected_features_
    assert chosen[1] in (0, 2, 3, 4)


def test_more_neighbors_stay_than_in_random_columns():
    X = load_digits().data[:600]
    overlap = NeighborOverlap()
    kept = overlap.score(X, NeighborAlignment(15).fit(X).support_)
    by_chance = [
        overlap.score(X, RandomSelector(15, random_state=s).fit(X).support_) for s in (0, 1)
    ]
    assert kept > max(by_chance) + 0.1


def test_batches_sparse_rows_and_units_change_nothing():
    X = on_a_ring(200)
    expected = NeighborAlignment(4, max_samples=120).fit(X)
    batched = NeighborAlignment(4, max_samples=120).fit_batches(np.array_split(X, 7))
    assert batched.ranking_.tolist() == expected.ranking_.tolist()
    for other in (sparse.csr_array(X), 1e-60 * X, 2.0**700 * X):
        found = NeighborAlignment(4, max_samples=120).fit(other)
        assert found.ranking_.tolist() == expected.ranking_.tolist()


@pytest.mark.parametrize("shape", [(150, 12), (40, 90)])
def test_dask_finds_what_memory_finds(shape):
    da = pytest.importorskip("dask.array", reason="needs the extra dask")
    X = np.random.default_rng(0).standard_normal(shape) * np.linspace(1.0, 3.0, shape[1])
    X[:, ::3] += 4.0 * np.sin(np.arange(shape[0]))[:, None]
    expected = NeighborAlignment(5, max_samples=30).fit(X)
    found = NeighborAlignment(5, max_samples=30).fit(da.from_array(X, chunks=(20, 30)))
    assert found.selected_features_.tolist() == expected.selected_features_.tolist()


def test_columns_in_workers_are_brought_here(monkeypatch):
    da = pytest.importorskip("dask.array", reason="needs the extra dask")
    monkeypatch.setattr("bsufs.scatter._columns._SMALL_HERE", 0)
    X = np.random.default_rng(1).standard_normal((30, 80)) * np.linspace(1.0, 3.0, 80)
    expected = NeighborAlignment(5, max_samples=25, never_keep=[3]).fit(X)
    found = NeighborAlignment(5, max_samples=25, never_keep=[3]).fit(
        da.from_array(X, chunks=(30, 20))
    )
    assert found.selected_features_.tolist() == expected.selected_features_.tolist()


def test_columns_that_are_no_candidates_come_behind(monkeypatch):
    monkeypatch.setattr("bsufs.selectors.neighbor_alignment._LEAST_CANDIDATES", 3)
    monkeypatch.setattr("bsufs.selectors.neighbor_alignment._MOST_PICKS", 1)
    X = on_a_ring()
    selector = NeighborAlignment(1).fit(X)
    strongest = np.argsort(-selector.neighbor_signals_)
    assert set(np.argsort(selector.ranking_)[:3]) == set(strongest[:3])
    assert np.argsort(selector.ranking_)[3:].tolist() == strongest[3:].tolist()


def test_two_rows_are_ranked():
    assert NeighborAlignment(1).fit([[0.0, 1.0, 5.0], [0.0, 2.0, 9.0]]).support_.sum() == 1


def test_a_weight_counts_like_copies():
    X, weight = on_a_ring(80), np.arange(80) % 4
    copied = NeighborAlignment(4).fit(np.repeat(X, weight, axis=0))
    weighted = NeighborAlignment(4).fit(X, sample_weight=weight)
    assert weighted.ranking_.tolist() == copied.ranking_.tolist()
    np.testing.assert_allclose(weighted.neighbor_signals_, copied.neighbor_signals_, rtol=1e-8)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_what_is_adjusted_for_does_not_decide(convert):
    X = on_a_ring(240)
    batch = np.arange(240) % 3
    shifted = X + np.where(np.arange(X.shape[1]) > 4, 30.0, 0.0) * batch[:, None]
    kinds = np.array(["a", "b", "c"])[batch]
    cleared = shifted - np.array([shifted[batch == b].mean(axis=0) for b in range(3)])[batch]
    found = NeighborAlignment(2, adjust_for=kinds).fit(convert(shifted))
    assert found.ranking_.tolist() == NeighborAlignment(2).fit(cleared).ranking_.tolist()
    assert 1 in found.selected_features_
