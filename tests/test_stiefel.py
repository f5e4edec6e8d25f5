"""Polar factor, projection and retraction against their definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg

from bsufs.stiefel import flip_signs, polar_factor, retraction_factor, tangent_projection


def orthonormality_error(W):
    return np.abs(W.T @ W - np.eye(W.shape[1])).max()


def with_condition(rng, d, m, condition):
    P = linalg.qr(rng.standard_normal((d, m)), mode="economic")[0]
    Q = linalg.qr(rng.standard_normal((m, m)))[0]
    return (P * np.logspace(0, -np.log10(condition), m)) @ Q.T


@pytest.mark.parametrize("condition", [1, 10, 1e2, 1e3, 1e4, 1e5, 1e8, 1e12, 1e14])
@pytest.mark.parametrize("shape", [(5, 5), (40, 7), (300, 20)])
def test_polar_factor_is_orthonormal_and_the_svd_one_at_any_condition(condition, shape):
    B = with_condition(np.random.default_rng(0), *shape, condition)
    W = polar_factor(B)
    assert orthonormality_error(W) < 1e-12
    P, _, Qt = linalg.svd(B, full_matrices=False)
    # The factor itself is only as well determined as the smallest singular value allows.
    assert np.abs(W - P @ Qt).max() < 1e-13 * max(condition, 10)


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_polar_factor_of_a_rank_deficient_matrix_is_orthonormal_maximal_and_deterministic(rank):
    rng = np.random.default_rng(1)
    B = rng.standard_normal((30, rank)) @ rng.standard_normal((rank, 6))
    W = polar_factor(B)
    assert orthonormality_error(W) < 1e-12
    nuclear = linalg.svdvals(B).sum()
    assert np.vdot(B, W) == pytest.approx(nuclear, rel=1e-10, abs=1e-10)
    assert np.array_equal(W, polar_factor(B.copy()))


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e-10, 1e10, 1e170, 1e300])
def test_polar_factor_does_not_depend_on_scale(scale):
    B = np.random.default_rng(2).standard_normal((20, 4))
    np.testing.assert_allclose(polar_factor(scale * B), polar_factor(B), atol=1e-13)


@settings(derandomize=True, deadline=None, max_examples=50)
@given(seed=st.integers(0, 10_000), m=st.integers(1, 6), extra=st.integers(0, 10))
def test_polar_factor_maximizes_the_inner_product(seed, m, extra):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((m + extra, m))
    W = polar_factor(B)
    competitor = linalg.qr(rng.standard_normal(B.shape), mode="economic")[0]
    assert np.vdot(B, W) >= np.vdot(B, competitor) - 1e-12


def test_polar_factor_of_a_wide_matrix_says_what_is_wrong():
    with pytest.raises(ValueError, match=r"at least as tall as wide.*\(2, 3\)"):
        polar_factor(np.ones((2, 3)))


def test_polar_factor_keeps_single_precision():
    B = np.random.default_rng(3).standard_normal((50, 5)).astype(np.float32)
    W = polar_factor(B)
    assert W.dtype == np.float32
    assert orthonormality_error(W) < 1e-5


def test_projection_is_tangent_idempotent_and_self_adjoint():
    rng = np.random.default_rng(4)
    W = polar_factor(rng.standard_normal((12, 4)))
    A, B = rng.standard_normal((2, 12, 4))
    P = tangent_projection(W, A)
    assert np.abs(W.T @ P + P.T @ W).max() < 1e-13
    np.testing.assert_allclose(tangent_projection(W, P), P, atol=1e-13)
    assert np.vdot(P, B) == pytest.approx(np.vdot(A, tangent_projection(W, B)), abs=1e-12)


def test_retraction_stays_on_the_manifold_and_is_of_second_order():
    rng = np.random.default_rng(5)
    W = polar_factor(rng.standard_normal((15, 3)))
    M = tangent_projection(W, rng.standard_normal((15, 3)))
    steps = np.array([1e-1, 1e-2, 1e-3])
    errors = []
    for t in steps:
        moved = W + t * M
        frame = moved @ retraction_factor(moved)
        assert orthonormality_error(frame) < 1e-13
        # Second order: the acceleration of the curve has no tangent part.
        second_difference = tangent_projection(W, frame - W - t * M)
        errors.append(np.linalg.norm(second_difference))
    slopes = np.diff(np.log(errors)) / np.diff(np.log(steps))
    assert (slopes > 2.9).all()


def test_peaks_become_positive_and_nothing_else_changes():
    W = np.array([[1.0, -3.0, 0.0], [-2.0, 1.0, 0.0]])
    np.testing.assert_array_equal(flip_signs(W), np.array([[-1.0, 3.0, 0.0], [2.0, -1.0, 0.0]]))
    assert flip_signs(np.empty((0, 2))).shape == (0, 2)
