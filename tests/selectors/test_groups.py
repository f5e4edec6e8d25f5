"""Groups of columns and budgets: what comes out, and that single columns change nothing."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from bsufs import BSUFS
from bsufs.scatter import make_scatter
from bsufs.selectors import ClusterAlignment, ColumnSubset, MaxVariance, all_selectors
from bsufs.selectors._columns import find_duplicates
from bsufs.selectors._data import FitData
from bsufs.selectors._groups import Groups
from bsufs.tuning import ConsensusSelector

WITH_GROUPS = [BSUFS, ClusterAlignment, ColumnSubset]
LABELS = np.repeat(["a", "b", "c", "d"], [1, 2, 4, 5])


def clusters(n=60, d=12, seed=0):
    rng = np.random.default_rng(seed)
    centers = 3.0 * rng.standard_normal((4, d)) * np.linspace(0.2, 1.0, d)
    return centers[rng.integers(4, size=n)] + rng.standard_normal((n, d))


def fitted_arrays(selector):
    return {name: value for name, value in vars(selector).items() if isinstance(value, np.ndarray)}


@pytest.mark.parametrize("kind", [*WITH_GROUPS, lambda **more: BSUFS(lambda_row=0.4, **more)])
@pytest.mark.parametrize("number", ["auto", 3, 0.5])
def test_groups_of_one_column_change_no_bit(kind, number):
    X = clusters()
    selector = kind(n_features_to_select=number)
    plain = fitted_arrays(clone(selector).fit(X))
    for groups in (np.arange(12)[::-1], [f"column {i}" for i in range(12)], {}, {"x": [3]}):
        grouped = fitted_arrays(clone(selector).set_params(groups=groups).fit(X))
        for name, value in plain.items():
            np.testing.assert_array_equal(grouped[name], value, err_msg=name)


@pytest.mark.parametrize("kind", WITH_GROUPS)
def test_whole_groups_come_out_one_after_another(kind):
    X = clusters()
    selector = kind(2, groups=LABELS).fit(X)
    assert sorted(selector.ranking_) == list(range(1, 13))
    in_order = LABELS[np.argsort(selector.ranking_)]
    met = [label for label, _ in itertools.groupby(in_order)]
    assert len(met) == 4
    assert selector.selected_groups_.tolist() == met[:2]
    np.testing.assert_array_equal(selector.support_, np.isin(LABELS, met[:2]))
    assert selector.groups_.tolist() == LABELS.tolist()
    assert (
        LABELS[selector.selected_features_].tolist() == in_order[: selector.support_.sum()].tolist()
    )
    assert selector.transform(X).shape[1] == selector.support_.sum()
    if hasattr(selector, "explained_variance_curve_"):
        shares = [
            make_scatter(X).explained_share(np.flatnonzero(np.isin(LABELS, met[:k])))
            for k in (1, 2)
        ]
        np.testing.assert_allclose(selector.explained_variance_curve_, shares, rtol=1e-9)


@pytest.mark.parametrize("kind", WITH_GROUPS)
def test_the_order_of_columns_the_units_and_the_form_of_groups_do_not_matter(kind):
    X = clusters()
    expected = kind(2, groups=LABELS).fit(X)
    order = np.random.default_rng(1).permutation(12)
    moved = kind(2, groups=LABELS[order]).fit(8.0 * X[:, order])
    np.testing.assert_array_equal(moved.ranking_, expected.ranking_[order])
    assert moved.selected_groups_.tolist() == expected.selected_groups_.tolist()
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(12)])
    named = {"c": ["x3", "x4", "x5", "x6"], "d": [*range(7, 12)], "b": ["x1", 2]}
    again = kind(2, groups=named).fit(frame)
    np.testing.assert_array_equal(again.ranking_, expected.ranking_)


@pytest.mark.parametrize("kind", [BSUFS, ClusterAlignment])
def test_batches_sparse_and_dask_input_have_the_same_groups(kind):
    da = pytest.importorskip("dask.array", reason="needs the extra dask")
    X = np.round(clusters(), 1)
    expected = kind(2, groups=LABELS).fit(X).ranking_
    streamed = kind(2, groups=LABELS).fit_batches(np.array_split(X, 3))
    assert streamed.selected_groups_.size == 2
    others = [kind(2, groups=LABELS).fit(sparse.csr_array(X)), streamed]
    others.append(kind(2, groups=LABELS).fit(da.from_array(X, chunks=(20, 12))))
    for other in others:
        np.testing.assert_array_equal(other.ranking_, expected)


def test_dask_columns_are_kept_in_groups_as_in_memory():
    da = pytest.importorskip("dask.array", reason="needs the extra dask")
    X = clusters(n=20, d=30)
    groups = np.arange(30) % 11
    for kind in (BSUFS, ClusterAlignment):
        for number in (3, "auto"):
            expected = kind(number, groups=groups).fit(X)
            lazy = kind(number, groups=groups).fit(da.from_array(X, chunks=(20, 10)))
            np.testing.assert_array_equal(lazy.ranking_, expected.ranking_)
            np.testing.assert_array_equal(lazy.support_, expected.support_)


@pytest.mark.parametrize("kind", [BSUFS, ClusterAlignment])
def test_must_keep_and_never_keep_mean_the_whole_group(kind):
    X = clusters()
    for word in ("a", 0):
        selector = kind(2, groups=LABELS, must_keep=word, never_keep=[8, "c"]).fit(X)
        assert selector.selected_groups_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="no feature in common"):
        kind(groups=LABELS, must_keep="d", never_keep=8).fit(X)
    with pytest.raises(ValueError, match="at most the number of groups without the 1"):
        kind(4, groups=LABELS, never_keep=8).fit(X)
    assert kind(0.5, groups=LABELS).fit(X).selected_groups_.size == 2


def test_other_selectors_rank_a_group_where_its_best_member_ranks():
    X = clusters()
    data = FitData(X, groups=LABELS)
    for name, kind in all_selectors().items():
        found = kind(2).fit(data)
        assert found.selected_groups_.size == 2, name
        assert found.support_.sum() == np.isin(LABELS, found.selected_groups_).sum()
    columns = np.argsort(MaxVariance().fit(X).ranking_)
    expected = list(dict.fromkeys(LABELS[columns]))
    assert MaxVariance(4).fit(data).selected_groups_.tolist() == expected
    own = ColumnSubset(2, groups=np.arange(12)).fit(data)
    assert own.support_.sum() == 2
    consensus = ConsensusSelector(BSUFS(2, groups=LABELS), n_pairs=1).fit(X)
    assert consensus.selected_groups_.size == 2


def test_a_group_is_a_duplicate_when_all_of_it_is():
    X = clusters(d=5)
    # Two indicators of a category with two levels say the same, and belong together.
    twins = np.column_stack([X, 1.0 - X[:, 0], 2.0 * X[:, 1]])
    nobody = np.zeros(7, dtype=bool)
    scatter = make_scatter(twins)
    assert np.flatnonzero(find_duplicates(scatter, nobody)).tolist() == [1, 5]
    together = np.array([0, 1, 2, 3, 4, 0, 1])
    assert not find_duplicates(scatter, nobody, together).any()
    apart = np.array([0, 1, 2, 3, 4, 5, 2])
    assert np.flatnonzero(find_duplicates(scatter, nobody, apart)).tolist() == [1, 5]
    copies = np.column_stack([X, X[:, :2], X[:, 2:3]])
    pairs = np.array([0, 0, 1, 2, 3, 4, 4, 4])
    found = find_duplicates(make_scatter(copies), np.zeros(8, dtype=bool), pairs)
    # The group with more variance stands for the other.
    assert np.flatnonzero(found).tolist() == [0, 1, 2]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from("uvwxyz"), min_size=1, max_size=9), st.randoms())
def test_labels_and_dicts_say_the_same(labels, random):
    n = len(labels)
    by_label = Groups.parsed(labels, n, None)
    members = {name: [i for i in range(n) if labels[i] == name] for name in labels}
    by_dict = Groups.parsed(members, n, None)
    np.testing.assert_array_equal(by_dict.of, by_label.of)
    np.testing.assert_array_equal(by_label.labels[by_label.of], labels)
    assert by_label.labels.size == len(set(labels))
    best_first = np.array(random.sample(range(n), n))
    gathered = by_label.gathered(best_first)
    assert sorted(gathered) == list(range(n))
    met = [label for label, _ in itertools.groupby(labels[i] for i in gathered)]
    assert met == list(dict.fromkeys(labels[i] for i in best_first))
    ends = by_label.ends(gathered)
    assert ends.tolist() == np.cumsum([labels.count(label) for label in met]).tolist()
    numbers, which = by_label.among(gathered)
    np.testing.assert_array_equal(which[numbers], by_label.of[gathered])
    assert [label for label, _ in itertools.groupby(numbers)] == list(range(len(met)))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["a", "b"], "one name or number for each of the 12 columns.*got 2 labels"),
        ([None] * 12, "got None"),
        ([float("nan")] * 12, "got nan"),
        ({"g": [0, 1], "h": [1]}, "column 1 in two"),
        ({"g": []}, "at least one column"),
        ({"g": [12]}, r"groups\['g'\] must hold column numbers from 0 to 11"),
        ({"g": ["name"]}, "X has no column names"),
        ({3: [0, 1]}, "must not name a group 3 like a column outside of it"),
    ],
)
def test_wrong_groups_are_refused_with_a_reason(groups, message):
    with pytest.raises(ValueError, match=message):
        ColumnSubset(groups=groups).fit(clusters())


@pytest.mark.parametrize("kind", WITH_GROUPS)
def test_a_budget_is_kept_and_what_does_not_fit_is_skipped(kind):
    X = clusters()
    costs = 1.0 + np.arange(12) % 5
    selector = kind(costs=costs, budget=11.0).fit(X)
    spent = costs[selector.support_].sum()
    assert spent <= 11.0
    # Nothing that was left out would still have fitted.
    assert costs[~selector.support_].min() > 11.0 - spent
    assert sorted(selector.ranking_[selector.support_]) == list(
        range(1, selector.support_.sum() + 1)
    )
    grouped = kind(costs=costs, budget=20.0, groups=LABELS).fit(X)
    by_name = {"a": costs[0], **{i: costs[i] for i in range(1, 12)}}
    named = kind(costs=by_name, budget=20.0, groups=LABELS).fit(X)
    np.testing.assert_array_equal(named.ranking_, grouped.ranking_)
    assert costs[grouped.support_].sum() <= 20.0
    whole = kind(costs=np.full(12, 0.1), budget=1.2).fit(X)
    assert whole.support_.all()
    alone = kind(costs={i: 5.0 if i else 1e-3 for i in range(12)}, budget=1.0).fit(X)
    assert np.flatnonzero(alone.support_).tolist() == [0]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"costs": np.ones(12)}, "given together, got no budget"),
        ({"budget": 3.0}, "given together, got no costs"),
        ({"costs": np.ones(5), "budget": 3.0}, "each of the 12 columns of X, or be a dict"),
        ({"costs": -np.ones(12), "budget": 3.0}, "positive finite numbers, got -1"),
        ({"costs": ["x"] * 12, "budget": 3.0}, "positive numbers, got something else"),
        ({"costs": {0: 1.0}, "budget": 3.0}, "got none for 1"),
        ({"costs": {i: i for i in range(12)}, "budget": 3.0}, "finite numbers, got 0"),
        ({"costs": np.ones(12), "budget": 0.5}, "at least for the cheapest choice, got 0.5"),
        (
            {"costs": np.ones(12), "budget": 1.0, "must_keep": [0, 1]},
            "must pay for all of must_keep",
        ),
        ({"n_features_to_select": 2, "costs": np.ones(12), "budget": 1.0}, "'auto' where a budget"),
    ],
)
def test_wrong_budgets_are_refused_with_a_reason(parameters, message):
    for kind in (BSUFS, ClusterAlignment):
        with pytest.raises(ValueError, match=message):
            kind(**parameters).fit(clusters())


def test_auto_of_cluster_alignment_is_the_fewest_that_agree():
    rng = np.random.default_rng(0)
    groups = rng.integers(6, size=300)
    shown = 12.0 * rng.standard_normal((6, 8))[groups] + rng.standard_normal((300, 8))
    X = np.hstack([shown, rng.standard_normal((300, 40))])
    selector = ClusterAlignment(clusters=6).fit(X)
    curve = selector.agreement_curve_
    numbers, agreement = curve["n_features_to_select"], curve["agreement"]
    k = int(selector.support_.sum())
    assert k == numbers[np.argmax(agreement >= agreement.max() - 0.02)]
    assert 2 <= k <= 8
    assert np.flatnonzero(selector.support_).max() < 8
    assert (np.diff(numbers) > 0).all()
    assert agreement.min() >= 0.0
    assert agreement.max() <= 1.0
    order = rng.permutation(48)
    again = ClusterAlignment(clusters=6).fit(1e-3 * X[:, order])
    np.testing.assert_array_equal(again.support_, selector.support_[order])
    assert not hasattr(ClusterAlignment(3).fit(X), "agreement_curve_")
    weight = rng.integers(1, 4, size=300)
    weighted = ClusterAlignment(clusters=6).fit(X, sample_weight=weight)
    repeated = ClusterAlignment(clusters=6).fit(np.repeat(X, weight, axis=0))
    np.testing.assert_array_equal(weighted.support_, repeated.support_)
