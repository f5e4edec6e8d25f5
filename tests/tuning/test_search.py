"""The search without labels: what it chooses, what it reports, and that it repeats."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from bsufs.scatter import make_scatter
from bsufs.selectors import (
    BSUFS,
    ClusterAlignment,
    ColumnSubset,
    LaplacianScore,
    MaxVariance,
    all_selectors,
    check_selector,
)
from bsufs.tuning import ConsensusSelector, LabelFreeSearch, default_grid, search
from bsufs.tuning.criteria import (
    CRITERIA,
    Criterion,
    HeldOutReconstruction,
    RankMean,
    Redundancy,
    SubsampleStability,
)

GRID = {"p": [0.0, 0.5, 1.0], "n_components": [1, 3]}


def factor_data(n=40, d=15, seed=0):
    rng = np.random.default_rng(seed)
    scales = np.linspace(2.0, 0.5, d)
    factors = rng.standard_normal((n, 3)) @ rng.standard_normal((3, d))
    return (factors + 0.7 * rng.standard_normal((n, d))) * scales


@dataclass(frozen=True)
class FirstColumn(Criterion):
    """Likes the first column that it sees, and remembers what it was asked."""

    name = "first_column"
    asked: ClassVar[list[bytes]] = []

    def judge(self, data, features, selector=None):
        self.asked.append(features.tobytes())
        return np.nan if 0 in features else -float(features.min())


@dataclass(frozen=True)
class Indifferent(Criterion):
    """A criterion to which all sets are equal."""

    name = "indifferent"

    def judge(self, data, features, selector=None):
        return 1.0


@pytest.mark.parametrize(
    "estimator",
    [
        LabelFreeSearch(param_grid={"n_neighbors": [2, 5]}, criterion="reconstruction"),
        LabelFreeSearch(ColumnSubset()),
    ],
)
def test_the_search_keeps_the_promises_of_a_selector(estimator):
    check_selector(estimator)


@pytest.mark.parametrize("name", ["reconstruction", "redundancy", "clustering_agreement"])
def test_the_best_setting_by_brute_force(name):
    X = factor_data()
    found = LabelFreeSearch(BSUFS(5), param_grid=GRID, criterion=name).fit(X)
    settings = list(ParameterGrid(GRID))
    supports = [BSUFS(5, **setting).fit(X).support_ for setting in settings]
    criterion = CRITERIA[name]
    values = [criterion.score(X, support) for support in supports]
    sign = 1 if criterion.larger_is_better else -1
    assert found.criteria_[name].to_numpy() == pytest.approx(values)
    assert found.best_score_ == pytest.approx(sign * np.max(sign * np.array(values)))
    assert found.best_params_ == {**settings[found.best_index_], "n_features_to_select": 5}
    best = BSUFS(**found.best_params_).fit(X)
    for attribute in ("scores_", "ranking_", "support_", "selected_features_"):
        assert np.array_equal(getattr(found, attribute), getattr(best, attribute))
        assert np.array_equal(getattr(found, attribute), getattr(found.best_estimator_, attribute))
    assert found.criteria_["rank"][found.best_index_] == 1
    assert sorted(found.criteria_["rank"]) == list(range(1, len(settings) + 1))


def test_the_table_reports_all_criteria_and_one_decides():
    X = factor_data()
    found = LabelFreeSearch(BSUFS(5), param_grid=GRID, criterion="redundancy", report="all").fit(X)
    table = found.criteria_
    singles = [name for name, c in CRITERIA.items() if isinstance(c, Criterion)]
    assert set(table) == {"param_p", "param_n_components", "n_features", "rank", *singles}
    assert table.shape[0] == 6
    assert not table.isna().any().any()
    assert found.best_index_ == table["redundancy"].idxmin()
    ranks = LabelFreeSearch(
        BSUFS(5), param_grid=GRID, criterion="rank_mean", report=["stability"]
    ).fit(X)
    parts = CRITERIA["rank_mean"].criteria
    expected = RankMean(parts).combine({c.name: table[c.name] for c in parts})
    assert ranks.criteria_["rank_mean"].to_numpy() == pytest.approx(expected)
    assert ranks.criteria_["stability"].to_numpy() == pytest.approx(table["stability"].to_numpy())


def test_a_criterion_with_settings_of_its_own_is_the_one_reported():
    own = HeldOutReconstruction(n_folds=2)
    X = factor_data()
    found = LabelFreeSearch(BSUFS(4), param_grid={"p": [0.0]}, criterion=own, report="all").fit(X)
    assert found.best_score_ == pytest.approx(own.score(X, found.support_))


def test_each_distinct_set_is_judged_once():
    FirstColumn.asked.clear()
    X = factor_data()
    # The last two settings are the same but in name.
    grid = [{"p": [0.0]}, {"p": [1.0], "max_iter": [500, 501]}]
    found = LabelFreeSearch(BSUFS(4), param_grid=grid, criterion=FirstColumn()).fit(X)
    supports = {BSUFS(4, p=p).fit(X).support_.tobytes() for p in (0.0, 1.0)}
    assert len(FirstColumn.asked) == len(set(FirstColumn.asked)) == len(supports)
    assert found.criteria_["param_max_iter"].isna().tolist() == [True, False, False]


def test_what_is_not_a_number_is_never_chosen():
    # The column that the criterion dislikes is the smallest one.
    X = factor_data(d=4)[:, ::-1]
    sizes = [4, 1, 2]
    found = LabelFreeSearch(
        MaxVariance(), n_features_to_select=sizes, criterion=FirstColumn(), tolerance=1.0
    ).fit(X)
    values = found.criteria_["first_column"]
    assert np.isnan(values[0])
    assert not np.isnan(found.best_score_)
    everything = LabelFreeSearch(MaxVariance(4), criterion=FirstColumn()).fit(X)
    assert everything.support_.all()


@pytest.mark.parametrize("report", [(), "all"])
def test_the_same_result_for_any_number_of_jobs(report):
    X = factor_data()
    one, three = (
        LabelFreeSearch(BSUFS(), param_grid=GRID, report=report, n_jobs=n_jobs, random_state=3).fit(
            X
        )
        for n_jobs in (None, 3)
    )
    pd.testing.assert_frame_equal(one.criteria_, three.criteria_, check_exact=True)
    assert np.array_equal(one.scores_, three.scores_)


def test_the_most_components_are_found_first():
    seen = []

    class Watching(BSUFS):
        def _fit(self, data):
            seen.append(self.n_components)
            return super()._fit(data)

    X = factor_data()
    LabelFreeSearch(Watching(4), param_grid={"n_components": [1, 3, 2]}, n_jobs=2).fit(X)
    ConsensusSelector(Watching(4), param_grid={"n_components": [1, 3, 2]}, n_rotations=0).fit(X)
    assert seen[0] == 3
    assert seen[-3:] == [3, 1, 2]


def test_labels_change_nothing():
    X = factor_data()
    labels = np.random.default_rng(0).integers(0, 2, len(X))
    tables = [LabelFreeSearch(BSUFS(), param_grid=GRID).fit(X, y).criteria_ for y in (None, labels)]
    pd.testing.assert_frame_equal(*tables, check_exact=True)


def test_the_scatter_is_built_once(monkeypatch):
    calls = []

    def counted(*arguments):
        calls.append(arguments[0].shape)
        return make_scatter(*arguments)

    monkeypatch.setattr("bsufs.selectors._data.make_scatter", counted)
    LabelFreeSearch(BSUFS(4), criterion="rank_mean").fit(factor_data())
    assert calls == [(40, 15)]


def test_the_number_of_features_is_chosen_from_a_list():
    X = factor_data()
    sizes = [2, 6, 0.8, "auto"]
    exact, frugal = (
        LabelFreeSearch(
            BSUFS(3), n_features_to_select=sizes, param_grid=GRID, criterion="reconstruction",
            tolerance=tolerance,
        ).fit(X)
        for tolerance in (0.0, 0.3)
    )  # fmt: skip
    table = exact.criteria_
    assert len(table) == 4 * 6
    assert exact.best_index_ == table["reconstruction"].idxmax()
    span = np.ptp(table["reconstruction"])
    enough = table[table["reconstruction"] >= table["reconstruction"].max() - 0.3 * span]
    fewest = enough[enough["n_features"] == enough["n_features"].min()]
    assert frugal.best_index_ == fewest["reconstruction"].idxmax()
    assert frugal.support_.sum() == fewest["n_features"].iloc[0] < exact.support_.sum()
    array = LabelFreeSearch(BSUFS(), n_features_to_select=np.array([2, 3]), param_grid=GRID).fit(X)
    assert sorted(set(array.criteria_["n_features"])) == [2, 3]


def test_the_one_that_was_taken_has_the_first_rank_among_equals():
    found = LabelFreeSearch(
        MaxVariance(), n_features_to_select=[4, 2, 3], criterion=Indifferent()
    ).fit(factor_data())
    assert found.best_index_ == 1
    assert found.criteria_["rank"].tolist() == [2, 1, 3]


def test_the_estimator_decides_on_the_number_of_features_by_default():
    X = factor_data()
    assert LabelFreeSearch(BSUFS(7), param_grid=GRID).fit(X).support_.sum() == 7
    assert LabelFreeSearch(ColumnSubset(0.2)).fit(X).support_.sum() == 3


def test_names_are_known_inside_and_out():
    X = pd.DataFrame(factor_data(), columns=[f"c{i}" for i in range(15)])
    inside = BSUFS(4, must_keep=["c14"], never_keep="c0")
    criteria = (Redundancy(), SubsampleStability(n_subsamples=2))
    found = LabelFreeSearch(inside, param_grid={"p": [0, 1]}, criterion=RankMean(criteria)).fit(X)
    assert found.selected_features_[0] == "c14"
    assert "c0" not in found.selected_features_
    assert list(found.feature_names_in_) == list(X.columns)
    assert list(found.get_feature_names_out()) == list(X.columns[found.support_])
    assert found.criteria_["stability"].notna().all()
    with pytest.raises(ValueError, match=r"^must_keep names the column 'c14', but X has no column"):
        found.fit(X.to_numpy())
    assert not hasattr(found, "support_")
    found.set_params(estimator=BSUFS(4)).fit(X.to_numpy())
    assert not hasattr(found, "feature_names_in_")


def test_copies_in_memory_and_on_disk():
    X = factor_data()
    found = LabelFreeSearch(BSUFS(4), param_grid=GRID).fit(X)
    again = pickle.loads(pickle.dumps(found))
    assert np.array_equal(again.transform(X), found.transform(X))


def test_without_pandas_the_table_is_a_dict_of_arrays(monkeypatch):
    monkeypatch.setattr(search, "find_spec", lambda name: None)
    table = LabelFreeSearch(BSUFS(4), param_grid=GRID).fit(factor_data()).criteria_
    assert isinstance(table, dict)
    assert all(isinstance(column, np.ndarray) for column in table.values())
    assert table["n_features"].tolist() == [4] * 6


def test_random_selectors_get_the_seed_of_the_search():
    X = factor_data()
    random = all_selectors()["RandomSelector"](4)
    supports = [LabelFreeSearch(random, random_state=seed).fit(X).support_ for seed in (1, 1, 2)]
    assert np.array_equal(supports[0], supports[1])
    assert not np.array_equal(supports[0], supports[2])
    generator = np.random.RandomState(0)
    drawn = LabelFreeSearch(random, random_state=generator).fit(X).support_
    expected = np.random.RandomState(0).randint(2**31 - 1)
    assert np.array_equal(drawn, LabelFreeSearch(random, random_state=expected).fit(X).support_)


@pytest.mark.parametrize("name", all_selectors())
def test_default_grids_fit_small_and_wide_data(name):
    for X in (factor_data(12, 6), factor_data(6, 12)):
        found = LabelFreeSearch(all_selectors()[name](3), criterion="redundancy").fit(X)
        assert found.support_.sum() == 3


def test_default_grid_of_bsufs_holds_the_default_setting():
    X = factor_data(60, 30)
    grid = default_grid(BSUFS(), X)
    default = BSUFS().fit(X)
    assert default.n_components_ in grid["n_components"]
    assert default.p in grid["p"]
    assert default.beta_row in grid["beta_row"]
    start = np.linalg.qr(np.random.default_rng(0).standard_normal((30, 2)))[0]
    assert "n_components" not in default_grid(BSUFS(init=start), X)
    barred = BSUFS(2, never_keep=list(range(2, 30)))
    assert max(default_grid(barred, X)["n_components"]) <= 2
    assert LabelFreeSearch(barred).fit(X).support_[:2].all()


@pytest.mark.parametrize(
    "estimator",
    [
        BSUFS(4),
        ClusterAlignment(4),
        ClusterAlignment(4, n_neighbors=5),
        LaplacianScore(4, n_neighbors=10),
    ],
)
def test_among_equals_the_settings_of_the_estimator_win(estimator):
    X = factor_data()
    found = LabelFreeSearch(estimator, criterion=Indifferent()).fit(X)
    assert len(found.criteria_) > 2
    own = clone(estimator).fit(X)
    for name, value in found.best_params_.items():
        # What is left to the data has the number that was found in an attribute.
        assert value == getattr(own, f"{name}_", getattr(own, name))


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"estimator": 3}, ValueError, "'estimator' parameter of LabelFreeSearch"),
        ({"criterion": "accuracy"}, ValueError, "criterion must be one of 'reconstruction'"),
        ({"report": ["nmi"]}, ValueError, "report must be one of 'reconstruction'"),
        ({"report": "stability"}, ValueError, r"report must be 'all' .* pass \['stability'\]"),
        ({"param_grid": {"gamma": [1]}}, ValueError, "param_grid must hold parameters of Cluster"),
        ({"param_grid": []}, ValueError, "param_grid must hold at least one setting"),
        (
            {"param_grid": {"n_features_to_select": [3]}},
            ValueError,
            "param_grid must not hold n_features_to_select",
        ),
        (
            {"param_grid": [{"n_runs": [5]}, {"n_runs": [0]}]},
            ValueError,
            r"but \{'n_runs': 0\} is none. Correct it or take it out. The reason: The 'n_runs'",
        ),
        ({"n_features_to_select": []}, ValueError, "n_features_to_select must hold at least one"),
        ({"n_features_to_select": [3, 99]}, ValueError, "n_features_to_select must be at most"),
        ({"tolerance": 2.0}, ValueError, "'tolerance' parameter of LabelFreeSearch"),
    ],
)
def test_errors_say_what_to_do(parameters, error, message):
    with pytest.raises(error, match=message):
        LabelFreeSearch(**parameters).fit(factor_data())


def test_data_that_cannot_be_searched():
    with pytest.raises(TypeError, match="X must be dense"):
        LabelFreeSearch().fit(sparse.csr_array(factor_data()))
    with pytest.raises(ValueError, match="X must have at least two rows"):
        LabelFreeSearch().fit(np.ones((1, 3)))
