"""Laplacian score: the Rayleigh quotient and the reference runs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from tests.golden import assert_agrees, golden_cases, golden_data

from bsufs.graphs import affinity, laplacian, nearest_samples
from bsufs.selectors.laplacian_score import LaplacianScore

WEIGHTS = {"Binary": "binary", "HeatKernel": "heat", "Cosine": "cosine"}


@pytest.mark.parametrize(("dataset", "run"), golden_cases("LapScore"))
def test_reference_runs(dataset, run):
    X, _ = golden_data(dataset)
    parameters = run["params"]
    selector = LaplacianScore(n_neighbors=parameters["k"], weight=WEIGHTS[parameters["weight"]])
    assert_agrees(selector.fit(X).scores_, run)


@pytest.mark.parametrize("weight", ["heat", "binary", "cosine"])
def test_score_is_one_minus_the_rayleigh_quotient(weight):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 5)) + 2.0
    scores = LaplacianScore(weight=weight).fit(X).scores_
    G = affinity(nearest_samples(X, 6, with_mean_distance=True), weight, X)
    L, D = laplacian(G).toarray(), G.sum(axis=1)
    for score, f in zip(scores, X.T, strict=True):
        f = f - (D @ f) / D.sum()
        assert score == pytest.approx(1 - (f @ L @ f) / (D @ f**2), abs=1e-12)


def test_smooth_features_win_over_noise():
    rng = np.random.default_rng(1)
    t = rng.uniform(0, 6, size=200)
    smooth = np.column_stack([3 * np.cos(t), 3 * np.sin(t), t])
    X = np.hstack([rng.standard_normal((200, 3)), smooth])
    selector = LaplacianScore(3).fit(X)
    assert set(selector.selected_features_) == {3, 4, 5}


def test_sparse_equals_dense_and_unit_does_not_matter():
    rng = np.random.default_rng(2)
    X = rng.random((50, 6)) * (rng.random((50, 6)) < 0.6)
    expected = LaplacianScore().fit(X).scores_
    np.testing.assert_allclose(LaplacianScore().fit(sparse.csr_array(X)).scores_, expected)
    np.testing.assert_allclose(LaplacianScore().fit(1e-9 * X).scores_, expected, rtol=1e-9)


def test_few_samples_and_constant_columns():
    X = np.array([[0.0, 1.0, 7.0], [1.0, 1.0, 7.0], [3.0, 1.0, 7.0]])
    for data in (X, sparse.csr_array(X)):
        selector = LaplacianScore(1, n_neighbors=5).fit(data)
        np.testing.assert_array_equal(selector.scores_[1:], 0.0)
        np.testing.assert_array_equal(selector.selected_features_, [0])
    assert not LaplacianScore(1, weight="cosine").fit(np.eye(3)).scores_.any()


@pytest.mark.parametrize("unit", [1e160, 1e300, 1e-160, 1e-300])
def test_very_large_and_very_small_data(unit):
    X = np.random.default_rng(8).standard_normal((40, 6)) * np.arange(1, 7)
    expected = LaplacianScore(3).fit(X).selected_features_
    np.testing.assert_array_equal(LaplacianScore(3).fit(unit * X).selected_features_, expected)
