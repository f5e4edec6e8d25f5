"""Reasons, frequencies and correlations against closed forms."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError

from bsufs import BSUFS
from bsufs._names import shortened
from bsufs.inspection import Findings, explain
from bsufs.inspection import findings as module
from bsufs.inspection._features import FeatureFindings
from bsufs.inspection.explanation import listed, portrait, verdict
from bsufs.inspection.findings import Reason, SubsampleError
from bsufs.metrics.label_free import wilson_interval
from bsufs.selectors import (
    ClusterAlignment,
    ColumnSubset,
    MaxVariance,
    RandomSelector,
    all_selectors,
)


def _factors(n=60, d=12, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) @ rng.normal(size=(3, d)) + 0.3 * rng.normal(size=(n, d))


@pytest.mark.parametrize("name", sorted(all_selectors()))
def test_every_selector_is_explained(name):
    X = _factors()
    selector = all_selectors()[name](4).fit(X)
    table = explain(selector, X, n_subsamples=2)
    assert table["rank"].tolist() == list(range(1, 13))
    in_order = table.sort_index()
    assert (in_order["rank"] == selector.ranking_).all()
    assert (in_order["selected"] == selector.support_).all()
    assert (in_order["score"] == selector.scores_).all()
    assert in_order["variance_share"].to_numpy() == pytest.approx(X.var(0) / X.var(0).sum())
    assert table["selected"].tolist() == [True] * 4 + [False] * 8
    assert (table["reason"].str.startswith("kept: ") == table["selected"]).all()
    # Each part selects four.
    assert table["frequency"].sum() == pytest.approx(4)


def test_a_duplicate_is_explained_by_its_twin_and_a_constant_by_itself():
    X = _factors()
    X = np.column_stack([X, -3 * X[:, 2] + 7, np.full(60, 5.0)])
    selector = BSUFS(12).fit(X)
    reasons = Findings(selector, X).reasons
    assert reasons[[2, 13]].tolist() == [Reason.DUPLICATE, Reason.CONSTANT]
    table = explain(selector, X, n_subsamples=0)
    twins = table.loc[[2, 12]]
    assert sorted(twins["selected"]) == [False, True]
    # Of the two the one of larger variance stands for both.
    assert table.loc[2, "closest"] == "x12"
    assert table.loc[2, "correlation"] == pytest.approx(-1.0, abs=1e-12)
    assert table.loc[2, "reason"] == "left out: a duplicate of x12 (correlation -1.00)"
    assert table.loc[13, "reason"] == "left out: constant"
    assert pd.isna(table.loc[13, "closest"])
    assert np.isnan(table.loc[13, "correlation"])
    assert table.loc[13, "variance_share"] == 0.0


def test_forced_and_barred_features_are_said_to_be():
    X = pd.DataFrame(_factors(), columns=list("abcdefghijkl"))
    selector = BSUFS(3, must_keep=["l"], never_keep=["a"]).fit(X)
    table = explain(selector, X, n_subsamples=3).set_index("name")
    assert table.loc["l", "reason"] == "kept: always (must_keep)"
    assert table.loc["l", "frequency"] == 1.0
    assert table.loc["a", "reason"] == "left out: never to be kept (never_keep)"
    assert table.loc["a", "frequency"] == 0.0
    assert pd.isna(table.loc["a", "eliminated_at"])


def test_a_constant_is_kept_where_nothing_else_is_left():
    X = np.column_stack([np.arange(6.0), np.ones(6)])
    table = explain(MaxVariance(2).fit(X), X, n_subsamples=0)
    assert table.loc[1, "reason"] == "kept: constant, but no other column was left"
    # A selected feature is not closest to itself.
    assert table["closest"].isna().all()


def test_beside_a_constant_nothing_is_close():
    X = np.column_stack([np.ones(9), np.arange(9.0), np.arange(9.0) ** 3])
    table = explain(BSUFS(1, must_keep=[0]).fit(X), X, n_subsamples=0)
    assert table["closest"].isna().all()


def test_columns_of_the_same_variance_are_not_called_multiples():
    X = np.random.default_rng(1).normal(size=(500, 4))
    X /= X.std(axis=0)
    table = explain(MaxVariance(2).fit(X), X, n_subsamples=0)
    left_out = table.loc[~table["selected"], "reason"]
    assert left_out.str.contains("places, about the mean variance; closest is x").all()


def test_weak_correlations_are_no_reason():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 4)) * [10, 9, 1, 0.01]
    table = explain(MaxVariance(2).fit(X), X, n_subsamples=0)
    assert table.loc[2, "reason"].startswith("left out: ranked 3 for 2 places, 0.0")
    assert "times the mean variance; closest is x" in table.loc[2, "reason"]
    assert "less than 0.01 times the mean variance" in table.loc[3, "reason"]
    assert table.loc[0, "reason"] == "kept: no column left out is notably correlated with it"


def test_the_step_of_elimination_agrees_with_the_path():
    X = _factors(d=30)
    selector = BSUFS(5).fit(X)
    table = explain(selector, X, n_subsamples=0)
    n_alive = selector.path_["n_alive"]
    for step, remaining in enumerate(n_alive.tolist(), start=1):
        left = table["eliminated_at"].isna() | (table["eliminated_at"] > step)
        assert left.sum() == remaining
    survivors = table[table["eliminated_at"].isna()]
    assert len(survivors) == n_alive[-1]
    assert "remained to the end of the path" in survivors.iloc[0]["reason"]
    assert explain(MaxVariance(5).fit(X), X, n_subsamples=0)["eliminated_at"].isna().all()
    fixed = explain(BSUFS(5, lambda_row=0.5, max_iter=2000).fit(X), X, n_subsamples=0)
    assert not fixed["reason"].str.contains("path").any()


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 200), st.data())
def test_the_interval_is_wilsons(n, data):
    count = data.draw(st.integers(0, n))
    low, high = wilson_interval([count / n], n)
    z, p = 1.959963984540054, count / n
    # The ends are where the normal test of the share just rejects: (p - q)^2 = z^2 q (1 - q) / n.
    for end in (low[0], high[0]):
        assert (p - end) ** 2 == pytest.approx(z**2 * end * (1 - end) / n, abs=1e-9)
    assert 0 <= low[0] <= p <= high[0] <= 1


def test_frequencies_carry_their_interval():
    X = _factors()
    table = explain(BSUFS(4).fit(X), X, n_subsamples=7)
    assert set((7 * table["frequency"]).round(9)) <= set(range(8))
    low, high = wilson_interval(table["frequency"], 7)
    assert table["frequency_low"].to_numpy() == pytest.approx(low)
    assert table["frequency_high"].to_numpy() == pytest.approx(high)


def test_the_answer_depends_on_the_seed_alone():
    X = _factors(n=30)
    selector = RandomSelector(4, random_state=np.random.RandomState(0)).fit(X)
    first = explain(selector, X, n_subsamples=4, random_state=3)
    pd.testing.assert_frame_equal(first, explain(selector, X, n_subsamples=4, random_state=3))
    shared = explain(selector, X, n_subsamples=4, random_state=3, n_jobs=2)
    pd.testing.assert_frame_equal(first, shared)
    other = explain(selector, X, n_subsamples=4, random_state=4)
    assert (first["frequency"] != other["frequency"]).any()


def test_parts_ask_for_as_many_features_and_say_nothing(capsys):
    X = _factors()
    calls = []
    selector = BSUFS(verbose=2, callback=calls.append).fit(X)
    capsys.readouterr()
    calls.clear()
    table = explain(selector, X, n_subsamples=3)
    assert table["frequency"].sum() == pytest.approx(selector.support_.sum())
    assert not calls
    assert capsys.readouterr().out == ""


def test_of_a_search_the_best_selector_is_explained():
    X = _factors()
    best = BSUFS(4, must_keep=[7]).fit(X)
    search = SimpleNamespace(best_estimator_=best)
    table = explain(search, X, n_subsamples=2)
    pd.testing.assert_frame_equal(table, explain(best, X, n_subsamples=2))
    assert table.loc[7, "reason"] == "kept: always (must_keep)"
    assert Findings(search).path is not None


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
@pytest.mark.parametrize("method", [BSUFS, ColumnSubset])
def test_sparse_data_are_explained_as_dense_ones(kind, method):
    X = _factors()
    X[np.abs(X) < 0.8] = 0
    selector = method(4).fit(X)
    dense = explain(selector, X, n_subsamples=2)
    pd.testing.assert_frame_equal(dense, explain(selector, kind(X), n_subsamples=2))
    found, expected = Findings(selector, kind(X)), Findings(selector, X)
    assert found.explained == pytest.approx(expected.explained, rel=1e-8)
    assert found.bound == pytest.approx(expected.bound, rel=1e-8)


def test_lists_will_do():
    X = _factors(n=20, d=4)
    table = explain(MaxVariance(2).fit(X), X.tolist(), n_subsamples=2)
    pd.testing.assert_frame_equal(table, explain(MaxVariance(2).fit(X), X, n_subsamples=2))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 8), st.sampled_from([1e-200, 1.0, 1e200]))
def test_the_closest_is_found_for_any_blocks(seed, n_blocks, unit):
    X = _factors(n=10, d=8, seed=seed)
    selector = MaxVariance(3).fit(X)
    full = np.corrcoef(X.T)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK_BYTES", 8 * 10 * n_blocks)
        # No unit of X changes a correlation or a share, and none overflows.
        table = explain(selector, X * unit, n_subsamples=0).sort_index()
    chosen = np.flatnonzero(selector.support_)
    for column in range(8):
        others = chosen[chosen != column]
        best = others[np.abs(full[column, others]).argmax()]
        assert table.loc[column, "closest"] == f"x{best}"
        assert table.loc[column, "correlation"] == pytest.approx(full[column, best], abs=1e-9)
    assert table["variance_share"].sum() == pytest.approx(1.0)


def test_of_equal_correlations_the_better_ranked_stands():
    x = np.arange(10.0)
    noise = np.tile([1.0, -1.0], 5)
    X = np.column_stack([3 * x, -4 * x, x, noise])
    assert explain(MaxVariance(2).fit(X), X, n_subsamples=0).loc[2, "closest"] == "x1"


def test_twenty_thousand_features_need_no_square_array():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 20_000))
    table = explain(MaxVariance(50).fit(X), X, n_subsamples=0)
    assert len(table) == 20_000
    assert table["reason"].str.len().max() < 200


def test_a_part_that_cannot_be_fitted_is_told_with_its_cure():
    X = np.zeros((12, 3))
    X[0] = [1, 2, 3]
    selector = BSUFS(1).fit(X)
    with pytest.raises(SubsampleError, match=r"6 of the 12 rows.*constant.*n_subsamples=0"):
        explain(selector, X)
    assert len(explain(selector, X, n_subsamples=0)) == 3


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_subsamples": -1}, "n_subsamples must be 0"),
        ({"subsample": 1.0}, "subsample must be a share"),
        ({"subsample": 0}, "between 0 and 1, got 0"),
        ({"feature_names": ["a"]}, "for each of the 12 features, got 1"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    X = _factors()
    with pytest.raises(ValueError, match=message):
        explain(MaxVariance(2).fit(X), X, **parameters)


def test_wrong_data_and_selectors_are_refused():
    X = _factors()
    with pytest.raises(NotFittedError):
        explain(MaxVariance(2), X)
    with pytest.raises(ValueError, match="12 features"):
        explain(MaxVariance(2).fit(X), X[:, :5])
    with pytest.raises(ValueError, match="NaN"):
        explain(MaxVariance(2).fit(X), np.where(X > 2, np.nan, X))


@settings(max_examples=60, deadline=None)
@given(st.text("ab é中\n\x1b\x00\udcff", max_size=300), st.integers(5, 60))
def test_a_shortened_name_fits_and_can_be_shown(name, width):
    short = shortened(name, width)
    assert len(short) <= width
    assert short.isprintable()
    assert short == name or len(name) > width or not name.isprintable()


def test_a_shortened_name_keeps_both_ends():
    assert shortened("a\nb") == "a\\nb"
    # What joins letters is a part of words in Persian, and of emoji.
    assert (
        shortened("\u0645\u06cc\u200c\u062e\u0648\u0627") == "\u0645\u06cc\u200c\u062e\u0648\u0627"
    )
    assert shortened("x" * 9999 + "7", 10) == "xxxxxx…xx7"


def test_columns_of_a_group_are_said_to_be_kept_together():
    X = np.random.default_rng(0).standard_normal((60, 6)) * [3.0, 1.0, 1.0, 2.0, 1.0, 1.0]
    labels = ["a", "a", "a", "b", "c", "c"]
    for selector in (BSUFS(1, groups=labels), BSUFS(groups=labels, costs=np.ones(6), budget=3.0)):
        selector.fit(X)
        table = explain(selector, X, n_subsamples=4).sort_index()
        assert table["group"].tolist() == labels
        assert table["selected"].tolist() == [True] * 3 + [False] * 3
        assert "with group a (2 others)" in table.loc[0, "reason"]
        assert "with group c (1 other)" in table.loc[4, "reason"]
        assert "group" not in table.loc[3, "reason"]
        # Whole groups come out of every part of the rows.
        assert table.groupby("group")["frequency"].nunique().max() == 1
    assert "group" not in explain(BSUFS(2).fit(X), X)


def _blobs(n=60, d=30, n_telling=4):
    """Return two clusters that a few columns tell apart."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    X[: n // 3, :n_telling] += 8.0
    X[:, n_telling] = X[:, 0] + 0.1 * rng.normal(size=n)
    return X


def test_a_portrait_says_what_only_this_column_does():
    X = _blobs()
    words = portrait(FeatureFindings(Findings(MaxVariance(3).fit(X), X)), 0)
    # The cluster of a third of the rows is the smaller one.
    assert "igh in cluster 2" in words
    assert "Without it, the selection explains " in words
    forced = FeatureFindings(Findings(BSUFS(2, must_keep=[9]).fit(X), X))
    assert portrait(forced, 0).startswith(
        "Kept: always (must_keep). Much the same in all clusters."
    )


def test_a_constant_is_said_to_be_kept_with_its_own_group():
    X = _blobs(d=6)
    X[:, 5] = 1.0
    selector = BSUFS(1, groups={"other": [0, 1], "own": [4, 5]}, never_keep=[0, 2, 3]).fit(X)
    found = FeatureFindings(Findings(selector, X, n_subsamples=0))
    assert found.names[:2].tolist() == ["x4", "x5"]
    assert portrait(found, 1).startswith("Kept: constant, but kept with group own (1 other).")


def test_a_column_stands_for_those_left_out_that_are_closest_to_it():
    X = _blobs()
    found = Findings(BSUFS(3, must_keep=[0, 9]).fit(X), X)
    closest, correlation = found.closest
    assert sorted(found.stands_for) == sorted(found.chosen.tolist())
    for column, others in found.stands_for.items():
        assert (closest[others] == column).all()
        strength = np.abs(correlation[others])
        assert (strength >= 0.5).all()
        assert (np.diff(strength) <= 0).all()
    all_others = np.concatenate(list(found.stands_for.values()))
    notable = ~found.selector.support_ & (np.abs(correlation) >= 0.5)
    assert sorted(all_others) == np.flatnonzero(notable).tolist()


def test_the_closest_three_are_named_and_the_others_counted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 1)) + np.arange(6) * 0.05 * rng.normal(size=(80, 6))
    table = explain(BSUFS(1).fit(X), X, n_subsamples=0)
    reason = table["reason"].iloc[0]
    assert reason.startswith("kept: stands for x")
    assert reason.count("(0.9") == 3
    assert " and 2 more" in reason


def test_the_verdict_on_clusters_and_on_noise():
    X = _blobs()
    good = verdict(Findings(ClusterAlignment(4).fit(X), X, n_subsamples=8))
    assert good.is_good
    assert "4 random columns do worse in 8 of 8 draws, on rows not seen." in good.words
    # Noise that was fitted well is still noise on other rows.
    noise = np.random.default_rng(3).normal(size=(60, 200))
    for method in (RandomSelector, ClusterAlignment):
        poor = verdict(Findings(method(4).fit(noise), noise, n_subsamples=12))
        assert not poor.is_good
        assert "The choice is not stable" in poor.words
        assert "better than random columns: they do as well in" in poor.words
    everything = verdict(Findings(MaxVariance(200).fit(noise), noise, n_subsamples=0))
    assert everything.words.startswith("All columns were kept")
    unknown = Findings(MaxVariance(4).fit(noise), noise, n_subsamples=0)
    assert verdict(unknown).words == ""


@pytest.mark.parametrize(
    ("words", "kind", "text"),
    [
        (["1"], "cluster", "cluster 1"),
        (["1", "2", "3"], "cluster", "clusters 1, 2 and 3"),
        (["a", "b"], "", "a and b"),
    ],
)
def test_words_are_listed_as_in_a_sentence(words, kind, text):
    assert listed(words, kind) == text


def test_names_that_are_read_from_the_right_do_not_turn_their_numbers():
    X = _factors()
    X[:, 1] = -2 * X[:, 0] + 0.1 * X[:, 2]
    found = FeatureFindings(
        Findings(MaxVariance(1).fit(X[:, :2]), X[:, :2], ["\u05e9\u05dc\u05d5\u05dd", "b"])
    )
    assert portrait(found, 0).startswith(
        "Stands for \u2068\u05e9\u05dc\u05d5\u05dd\u2069 (\u22121.00)."
    )
