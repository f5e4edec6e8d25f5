"""NLGMS: its steps and its memory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg

from bsufs.graphs import affinity, laplacian, nearest_samples
from bsufs.selectors.nlgms import NLGMS
from bsufs.solvers import self_representation as solver
from bsufs.solvers.self_representation import (
    SmoothnessOperator,
    bytes_needed,
    largest_eigenvalue,
    shrink_singular_values,
    sparse_frame,
)


def smooth_and_noise(n=120, seed=0):
    rng = np.random.default_rng(seed)
    centers = rng.uniform(0, 10, size=(3, 4))
    informative = centers[np.arange(n) % 3] + 0.5 * rng.standard_normal((n, 4))
    return np.hstack([rng.uniform(0, 10, size=(n, 6)), informative])


def test_smooth_features_win_over_noise():
    X = smooth_and_noise()
    selector = NLGMS(4, n_components=2).fit(X)
    assert set(selector.selected_features_) == {6, 7, 8, 9}
    W = selector.components_.T
    np.testing.assert_allclose(W.T @ W, np.eye(2), atol=1e-10)
    assert np.count_nonzero(np.abs(W).max(axis=1)) == 4


def test_too_much_memory_is_refused_before_anything_is_computed(monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("started although there is too little memory")

    monkeypatch.setattr("bsufs.selectors.nlgms.self_representation", never)
    monkeypatch.setattr("bsufs.selectors._data.make_scatter", never)
    X = np.zeros((20_000, 3))
    with pytest.raises(ValueError, match=r"would need about 44\.8 GB .* max_memory = 2 GB"):
        NLGMS(2).fit(X)
    assert bytes_needed(20_000, 3) > 44e9
    with pytest.raises(ValueError, match="Pass fewer rows"):
        NLGMS(2, max_memory=1e-6).fit(smooth_and_noise())


def test_singular_values_are_shrunk_optimally():
    B = np.random.default_rng(1).standard_normal((8, 8))
    J, norm = shrink_singular_values(B, 1.5)
    values = linalg.svdvals(B)
    np.testing.assert_allclose(linalg.svdvals(J), np.maximum(values - 1.5, 0.0), atol=1e-12)
    assert norm == pytest.approx(np.maximum(values - 1.5, 0.0).sum())
    # Optimality: (B - J) / level is a subgradient of the nuclear norm at J.
    slope = (B - J) / 1.5
    assert linalg.svdvals(slope)[0] <= 1 + 1e-12
    assert np.vdot(slope, J) == pytest.approx(norm)
    J, norm = shrink_singular_values(B, 100.0)
    assert norm == 0.0
    assert not J.any()


@pytest.mark.parametrize("d", [10, 100])
def test_operator_is_positive_semidefinite(d):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, d))
    L = laplacian(affinity(nearest_samples(X, 6), "binary"))
    dense = X.T @ L.toarray() @ X
    assert largest_eigenvalue(X, L) == pytest.approx(linalg.eigvalsh(dense)[-1])
    A = SmoothnessOperator(X, L)
    np.testing.assert_allclose(A @ np.eye(d), A.rho * np.eye(d) - dense, atol=1e-9)
    W = linalg.qr(rng.standard_normal((d, 3)), mode="economic")[0]
    AW = A @ W
    expected = np.diag(AW @ np.linalg.pinv(W.T @ AW) @ AW.T)
    np.testing.assert_allclose(A.scores(W), expected, rtol=1e-8)
    assert largest_eigenvalue(np.zeros((60, 100)), L) == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_rounds_of_the_sparse_frame_never_lose(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 20))
    A = SmoothnessOperator(X, laplacian(affinity(nearest_samples(X, 6), "binary")))
    W = A.frame(rng.permutation(20)[:8], 3, restricted=False)
    monkeypatch.setattr(solver, "_MOST_ROUNDS", 1)
    value = np.vdot(W, A @ W)
    for _ in range(6):
        W, scores = sparse_frame(A, W, 8, restricted=True)
        assert np.vdot(W, A @ W) >= value - 1e-9 * abs(value)
        value = np.vdot(W, A @ W)
        # The proxy touches the operator at W: its trace there is the value.
        assert scores[np.abs(W).max(axis=1) > 0].sum() >= value - 1e-9 * abs(value)


@pytest.mark.parametrize("compat", ["publication", "reference"])
def test_random_start_is_governed_by_the_seed(compat):
    X = smooth_and_noise(40)
    first, again = (
        NLGMS(4, init="random", random_state=0, compat=compat).fit(X).scores_ for _ in range(2)
    )
    np.testing.assert_array_equal(first, again)


def test_reference_keeps_the_graph_of_the_data(monkeypatch):
    calls = []
    original = solver.graph
    monkeypatch.setattr(solver, "graph", lambda *a: calls.append(1) or original(*a))
    NLGMS(4, compat="reference").fit(smooth_and_noise(40))
    assert len(calls) == 1
    fitted = NLGMS(4).fit(smooth_and_noise(40))
    assert len(calls) == 2 + fitted.n_iter_


def test_nuclear_norm_is_active_where_its_weight_is_small(monkeypatch):
    norms = []

    def spied(B, level):
        J, norm = shrink_singular_values(B, level)
        norms.append(norm)
        return J, norm

    monkeypatch.setattr(solver, "shrink_singular_values", spied)
    X = smooth_and_noise(40)
    small = NLGMS(4, lambda_nuclear=1e-3, mu=1e-2, max_iter=10).fit(X)
    assert max(norms) > 0
    assert small.n_iter_ == len(norms)
    norms.clear()
    large = NLGMS(4, lambda_nuclear=1e6, mu=1e-2, max_iter=10).fit(X)
    assert max(norms) == 0
    # Where J is zero its weight is no part of the objective.
    larger = NLGMS(4, lambda_nuclear=1e7, mu=1e-2, max_iter=10).fit(X)
    np.testing.assert_array_equal(larger.objective_history_, large.objective_history_)
    assert not np.array_equal(small.objective_history_[-1:], large.objective_history_[-1:])


def test_more_features_than_samples():
    X = np.random.default_rng(3).standard_normal((12, 40))
    selector = NLGMS(20, n_components=4).fit(X)
    assert np.isfinite(selector.scores_).all()
    assert selector.get_support().sum() == 20


def test_wrong_parameters_are_explained():
    with pytest.raises(ValueError, match="n_components must be at most"):
        NLGMS(4, n_components=5).fit(smooth_and_noise())


@pytest.mark.parametrize("unit", [1e160, 1e300, 1e-160, 1e-300])
def test_very_large_and_very_small_data(unit):
    X = np.random.default_rng(8).standard_normal((40, 6)) * np.arange(1, 7)
    expected = NLGMS(3).fit(X).selected_features_
    np.testing.assert_array_equal(NLGMS(3).fit(unit * X).selected_features_, expected)
