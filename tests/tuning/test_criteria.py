"""Criteria against closed forms, least squares by brute force and scikit-learn."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError
from itertools import combinations, product

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_blobs
from sklearn.linear_model import Ridge
from sklearn.metrics import adjusted_rand_score

from bsufs.metrics import (
    batched_kmeans,
    nogueira_stability,
    normalized_mutual_information,
    redundancy,
)
from bsufs.selectors import BSUFS, MaxVariance
from bsufs.selectors._columns import canonical_order
from bsufs.selectors._data import FitData
from bsufs.tuning import criteria
from bsufs.tuning.criteria import (
    CRITERIA,
    ClusteringAgreement,
    Criterion,
    EvaluationData,
    HeldOutReconstruction,
    NeighborOverlap,
    PermutationGap,
    RankMean,
    Redundancy,
    RestartAgreement,
    SubsampleStability,
    as_criterion,
    with_parts,
)


def factor_data(n, d, seed=0):
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n, 3)) @ rng.standard_normal((3, d))
    return factors + 0.5 * rng.standard_normal((n, d)) + 10.0


# --- held-out reconstruction ----------------------------------------------------------------------


def held_out_by_brute_force(X, features, n_folds, ridges, seed):
    """Return the best share over the ridges, with predictions of scikit-learn's Ridge."""
    n, k = len(X), len(features)
    folds = np.array_split(np.random.default_rng(seed).permutation(n), n_folds)
    error, total = np.zeros(len(ridges)), 0.0
    for held_out in folds:
        train = np.setdiff1d(np.arange(n), held_out)
        A = X[train][:, features] - X[train][:, features].mean(axis=0)
        scale = np.sum(A**2) / min(k, train.size)
        total += np.sum((X[held_out] - X[train].mean(axis=0)) ** 2)
        for i, ridge in enumerate(ridges):
            model = Ridge(alpha=ridge * scale, solver="svd").fit(X[train][:, features], X[train])
            error[i] += np.sum((X[held_out] - model.predict(X[held_out][:, features])) ** 2)
    return 1 - error.min() / total


@pytest.mark.parametrize(
    ("n", "d", "k"),
    [(40, 8, 3), (40, 8, 8), (12, 30, 4), (12, 30, 20), (12, 30, 30), (10, 9, 9), (3, 2, 1)],
)
def test_held_out_reconstruction_is_that_of_ridge(n, d, k):
    X = factor_data(n, d)
    features = np.random.default_rng(1).permutation(d)[:k]
    ridges = (1e-3, 0.1, 2.0)
    criterion = HeldOutReconstruction(n_folds=3, ridges=ridges)
    expected = held_out_by_brute_force(X, features, 3, ridges, seed=7)
    assert criterion.score(X, features, random_state=7) == pytest.approx(expected, abs=1e-9)


def test_more_folds_than_samples_leave_one_out():
    X = factor_data(6, 4)
    assert HeldOutReconstruction(50).score(X, [0]) == HeldOutReconstruction(6).score(X, [0])


def test_held_out_reconstruction_does_not_depend_on_units():
    X = factor_data(20, 6)
    scores = [HeldOutReconstruction().score(X * unit, [1, 2]) for unit in (1.0, 1e200, 1e-200)]
    assert scores[1:] == pytest.approx(scores[:1] * 2)


def test_noise_reconstructs_nothing_else():
    """Of independent columns of one variance, k explain k of d, whatever the ridge."""
    X = np.random.default_rng(0).standard_normal((4000, 10))
    assert HeldOutReconstruction().score(X, [1, 5, 7]) == pytest.approx(0.3, abs=0.01)
    assert PermutationGap().score(X, [1, 5, 7]) == pytest.approx(0.0, abs=0.005)


@pytest.mark.parametrize("shape", [(30, 6), (10, 25)])
def test_permutation_gap_is_the_difference(shape):
    X = factor_data(*shape)
    plain = HeldOutReconstruction(3)
    # Columns are shuffled in an order of their own.
    order = canonical_order(X)
    Xc = X - X.mean(axis=0)
    shuffled = [np.empty_like(X), np.empty_like(X)]
    for b, copy in enumerate(shuffled, 1):
        copy[:, order] = np.random.default_rng([5, b]).permuted(Xc[:, order], axis=0)
    expected = plain.score(X, [0, 4], random_state=5) - np.mean(
        [plain.score(copy, [0, 4], random_state=5) for copy in shuffled]
    )
    gap = PermutationGap(3, n_permutations=2).score(X, [0, 4], random_state=5)
    assert gap == pytest.approx(expected)
    assert gap > 0.05


def test_constant_data_leave_nothing_to_reconstruct():
    assert HeldOutReconstruction().score(np.ones((6, 3)), [0]) == 1.0
    X = factor_data(20, 4)
    X[:, 2] = 5.0
    # A constant column explains nothing, and no columns explain nothing.
    assert HeldOutReconstruction().score(X, [2]) == pytest.approx(0.0)
    errors = EvaluationData(X).held_out_share(np.zeros(0, dtype=int), 4, (1.0,))
    assert errors == pytest.approx(0.0)


# --- the other criteria ---------------------------------------------------------------------------


def test_clustering_criteria_are_agreements_of_restarts():
    X = make_blobs(60, 6, centers=4, cluster_std=3.0, random_state=0)[0]
    on_two, on_all = (
        batched_kmeans(Z, 4, n_runs=5, random_state=3).labels for Z in (X[:, [0, 2]], X)
    )
    for measure, pair in (("nmi", normalized_mutual_information), ("ari", adjusted_rand_score)):
        with_all = ClusteringAgreement(4, 5, measure).score(X, [0, 2], random_state=3)
        across = [pair(a, b) for a, b in product(on_two, on_all)]
        assert with_all == pytest.approx(np.mean(across))
        among = RestartAgreement(4, 5, measure).score(X, [2, 0], random_state=3)
        within = [pair(a, b) for a, b in combinations(on_two, 2)]
        assert among == pytest.approx(np.mean(within))


def test_all_features_cluster_well_separated_blobs_alike():
    X = make_blobs(60, 3, centers=[[0, 0, 0], [50, 50, 50]], random_state=0)[0]
    assert ClusteringAgreement().score(X, [0, 1, 2]) == pytest.approx(1.0)


def test_number_of_clusters_follows_the_components():
    centers = 20.0 * np.eye(4, 12)
    X = make_blobs(200, centers=centers, random_state=0)[0]
    assert EvaluationData(X).n_clusters == 4
    assert EvaluationData(np.ones((5, 3))).n_clusters == 2
    assert EvaluationData(np.eye(2)).n_clusters == 2


def test_restarts_on_selected_features_are_shared(monkeypatch):
    calls = []

    def counted(X, *arguments, **settings):
        calls.append(X.shape[1])
        return batched_kmeans(X, *arguments, **settings)

    monkeypatch.setattr(criteria, "batched_kmeans", counted)
    data = EvaluationData(factor_data(30, 5))
    for features in (np.array([0, 1]), np.array([0, 1, 2])):
        for criterion in (ClusteringAgreement(), RestartAgreement()):
            criterion.judge(data, features)
    assert calls == [2, 5, 3]


def test_clusterings_of_other_settings_are_not_shared():
    data = EvaluationData(factor_data(30, 5))
    features = np.array([0, 1])
    for which in (features, None):
        for n_clusters, n_runs in ((2, 3), (2, 5), (4, 5)):
            labels = data.clusterings(which, n_clusters, n_runs)
            assert labels.shape == (n_runs, 30)
            assert labels.max() == n_clusters - 1
    other = data.clusterings(np.array([0, 2]), 4, 5)
    assert not np.array_equal(other, data.clusterings(features, 4, 5))


def test_a_subsample_has_distinct_rows_and_never_less_than_two():
    data = EvaluationData(np.arange(30.0)[:, None])
    for share, size in ((0.01, 2), (0.5, 15), (0.75, 22), (0.98, 29)):
        rows = data.subsample(1, share).X
        assert len(rows) == size
        assert (np.diff(rows, axis=0) > 0).all()
    assert not np.array_equal(data.subsample(1, 0.5).X, data.subsample(2, 0.5).X)


def test_redundancy_criterion_looks_at_the_selected_columns():
    X = factor_data(30, 6)
    assert Redundancy().score(X, [1, 3, 5]) == pytest.approx(redundancy(X[:, [1, 3, 5]]))
    assert not Redundancy.larger_is_better


def test_stability_repeats_the_selection():
    X = factor_data(30, 8)
    criterion = SubsampleStability(n_subsamples=4, share=0.5)
    selector = BSUFS("auto", p=0.0)
    found = criterion.score(X, [0, 1, 2], selector=selector, random_state=2)
    rows = [np.random.default_rng([2, i]).permutation(30)[:15] for i in range(4)]
    selections = [BSUFS(3, p=0.0).fit(X[np.sort(part)]).support_ for part in rows]
    assert found == pytest.approx(nogueira_stability(selections).value)
    assert criterion.score(X, np.ones(8, dtype=bool), selector=selector) == 1.0
    with pytest.raises(ValueError, match="selector must be given for the criterion 'stability'"):
        criterion.score(X, [0])


# --- combinations and names -----------------------------------------------------------------------


def test_rank_mean_by_hand():
    criteria = (HeldOutReconstruction(), Redundancy(), SubsampleStability())
    values = {
        "reconstruction": [0.1, 0.9, 0.5, 0.5],
        "redundancy": [0.1, 0.2, 0.3, 0.4],
        "stability": [np.nan, 0.2, 0.3, 0.4],
    }
    ranks = [[0, 1, 0.5, 0.5], [1, 2 / 3, 1 / 3, 0], [0, 1 / 3, 2 / 3, 1]]
    assert RankMean(criteria).combine(values) == pytest.approx(np.mean(ranks, axis=0))
    one = {name: column[:1] for name, column in values.items()}
    assert RankMean(criteria).combine(one) == pytest.approx([0.5])


def test_every_criterion_can_be_had_by_name():
    X = load_iris().data
    for name, criterion in CRITERIA.items():
        assert as_criterion(name, "criterion") is criterion is as_criterion(criterion, "x")
        assert criterion.name == name
        assert pickle.loads(pickle.dumps(criterion)) == criterion
        if isinstance(criterion, Criterion):
            first, second = (
                criterion.score(X, mask, selector=MaxVariance())
                for mask in ([2, 3], np.array([False, False, True, True]))
            )
            assert np.isfinite(first)
            assert first == second
    with pytest.raises(ValueError, match=r"report must be one of 'reconstruction', .* got 'accura"):
        as_criterion("accuracy", "report")


@pytest.mark.parametrize("shape", [(30, 6), (10, 25)])
def test_the_order_of_the_columns_changes_no_digit(shape):
    X = factor_data(*shape)
    order = np.random.default_rng(0).permutation(shape[1])
    for criterion in CRITERIA.values():
        if isinstance(criterion, Criterion):
            first, second = (
                criterion.score(data, features, selector=MaxVariance())
                for data, features in ((X, order[:4]), (X[:, order], [0, 1, 2, 3]))
            )
            assert first == second


def test_what_a_fit_has_found_is_not_found_again(monkeypatch):
    data = FitData(factor_data(30, 5))
    n_clusters = EvaluationData(data.X).n_clusters
    BSUFS(3).fit(data)
    monkeypatch.setattr("bsufs.selectors._data.make_scatter", None)
    monkeypatch.setattr("bsufs.selectors._data.canonical_order", None)
    assert EvaluationData(data).n_clusters == n_clusters


def test_criteria_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        HeldOutReconstruction().n_folds = 3


def test_parts_are_computed_once():
    found = with_parts([Redundancy(), RankMean((HeldOutReconstruction(), Redundancy()))])
    assert found == (Redundancy(), HeldOutReconstruction())
    with pytest.raises(ValueError, match="Two criteria with the name 'reconstruction'"):
        with_parts([HeldOutReconstruction(3), RankMean()])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: HeldOutReconstruction(1),
            r"n_folds must be an int in the range \[2, inf\), got 1",
        ),
        (lambda: HeldOutReconstruction(ridges=(0.0,)), r"ridges must be .*\(0.*, got \(0.0,\)"),
        (lambda: HeldOutReconstruction(ridges=()), r"ridges must be .*, got \(\)"),
        (lambda: PermutationGap(n_permutations=0), "n_permutations must be an int"),
        (
            lambda: ClusteringAgreement(1),
            "n_clusters must be an int .* or a str among {'auto'}, got 1",
        ),
        (lambda: RestartAgreement(n_runs=1.5), "n_runs must be an int .*, got 1.5"),
        (lambda: RestartAgreement(measure="x"), "measure must be a str among .*, got 'x'"),
        (lambda: SubsampleStability(1), "n_subsamples must be an int .*, got 1"),
        (lambda: SubsampleStability(share=1.0), "share must be a float in the range .*, got 1.0"),
        (lambda: RankMean(()), r"criteria must hold at least one criterion, .* got \[\]"),
        (lambda: RankMean((Redundancy(), Redundancy())), "each name once"),
        (lambda: Redundancy().score(np.eye(3), []), "features must hold at least one column"),
        (lambda: Redundancy().score(np.eye(3), [7]), "features must hold column numbers"),
    ],
)
def test_wrong_settings_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_neighbor_overlap_counts_shared_neighbors():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6))

    def nearest(Z, k):
        D = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)
        np.fill_diagonal(D, np.inf)
        return [set(row[:k]) for row in np.argsort(D, axis=1)]

    pairs = [zip(nearest(X[:, [1, 4]], k), nearest(X, k), strict=True) for k in (3, 7)]
    shares = [len(a & b) / k for k, both in zip((3, 7), pairs, strict=True) for a, b in both]
    found = NeighborOverlap((3, 7)).score(X, [4, 1])
    assert found == pytest.approx(np.mean(shares))
    assert NeighborOverlap().score(1e200 * X, np.arange(6)) == 1.0
    # More columns than components, more neighbors asked for than there are rows.
    wide = rng.standard_normal((12, 80))
    assert NeighborOverlap((30,)).score(wide, np.arange(70)) == 1.0
    assert 0.0 < NeighborOverlap((3,), max_samples=8).score(wide, np.arange(60)) <= 1.0


@pytest.mark.parametrize(
    "settings", [{"n_neighbors": ()}, {"n_neighbors": (0,)}, {"max_samples": 1}]
)
def test_neighbor_overlap_refuses_what_it_cannot_count(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        NeighborOverlap(**settings)
