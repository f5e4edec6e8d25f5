"""UDFS: its matrix, descent and the reference runs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg
from tests.golden import assert_agrees, golden_cases, golden_data

from bsufs.graphs import discriminative_laplacian, local_grams, nearest_samples
from bsufs.selectors.udfs import UDFS
from bsufs.solvers.forms import RowSpaceForm, row_space
from bsufs.solvers.reweighted import lowest_eigenvectors


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
    indices = nearest_samples(X, k + 1).indices
    L = discriminative_laplacian(local_grams(X, indices), indices, 0.1).toarray()
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
    gamma, ridge, k = 0.1, 0.2, 5
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    J = np.eye(k + 1) - 1 / (k + 1)
    L = np.zeros((30, 30))
    for local in np.argsort(distances, axis=1, kind="stable")[:, : k + 1]:
        Y = J @ X[local]
        inner = np.linalg.inv(np.eye(4) + ridge * Y.T @ Y)
        L[np.ix_(local, local)] += J - ridge * Y @ inner @ Y.T
    M = X.T @ L @ X
    weights = np.ones(4)
    for _ in range(20):
        W = linalg.eigh(M + gamma * np.diag(weights))[1][:, :2]
        scores = (W**2).sum(axis=1)
        weights = 0.5 / np.sqrt(scores + 2**-52)
    options = {"n_components": 2, "gamma": gamma, "ridge": ridge, "n_neighbors": k}
    selector = UDFS(2, compat="reference", **options).fit(X)
    np.testing.assert_allclose(selector.scores_, scores, atol=1e-8)
    other = UDFS(2, compat="reference", **{**options, "n_neighbors": 2}).fit(X)
    assert np.abs(other.scores_ - scores).max() > 1e-3


def test_a_first_term_that_vanishes_on_a_subspace():
    X = np.random.default_rng(0).standard_normal((10, 60))
    selector = UDFS(compat="reference").fit(X)
    W = selector.components_.T
    np.testing.assert_allclose(W.T @ W, np.eye(W.shape[1]), atol=1e-10)
    np.testing.assert_allclose(selector.scores_, (W**2).sum(axis=1))


def test_data_without_variation_score_zero():
    selector = UDFS(1).fit(np.ones((6, 3)))
    np.testing.assert_array_equal(selector.scores_, 0.0)
    assert selector.n_iter_ == 0


def test_wrong_parameters_are_explained():
    X = np.random.default_rng(7).standard_normal((10, 4))
    for x0, found in (
        (np.ones(3), "shape"),
        ([1, 2, np.nan, 4], "nan"),
        ([1, 2, np.inf, 4], "inf"),
        (["a", "b", "c", "d"], "could not convert"),
    ):
        with pytest.raises(ValueError, match=rf"x0 must be .* = \(4,\) .*{found}.*Leave x0 out"):
            UDFS(x0=x0).fit(X)
    copies = np.repeat(X, 3, axis=0)
    with pytest.raises(ValueError, match=r"ridge must be large enough .* Raise it"):
        UDFS(n_neighbors=2, ridge=1e-320, n_components=2, compat="reference").fit(copies)
    with pytest.raises(ValueError, match="n_components must be at most 4"):
        UDFS(n_components=5).fit(X)


@pytest.mark.parametrize("unit", [1e160, 1e300, 1e-160, 1e-300])
def test_very_large_and_very_small_data(unit):
    X = np.random.default_rng(8).standard_normal((40, 6)) * np.arange(1, 7)
    expected = UDFS(3).fit(X).selected_features_
    np.testing.assert_array_equal(UDFS(3).fit(unit * X).selected_features_, expected)
