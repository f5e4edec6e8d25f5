"""Both W-steps: gradient and Hessian by their Taylor slope, descent, and pymanopt as the oracle."""

import numpy as np
import pymanopt
import pytest
from pymanopt.manifolds import Stiefel
from pymanopt.optimizers import TrustRegions

from bsufs.scatter import DenseScatter, make_scatter
from bsufs.solvers import w_steps
from bsufs.solvers.w_steps import PolarStep, TrustRegionStep, w_gradient, w_objective
from bsufs.stiefel import polar_factor, retraction_factor, symmetric_part, tangent_projection


def random_problem(seed, d=20, m=4, coupling=5.0):
    rng = np.random.default_rng(seed)
    scatter = make_scatter(rng.standard_normal((3 * d, d)) @ rng.standard_normal((d, d)) / d)
    L = coupling * rng.standard_normal((d, m))
    W = polar_factor(rng.standard_normal((d, m)))
    return scatter, L, W


def exact_hessian(scatter, W, L, M):
    curvature = symmetric_part(W.T @ (-2.0 * (scatter @ W) - L))
    return w_steps._hessian_product(W, curvature, M, scatter @ M)


def taylor_errors(seed, with_hessian):
    scatter, L, W = random_problem(seed)
    M = tangent_projection(W, np.random.default_rng(seed + 100).standard_normal(W.shape))
    M /= np.linalg.norm(M)
    value = w_objective(W, scatter @ W, L)
    first = np.vdot(w_gradient(W, scatter @ W, L), M)
    second = 0.5 * np.vdot(exact_hessian(scatter, W, L, M), M) if with_hessian else 0.0
    steps = np.array([1e-1, 3e-2, 1e-2, 3e-3])
    errors = []
    for t in steps:
        moved = W + t * M
        frame = moved @ retraction_factor(moved)
        model = value + t * first + t**2 * second
        errors.append(abs(w_objective(frame, scatter @ frame, L) - model))
    return np.diff(np.log(errors)) / np.diff(np.log(steps))


@pytest.mark.parametrize("seed", range(5))
def test_gradient_has_taylor_slope_two(seed):
    assert taylor_errors(seed, with_hessian=False).mean() == pytest.approx(2.0, abs=0.15)


@pytest.mark.parametrize("seed", range(5))
def test_hessian_has_taylor_slope_three(seed):
    assert taylor_errors(seed, with_hessian=True).mean() >= 2.85


@pytest.mark.parametrize("seed", range(5))
def test_one_polar_step_lowers_the_objective_by_the_concavity_bound(seed):
    scatter, L, W = random_problem(seed)
    SW = scatter @ W
    after, after_product = PolarStep()(scatter, W, SW, L)
    move = after - W
    # The linear bound is minimized exactly, and concavity gives tr(M'SM) on top.
    drop = w_objective(W, SW, L) - w_objective(after, after_product, L)
    assert drop >= np.vdot(move, scatter @ move) - 1e-10 * abs(drop)
    np.testing.assert_allclose(after_product, scatter @ after, atol=1e-10)


def test_several_polar_steps_are_repeated_single_ones():
    scatter, L, W = random_problem(0)
    frame, product = W, scatter @ W
    for _ in range(3):
        frame, product = PolarStep()(scatter, frame, product, L)
    thrice, _ = PolarStep(n_steps=3)(scatter, W, scatter @ W, L)
    np.testing.assert_array_equal(thrice, frame)


@pytest.mark.parametrize("step", [PolarStep(n_steps=None), TrustRegionStep()])
@pytest.mark.parametrize("seed", range(5))
def test_steps_run_to_the_end_are_stationary(step, seed):
    scatter, L, W = random_problem(seed)
    frame, product = step(scatter, W, scatter @ W, L)
    assert np.linalg.norm(w_gradient(frame, product, L)) < 1e-6
    assert np.abs(frame.T @ frame - np.eye(4)).max() < 1e-12
    assert w_objective(frame, product, L) <= w_objective(W, scatter @ W, L)


@pytest.mark.parametrize("step", [PolarStep(n_steps=None), TrustRegionStep()])
def test_without_a_linear_term_the_steps_find_the_principal_subspace(step):
    scatter, L, W = random_problem(3)
    frame, product = step(scatter, W, scatter @ W, 0.0 * L)
    values, vectors = scatter.leading_eigenvectors(4)
    assert np.vdot(frame, product) == pytest.approx(values.sum(), rel=1e-12)
    np.testing.assert_allclose(frame @ frame.T, vectors @ vectors.T, atol=1e-5)


def test_polar_steps_end_at_a_standstill_where_rounding_hides_the_gradient():
    scatter, L, W = random_problem(0)
    huge = scatter.scaled(1e14)
    step = PolarStep(n_steps=None, tol=0.0)
    frame, product = step(huge, W, huge @ W, 1e15 * L)
    again, _ = PolarStep()(huge, frame, product, 1e15 * L)
    np.testing.assert_allclose(again, frame, atol=1e-12)


def test_polar_steps_are_bounded():
    scatter, L, W = random_problem(0)
    few, _ = PolarStep(n_steps=None, max_steps=2)(scatter, W, scatter @ W, L)
    two, _ = PolarStep(n_steps=2)(scatter, W, scatter @ W, L)
    np.testing.assert_array_equal(few, two)


class CountingScatter(DenseScatter):
    count = 0

    def _product(self, W):
        type(self).count += 1
        return super()._product(W)


def test_the_trust_region_needs_one_product_per_inner_step(monkeypatch):
    scatter, L, W = random_problem(1)
    counting = CountingScatter(scatter.S, 1.0)
    inner_steps = 0
    original = w_steps._hessian_product

    def counted(*arguments):
        nonlocal inner_steps
        inner_steps += 1
        return original(*arguments)

    SW = counting @ W
    CountingScatter.count = 0
    monkeypatch.setattr(w_steps, "_hessian_product", counted)
    TrustRegionStep()(counting, W, SW, L)
    # Gradients and values come for free; the last product refreshes S W.
    assert CountingScatter.count == inner_steps + 1
    assert inner_steps > 5


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("coupling", [0.5, 5.0, 50.0])
def test_the_trust_region_ends_where_pymanopt_does(seed, coupling):
    scatter, L, W = random_problem(seed, coupling=coupling)
    S = scatter.S
    manifold = Stiefel(*W.shape)

    @pymanopt.function.numpy(manifold)
    def cost(frame):
        return -np.vdot(frame, S @ frame) - np.vdot(L, frame)

    @pymanopt.function.numpy(manifold)
    def gradient(frame):
        return -2.0 * S @ frame - L

    @pymanopt.function.numpy(manifold)
    def hessian(frame, tangent):
        return -2.0 * S @ tangent

    problem = pymanopt.Problem(
        manifold, cost, euclidean_gradient=gradient, euclidean_hessian=hessian
    )
    oracle = TrustRegions(verbosity=0, min_gradient_norm=1e-8).run(problem, initial_point=W)
    frame, product = TrustRegionStep(tol=1e-8)(scatter, W, scatter @ W, L)
    assert w_objective(frame, product, L) == pytest.approx(oracle.cost, rel=1e-9)
    assert np.linalg.norm(w_gradient(frame, product, L)) < 1e-8
    assert oracle.gradient_norm < 1e-6


def test_a_stationary_start_is_left_alone():
    scatter, L, _ = random_problem(2)
    _, W = scatter.leading_eigenvectors(4)
    SW = scatter @ W
    frame, product = TrustRegionStep()(scatter, W, SW, 0.0 * L)
    assert frame is W
    assert product is SW
