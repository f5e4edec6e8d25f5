"""MCFS: its regression paths and the reference runs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import lars_path
from tests.golden import assert_agrees, golden_cases, golden_data

from bsufs.selectors.mcfs import MCFS
from bsufs.solvers.forms import short_root
from bsufs.solvers.lars import lars


@pytest.mark.parametrize(("dataset", "run"), golden_cases("MCFS"))
def test_reference_runs(dataset, run):
    X, _ = golden_data(dataset)
    parameters = run["params"]
    selector = MCFS(
        n_neighbors=parameters["k"],
        n_components=parameters["n_eig"],
        n_nonzero=parameters["n_features"],
        compat="reference",
    ).fit(X)
    np.testing.assert_allclose(selector.eigenvalues_, run["eigenvalues"], atol=1e-9)
    assert_agrees(selector.scores_, run)


@pytest.mark.parametrize("shape", [(60, 12), (30, 60)])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("exact", [True, False])
def test_path_without_ridge_equals_scikit_learns(shape, storage, exact):
    rng = np.random.default_rng(3)
    X = rng.standard_normal(shape)
    y = X[:, :4] @ [3.0, -2.0, 1.0, 0.5] + rng.standard_normal(shape[0])
    _, _, coefficients = lars_path(X, y, method="lasso")
    active = np.count_nonzero(coefficients, axis=0)
    for s in range(1, 12):
        b = lars(storage(X), X.T @ y, s, ridge_in_correlations=exact)
        assert np.count_nonzero(b) == s
        knots = coefficients[:, active == s]
        assert np.abs(knots - b[:, None]).max(axis=0).min() < 1e-9


@pytest.mark.parametrize("shape", [(60, 12), (20, 60), (5, 60)])
@pytest.mark.parametrize("copied", [False, True])
def test_path_with_ridge_is_optimal_for_the_elastic_net(shape, copied):
    rng = np.random.default_rng(4)
    X = rng.standard_normal(shape)
    if copied:
        X[:, 5:10] = X[:, :5]
    y = rng.standard_normal(shape[0])
    for s in (1, 3, 6, 10, 12):
        b = lars(X, X.T @ y, s, ridge=0.1)
        gradient = X.T @ (y - X @ b) - 0.1 * b
        level = np.abs(gradient).max()
        alive = b != 0
        np.testing.assert_allclose(gradient[alive], level * np.sign(b[alive]), atol=1e-10)
        # A copy may enter with a coefficient that is still zero.
        assert np.count_nonzero(alive) == s or copied


def test_path_without_ridge_passes_copies_by():
    rng = np.random.default_rng(9)
    X = rng.standard_normal((60, 12))
    X[:, 5:10] = X[:, :5]
    y = rng.standard_normal(60)
    for s in range(1, 7):
        b = lars(short_root(X), X.T @ y, s)
        gradient = X.T @ (y - X @ b)
        level = np.abs(gradient).max()
        assert np.count_nonzero(b) == s
        np.testing.assert_allclose(gradient[b != 0], level * np.sign(b[b != 0]), atol=1e-10)
    b = lars(X, X.T @ y, 10)
    np.testing.assert_allclose(X.T @ (y - X @ b), 0.0, atol=1e-10)


def test_paths_end_where_nothing_is_left():
    assert not lars(np.eye(3), np.zeros(3), 2).any()
    X = np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    b = lars(X, X.T @ [1.0, 2.0, 3.0], 3)
    np.testing.assert_allclose(X @ b, [1.5, 1.5, 3.0])


def test_cluster_features_win_over_noise():
    rng = np.random.default_rng(5)
    centers = 6 * rng.standard_normal((4, 3))
    informative = centers[rng.integers(0, 4, size=200)] + rng.standard_normal((200, 3))
    X = np.hstack([rng.standard_normal((200, 5)), informative])
    selector = MCFS(3, n_components=3).fit(X)
    assert set(selector.selected_features_) == {5, 6, 7}
    assert selector.n_components_ == 3


def test_more_functions_than_there_are_is_cut():
    X = np.random.default_rng(5).standard_normal((10, 4))
    selector = MCFS(2, n_components=50).fit(X)
    assert selector.n_components_ == selector.eigenvalues_.size <= 9


def test_sparse_equals_dense():
    rng = np.random.default_rng(6)
    X = rng.random((50, 8)) * (rng.random((50, 8)) < 0.6)
    dense = MCFS(4, n_components=3).fit(X)
    thin = MCFS(4, n_components=3).fit(sparse.csr_array(X))
    np.testing.assert_allclose(thin.scores_, dense.scores_, atol=1e-8)


def test_unit_of_the_data_does_not_matter():
    X = np.random.default_rng(7).standard_normal((40, 6))
    scores = MCFS(3).fit(X).scores_
    np.testing.assert_allclose(MCFS(3).fit(1000 * X).scores_, scores, atol=1e-9)


def test_constant_data_have_nothing_to_score():
    assert not MCFS(1).fit(np.zeros((6, 3))).scores_.any()


def test_path_longer_than_there_are_features_is_refused():
    with pytest.raises(ValueError, match="n_nonzero must be at most the number of features, 3"):
        MCFS(n_nonzero=4).fit(np.random.default_rng(0).standard_normal((9, 3)))


@pytest.mark.parametrize("unit", [1e160, 1e300, 1e-160, 1e-300])
def test_very_large_and_very_small_data(unit):
    X = np.random.default_rng(8).standard_normal((40, 6)) * np.arange(1, 7)
    expected = MCFS(3).fit(X).selected_features_
    np.testing.assert_array_equal(MCFS(3).fit(unit * X).selected_features_, expected)
