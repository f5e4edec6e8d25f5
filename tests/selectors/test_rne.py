"""RNE: its steps and the reference runs."""

from __future__ import annotations

import numpy as np
import pytest
from tests.golden import assert_agrees, golden_cases, golden_data

from bsufs.selectors.rne import RNE
from bsufs.solvers.neighborhood_embedding import (
    elementwise_split,
    factor_split,
    h_step,
    make_split,
    neighborhood_embedding,
    soft_threshold,
)


@pytest.mark.parametrize(("dataset", "run"), golden_cases("RNE"))
@pytest.mark.parametrize("start", ["sine", "array"])
def test_reference_runs(dataset, run, start):
    X, _ = golden_data(dataset)
    parameters = run["params"]
    m = parameters["m"]
    init = "sine"
    if start == "array":
        rows, columns = np.ogrid[1 : X.shape[1] + 1, 1 : m + 1]
        init = 0.5 + 0.5 * np.sin(rows * m + columns)
    selector = RNE(
        n_neighbors=parameters["k"],
        n_components=m,
        normalize_samples=bool(parameters["row_normalise"]),
        init=init,
        compat="reference",
    ).fit(X)
    assert_agrees(selector.scores_, run)
    assert selector.objective_ == pytest.approx(run["objective_final"], rel=1e-6)


@pytest.mark.parametrize("shape", [(30, 12), (10, 40)])
def test_splits_are_non_negative_parts_of_the_gram_matrix(shape):
    rng = np.random.default_rng(0)
    A, H = rng.standard_normal(shape), rng.random((shape[1], 3))
    for split in (elementwise_split(A), factor_split(A)):
        positive, negative = split(H)
        assert positive.min() >= 0
        assert negative.min() >= 0
        np.testing.assert_allclose(positive - negative, A.T @ A @ H)
    suitable = factor_split if shape[1] > 30 else elementwise_split
    np.testing.assert_array_equal(make_split(A)(H), suitable(A)(H))


@pytest.mark.parametrize("shape", [(30, 12), (10, 40)])
@pytest.mark.parametrize("alpha", [1.0, 1e3])
@pytest.mark.parametrize("kind", [elementwise_split, factor_split])
def test_a_multiplicative_step_lowers_the_augmented_lagrangian(shape, alpha, kind):
    rng = np.random.default_rng(1)
    n, d = shape
    A, H = rng.standard_normal(shape), rng.random((d, 4))
    M, Y, mu = 0.3 * A @ H, 0.1 * rng.standard_normal((n, 4)), 10.0

    def value(H):
        gap, gram = M - A @ H, H.T @ H - np.eye(4)
        return np.vdot(Y, gap) + mu / 2 * np.vdot(gap, gap) + alpha / 4 * np.vdot(gram, gram)

    split = kind(A)
    for _ in range(100):
        H = H / np.linalg.norm(H, axis=0)
        before = value(H)
        H = h_step(H, split, A.T @ M, A.T @ Y, alpha=alpha, mu=mu, n_steps=1)
        assert value(H) <= before
        assert H.min() >= 0


def test_soft_threshold_minimizes():
    N = np.linspace(-3, 3, 13)
    M = soft_threshold(N, 0.5)
    # The subgradient of |M| is the sign, or anything from -1 to 1 at zero.
    slope = (N - M) / 0.5
    np.testing.assert_allclose(slope[M != 0], np.sign(M[M != 0]))
    assert np.abs(slope).max() <= 1 + 1e-12


def test_iteration_stops_when_nothing_moves():
    rng = np.random.default_rng(2)
    A = 0.01 * rng.standard_normal((20, 6))
    result = neighborhood_embedding(
        A,
        rng.random((6, 2)),
        alpha=10.0,
        mu=10.0,
        mu_growth=1.5,
        max_iter=500,
        max_inner_iter=30,
        tol=1e-3,
    )
    assert result.stopping_reason == "converged"
    assert result.n_iter < 500
    np.testing.assert_allclose(result.W.T @ result.W, np.eye(2), atol=0.05)


@pytest.mark.parametrize("seed", range(4))
def test_features_rebuilt_by_neighbors_score_above_noise(seed):
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 6, size=150)
    smooth = np.column_stack([np.cos(t), np.sin(t), np.cos(2 * t)])
    X = np.hstack([rng.standard_normal((150, 5)), np.sqrt(2) * smooth])
    scores = RNE(3, normalize_samples=False).fit(X).scores_
    assert scores[5:].mean() > 2 * scores[:5].mean()


def test_random_start_is_governed_by_the_seed():
    X = np.random.default_rng(4).standard_normal((30, 8))
    first, again, other = (
        RNE(4, init="random", random_state=seed, max_iter=3).fit(X).scores_ for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_repeated_samples_are_no_obstacle_by_default():
    X = np.tile(np.random.default_rng(5).standard_normal((10, 12)), (3, 1))
    assert np.isfinite(RNE(3).fit(X).scores_).all()
    # Two copies and one other neighbor: a local system with rows of zeros.
    with pytest.raises(ValueError, match="Repeated samples cause that"):
        RNE(3, n_neighbors=3, compat="reference").fit(X)


@pytest.mark.parametrize(("n_features", "counts"), [(4, True), (5, False), (12, False)])
def test_the_reference_has_a_ridge_with_more_neighbors_than_features_only(n_features, counts):
    X = np.random.default_rng(6).standard_normal((20, n_features))
    settings = {"n_neighbors": 5, "normalize_samples": False, "compat": "reference"}
    small, large = (RNE(2, ridge=ridge, **settings).fit(X).scores_ for ridge in (1e-3, 1.0))
    assert np.isfinite(small).all()
    assert (not np.allclose(small, large)) is counts


def test_wrong_start_is_explained():
    X = np.random.default_rng(7).standard_normal((10, 4))
    with pytest.raises(ValueError, match=r"init must be .* = \(4, 2\) .*shape \(4, 3\)"):
        RNE(n_components=2, init=np.ones((4, 3))).fit(X)
    for init, found in (
        (-np.ones((4, 3)), "smallest entry of -1"),
        (np.full((4, 3), np.nan), "got nan"),
        (np.full((4, 3), "a"), "could not convert"),
        (np.ones(4), r"shape \(4,\)"),
    ):
        with pytest.raises(ValueError, match=rf"init must be .*{found}.*Use init='sine'"):
            RNE(init=init).fit(X)


def test_more_columns_than_features_are_refused():
    X = np.random.default_rng(7).standard_normal((10, 4))
    with pytest.raises(ValueError, match=r"n_components must be at most .* 4, .* Ask for fewer"):
        RNE(n_components=5).fit(X)
    with pytest.raises(ValueError, match="the number of columns of init must be at most"):
        RNE(init=np.ones((4, 5))).fit(X)


@pytest.mark.parametrize("unit", [1e160, 1e300, 1e-160, 1e-300])
def test_very_large_and_very_small_data(unit):
    X = np.random.default_rng(8).standard_normal((40, 6)) * np.arange(1, 7)
    expected = RNE(3).fit(X).selected_features_
    np.testing.assert_array_equal(RNE(3).fit(unit * X).selected_features_, expected)
