import dask.array as da
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.utils.estimator_checks import check_sample_weight_equivalence_on_dense_data

from bsufs import BSUFS, alternatives
from bsufs.inspection.findings import Findings, Reason
from bsufs.selectors import ClusterAlignment
from bsufs.selectors._data import FitData
from bsufs.selectors._nuisance import KnownColumns, Nuisance
from bsufs.tuning import ConsensusSelector, LabelFreeSearch

FLAGSHIPS = [BSUFS, ClusterAlignment]
SHAPES = [(60, 12), (30, 50)]


def some_data(n, d, seed=0):
    """Data with two clusters, which a nuisance hides."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[: n // 2, : d // 3] += 3.0
    z = rng.standard_normal((n, 2))
    X += z @ rng.standard_normal((2, d)) * 5.0
    return X, z


def residuals(X, Z, weight=None, center_rows=False):
    if center_rows:
        X = X - X.mean(axis=1, keepdims=True)
    root = np.sqrt(np.ones(len(X)) if weight is None else weight)[:, None]
    design = np.column_stack([np.ones(len(X)), Z])
    return X - design @ np.linalg.lstsq(root * design, root * X, rcond=None)[0]


def to_clear(d, Z, center_rows=False):
    return Nuisance(KnownColumns(np.zeros(d, dtype=bool), np.full(d, center_rows)), Z)


def dummies(groups):
    return (groups[:, None] == np.unique(groups)).astype(float)


def assert_same_selection(one, other):
    """Compare two fits; columns of which nothing is known come in an order of their contents."""
    d = other.n_features_in_
    np.testing.assert_array_equal(one.selected_features_, other.selected_features_)
    np.testing.assert_allclose(
        one.explained_variance_curve_, other.explained_variance_curve_, atol=1e-9
    )
    if isinstance(other, BSUFS):
        np.testing.assert_array_equal(one.ranking_[:d], other.ranking_)
    else:
        np.testing.assert_allclose(one.cluster_shares_[:d], other.cluster_shares_, atol=1e-9)


def as_stream(X):
    return [X[start : start + 7] for start in range(0, X.shape[0], 7)]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize("center_rows", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("Selector", FLAGSHIPS)
def test_adjusting_is_fitting_residuals(Selector, shape, center_rows, kind):
    X, z = some_data(*shape)
    found = Selector(4, adjust_for=z, center_rows=center_rows).fit(kind(X))
    assert_same_selection(found, Selector(4).fit(residuals(X, z, center_rows=center_rows)))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("Selector", FLAGSHIPS)
def test_columns_of_the_data_are_adjusted_for_and_rank_last(Selector, shape, kind):
    X, z = some_data(*shape)
    expected = Selector(4).fit(residuals(X, z))
    joined = np.column_stack([X, z])
    d = X.shape[1]
    selector = Selector(4, adjust_for=[d, d + 1])
    batches = as_stream(kind(joined))
    everything = da.from_array(joined, chunks=(7, joined.shape[1]))
    fits = [lambda: selector.fit(kind(joined)), lambda: selector.fit_batches(batches)]
    fits += [lambda: selector.fit(everything)] if kind is np.asarray else []
    for fit in fits:
        assert_same_selection(fit(), expected)
        assert set(selector.ranking_[d:]) == {d + 1, d + 2}
    frame = pd.DataFrame(joined, columns=[f"c{i}" for i in range(d)] + ["one", "other"])
    named = Selector(4, adjust_for=["other", "one"]).fit(frame)
    assert list(named.selected_features_) == [f"c{i}" for i in expected.selected_features_]
    assert named.transform(frame).shape == (len(X), 4)


@pytest.mark.parametrize("center_rows", [False, True])
@pytest.mark.parametrize("local_bytes", [0, 2**26])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("Selector", FLAGSHIPS)
def test_dask_adjusts_as_memory_does(monkeypatch, Selector, shape, local_bytes, center_rows):
    monkeypatch.setattr("bsufs.scatter._columns._SMALL_HERE", local_bytes)
    X, z = some_data(*shape)
    weight = np.random.default_rng(3).integers(0, 4, len(X))
    selector = Selector(4, adjust_for=z, center_rows=center_rows)
    expected = selector.fit(X, sample_weight=weight).ranking_
    chunked = da.from_array(X, chunks=(11, 13))
    np.testing.assert_array_equal(selector.fit(chunked, sample_weight=weight).ranking_, expected)


@pytest.mark.parametrize("Selector", FLAGSHIPS)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_row_means_are_the_same_in_batches(Selector, kind):
    X, _ = some_data(40, 10)
    X += np.arange(40)[:, None]
    expected = Selector(3).fit(X - X.mean(axis=1, keepdims=True))
    selector = Selector(3, center_rows=True)
    assert_same_selection(selector.fit_batches(as_stream(kind(X))), expected)
    assert_same_selection(Selector(3, center_rows=True).fit(kind(X)), expected)


@pytest.mark.parametrize("Selector", FLAGSHIPS)
def test_columns_never_kept_have_no_part_in_row_means(Selector):
    X, z = some_data(40, 10)
    joined = np.column_stack([X, 100 * z])
    expected = Selector(3, center_rows=True).fit(X)
    found = Selector(3, center_rows=True, never_keep=[10, 11]).fit(joined)
    np.testing.assert_array_equal(found.ranking_[:10], expected.ranking_)


@pytest.mark.parametrize("Selector", FLAGSHIPS)
def test_groups_may_be_text_categories_or_booleans(Selector):
    X, _ = some_data(60, 12)
    groups = np.random.default_rng(1).integers(0, 3, 60)
    X = X + 10 * groups[:, None] * np.arange(12)
    expected = Selector(3).fit(residuals(X, dummies(groups))).ranking_
    words = np.array(["a", "b", "c"])[groups]
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(12)])
    for given_groups in (words, pd.Series(groups, dtype="category"), words.tolist()):
        found = Selector(3, adjust_for=given_groups).fit(X)
        np.testing.assert_array_equal(found.ranking_, expected)
    found = Selector(3, adjust_for="batch").fit(frame.assign(batch=words))
    np.testing.assert_array_equal(found.ranking_[:12], expected)
    assert found.ranking_[12] == 13
    two = Selector(3, adjust_for=groups == 1).fit(X)
    as_number = Selector(3, adjust_for=(groups == 1).astype(float)).fit(X)
    assert_same_selection(two, as_number)


def test_a_planted_batch_wins_only_without_adjustment():
    rng = np.random.default_rng(0)
    batch, cluster = rng.integers(0, 3, 200), rng.integers(0, 4, 200)
    X = rng.standard_normal((200, 60))
    X[:, :20] += 6.0 * dummies(batch) @ rng.standard_normal((3, 20))
    X[:, 20:30] += 2.0 * dummies(cluster) @ rng.standard_normal((4, 10))
    for Selector in FLAGSHIPS:
        raw = Selector(8).fit(X).get_support(indices=True)
        adjusted = Selector(8, adjust_for=batch.astype(str)).fit(X).get_support(indices=True)
        assert np.mean(raw < 20) >= 0.5
        assert np.mean((adjusted >= 20) & (adjusted < 30)) >= 0.8


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_what_is_explained_completely_counts_as_constant(shape, kind):
    X, z = some_data(*shape)
    X[:, 3] = 1e5 + 7 * z[:, 0] - z[:, 1]
    data = FitData(kind(X), nuisance=to_clear(shape[1], z))
    assert data.variances[3] == 0.0
    assert (np.delete(data.variances, 3) > 0).all()
    np.testing.assert_allclose(
        np.delete(data.columns(slice(None)), 3, axis=1),
        np.delete(residuals(X, z), 3, axis=1) + np.delete(X, 3, axis=1).mean(axis=0),
        atol=1e-8,
    )
    assert not data.columns(np.array([3, 5]))[:, 0].any()


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(4, 30),
    d=st.integers(2, 30),
    q=st.integers(0, 3),
    weighted=st.booleans(),
    center_rows=st.booleans(),
    thin=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_the_scatter_is_that_of_residuals(n, d, q, weighted, center_rows, thin, seed):
    rng = np.random.default_rng(seed)
    X, Z = rng.standard_normal((n, d)) + 3.0, rng.standard_normal((n, q))
    Z = np.column_stack([Z, 2.0 * Z[:, :1] - 5.0])
    weight = rng.integers(0, 3, n).astype(float) if weighted else None
    if weighted:
        weight[:2] = 1.0
    nuisance = to_clear(d, Z, center_rows)
    data = FitData(sparse.csr_array(X) if thin else X, weight, nuisance=nuisance)
    root = np.sqrt(np.ones(n) if weight is None else weight)[:, None]
    R = root * residuals(X, Z, weight, center_rows)
    expected = (R.T @ R)[np.ix_(data.order, data.order)]
    np.testing.assert_allclose(data.scatter @ np.eye(d), expected, atol=1e-8)
    np.testing.assert_allclose(data.scatter.diagonal(), expected.diagonal(), atol=1e-8)
    some = np.arange(0, d, 2)
    np.testing.assert_allclose(data.scatter.rows(some), expected[some], atol=1e-8)


@pytest.mark.parametrize("Selector", FLAGSHIPS)
def test_order_and_units_do_not_matter(Selector):
    X, z = some_data(60, 12)
    order = np.random.default_rng(5).permutation(12)
    expected = Selector(4, adjust_for=z, center_rows=True).fit(X).ranking_
    turned = Selector(4, adjust_for=z[:, ::-1] * [1e6, 1e-6] + 1.0, center_rows=True)
    np.testing.assert_array_equal(turned.fit(X[:, order]).ranking_, expected[order])
    for factor in (2.0**40, 1e-200, 1e200):
        np.testing.assert_array_equal(turned.fit(X * factor).ranking_, expected)


@pytest.mark.parametrize("factor", [1e-200, 1e200])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("Selector", FLAGSHIPS)
def test_units_do_not_matter_on_dask(Selector, shape, factor):
    X, z = some_data(*shape)
    selector = Selector(4, adjust_for=z)
    expected = selector.fit(X).ranking_
    chunked = da.from_array(factor * X, chunks=(11, 13))
    np.testing.assert_array_equal(selector.fit(chunked).ranking_, expected)


@pytest.mark.parametrize("Selector", FLAGSHIPS)
@pytest.mark.parametrize("center_rows", [False, True])
def test_a_weight_counts_like_copies(Selector, center_rows):
    X, z = some_data(40, 10)
    weight = np.random.default_rng(2).integers(0, 4, 40)
    selector = Selector(3, adjust_for=z, center_rows=center_rows)
    weighted = selector.fit(X, sample_weight=weight)
    copies = Selector(3, adjust_for=z.repeat(weight, axis=0), center_rows=center_rows)
    assert_same_selection(weighted, copies.fit(X.repeat(weight, axis=0)))


def test_scikit_learn_finds_weights_equal_to_copies():
    check_sample_weight_equivalence_on_dense_data("ClusterAlignment", ClusterAlignment())


@pytest.mark.parametrize(
    ("adjust_for", "message"),
    [
        (np.zeros(40), "column '0' has the same value in all rows. Leave it out"),
        (np.full(40, "a"), "column '0' has the same value"),
        (np.arange(39.0), "one row for each of the 40 rows of X, got 39"),
        (np.where(np.arange(40) == 7, np.nan, 1.0), "column '0' has 1, the first in row 7"),
        (pd.DataFrame({"age": [None, *"ab" * 19, "a"]}), "column 'age' has 1, the first in row 0"),
        (pd.Series([pd.NA] + [1] * 39, dtype="Int64"), "no missing or infinite values"),
        (np.arange(40).astype(str), "40 different values in 40 rows"),
        (np.zeros((40, 2, 2)), "one or several columns, got ndarray of shape"),
        ([[1.0, 2.0], [3.0]], "one or several columns, got list"),
        ("batch", "X has no column names"),
        ([3, 77], "column numbers from 0 to 9"),
        (list(range(10)), "adjust_for must leave at least one feature"),
    ],
)
@pytest.mark.parametrize("Selector", FLAGSHIPS)
def test_bad_input_is_told_with_the_cure(Selector, adjust_for, message):
    X, _ = some_data(40, 10)
    with pytest.raises(ValueError, match=message):
        Selector(3, adjust_for=adjust_for).fit(X)


def test_powers_of_years_are_all_adjusted_for():
    X, _ = some_data(60, 10)
    years = np.arange(60.0) % 30 + 1990.0
    powers = np.column_stack([years, years**2, years**3])
    X[:, 4] += (years - 2005.0) ** 3
    basis = np.vander((years - 2005.0) / 15.0, 4)
    residuals = X - basis @ np.linalg.lstsq(basis, X)[0]
    data = FitData(X, nuisance=Nuisance(KnownColumns(*np.zeros((2, 10), dtype=bool)), powers))
    np.testing.assert_allclose(data.variances, residuals.var(axis=0), rtol=1e-5)


def test_a_data_frame_says_which_columns_it_has_not():
    frame = pd.DataFrame(some_data(40, 10)[0], columns=list("abcdefghij"))
    with pytest.raises(ValueError, match="column numbers from 0 to 9"):
        BSUFS(3, adjust_for=[3, 77]).fit(frame)


@pytest.mark.parametrize("Selector", FLAGSHIPS)
def test_streams_say_what_they_cannot_adjust_for(Selector):
    X, z = some_data(40, 10)
    for fit in (lambda one: one.fit_batches([X]), lambda one: one.partial_fit(X)):
        with pytest.raises(ValueError, match="must name columns of X where rows come in batches"):
            fit(Selector(3, adjust_for=z))
    with pytest.raises(ValueError, match="has the same value in all rows"):
        Selector(3, adjust_for=[10]).fit_batches([np.column_stack([X, np.ones(40)])])
    with pytest.raises(ValueError, match="must_keep and never_keep or adjust_for must have no"):
        Selector(3, adjust_for=[1], must_keep=[1]).fit(X)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("max_samples", [1024, 25])
def test_weights_are_the_same_in_batches(max_samples, kind):
    X, _ = some_data(60, 12)
    weight = np.random.default_rng(1).uniform(0.1, 3.0, 60) * (np.arange(60) % 5 > 0)
    expected = ClusterAlignment(4, max_samples=max_samples).fit(kind(X), sample_weight=weight)
    streamed = ClusterAlignment(4, max_samples=max_samples)
    for start in range(0, 60, 7):
        rows = slice(start, start + 7)
        streamed.partial_fit(kind(X[rows]), sample_weight=weight[rows])
    assert_same_selection(streamed, expected)


def test_rows_drawn_may_all_be_the_same():
    X = np.zeros((300, 4))
    X[7] = [1.0, 2.0, 3.0, 5.0]
    selector = ClusterAlignment(2, max_samples=20).fit(X)
    assert selector.n_clusters_ == [1]
    assert selector.support_.sum() == 2


@pytest.mark.parametrize("Selector", FLAGSHIPS)
def test_findings_are_those_of_residuals(Selector):
    X, z = some_data(60, 12)
    selector = Selector(4, adjust_for=z, center_rows=True).fit(X)
    left = residuals(X, z, center_rows=True)
    found = Findings(selector, X, n_subsamples=3)
    expected = Findings(Selector(4).fit(left), left, n_subsamples=3)
    for name in ("variance_share", "correlations", "explained", "bound"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-9)
    np.testing.assert_array_equal(found.closest[0], expected.closest[0])
    assert found.stability.failure is None
    assert found.note is None


def test_columns_adjusted_for_are_explained_as_such():
    X, z = some_data(60, 12)
    frame = pd.DataFrame(np.column_stack([X, z]), columns=[f"c{i}" for i in range(14)])
    words = frame.assign(c13=np.where(z[:, 1] > 0, "high", "low"))
    found = Findings(BSUFS(4, adjust_for=["c12", "c13"]).fit(words), words, n_subsamples=2)
    assert list(found.reasons[12:]) == [Reason.ADJUSTED_FOR] * 2
    assert found.stability.failure is None


@pytest.mark.parametrize(
    "wrap",
    [
        lambda one: ConsensusSelector(one, n_features_to_select=4, n_pairs=2),
        lambda one: LabelFreeSearch(
            one, param_grid={"n_components": [2, 3]}, report=["redundancy"]
        ),
    ],
)
def test_searches_adjust_every_part_of_the_rows(wrap):
    X, z = some_data(60, 12)
    left = residuals(X, z)
    found = wrap(ClusterAlignment(4, adjust_for=z)).fit(X)
    expected = wrap(ClusterAlignment(4)).fit(left)
    if isinstance(found, LabelFreeSearch):
        np.testing.assert_array_equal(
            found.ranking_[found.support_], expected.ranking_[found.support_]
        )
        for name in ("restart_agreement", "redundancy"):
            np.testing.assert_allclose(found.criteria_[name], expected.criteria_[name], atol=1e-9)
    else:
        # A half of the rows is adjusted by itself, so only what is clear is the same.
        assert found.support_[:4].sum() >= 3


@pytest.mark.parametrize("Selector", FLAGSHIPS)
def test_alternatives_are_those_of_residuals(Selector):
    X, z = some_data(60, 12)
    left = residuals(X, z)
    found = alternatives(Selector(4, adjust_for=z, random_state=0).fit(X), X, n=2)
    expected = alternatives(Selector(4, random_state=0).fit(left), left, n=2)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.selected_features_, other.selected_features_)
        assert one.variance_share == pytest.approx(other.variance_share)
