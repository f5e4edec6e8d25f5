"""What is found out about a selection: against closed forms, and each thing once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from bsufs import BSUFS
from bsufs.inspection import Findings, explain, make_report, plot_explained_variance
from bsufs.inspection import findings as module
from bsufs.inspection._features import FeatureFindings
from bsufs.inspection.findings import around_the_cut, check_image_shape
from bsufs.metrics import reconstruction, redundancy
from bsufs.scatter import make_scatter
from bsufs.selectors import ClusterAlignment, ColumnSubset, MaxVariance
from bsufs.selectors._data import FitData
from bsufs.tuning import ConsensusSelector


def _factors(n=60, d=12, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) @ rng.normal(size=(3, d)) + 0.3 * rng.normal(size=(n, d))


def test_names_come_from_the_caller_the_frame_or_the_number():
    X = _factors(d=3)
    selector = MaxVariance(1).fit(X)
    assert Findings(selector).names.tolist() == ["x0", "x1", "x2"]
    assert Findings(selector, feature_names=[1, "b", "c"]).names.tolist() == ["1", "b", "c"]
    framed = MaxVariance(1).fit(pd.DataFrame(X, columns=["p", "q", "r"]))
    assert Findings(framed).names.tolist() == ["p", "q", "r"]


def test_correlations_among_the_selected():
    X = np.column_stack([_factors(d=5), np.ones(60)])
    selector = MaxVariance(6).fit(X)
    found = Findings(selector, X).correlations
    best_first = np.argsort(selector.ranking_)[:5]
    assert found[:5, :5] == pytest.approx(np.corrcoef(X[:, best_first].T))
    assert found[5].tolist() == [0, 0, 0, 0, 0, 1]


def test_no_set_of_columns_exceeds_the_principal_components():
    X = _factors()
    selector = ColumnSubset(12).fit(X)
    found = Findings(selector, X)
    Xc = X - X.mean(0)
    values = np.linalg.svd(Xc, compute_uv=False) ** 2
    assert found.bound == pytest.approx(np.cumsum(values) / values.sum())
    assert (found.explained <= found.bound + 1e-9).all()
    first = Xc[:, np.argmin(selector.ranking_)]
    alone = np.sum((Xc.T @ first) ** 2) / (first @ first) / values.sum()
    assert found.explained[0] == pytest.approx(alone)
    assert found.explained[-1] == pytest.approx(1.0)


def test_the_bound_where_the_rank_or_the_price_ends_it(monkeypatch):
    X = _factors(n=5)
    assert Findings(MaxVariance(8).fit(X), X).bound[-1] == 1.0
    constant = np.ones((4, 3))
    found = Findings(MaxVariance(2).fit(constant), constant)
    assert found.explained.tolist() == found.bound.tolist() == [1.0, 1.0]
    monkeypatch.setattr(module, "_SHORT_SIDE", 3)
    monkeypatch.setattr(module, "_CHEAP_COMPONENTS", 2)
    X = _factors()
    bound = Findings(MaxVariance(4).fit(X), X).bound
    assert np.isnan(bound).tolist() == [False, False, True, True]


@pytest.mark.parametrize(
    ("most", "first", "last"), [(6, 3, 8), (30, 1, 20), (99, 1, 20), (1, 7, 7)]
)
def test_ranks_around_the_cut(most, first, last):
    shown = range(1, 21)[around_the_cut(6, 20, most)]
    assert (shown[0], shown[-1]) == (first, last)
    assert len(shown) <= most


def test_an_image_must_hold_every_feature():
    assert check_image_shape((3, 4), 12) == (3, 4)
    with pytest.raises(ValueError, match=r"rows \* columns = 12.*got \(3, 5\)"):
        check_image_shape((3, 5), 12)


@pytest.mark.parametrize("method", [BSUFS, MaxVariance])
def test_the_scatter_is_built_at_most_once_and_never_where_it_exists(method, monkeypatch):
    calls = []

    def counted(*arguments):
        calls.append(arguments)
        return make_scatter(*arguments)

    monkeypatch.setattr("bsufs.selectors._data.make_scatter", counted)
    X = _factors()
    selector = method(4).fit(X)
    for show, most in ((explain, 0), (make_report, 1)):
        calls.clear()
        show(selector, X, n_subsamples=0)
        assert len(calls) == most
    data = FitData(X)
    selector = method(4).fit(data)
    assert data.scatter is not None
    calls.clear()
    pd.testing.assert_frame_equal(
        explain(selector, data, n_subsamples=0), explain(selector, X, n_subsamples=0)
    )
    make_report(selector, data, n_subsamples=0)
    plot_explained_variance(selector, data)
    assert not calls
    with pytest.raises(ValueError, match="12 features that the selector was fitted to, got 3"):
        explain(selector, FitData(X[:, :3]))


def test_a_report_refits_once_for_each_part_and_asks_for_one_curve(monkeypatch):
    calls = {"fit": 0, "__call__": 0}

    def count(kind, name):
        counted = getattr(kind, name)

        def wrapped(*arguments):
            calls[name] += 1
            return counted(*arguments)

        monkeypatch.setattr(kind, name, wrapped)

    X = _factors()
    selector = MaxVariance(4).fit(X)
    count(MaxVariance, "fit")
    count(type(FitData(X).explained_curve), "__call__")
    make_report(selector, X, n_subsamples=3)
    assert calls == {"fit": 3, "__call__": 1}


def test_shares_of_sparse_columns_are_exact_far_from_zero():
    X = _factors() + 1e9
    expected = X.var(axis=0) / X.var(axis=0).sum()
    found = Findings(MaxVariance(4).fit(X), sparse.csr_array(X))
    assert found.variance_share == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("shape", [(60, 12), (15, 40)])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_what_is_lost_without_a_feature(shape, kind):
    X = _factors(*shape)
    X[:, 5] = 2 * X[:, 4]
    found = Findings(BSUFS(5, must_keep=[4, 5]).fit(X), kind(X))
    whole = reconstruction(X, found.chosen)
    lost = [whole - reconstruction(X, np.delete(found.chosen, i)) for i in range(5)]
    assert found.unique_shares == pytest.approx(lost, abs=1e-9)
    # Of two that say the same, either can go.
    assert found.unique_shares[:2] == pytest.approx([0, 0], abs=1e-9)


def test_smaller_and_larger_selections_come_from_the_same_fit():
    X = _factors(d=40)
    found = Findings(MaxVariance(6).fit(X), X)
    assert found.foremost.tolist() == found.best_first[:12].tolist()
    for k in (1, 4, 6, 12):
        assert found.redundancy[k - 1] == pytest.approx(redundancy(X[:, found.foremost[:k]]))
        assert found.curve[k - 1] == pytest.approx(reconstruction(X, found.foremost[:k]))
    assert {1, 6, 12} <= set(found.agreement)
    barred = Findings(MaxVariance(6).fit(X[:, :7]), X[:, :7])
    assert barred.foremost.size == 7


def _clustered(n=90, d=20):
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [45, 30, 15])
    X = rng.normal(size=(n, d))
    X[:, :6] += 9 * rng.normal(size=(3, 6))[labels]
    return X, labels


def test_clusters_are_found_by_all_columns_and_again_by_those_that_show_them():
    X, labels = _clustered()
    found = Findings(MaxVariance(4).fit(X), X)
    assert found.clusters.sizes.tolist() == [45, 30, 15]
    assert adjusted_rand_score(labels, found.clusters.labels) == 1.0
    assert found.agreement[4] == pytest.approx(1.0)
    assert found.clusters.agreement(np.ones((90, 1))) == 0.0
    # In any unit.
    assert found.clusters.agreement(1e305 * X[:, :3]) == found.clusters.agreement(X[:, :3])
    noise = np.random.default_rng(1).normal(size=(90, 2))
    assert abs(found.clusters.agreement(noise)) < 0.2
    for few in (X[:9], np.ones((30, 20))):
        found = Findings(MaxVariance(4).fit(few), few)
        assert found.clusters is None
        assert found.agreement == {}
        assert found.chance is None


def test_random_columns_are_judged_on_rows_that_a_refit_did_not_see():
    X, _ = _clustered()
    whole = Findings(MaxVariance(4).fit(X), X, n_subsamples=5)
    found = whole.chance
    for share, (seen, support) in zip(found.explained, whole._refits[0], strict=True):
        unseen = np.delete(X, seen, axis=0)
        assert share == pytest.approx(reconstruction(unseen, support))
    assert found.agreement == pytest.approx(np.ones(5))
    # Some draws find the clusters too, and the variance decides.
    assert found.n_worse(by_clusters=True) == found.n_worse(by_clusters=False) == 5
    turned = X[:, ::-1]
    again = Findings(MaxVariance(4).fit(turned), turned, n_subsamples=5).chance
    assert again.explained_by_chance == pytest.approx(found.explained_by_chance)
    assert again.agreement_by_chance == pytest.approx(found.agreement_by_chance)
    for nothing_to_judge in (MaxVariance(20), 0), (MaxVariance(20), 5), (MaxVariance(4), 0):
        selector, n_subsamples = nothing_to_judge
        assert Findings(selector.fit(X), X, n_subsamples=n_subsamples).chance is None


def test_each_refit_is_told(monkeypatch):
    X = np.random.default_rng(0).standard_normal((20, 4))
    told = []
    make_report(MaxVariance(2).fit(X), X, n_subsamples=3, progress=told.append)
    assert told == ["refit 1 of 3", "refit 2 of 3", "refit 3 of 3"]


def test_refits_choose_among_the_best(monkeypatch):
    X = _factors(d=30)
    selector = BSUFS(4, must_keep=[29], never_keep=[3]).fit(X)
    full = Findings(selector, X, n_subsamples=3).stability.frequency
    monkeypatch.setattr(module, "MOST_CANDIDATES", 12)
    found = Findings(selector, X, n_subsamples=3)
    assert found.candidates.tolist() == np.flatnonzero(selector.ranking_ <= 12).tolist()
    frequency = found.stability.frequency
    assert frequency[29] == full[29] == 1.0
    assert frequency.sum() == pytest.approx(4)
    assert not frequency[selector.ranking_ > 12].any()
    # A large selection has twice as many to choose among.
    assert Findings(BSUFS(9).fit(X), X, n_subsamples=1).candidates.size == 18
    # What a consensus must keep is a matter of its estimator, which is not to be changed.
    consensus = ConsensusSelector(BSUFS(4, must_keep=[29]), n_pairs=1).fit(X)
    assert Findings(consensus, X).candidates.size == 30


def test_columns_of_very_different_spread_are_pointed_out():
    X = _factors()
    X[:, 0] *= 1e6
    hints = Findings(MaxVariance(3).fit(X), X, notes=["Look at the depth."]).hints
    assert hints[0] == "Look at the depth."
    assert "standardize them first" in hints[1]
    assert Findings(MaxVariance(3).fit(_factors()), _factors()).hints == []


def _with_category():
    """Return six columns, of which 1, 3 and 4 are a category of three levels."""
    rng = np.random.default_rng(3)
    level = rng.integers(0, 3, size=60)
    X = rng.normal(size=(60, 6))
    X[:, 0] += 3.0 * level
    X[:, [1, 3, 4]] = 5.0 * np.eye(3)[level]
    names = ["a", "t=x", "b", "t=y", "t=z", "c"]
    selector = ClusterAlignment(2, groups={"t": [1, 3, 4]}, must_keep=[3]).fit(X)
    return Findings(selector, X, names, n_subsamples=4), level


def test_a_category_is_one_feature():
    found, level = _with_category()
    shown = FeatureFindings(found)
    assert sorted(shown.names) == ["a", "b", "c", "t"]
    assert (shown.n_features, shown.n_selected) == (4, 2)
    assert shown.names[0] == "t"
    assert shown.columns(0).tolist() == [1, 3, 4]
    assert shown.variance_share[0] == pytest.approx(found.variance_share[[1, 3, 4]].sum())
    assert shown.variance_share.sum() == pytest.approx(1.0)
    values, levels = shown.values_of(0)
    assert levels == ["x", "y", "z"]
    assert values.tolist() == level.tolist()
    # What is lost without it, by brute force.
    others = [column for column in found.chosen if column not in (1, 3, 4)]
    lost = reconstruction(found.X, found.chosen) - reconstruction(found.X, others)
    assert shown.unique_shares[0] == pytest.approx(lost)
    assert shown.curve[shown.n_selected - 1] == pytest.approx(reconstruction(found.X, found.chosen))
    # Correlations with a category are the strongest with one of its columns.
    among = np.corrcoef(found.X.T)
    strongest = max(among[others[0], [1, 3, 4]], key=abs)
    assert shown.correlations[0, 1] == pytest.approx(strongest)
    assert shown.redundancy[:2] == pytest.approx([0.0, abs(strongest)])
    # No column of a category is close to another one of it.
    assert not np.isin(found.closest[0][[1, 3, 4]], [1, 3, 4]).any()
    assert found.by_chance == 0.5


def test_groups_that_are_no_categories_show_their_columns():
    X = np.random.default_rng(0).normal(size=(30, 5))
    selector = ClusterAlignment(2, groups={"t": [1, 3]}).fit(X)
    names = ["a", "t=x", "b", "other", "c"]
    shown = FeatureFindings(Findings(selector, X, names))
    assert sorted(shown.names) == sorted(names)
    assert shown.n_selected == selector.support_.sum()
