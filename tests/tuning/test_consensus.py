"""The consensus against means by hand, and its error control against its bound."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import rankdata

from bsufs.metrics.label_free import wilson_interval
from bsufs.scatter import make_scatter
from bsufs.selectors import BSUFS, ClusterAlignment, ColumnSubset, MaxVariance, check_selector
from bsufs.stiefel import polar_factor
from bsufs.tuning import ConsensusSelector, LabelFreeSearch

GRID = {"p": [0.0, 1.0], "beta_row": [3.0, 10.0]}


def factor_data(n=40, d=15, seed=0):
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n, 3)) @ rng.standard_normal((3, d))
    return (factors + 0.7 * rng.standard_normal((n, d))) * np.linspace(2.0, 0.5, d)


def scaled(scores):
    return (scores - scores.min()) / np.ptp(scores)


@pytest.mark.parametrize(
    "estimator",
    [
        ConsensusSelector(param_grid={"p": [0.5]}),
        ConsensusSelector(MaxVariance(), n_pairs=2, aggregate="rank"),
    ],
)
def test_the_consensus_keeps_the_promises_of_a_selector(estimator):
    check_selector(estimator)


@pytest.mark.parametrize("shape", [(40, 15), (12, 30)])
@pytest.mark.parametrize("aggregate", ["score", "rank"])
def test_scores_are_means_over_separate_fits(shape, aggregate):
    X = factor_data(*shape)
    found = ConsensusSelector(
        n_features_to_select=5, param_grid=GRID, n_rotations=2, aggregate=aggregate, random_state=4
    ).fit(X)
    seeds = [int(np.random.default_rng([4, rotation]).integers(2**31)) for rotation in (1, 2)]
    starts = [{}, *({"init": "rotated-pca", "random_state": seed} for seed in seeds)]
    runs = [
        BSUFS(5, p=p, beta_row=beta, **start).fit(X)
        for beta in GRID["beta_row"]
        for p in GRID["p"]
        for start in starts
    ]
    each = [run.scores_ if aggregate == "score" else rankdata(run.scores_) for run in runs]
    assert found.scores_ == pytest.approx(np.mean([scaled(scores) for scores in each], axis=0))
    assert found.trial_rankings_.shape == (12, shape[1])
    chosen = np.mean([run.support_ for run in runs], axis=0)
    assert found.selection_frequencies_ == pytest.approx(chosen)
    lower, upper = wilson_interval(chosen, 12)
    assert found.selection_frequency_intervals_ == pytest.approx(np.column_stack([lower, upper]))


def test_a_single_run_is_the_selector_itself():
    X = factor_data()
    for inside in (BSUFS(), ColumnSubset(), BSUFS(never_keep=[0, 3], must_keep=[9])):
        found = ConsensusSelector(inside, param_grid={}, n_rotations=0).fit(X)
        assert np.array_equal(found.support_, inside.fit(X).support_)
        assert set(found.selection_frequencies_) == {0.0, 1.0}


@pytest.mark.parametrize(
    ("inside", "asked", "count"),
    [(None, 4, 4), (MaxVariance(3), None, 3), (MaxVariance(0.2), None, 3), (BSUFS(3), 5, 5)],
)
def test_the_number_of_features_is_that_of_the_estimator_unless_given(inside, asked, count):
    found = ConsensusSelector(inside, n_features_to_select=asked, param_grid={}).fit(factor_data())
    assert found.support_.sum() == count


def test_other_methods_run_once_without_halves_or_grid():
    inside = ClusterAlignment(4)
    X = factor_data()
    found = ConsensusSelector(inside).fit(X)
    assert len(found.trial_rankings_) == 1
    assert np.array_equal(found.ranking_, inside.fit(X).ranking_)
    assert set(found.selection_frequencies_) == {0.0, 1.0}


def test_the_paths_of_bsufs_are_the_default():
    found = ConsensusSelector(n_features_to_select=4).fit(factor_data())
    assert len(found.trial_rankings_) == 3 * 3 * 2


def test_halves_come_in_complementary_pairs():
    X = factor_data(21, 8)
    seen = []

    class Watching(MaxVariance):
        def _score(self, data):
            seen.append({row.tobytes() for row in np.sort(data.X, axis=1)})
            return super()._score(data)

    found = ConsensusSelector(Watching(), n_features_to_select=3, n_pairs=2).fit(X)
    assert [len(rows) for rows in seen] == [10] * 4
    assert not seen[0] & seen[1]
    assert not seen[2] & seen[3]
    assert seen[0] not in seen[2:]
    assert len(found.trial_rankings_) == 4
    assert found.selection_frequencies_ == pytest.approx((found.trial_rankings_ <= 3).mean(axis=0))
    assert found.selection_frequencies_.sum() == pytest.approx(3.0)


def test_sparse_data_give_the_same_consensus():
    X = factor_data(30, 10) * (np.random.default_rng(1).random((30, 10)) < 0.5)
    for n_pairs in (0, 1):
        dense, thin = (
            ConsensusSelector(n_features_to_select=4, param_grid=GRID, n_pairs=n_pairs).fit(data)
            for data in (X, sparse.csr_array(X))
        )
        assert dense.scores_ == pytest.approx(thin.scores_, abs=1e-6)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        ConsensusSelector(ColumnSubset()).fit(sparse.csr_array(X))


@pytest.mark.parametrize("n_pairs", [0, 2])
def test_the_same_result_for_any_number_of_jobs(n_pairs):
    X = factor_data()
    one, three = (
        ConsensusSelector(param_grid=GRID, n_pairs=n_pairs, n_jobs=n_jobs).fit(X)
        for n_jobs in (None, 3)
    )
    assert np.array_equal(one.scores_, three.scores_)
    assert np.array_equal(one.trial_rankings_, three.trial_rankings_)


def test_names_must_keep_and_never_keep():
    X = pd.DataFrame(factor_data(), columns=[f"c{i}" for i in range(15)])
    inside = BSUFS(must_keep=["c14"], never_keep=["c0", "c1"])
    found = ConsensusSelector(inside, n_features_to_select=4, n_pairs=2, param_grid=GRID).fit(X)
    assert found.selected_features_[0] == "c14"
    assert found.selection_frequencies_[14] == 1.0
    assert not found.support_[:2].any()
    assert (found.selection_frequencies_[:2] == 0.0).all()
    assert set(found.ranking_[:2]) == {14, 15}


def test_a_given_start_is_kept():
    X = factor_data()
    start = np.linalg.qr(np.random.default_rng(0).standard_normal((15, 2)))[0]
    found = ConsensusSelector(
        BSUFS(init=start), n_features_to_select=4, param_grid={}, n_rotations=0
    ).fit(X)
    assert np.array_equal(found.support_, BSUFS(4, init=start).fit(X).support_)
    turned = start @ polar_factor(np.random.default_rng([0, 1]).standard_normal((2, 2)))
    both = ConsensusSelector(BSUFS(4, init=start), param_grid={}).fit(X)
    runs = [BSUFS(4, init=init).fit(X).ranking_ for init in (start, turned)]
    assert np.array_equal(both.trial_rankings_, runs)


def test_a_rotated_start_of_the_estimator_changes_nothing():
    X = factor_data()
    plain, rotated = (
        ConsensusSelector(BSUFS(4, init=init), param_grid={}).fit(X)
        for init in ("pca", "rotated-pca")
    )
    assert np.array_equal(plain.scores_, rotated.scores_)


def test_auto_is_the_number_of_the_estimator():
    X = factor_data()
    for inside in (None, ClusterAlignment(), BSUFS(must_keep=[14])):
        found = ConsensusSelector(inside, n_features_to_select="auto", n_pairs=1).fit(X)
        expected = (inside or BSUFS()).fit(X).support_.sum()
        assert found.support_.sum() == expected


def test_a_search_may_be_inside():
    X = factor_data()
    inside = LabelFreeSearch(BSUFS(), n_features_to_select=[3, 4], param_grid={"p": [0.0, 1.0]})
    assert (
        ConsensusSelector(inside, n_pairs=1).fit(X).support_.sum() == inside.fit(X).support_.sum()
    )
    found = ConsensusSelector(LabelFreeSearch(BSUFS(2), param_grid=GRID)).fit(X)
    assert np.array_equal(found.support_, found.estimator.fit(X).support_)
    assert found.support_.sum() == 2


def test_what_runs_share_is_computed_once(monkeypatch):
    calls = []

    def counted(*arguments):
        calls.append(arguments[0].shape)
        return make_scatter(*arguments)

    monkeypatch.setattr("bsufs.selectors._data.make_scatter", counted)
    ConsensusSelector(n_features_to_select=4, param_grid=GRID).fit(factor_data())
    assert calls == [(40, 15)]
    calls.clear()
    ConsensusSelector(n_features_to_select=4, param_grid=GRID, n_pairs=2).fit(factor_data())
    assert calls == [(20, 15)] * 4


# --- error control --------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [0.6, 0.75, 1.0])
@pytest.mark.parametrize("most", [0.5, 1.0, 4.0])
def test_each_draw_proposes_as_many_as_the_bound_allows(threshold, most):
    X = factor_data(30, 40)
    X[:, 7] = 1.0  # A column that does not vary is no candidate.
    found = ConsensusSelector(
        MaxVariance(), n_pairs=2, max_false_selections=most, threshold=threshold
    ).fit(X)
    q, slack = found.n_per_draw_, (2 * threshold - 1) * 39
    assert q**2 / slack == pytest.approx(found.false_selection_bound_)
    assert found.false_selection_bound_ <= most + 1e-9 < (q + 1) ** 2 / slack
    share = (found.trial_rankings_ <= q).mean(axis=0)
    assert np.array_equal(found.stable_support_, share >= threshold)


def test_rounding_does_not_cost_a_proposal():
    # Of 20 features two may be proposed: 2**2 / ((2 * 0.6 - 1) * 20) is one, but not in duplicates.
    found = ConsensusSelector(
        MaxVariance(), n_pairs=2, max_false_selections=1.0, threshold=0.6
    ).fit(factor_data(30, 20))
    assert found.n_per_draw_ == 2
    assert found.false_selection_bound_ == pytest.approx(1.0)


def test_noise_stays_below_the_bound():
    """Of exchangeable noise, no more than the bound is found stable on average."""
    counts, bounds = [], []
    for seed in range(20):
        X = np.random.default_rng(seed).standard_normal((40, 50))
        found = ConsensusSelector(
            MaxVariance(), n_pairs=5, max_false_selections=2.0, threshold=0.6, random_state=seed
        ).fit(X)
        counts.append(np.count_nonzero(found.stable_support_))
        bounds.append(found.false_selection_bound_)
    assert np.mean(counts) <= np.mean(bounds)


def test_signal_is_stable():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 50))
    X[:, [3, 30]] *= 4.0
    found = ConsensusSelector(MaxVariance(), n_pairs=10, max_false_selections=1.0).fit(X)
    assert found.stable_support_[[3, 30]].all()
    assert found.stable_support_.sum() <= 3


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_false_selections": 1.0}, "max_false_selections needs halves .* n_pairs is 0"),
        (
            {"max_false_selections": 1e-3, "n_pairs": 1},
            "max_false_selections must be at least 0.133 for 15 features and threshold=0.75",
        ),
        ({"threshold": 0.5}, "'threshold' parameter of ConsensusSelector"),
        ({"param_grid": {"nope": [1]}}, "param_grid must hold parameters of BSUFS, got 'nope'"),
        ({"n_features_to_select": 99}, "n_features_to_select must be at most"),
        ({"estimator": "BSUFS"}, "'estimator' parameter of ConsensusSelector"),
    ],
)
def test_errors_say_what_to_do(parameters, message):
    with pytest.raises(ValueError, match=message):
        ConsensusSelector(**parameters).fit(factor_data())


def test_data_without_variation():
    with pytest.raises(ValueError, match="X must have at least one column that varies"):
        ConsensusSelector().fit(np.ones((6, 4)))
    with pytest.raises(ValueError, match="n_pairs splits the rows into halves of at least two"):
        ConsensusSelector(n_pairs=1).fit(factor_data(3, 4))
    found = ConsensusSelector(MaxVariance()).fit(np.ones((6, 4)))
    assert found.scores_.tolist() == [0.0] * 4
