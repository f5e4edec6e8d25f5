"""BSUFS as a user meets it: the scikit-learn contract, inputs, invariances and error messages."""

import itertools
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from bsufs import BSUFS, ClusterAlignment, bsufs_path
from bsufs.scatter import make_scatter
from bsufs.selectors._columns import find_duplicates

FITTED = [
    "scores_",
    "ranking_",
    "support_",
    "selected_features_",
    "components_",
    "row_sparse_components_",
    "element_sparse_components_",
    "explained_variance_ratio_",
    "survival_",
    "objective_history_",
    "n_iter_",
    "stopping_reason_",
]


def table(n=60, d=12, m=3, seed=0):
    """Return correlated columns of different variances."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m)) @ rng.standard_normal((m, d))
    return (X + 0.5 * rng.standard_normal((n, d))) * rng.uniform(0.5, 2.0, d)


@parametrize_with_checks(
    [
        BSUFS(),
        BSUFS(lambda_row=0.5, max_iter=2000),
        BSUFS(lambda_element=0.0, p=0.5),
        BSUFS(1, n_components=1, w_step="trust-region"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ------------------------------------------------------------------------------ what comes out


@pytest.mark.parametrize("k", [1, 3, 7, 12])
def test_exactly_k_features_come_out_consistent_with_scores_and_ranking(k):
    X = table()
    selector = BSUFS(k).fit(X)
    assert selector.support_.sum() == k
    assert sorted(selector.ranking_) == list(range(1, 13))
    best = np.argsort(-selector.scores_, kind="stable")[:k]
    np.testing.assert_array_equal(np.sort(best), np.flatnonzero(selector.support_))
    np.testing.assert_array_equal(selector.selected_features_, np.argsort(selector.ranking_)[:k])
    np.testing.assert_array_equal(selector.transform(X), X[:, selector.support_])
    back = selector.inverse_transform(selector.transform(X))
    np.testing.assert_array_equal(back[:, selector.support_], X[:, selector.support_])


@pytest.mark.parametrize(("share", "k"), [(0.5, 6), (0.25, 3), (0.99, 12), (0.001, 1)])
def test_a_share_is_a_share_of_the_features(share, k):
    assert BSUFS(share).fit(table()).support_.sum() == k


def test_auto_gives_a_sensible_number_on_real_data():
    digits = BSUFS().fit(load_digits().data)
    assert 10 <= digits.support_.sum() <= 40
    carried = digits.path_["component_variance_ratio"][0]
    curve = digits.explained_variance_curve_
    assert curve[-1] >= carried > curve[-2]
    assert digits.row_sparse_components_.any(axis=0).sum() >= digits.support_.sum()


def test_auto_takes_the_fewest_that_explain_what_the_components_carry():
    rng = np.random.default_rng(0)
    # More than are looked at in the first go.
    many = BSUFS(n_components=40).fit(rng.standard_normal((100, 80)))
    assert 40 < many.support_.sum() < 80
    carried, curve = many.path_["component_variance_ratio"][0], many.explained_variance_curve_
    assert curve[-1] >= carried > curve[-2]
    # Of data without noise as many as there are components explain everything.
    exact = BSUFS(n_components=3).fit(rng.standard_normal((50, 3)) @ rng.standard_normal((3, 20)))
    assert exact.path_["component_variance_ratio"][0] == pytest.approx(1.0)
    assert exact.support_.sum() == 3


@pytest.mark.parametrize("parameters", [{}, {"lambda_row": 0.5, "max_iter": 5000}])
def test_fitted_attributes_have_their_shapes(parameters):
    X = table()
    selector = BSUFS(4, n_components=3, **parameters).fit(X)
    for name in ("components_", "row_sparse_components_", "element_sparse_components_"):
        assert getattr(selector, name).shape == (3, 12)
    np.testing.assert_allclose(selector.components_ @ selector.components_.T, np.eye(3), atol=1e-12)
    assert selector.n_components_ == 3
    assert selector.objective_history_.shape == (selector.n_iter_ + 1,)
    assert selector.n_features_in_ == 12
    assert selector.stopping_reason_ == ("converged" if parameters else "path_complete")
    Xc = X - X.mean(axis=0)
    chosen = Xc[:, selector.support_]
    fitted = chosen @ np.linalg.lstsq(chosen, Xc, rcond=None)[0]
    expected = (fitted**2).sum() / (Xc**2).sum()
    assert selector.explained_variance_ratio_ == pytest.approx(expected)
    if parameters:
        assert selector.row_gap_history_.shape == (selector.n_iter_,)
        assert selector.path_ == {}
    else:
        assert selector.path_["n_alive"][-1] == 3
        assert selector.row_sparse_components_.any(axis=0).sum() == 4


def test_it_finds_the_columns_that_carry_the_structure():
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((200, 3))
    X = rng.standard_normal((200, 30)) * 0.3
    X[:, [4, 11, 23]] += 3 * factors
    assert set(BSUFS(3).fit(X).selected_features_) == {4, 11, 23}


def test_names_come_out_where_names_went_in():
    frame = load_wine(as_frame=True).data
    selector = BSUFS(3).fit(frame)
    assert set(selector.selected_features_) <= set(frame.columns)
    assert selector.ranking_[frame.columns.get_loc(selector.selected_features_[0])] == 1
    assert list(selector.get_feature_names_out()) == list(frame.columns[selector.support_])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_in_and_frames_out(library):
    frame = load_wine(as_frame=True).data
    data = frame if library == "pandas" else pl.from_pandas(frame)
    selector = BSUFS(3).set_output(transform=library)
    reduced = selector.fit_transform(data)
    assert type(reduced).__module__.startswith(library)
    assert list(reduced.columns) == list(selector.get_feature_names_out())
    np.testing.assert_array_equal(selector.support_, BSUFS(3).fit(frame.to_numpy()).support_)


def test_it_works_in_a_pipeline_with_cross_validation():
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(StandardScaler(), BSUFS(5), KNeighborsClassifier())
    assert cross_val_score(model, X, y).mean() > 0.85


# ---------------------------------------------------------------------------------- invariances


@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(3, 30),
    d=st.integers(1, 25),
    k=st.integers(1, 25),
    levels=st.integers(2, 4),
    parameters=st.sampled_from(
        [{}, {"lambda_row": 0.4}, {"p": 0.5, "lambda_element": 0.0}, {"w_step": "trust-region"}]
    ),
)
def test_the_order_of_the_columns_does_not_matter(seed, n, d, k, levels, parameters):
    # Few levels make ties, copies and constant columns common.
    rng = np.random.default_rng(seed)
    X = rng.integers(0, levels, (n, d)).astype(float)
    if not np.ptp(X, axis=0).any():
        return
    order = rng.permutation(d)
    k = min(k, d)
    as_is = BSUFS(k, max_iter=3000, tol=1e-3, **parameters).fit(X)
    shuffled = BSUFS(k, max_iter=3000, tol=1e-3, **parameters).fit(X[:, order])
    # Equal columns cannot be told apart, so what must agree is the set of columns with all that
    # was found out about them.
    found = [
        np.vstack([data, selector.scores_, selector.support_])
        for data, selector in ((X, as_is), (X[:, order], shuffled))
    ]
    np.testing.assert_array_equal(*(A[:, np.lexsort(A)] for A in found))


@pytest.mark.parametrize("factor", [-1.0, 3.0, 1e-5, 1e7, 1e200, 1e-200, -1e150])
@pytest.mark.parametrize("parameters", [{}, {"lambda_row": 0.5}])
@pytest.mark.parametrize("shape", [(60, 12), (10, 40)])
def test_multiplying_x_by_a_constant_changes_nothing(factor, parameters, shape):
    X = table(*shape)
    plain = BSUFS(5, max_iter=5000, **parameters).fit(X)
    scaled = BSUFS(5, max_iter=5000, **parameters).fit(factor * X)
    np.testing.assert_allclose(scaled.scores_, plain.scores_, atol=1e-7)
    np.testing.assert_array_equal(scaled.ranking_, plain.ranking_)
    np.testing.assert_allclose(scaled.objective_history_, plain.objective_history_, rtol=1e-6)
    assert scaled.explained_variance_ratio_ == pytest.approx(plain.explained_variance_ratio_)


@pytest.mark.parametrize("shape", [(40, 10), (12, 40)])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_a_weight_counts_like_copies_of_the_row(shape, as_sparse):
    X = table(*shape)
    weight = np.random.default_rng(1).integers(0, 4, shape[0])
    repeated = np.repeat(X, weight, axis=0)
    kind = sparse.csr_array if as_sparse else np.asarray
    weighted = BSUFS(5).fit(kind(X), sample_weight=weight)
    plain = BSUFS(5).fit(kind(repeated))
    np.testing.assert_allclose(weighted.scores_, plain.scores_, atol=1e-8)
    np.testing.assert_array_equal(weighted.ranking_, plain.ranking_)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.csr_matrix])
@pytest.mark.parametrize("shape", [(60, 12), (15, 40)])
def test_sparse_and_dense_agree(kind, shape):
    X = table(*shape)
    X[np.abs(X) < 0.5] = 0.0
    dense, thin = BSUFS(5).fit(X), BSUFS(5).fit(kind(X))
    np.testing.assert_allclose(thin.scores_, dense.scores_, atol=1e-8)
    assert sparse.issparse(thin.transform(kind(X)))


def test_other_number_types_are_taken():
    X = np.round(10 * table())
    expected = BSUFS(4).fit(X).ranking_
    for dtype in (np.float32, np.int64, np.int16, np.uint8):
        data = (X - X.min()).astype(dtype)
        np.testing.assert_array_equal(BSUFS(4).fit(data).ranking_, expected)
    assert BSUFS(4).fit_transform(X.astype(np.float32)).dtype == np.float32


def test_a_read_only_memory_map_is_enough(tmp_path):
    X = table()
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    np.testing.assert_array_equal(BSUFS(4).fit(mapped).ranking_, BSUFS(4).fit(X).ranking_)


def test_the_callers_data_are_not_changed():
    X, weight = table(), np.ones(60)
    before = X.copy()
    BSUFS(4).fit(X, sample_weight=weight)
    BSUFS(4).partial_fit(X).transform(X)
    np.testing.assert_array_equal(X, before)


def test_one_feature_is_selected():
    selector = BSUFS().fit(np.arange(5.0)[:, None])
    assert selector.support_.tolist() == [True]
    assert selector.explained_variance_ratio_ == pytest.approx(1.0)


# -------------------------------------------------------------- constants, copies, must and never


@pytest.mark.parametrize("parameters", [{}, {"lambda_row": 0.5}, {"lambda_row": 0.0}])
def test_constant_columns_come_last(parameters):
    X = table()
    X[:, [0, 5]] = [0.1, 1e9]
    ranking = BSUFS(3, max_iter=5000, **parameters).fit(X).ranking_
    assert set(ranking[[0, 5]]) == {11, 12}


@pytest.mark.parametrize("parameters", [{}, {"lambda_row": 0.3}])
def test_copies_rank_behind_all_distinct_columns(parameters):
    X = table(d=6)
    doubled = np.hstack([X, X[:, :3], -2.0 * X[:, 3:4] + 7.0, np.ones((60, 1))])
    selector = BSUFS(6, max_iter=5000, **parameters).fit(doubled)
    # Of column 3 and its double, the one of larger variance stands for both.
    assert set(selector.selected_features_) == {0, 1, 2, 9, 4, 5}
    assert selector.ranking_[10] == 11
    forced = BSUFS(6, must_keep=[6], max_iter=5000, **parameters).fit(doubled)
    assert set(forced.selected_features_) == {6, 1, 2, 9, 4, 5}


@pytest.mark.parametrize("parameters", [{}, {"lambda_row": 0.5}, {"lambda_row": 0.0}])
def test_must_keep_and_never_keep_are_obeyed(parameters):
    X = table()
    free = BSUFS(4, max_iter=5000, **parameters).fit(X)
    worst, best = np.argmax(free.ranking_), np.argmin(free.ranking_)
    selector = BSUFS(
        4, must_keep=[int(worst)], never_keep=[int(best)], max_iter=5000, **parameters
    ).fit(X)
    assert selector.support_[worst]
    assert selector.ranking_[worst] == 1
    assert not selector.support_[best]
    assert selector.ranking_[best] == 12
    np.testing.assert_array_equal(
        np.argsort(-selector.scores_, kind="stable")[:4], selector.selected_features_
    )


def test_must_keep_makes_what_it_stands_for_superfluous():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 300))
    noise = 0.05 * rng.standard_normal((300, 4))
    X = np.column_stack([1.2 * a, a, 1.1 * b, b]) + noise
    assert set(BSUFS(2).fit(X).selected_features_) == {0, 2}
    assert set(BSUFS(2, must_keep=[1]).fit(X).selected_features_) == {1, 2}


def test_names_can_be_given_to_must_keep_and_never_keep():
    frame = load_wine(as_frame=True).data
    selector = BSUFS(3, must_keep=["hue"], never_keep="proline").fit(frame)
    assert "hue" in selector.selected_features_
    assert "proline" not in selector.selected_features_


# ------------------------------------------------------------------------------ models and modes


def test_both_weights_zero_is_pca():
    X = table()
    selector = BSUFS(4, n_components=3, lambda_row=0.0, lambda_element=0.0).fit(X)
    projector = selector.components_.T @ selector.components_
    expected = PCA(3).fit(X).components_
    np.testing.assert_allclose(projector, expected.T @ expected, atol=1e-8)
    norms = np.linalg.norm(expected, axis=0)
    np.testing.assert_array_equal(selector.selected_features_, np.argsort(-norms)[:4])


@pytest.mark.parametrize(
    ("case", "parameters"),
    [
        ("I", {"lambda_row": 0.0, "lambda_element": 0.0}),
        ("II", {"lambda_row": 0.0, "lambda_element": 1.0}),
        ("III", {"lambda_row": 0.6, "lambda_element": 0.0}),
        ("IV", {"lambda_row": 0.6, "lambda_element": 1.0}),
        ("convex", {"lambda_row": 0.3, "lambda_element": 0.5, "p": 1.0, "q": 1.0}),
    ],
)
def test_the_cases_of_the_paper_are_sparse_where_they_should_be(case, parameters):
    selector = BSUFS(4, n_components=3, max_iter=20_000, **parameters).fit(table())
    zero_rows = ~selector.row_sparse_components_.any(axis=0)
    zero_elements = selector.element_sparse_components_ == 0
    assert zero_rows.any() == (parameters["lambda_row"] > 0), case
    assert zero_elements.any() == (parameters["lambda_element"] > 0), case


def test_fixed_weights_scale_with_the_threshold_they_cause():
    X = table()
    selector = BSUFS(4, n_components=3, lambda_row=0.8, lambda_element=0.0, max_iter=1, tol=0.0)
    W = PCA(3).fit(X).components_.T
    norms = np.linalg.norm(W, axis=1)
    alive = selector.fit(X).row_sparse_components_.any(axis=0)
    np.testing.assert_array_equal(alive, norms * 10.0 / 10.001 > 0.8 * np.sqrt(3 / 12))


def test_absolute_and_relative_weights_describe_the_same_model():
    X = table()
    norm = np.linalg.norm(X - X.mean(axis=0), 2) ** 2
    relative = BSUFS(4, n_components=3, lambda_row=0.5, lambda_element=0.0, p=0.0, tol=1e-9).fit(X)
    threshold = 0.5 * np.sqrt(3 / 12)
    weight = threshold**2 / 2 * 10.001 * norm
    absolute = BSUFS(
        4,
        n_components=3,
        lambda_row=weight,
        lambda_element=0.0,
        p=0.0,
        scale="absolute",
        beta_row=10.0 * norm,
        tau=1e-3 * norm,
        tol=1e-9,
    ).fit(X)
    np.testing.assert_allclose(
        absolute.objective_history_ / norm, relative.objective_history_, rtol=1e-9
    )
    np.testing.assert_array_equal(absolute.ranking_, relative.ranking_)


@pytest.mark.parametrize("factor", [1e160, 1e-160])
def test_absolute_weights_stay_true_for_extreme_data(factor):
    X = factor * table()
    selector = BSUFS(4, scale="absolute", lambda_row=1.0, beta_row=1.0, max_iter=50, tol=0.0)
    # The threshold sqrt(2 lambda / beta) is above every row norm whatever the data are, and with
    # V = 0 nothing pulls W away from the principal components.
    with pytest.warns(UserWarning, match=r"no feature remains.*lambda_row=0\.0"):
        selector.fit(X)
    assert selector.support_.sum() == 4
    m = selector.n_components_
    expected = PCA(m).fit(table()).components_
    np.testing.assert_allclose(
        selector.components_.T @ selector.components_, expected.T @ expected, atol=1e-6
    )


@pytest.mark.parametrize("unit", [2.0**-400, 2.0**400])
def test_absolute_weights_of_a_path_are_in_the_units_of_the_data(unit):
    X = table()
    plain, other = (
        BSUFS(4, scale="absolute", beta_row=10.0 * u**2, tau=1e-3 * u**2, lambda_element=0.0).fit(
            u * X
        )
        for u in (1.0, unit)
    )
    np.testing.assert_allclose(
        other.path_["lambda_row"] / unit**2, plain.path_["lambda_row"], rtol=1e-9
    )


def test_the_path_function_returns_the_whole_path():
    X = table()
    path = bsufs_path(X, n_components=3, p=0.5)
    selector = BSUFS(n_components=3, p=0.5).fit(X)
    np.testing.assert_array_equal(path.ranking, selector.ranking_)
    np.testing.assert_array_equal(path.survival, selector.survival_)
    assert path.lambda_row.shape == path.n_alive.shape
    assert path.explained_variance_ratio.shape == path.n_alive.shape
    best = np.argsort(path.ranking)
    Xc = X - X.mean(axis=0)
    for k, share in zip(path.n_alive, path.explained_variance_ratio, strict=True):
        fitted = Xc[:, best[:k]] @ np.linalg.lstsq(Xc[:, best[:k]], Xc, rcond=None)[0]
        assert share == pytest.approx((fitted**2).sum() / (Xc**2).sum())
    with pytest.raises(TypeError, match="takes no lambda_row"):
        bsufs_path(X, lambda_row=1.0)


def test_a_rotated_start_depends_on_the_seed_only():
    X = table(d=30, m=5)
    settings = {"n_components": 5, "lambda_element": 1.0, "init": "rotated-pca"}
    first, again, other = (
        BSUFS(9, random_state=seed, **settings).fit(X).scores_ for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_given_start_is_used():
    X = table()
    W = np.linalg.qr(np.random.default_rng(0).standard_normal((12, 2)))[0]
    selector = BSUFS(3, init=W, lambda_row=0.0, lambda_element=0.0, max_iter=1, tol=0.0).fit(X)
    assert selector.n_components_ == 2
    Xc = X - X.mean(axis=0)
    B = Xc.T @ (Xc @ W)
    P, _, Qt = np.linalg.svd(B, full_matrices=False)
    np.testing.assert_allclose(selector.components_.T, P @ Qt, atol=1e-10)


def test_ties_by_index_follow_the_authors():
    X = table()
    with pytest.warns(UserWarning, match="no feature remains"):
        selector = BSUFS(4, lambda_row=50.0, tie_break="index").fit(X)
    assert not selector.scores_.any()
    np.testing.assert_array_equal(selector.selected_features_, [0, 1, 2, 3])


def test_verbose_and_callback_report(capsys):
    seen = []
    BSUFS(4, verbose=2, callback=lambda now: seen.append(now.n_alive)).fit(table())
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(seen)
    assert lines[0].startswith("[BSUFS] iteration 1: objective")
    BSUFS(4, verbose=1).fit(table())
    assert 1 <= len(capsys.readouterr().out.splitlines()) <= 3
    stopped = BSUFS(4, callback=lambda now: True).fit(table())
    assert (stopped.stopping_reason_, stopped.n_iter_) == ("callback", 1)


# ------------------------------------------------------------------------------ streams, pickles


@pytest.mark.parametrize("shape", [(50, 9), (9, 50)])
@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (4, 4), (7,)])
def test_partial_fit_is_fit_on_all_rows(shape, as_sparse, sizes):
    X = table(*shape) + 100.0
    weight = np.random.default_rng(0).uniform(0.5, 2.0, shape[0])
    kind = sparse.csr_array if as_sparse else np.asarray
    stream = BSUFS(4)
    edges = [0, *np.cumsum(sizes), shape[0]]
    for start, stop in itertools.pairwise(edges):
        stream.partial_fit(kind(X[start:stop]), sample_weight=weight[start:stop])
    whole = BSUFS(4).fit(X, sample_weight=weight)
    np.testing.assert_allclose(stream.scores_, whole.scores_, atol=1e-7)
    np.testing.assert_array_equal(stream.ranking_, whole.ranking_)
    assert stream.explained_variance_ratio_ == pytest.approx(whole.explained_variance_ratio_)


def test_batches_are_solved_once_and_partial_fit_goes_on():
    X = table()
    calls = []
    stream = BSUFS(4, callback=lambda now: calls.append(1)).fit_batches(np.array_split(X, 6))
    solved = len(calls)
    assert stream.n_iter_ == solved > 0
    np.testing.assert_array_equal(stream.transform(X), BSUFS(4).fit_transform(X))
    assert len(calls) == solved
    stream.partial_fit(X[:10])
    assert len(calls) > solved
    np.testing.assert_array_equal(stream.ranking_, BSUFS(4).fit(np.vstack([X, X[:10]])).ranking_)
    with pytest.raises(ValueError, match="at least one batch"):
        stream.fit_batches([])


def test_asking_for_an_attribute_starts_no_fit():
    calls = []
    stream = BSUFS(4, callback=lambda now: calls.append(1)).partial_fit(table())
    solved = len(calls)
    assert hasattr(stream, "scores_")
    assert not hasattr(stream, "nonsense_")
    assert len(calls) == solved


def test_partial_fit_copies_its_batch_and_starts_anew_after_fit():
    X = table(9, 50)
    batch = X[:5].copy()
    stream = BSUFS(4).fit(table(9, 50, seed=5)).partial_fit(batch)
    batch[:] = np.nan
    stream.partial_fit(X[5:])
    np.testing.assert_array_equal(stream.ranking_, BSUFS(4).fit(X).ranking_)


def test_partial_fit_copies_sparse_batches_too():
    X = table(9, 50)
    batch = sparse.csr_array(X[:5])
    stream = BSUFS(4).partial_fit(batch)
    batch.data[:] = 0.0
    stream.partial_fit(sparse.csr_array(X[5:]))
    np.testing.assert_array_equal(stream.ranking_, BSUFS(4).fit(X).ranking_)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_partial_fit_copies_the_weights_of_a_batch(kind):
    X = table(9, 50)
    weight = np.random.default_rng(0).uniform(0.2, 5.0, 9)
    buffer = weight[:5].copy()
    stream = BSUFS(4).partial_fit(kind(X[:5]), sample_weight=buffer)
    buffer[:] = 1e-3
    stream.partial_fit(kind(X[5:]), sample_weight=weight[5:])
    whole = BSUFS(4).fit(X, sample_weight=weight)
    np.testing.assert_allclose(stream.scores_, whole.scores_, atol=1e-7)


def test_mixed_weights_and_kinds_of_sparse_batches():
    X = table()
    stream = BSUFS(4).partial_fit(sparse.csr_array(X[:30]))
    stream.partial_fit(sparse.csr_array(X[30:]), sample_weight=np.ones(30))
    np.testing.assert_array_equal(stream.ranking_, BSUFS(4).fit(X).ranking_)
    with pytest.raises(ValueError, match="all batches dense or all sparse"):
        stream.partial_fit(X)


def test_one_row_in_the_stream_is_not_enough_yet():
    stream = BSUFS(2).partial_fit(table()[:1])
    assert not hasattr(stream, "support_")
    with pytest.raises(ValueError, match=r"at least two rows.*n_samples = 1"):
        stream.get_support()
    assert stream.partial_fit(table()[1:]).support_.sum() == 2


def test_clone_pickle_and_joblib_keep_everything(tmp_path):
    frame = load_wine(as_frame=True).data
    selector = BSUFS(3, must_keep=["hue"]).fit(frame)
    joblib.dump(selector, tmp_path / "selector.joblib")
    for other in (
        pickle.loads(pickle.dumps(selector)),
        joblib.load(tmp_path / "selector.joblib"),
        clone(selector).fit(frame),
    ):
        for name in FITTED:
            np.testing.assert_array_equal(getattr(other, name), getattr(selector, name))
    with pytest.raises(NotFittedError):
        clone(selector).transform(frame.to_numpy())
    stream = pickle.loads(pickle.dumps(BSUFS(3).partial_fit(frame[:90])))
    np.testing.assert_array_equal(
        stream.partial_fit(frame[90:]).ranking_, BSUFS(3).fit(frame).ranking_
    )


def test_skops_round_trip_needs_trust_in_this_library_only():
    sio = pytest.importorskip("skops.io", reason="skops is not installed")
    X = table()
    selector = BSUFS(3).fit(X)
    stored = sio.dumps(selector)
    untrusted = sio.get_untrusted_types(data=stored)
    assert all(name.startswith("bsufs.") for name in untrusted)
    other = sio.loads(stored, trusted=untrusted)
    for name in FITTED:
        np.testing.assert_array_equal(getattr(other, name), getattr(selector, name))


def test_an_interrupt_leaves_the_selector_unfitted():
    def interrupt(now):
        if now.iteration == 3:
            raise KeyboardInterrupt

    X = table()
    selector = BSUFS(4).fit(X)
    selector.set_params(callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        selector.fit(X)
    assert not [name for name in vars(selector) if name.endswith("_")]
    with pytest.raises(NotFittedError):
        selector.transform(X)


# ------------------------------------------------------------------------------ what goes wrong


def broken(value):
    X = table()
    X[3, 7] = value
    return X


@pytest.mark.parametrize(
    ("parameters", "X", "message"),
    [
        ({}, broken(np.nan), r"contains NaN.*row 3, column 7.*SimpleImputer"),
        ({}, broken(np.inf), r"infinity.*row 3, column 7.*Replace infinite"),
        ({}, sparse.csr_array(broken(np.nan)), r"contains NaN.*row 3, column 7"),
        ({}, table()[:1], r"at least two rows.*n_samples = 1"),
        ({}, np.ones((5, 3)), r"every column is constant"),
        ({"n_features_to_select": 13}, table(), r"at most the number of features, 12, got 13"),
        ({"n_features_to_select": 0}, table(), r"'n_features_to_select' parameter.*Got 0"),
        ({"n_components": 12}, table(n=5), r"at most 4, the rank that the data can have, got 12"),
        ({"p": 1.5}, table(), r"'p' parameter.*\[0\.?0?, 1\.?0?\].*Got 1\.5"),
        ({"q": -0.1}, table(), r"'q' parameter.*Got -0\.1"),
        ({"lambda_row": -1.0}, table(), r"'lambda_row' parameter.*Got -1\.0"),
        ({"lambda_row": "auto"}, table(), r"'lambda_row' parameter.*'path'.*Got 'auto'"),
        ({"beta_row": 0.0}, table(), r"'beta_row' parameter.*Got 0\.0"),
        ({"must_keep": [1], "never_keep": [1]}, table(), r"in common.*\[1\]"),
        ({"must_keep": [12]}, table(), r"must_keep must hold column numbers from 0 to 11.*got 12"),
        ({"must_keep": ["a"]}, table(), r"must_keep names the column 'a', but X has no column"),
        ({"never_keep": list(range(12))}, table(), r"never_keep must leave at least one"),
        (
            {"n_features_to_select": 1, "must_keep": [1, 2]},
            table(),
            r"at least the 2 features in must_keep, got 1",
        ),
        (
            {"n_features_to_select": 12, "never_keep": [0]},
            table(),
            r"without the 1 in never_keep, 11, got 12",
        ),
        (
            {"tie_break": "index"},
            table(),
            r"tie_break must be 'survival' when lambda_row is 'path'",
        ),
        ({"init": np.ones((12, 2))}, table(), r"orthonormal columns.*numpy\.linalg\.qr"),
        ({"init": np.eye(5)}, table(), r"init must be an array of shape.*got shape \(5, 5\)"),
        ({"init": np.eye(12)[:, :0]}, table(), "init must have from 1 to 12 columns"),
        ({"init": np.full((12, 2), np.nan)}, table(), r"init must be .*got nan among its entries"),
        (
            {"init": np.eye(12)[:, :2], "n_components": 3},
            table(),
            r"init must be an array of shape.*\(12, 3\) of finite numbers, got shape \(12, 2\)",
        ),
    ],
)
def test_bad_input_is_told_with_the_cure(parameters, X, message):
    with pytest.raises(ValueError, match=message):
        BSUFS(**parameters).fit(X)


def test_bad_columns_of_a_frame_are_named():
    frame = pd.DataFrame(table(), columns=[f"gene{i}" for i in range(12)])
    with pytest.raises(ValueError, match=r"unknown 'gene13'.*Did you mean 'gene"):
        BSUFS(must_keep=["gene13"]).fit(frame)
    with pytest.raises(ValueError, match=r"unknown 'xyz'\.$"):
        BSUFS(never_keep=["xyz"]).fit(frame)
    with pytest.raises(ValueError, match=r"both hold \['gene2'\]"):
        BSUFS(must_keep=["gene2"], never_keep=["gene2"]).fit(frame)
    with pytest.raises(TypeError, match=r"column names or column numbers, got 1\.5 of type float"):
        BSUFS(must_keep=[1.5]).fit(frame)
    with pytest.raises(ValueError, match=r"contains NaN.*column 'gene7'"):
        BSUFS().fit(frame.assign(gene7=np.nan))
    with pytest.raises(ValueError, match=r"numbers only.*\['city'\] are not numeric.*OneHot"):
        BSUFS().fit(frame.assign(city="Rome"))


def test_strings_in_an_array_are_an_error_with_a_cure():
    with pytest.raises(ValueError, match=r"numbers only.*OneHotEncoder"):
        BSUFS().fit(np.array([["a", "b"], ["c", "d"]], dtype=object))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.full(60, -1.0), "not negative, got a smallest weight of -1"),
        (np.zeros(60), "zero"),
        (np.ones(3), "(?i)sample_weight"),
    ],
)
def test_bad_weights_are_an_error(weight, message):
    with pytest.raises(ValueError, match=message):
        BSUFS().fit(table(), sample_weight=weight)


def test_a_failed_fit_leaves_nothing_behind():
    selector = BSUFS(4).fit(table())
    with pytest.raises(ValueError, match="NaN"):
        selector.fit(broken(np.nan))
    assert not [name for name in vars(selector) if name.endswith("_")]


@pytest.mark.parametrize("scale", ["relative", "absolute"])
def test_a_weight_that_kills_all_rows_says_which_would_keep_k(scale):
    X = table()
    settings = {"n_components": 3, "scale": scale, "max_iter": 50, "tol": 0.0}
    if scale == "absolute":
        settings |= {"beta_row": 1000.0, "lambda_element": 0.0}
    with pytest.warns(
        UserWarning, match=r"no feature remains.*would keep 4 at the first iteration"
    ) as caught:
        selector = BSUFS(4, lambda_row=1e6, **settings).fit(X)
    assert selector.support_.sum() == 4
    suggested = float(str(caught[0].message).split("lambda_row=")[2].split(" ")[0])
    settings["max_iter"] = 1
    alive = BSUFS(4, lambda_row=suggested, **settings).fit(X).row_sparse_components_.any(axis=0)
    assert 3 <= alive.sum() <= 5


def test_forced_features_are_no_part_of_the_number_that_a_weight_would_keep():
    settings = {"n_components": 3, "max_iter": 50, "tol": 0.0}
    with pytest.warns(UserWarning, match=r"no feature remains.*would keep 3 at the first"):
        BSUFS(4, must_keep=[0], lambda_row=1e6, **settings).fit(table())
    with pytest.warns(UserWarning, match=r"no feature remains.*would keep 1 at the first"):
        BSUFS(2, must_keep=[0, 1], lambda_row=1e6, **settings).fit(table())


def test_stopping_early_is_said():
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        BSUFS(4, lambda_row=0.5, max_iter=2, tol=1e-12).fit(table())


# --------------------------------------------------------------------------- found by looking hard


@pytest.mark.parametrize("parameters", [{}, {"lambda_row": 0.5, "max_iter": 3000}])
def test_everything_may_be_forced(parameters):
    X = table()
    selector = BSUFS(12, must_keep=list(range(12)), **parameters).fit(X)
    assert selector.support_.all()
    only = BSUFS(1, must_keep=[0], **parameters).fit(np.column_stack([X[:, 0], X[:, 0]]))
    assert only.support_.tolist() == [True, False]


def test_sparse_data_with_a_mean_and_collinear_columns():
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((100, 3))
    Y = np.column_stack([Y, Y @ rng.standard_normal((3, 5))]) + 100.0
    thin = BSUFS(8).fit(sparse.csr_array(Y))
    assert thin.explained_variance_ratio_ == pytest.approx(1.0, abs=1e-4)


@settings(derandomize=True, deadline=None, max_examples=30)
@given(seed=st.integers(0, 1000), n=st.integers(4, 25), d=st.integers(2, 15))
def test_a_stream_breaks_ties_as_fit_does(seed, n, d):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, d)).astype(float)
    X[:, -1] = -X[:, 0]
    if not np.ptp(X, axis=0).any():
        return
    order = rng.permutation(d)
    k = max(1, d // 2)
    stream = BSUFS(k).partial_fit(X[: n // 2]).partial_fit(X[n // 2 :])
    shuffled = BSUFS(k).partial_fit(X[:, order])
    whole = BSUFS(k).fit(X)
    for data, selector in ((X, stream), (X[:, order], shuffled)):
        chosen = [A[:, np.lexsort(A)] for A in (X[:, whole.support_], data[:, selector.support_])]
        np.testing.assert_array_equal(*chosen)


@pytest.mark.parametrize("n_polar_steps", [1, None])
@pytest.mark.parametrize("w_step", ["polar", "trust-region"])
def test_dead_features_have_left_the_components(w_step, n_polar_steps):
    X = load_digits().data[:300]
    selector = BSUFS(20, n_components=4, w_step=w_step, n_polar_steps=n_polar_steps).fit(X)
    dead = ~selector.row_sparse_components_.any(axis=0)
    assert dead.sum() > 20
    assert not selector.components_[:, dead].any()
    gram = selector.components_ @ selector.components_.T
    np.testing.assert_allclose(gram, np.eye(4), atol=1e-10)


def test_all_columns_explain_everything_also_beyond_the_rank():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((8, 2))
    Z = np.column_stack([10 * A @ rng.standard_normal((2, 7)), rng.standard_normal((8, 5))])
    for data in (Z, sparse.csr_array(Z), Z[:, :8]):
        selector = BSUFS(data.shape[1]).fit(data)
        assert selector.explained_variance_ratio_ == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(("n", "value"), [(500, 0.7), (1000, 0.1), (5000, 0.3)])
def test_constant_columns_of_sparse_data_are_recognized(n, value):
    constant = np.full((n, 1), value)
    with pytest.raises(ValueError, match="every column is constant"):
        BSUFS(1).fit(sparse.csr_array(np.hstack([constant, constant])))
    tiny = 1e-3 * np.random.default_rng(0).standard_normal((n, 1))
    assert BSUFS(1).fit(sparse.csr_array(np.hstack([constant, tiny]))).ranking_.tolist() == [2, 1]


def test_a_huge_column_does_not_make_copies_of_the_others():
    rng = np.random.default_rng(0)
    signs = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]])
    H = np.kron(signs, signs)[:, 1:4] * [1e10, 100.0, 90.0]
    Z = np.column_stack([H, 1e-6 * rng.standard_normal(16)])
    nobody = np.zeros(4, dtype=bool)
    assert not find_duplicates(make_scatter(Z), nobody).any()
    twice = np.column_stack([Z, -3.0 * Z[:, 2]])
    assert find_duplicates(make_scatter(twice), np.zeros(5, dtype=bool)).tolist() == [0, 0, 1, 0, 0]


def test_absolute_weights_keep_their_ratios_for_tiny_data():
    settings = {
        "n_components": 3,
        "scale": "absolute",
        "lambda_row": 0.05,
        "lambda_element": 0.05,
        "max_iter": 30,
        "tol": 0.0,
    }
    fits = [BSUFS(4, **settings).fit(factor * table()) for factor in (1e-85, 1e-160, 1e-200)]
    living = [fit.row_sparse_components_.any(axis=0).sum() for fit in fits]
    assert living[0] == living[1] == living[2] > 0
    for fit in fits[1:]:
        np.testing.assert_allclose(fit.objective_history_, fits[0].objective_history_, rtol=1e-9)
    with np.errstate(all="raise"):
        huge = BSUFS(4, **settings).fit(1e200 * table())
    assert huge.objective_history_[-1] == -np.inf
    plain = BSUFS(4, **settings).fit(table())
    doubled = BSUFS(4, **{**settings, "beta_row": 10.0}).fit(table())
    np.testing.assert_allclose(plain.objective_history_, doubled.objective_history_)


def test_an_interrupted_solution_of_a_stream_leaves_nothing_half_done():
    def interrupt(now):
        raise KeyboardInterrupt

    X = table()
    stream = BSUFS(4, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        stream.partial_fit(X)
    assert {name for name in vars(stream) if name.endswith("_")} == {"stream_", "n_features_in_"}
    stream.set_params(callback=None)
    np.testing.assert_array_equal(stream.get_support(), BSUFS(4).fit(X).support_)
    np.testing.assert_array_equal(stream.ranking_, BSUFS(4).fit(X).ranking_)


@pytest.mark.parametrize("name", ["lambda_row", "lambda_element"])
def test_an_absurd_weight_is_taken_at_its_word(name):
    if name == "lambda_row":
        with pytest.warns(UserWarning, match="no feature remains"):
            BSUFS(4, lambda_row=1e300).fit(table())
    else:
        assert not BSUFS(4, lambda_element=1e300).fit(table()).element_sparse_components_.any()


def test_a_share_is_one_of_the_features_that_may_be_kept():
    assert BSUFS(0.99, never_keep=[0, 1]).fit(table()).support_.sum() == 10


def test_a_batch_of_zero_weights_adds_nothing():
    X = table()
    stream = BSUFS(4).partial_fit(X).partial_fit(7 * X[:5], sample_weight=np.zeros(5))
    np.testing.assert_array_equal(stream.ranking_, BSUFS(4).fit(X).ranking_)


def test_partial_fit_refuses_at_once_what_cannot_be_fitted():
    with pytest.raises(ValueError, match="at most the number of features"):
        BSUFS(30).partial_fit(table())
    first = BSUFS(3)
    with pytest.raises(ValueError, match="NaN"):
        first.partial_fit(broken(np.nan))
    assert not hasattr(first, "n_features_in_")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"must_keep": [-1]}, "column numbers from 0 to 11"),
        (
            {"never_keep": [0, 1], "n_components": 11},
            "at most 10, the rank that the data can have, got 11",
        ),
        (
            {"never_keep": [0, 1], "init": np.eye(12)[:, :11]},
            "from 1 to 10 columns, those not in never_keep, got 11",
        ),
    ],
)
def test_more_bad_input_is_told_with_the_cure(parameters, message):
    with pytest.raises(ValueError, match=message):
        BSUFS(**parameters).fit(table())


def test_dates_among_numbers_are_named():
    frame = pd.DataFrame(table(n=6, d=3), columns=list("abc"))
    frame["when"] = pd.date_range("2020-01-01", periods=6)
    with pytest.raises(ValueError, match=r"numbers only.*Encode text as numbers"):
        BSUFS().fit(frame)


def test_the_callback_learns_which_columns_the_rows_are():
    X = table()
    seen = []
    BSUFS(4, n_components=3, lambda_element=0.0, callback=seen.append).fit(X)
    first = seen[0]
    norms = np.linalg.norm(PCA(3).fit(X).components_, axis=0)
    living = first.rows[np.linalg.norm(first.V, axis=1) > 0]
    assert set(range(12)) - set(living) == {int(np.argmin(norms))}


def test_one_hot_data_with_repeated_eigenvalues():
    X = np.eye(28)[np.arange(56) % 28]
    assert BSUFS(5, n_components=2).fit(X).support_.sum() == 5


def test_the_warning_points_at_the_caller():
    with pytest.warns(UserWarning, match="no feature remains") as caught:
        BSUFS(4, lambda_row=50.0).fit(table())
    assert caught[0].filename == __file__


@pytest.mark.parametrize("seed", range(10))
def test_rounding_does_not_decide_between_columns_that_play_the_same_part(seed):
    X = np.random.default_rng(seed).standard_normal((30, 2)) @ [[1.0, 0.3], [0.0, 1.0]]
    X = StandardScaler().fit_transform(X)
    expected = BSUFS(1).fit(X).ranking_
    for n_batches in (2, 3, 7):
        stream = BSUFS(1).fit_batches(np.array_split(X, n_batches))
        np.testing.assert_array_equal(stream.ranking_, expected)


@pytest.mark.parametrize("kind", [BSUFS, ClusterAlignment])
@pytest.mark.parametrize("exponent", [0, 50])
def test_single_precision_selects_what_double_precision_does(kind, exponent, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 5)) @ rng.standard_normal((5, 400)) + rng.standard_normal(
        (50, 400)
    )
    X[:, 7] = X[:, 3]
    X = X.astype(np.float32)
    expected = kind(12).fit(X.astype(np.float64))
    monkeypatch.setattr("bsufs.scatter._accumulate._SMALL_IN_DOUBLE", 0)
    scaled = np.ldexp(X, exponent)
    for selector in (kind(12).fit(scaled), kind(12).fit_batches([scaled[:20], scaled[20:]])):
        assert list(selector.selected_features_) == list(expected.selected_features_)
        np.testing.assert_allclose(
            selector.explained_variance_ratio_, expected.explained_variance_ratio_, rtol=1e-6
        )
