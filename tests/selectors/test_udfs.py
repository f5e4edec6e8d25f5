"""UDFS: its matrix, descent, the reference runs, and the contract of a selector."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg
from sklearn.utils.estimator_checks import parametrize_with_checks

from bsufs.graphs import discriminative_laplacian, nearest_samples
from bsufs.selectors.udfs import UDFS
from bsufs.solvers.reweighted import lowest_eigenvectors
from bsufs.solvers.row_space import RowSpaceForm, row_space
from tests.golden import assert_agrees, golden_cases, golden_data


@parametrize_with_checks([UDFS()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("dataset", "run"), golden_cases("UDFS"))
def test_reference_runs(dataset, run):
    X, _ = golden_data(dataset)
    d = X.shape[1]
    parameters = run["params"]
    selector = UDFS(
        n_neighbors=parameters["k"],
        n_components=parameters["proj_dim"],
        gamma=parameters["gamma"],
        ridge=parameters["lambda"],
        x0=0.5 + 0.5 * np.arange(1, d + 1) / d if "x0" in parameters else None,
        compat="reference",
    ).fit(X)
    assert_agrees(selector.scores_, run)
    assert selector.objective_history_[-1] == pytest.approx(run["objective_final"], rel=1e-6)


@pytest.mark.parametrize("k", [1, 5])
def test_matrix_is_positive_semidefinite_and_blind_to_constants(k):
    # A wrong index in the loop over samples, seen in public code, breaks both.
    X = np.random.default_rng(0).standard_normal((40, 6)) + 10.0
    L = discriminative_laplacian(X, nearest_samples(X, k + 1).indices, 0.1).toarray()
    np.testing.assert_allclose(L @ np.ones(40), 0.0, atol=1e-12)
    np.testing.assert_allclose(L, L.T)
    assert linalg.eigvalsh(L).min() > -1e-12 * linalg.norm(L)
    if k == 5:
        assert np.linalg.matrix_rank(L) == 39


@pytest.mark.parametrize("shape", [(60, 12), (20, 50)])
@pytest.mark.parametrize("compat", ["publication", "reference"])
@pytest.mark.parametrize("gamma", [0.01, 1.0])
def test_objective_never_increases(shape, compat, gamma):
    X = np.random.default_rng(1).standard_normal(shape)
    x0 = np.linspace(0.5, 1.0, shape[1])
    selector = UDFS(n_components=3, gamma=gamma, x0=x0, compat=compat, tol=0).fit(X)
    history = selector.objective_history_
    assert history.size == 20
    assert (np.diff(history) <= 1e-10 * history[0]).all()
    W = selector.components_.T
    np.testing.assert_allclose(W.T @ W, np.eye(3), atol=1e-10)
    np.testing.assert_allclose((W**2).sum(axis=1), selector.scores_)


def test_directions_stay_in_the_span_of_the_samples():
    X = np.random.default_rng(2).standard_normal((15, 40))
    W = UDFS(n_components=3).fit(X).components_.T
    basis = row_space(X)
    assert basis.shape == (40, 14)
    np.testing.assert_allclose(basis @ (basis.T @ W), W, atol=1e-9)


def test_row_space_does_not_depend_on_units():
    X = np.random.default_rng(3).standard_normal((50, 6))
    assert row_space(X * 10.0 ** np.arange(-15, 15, 5)) is None
    X[:, 2] = 3.0
    basis = row_space(X * 10.0 ** np.arange(-15, 15, 5))
    assert basis.shape == (6, 5)
    np.testing.assert_allclose(basis[2], 0.0, atol=1e-15)
    assert row_space(np.ones((5, 3))).shape == (3, 0)


@pytest.mark.parametrize("d", [30, 500])
def test_lowest_eigenvectors_within_a_subspace(d):
    rng = np.random.default_rng(4)
    basis = linalg.qr(rng.standard_normal((d, 20)), mode="economic")[0]
    root = rng.standard_normal((20, 20))
    diagonal = rng.uniform(0.1, 10.0, size=d)
    form = RowSpaceForm(root @ root.T, basis)
    values, W = lowest_eigenvectors(form, diagonal, 4)
    inner = root @ root.T + (basis.T * diagonal) @ basis
    np.testing.assert_allclose(values, linalg.eigvalsh(inner)[:4], rtol=1e-9)
    np.testing.assert_allclose(basis @ (basis.T @ W), W, atol=1e-9)


def test_full_rank_data_do_not_feel_the_restriction():
    X = np.random.default_rng(5).standard_normal((60, 8))
    ours = UDFS(n_components=2, gamma=0.1, ridge=1e-6, max_iter=5, tol=0).fit(X)
    theirs = UDFS(n_components=2, gamma=0.1, ridge=1e-6, max_iter=5, compat="reference").fit(X)
    np.testing.assert_allclose(ours.scores_, theirs.scores_, atol=1e-3)


def test_few_features_use_the_other_formula_of_the_reference():
    X = np.random.default_rng(6).standard_normal((30, 4))
    UDFS(2, n_components=2, gamma="auto", compat="reference").fit(X)


def test_data_without_variation_score_zero():
    selector = UDFS(1).fit(np.ones((6, 3)))
    np.testing.assert_array_equal(selector.scores_, 0.0)
    assert selector.n_iter_ == 0


def test_wrong_parameters_are_explained():
    X = np.random.default_rng(7).standard_normal((10, 4))
    with pytest.raises(ValueError, match="x0 must have one number for each of the 4 features"):
        UDFS(x0=np.ones(3)).fit(X)
    with pytest.raises(ValueError, match="n_components must be at most 4"):
        UDFS(n_components=5).fit(X)


@pytest.mark.parametrize("unit", [1e160, 1e300, 1e-160, 1e-300])
def test_very_large_and_very_small_data(unit):
    X = np.random.default_rng(8).standard_normal((40, 6)) * np.arange(1, 7)
    expected = UDFS(3).fit(X).selected_features_
    np.testing.assert_array_equal(UDFS(3).fit(unit * X).selected_features_, expected)
