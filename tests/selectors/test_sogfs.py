"""SOGFS: its steps and the reference runs."""

from __future__ import annotations

import numpy as np
import pytest
from tests.golden import assert_agrees, golden_cases, golden_data

from bsufs.graphs import affinity, components_by_size, laplacian, nearest_samples
from bsufs.selectors.sogfs import SOGFS
from bsufs.solvers.forms import row_space, samples_form
from bsufs.solvers.reweighted import reweighted_eigenvectors
from bsufs.solvers.structured_graph import pair_distances


@pytest.mark.parametrize(("dataset", "run"), golden_cases("SOGFS"))
def test_reference_runs(dataset, run):
    X, _ = golden_data(dataset)
    parameters = run["params"]
    selector = SOGFS(
        n_components=parameters["proj_dim"],
        n_clusters=parameters["n_clusters"],
        n_neighbors=parameters["k"],
        gamma=parameters["gamma"],
        max_iter=parameters["max_outer"],
        compat="reference",
    ).fit(X)
    assert_agrees(selector.scores_, run)
    assert selector.n_iter_ == run["iterations"]
    assert selector.rank_weight_ == pytest.approx(run["lambda_final"], rel=1e-8)


def three_clusters(n=90, noise=5):
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 3
    centers = 8.0 * np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    informative = centers[labels] + rng.standard_normal((n, 3))
    return np.hstack([rng.standard_normal((n, noise)), informative]), labels


def test_graph_falls_into_the_pieces_asked_for():
    X, labels = three_clusters()
    selector = SOGFS(2, n_components=2, n_clusters=3).fit(X)
    assert selector.stopping_reason_ == "converged"
    count, pieces = components_by_size(selector.affinity_)
    assert count == 3
    assert len(set(zip(labels, pieces, strict=True))) == 3
    assert set(selector.selected_features_) < {5, 6, 7}
    W = selector.components_.T
    np.testing.assert_allclose(W.T @ W, np.eye(2), atol=1e-10)
    np.testing.assert_allclose((W**2).sum(axis=1), selector.scores_)


@pytest.mark.parametrize("shape", [(60, 12), (20, 50)])
@pytest.mark.parametrize("gamma", [1e-3, 0.1])
def test_no_reweighting_increases_the_objective(shape, gamma):
    Z = np.random.default_rng(1).standard_normal(shape)
    Z = (Z - Z.mean(axis=0)) / np.linalg.norm(Z - Z.mean(axis=0), axis=0)
    L = laplacian(affinity(nearest_samples(Z, 6), "binary"))
    form = samples_form(Z, L, row_space(Z))
    result = reweighted_eigenvectors(form, 3, gamma=gamma, max_iter=30, tol=None)
    assert (np.diff(result.objective_history) <= 1e-10 * result.objective_history[0]).all()


def test_pair_distances():
    P = np.random.default_rng(2).standard_normal((10, 3))
    indices = nearest_samples(P, 4).indices
    expected = nearest_samples(P, 4).squared_distances
    np.testing.assert_allclose(pair_distances(P, indices), expected, atol=1e-13)


@pytest.mark.parametrize("compat", ["publication", "reference"])
def test_more_features_than_samples(compat):
    X = np.random.default_rng(3).standard_normal((20, 50))
    selector = SOGFS(5, n_components=3, n_clusters=2, gamma=0.01, compat=compat, max_iter=8).fit(X)
    assert np.isfinite(selector.scores_).all()
    assert selector.scores_.sum() == pytest.approx(3.0)


def test_two_samples_and_equal_samples():
    pair = SOGFS(1).fit(np.array([[0.0, 1.0], [1.0, 0.0]]))
    np.testing.assert_allclose(pair.scores_, 0.5)
    selector = SOGFS(1).fit(np.ones((5, 2)))
    np.testing.assert_array_equal(selector.scores_, 0.0)
    assert selector.affinity_.shape == (5, 5)
    assert selector.gamma_ > 0
    assert selector.rank_weight_ > 0
    assert selector.objective_history_.size == selector.n_iter_ == 0
    assert SOGFS(1, gamma=0.3).fit(np.ones((5, 2))).gamma_ == 0.3


def test_samples_that_are_all_equally_far():
    selector = SOGFS(3).fit(np.eye(50))
    W = selector.components_.T
    np.testing.assert_allclose(W.T @ W, np.eye(selector.n_components_), atol=1e-10)
    np.testing.assert_allclose(selector.scores_, (W**2).sum(axis=1))


def test_too_many_pieces_are_cut_back():
    X = np.vstack([np.random.default_rng(4).standard_normal((8, 3)) + 100 * i for i in range(4)])
    options = {"n_components": 2, "n_clusters": 2, "n_neighbors": 3}
    once, twice = (SOGFS(2, max_iter=k, **options).fit(X) for k in (1, 2))
    assert components_by_size(twice.affinity_)[0] > 2
    assert twice.rank_weight_ == once.rank_weight_ / 2
    assert twice.stopping_reason_ == "max_iter"


def test_wrong_parameters_are_explained():
    X = np.random.default_rng(5).standard_normal((10, 4))
    with pytest.raises(ValueError, match="n_clusters must be at most the number of samples, 10"):
        SOGFS(n_clusters=11).fit(X)
    with pytest.raises(ValueError, match="n_components must be at most 4"):
        SOGFS(n_components=5).fit(X)


@pytest.mark.parametrize("unit", [1e160, 1e300, 1e-160, 1e-300])
def test_very_large_and_very_small_data(unit):
    X = np.random.default_rng(8).standard_normal((40, 6)) * np.arange(1, 7)
    expected = SOGFS(3).fit(X).selected_features_
    np.testing.assert_array_equal(SOGFS(3).fit(unit * X).selected_features_, expected)
