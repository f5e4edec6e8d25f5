"""The alternation: sufficient decrease of every step, criticality at the end, special cases."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bsufs.penalties import ElementPenalty, RowPenalty, row_norms
from bsufs.scatter import make_scatter
from bsufs.solvers.alternation import Coupling, Problem, proximal_alternation
from bsufs.solvers.w_steps import PolarStep, TrustRegionStep
from bsufs.stiefel import polar_factor

EXPONENTS = st.sampled_from([0.0, 0.3, 0.5, 2 / 3, 1.0])
W_STEPS = st.sampled_from([PolarStep(), PolarStep(3), PolarStep(None), TrustRegionStep()])


def random_problem(seed, p, q, lambdas, betas, tau=0.1, d=15, n=40):
    rng = np.random.default_rng(seed)
    scatter = make_scatter(rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) / d)
    return Problem(
        scatter,
        Coupling(RowPenalty(lambdas[0], p), betas[0], tau),
        Coupling(ElementPenalty(lambdas[1], q), betas[1], tau),
        tau,
    )


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 1000),
    p=EXPONENTS,
    q=EXPONENTS,
    w_step=W_STEPS,
    lambdas=st.tuples(st.floats(1e-3, 10), st.floats(1e-3, 1)),
    betas=st.tuples(st.floats(0.1, 50), st.floats(0.1, 50)),
)
def test_each_of_the_three_steps_lowers_f_by_half_tau_times_its_squared_move(
    seed, p, q, w_step, lambdas, betas
):
    problem = random_problem(seed, p, q, lambdas, betas)
    scatter, row, element, tau = problem.scatter, problem.row, problem.element, problem.tau
    rng = np.random.default_rng(seed)
    W = polar_factor(rng.standard_normal((15, 3)))
    U, V = W + 0.1 * rng.standard_normal((2, 15, 3))

    def f(W, U, V):
        return problem.objective(W, scatter @ W, U, V)

    slack = 1e-9 * (1 + abs(f(W, U, V)))
    for _ in range(4):
        W_new, _ = w_step(scatter, W, scatter @ W, problem.linear_term(W, U, V))
        assert f(W_new, U, V) <= f(W, U, V) - 0.5 * tau * ((W_new - W) ** 2).sum() + slack
        U_new = element.penalty.prox(element.center(W_new, U), element.step)
        assert f(W_new, U_new, V) <= f(W_new, U, V) - 0.5 * tau * ((U_new - U) ** 2).sum() + slack
        V_new = row.penalty.prox(row.center(W_new, V), row.step)
        assert (
            f(W_new, U_new, V_new)
            <= f(W_new, U_new, V) - 0.5 * tau * ((V_new - V) ** 2).sum() + slack
        )
        W, U, V = W_new, U_new, V_new


@pytest.mark.parametrize("w_step", [PolarStep(), PolarStep(None), TrustRegionStep()])
@pytest.mark.parametrize(("p", "q"), [(0.0, 0.0), (0.5, 0.5), (2 / 3, 0.0), (0.3, 0.9), (1.0, 1.0)])
@pytest.mark.parametrize("seed", range(3))
def test_the_run_descends_and_ends_at_a_critical_point(seed, p, q, w_step):
    problem = random_problem(seed, p, q, (2.0, 0.05), (20.0, 5.0), tau=0.5)
    _, W = problem.scatter.leading_eigenvectors(3)
    result = proximal_alternation(problem, W, w_step=w_step, max_iter=20_000, tol=1e-15)
    assert result.stopping_reason == "converged"
    assert (np.diff(result.objective_history) <= 1e-9).all()
    start = problem.criticality(W, np.zeros_like(W), np.zeros_like(W))
    assert problem.criticality(result.W, result.U, result.V) < 1e-4 * max(start, 1.0)


@pytest.mark.parametrize(("p", "q"), [(0.0, 0.5), (0.5, 0.5), (1.0, 1.0)])
def test_the_same_holds_with_rows_in_groups(p, q):
    problem = random_problem(3, p, q, (2.0, 0.05), (20.0, 5.0), tau=0.5)
    groups = np.arange(15) % 6
    grouped = replace(problem.row, penalty=RowPenalty(6.0, p, groups=groups))
    problem = replace(problem, row=grouped)
    _, W = problem.scatter.leading_eigenvectors(3)
    result = proximal_alternation(problem, W, max_iter=20_000, tol=1e-15)
    assert (np.diff(result.objective_history) <= 1e-9).all()
    start = problem.criticality(W, np.zeros_like(W), np.zeros_like(W))
    assert problem.criticality(result.W, result.U, result.V) < 1e-4 * max(start, 1.0)
    alive = row_norms(result.V) > 0
    assert 3 <= alive.sum() < 15
    assert np.isin(groups, groups[alive]).tolist() == alive.tolist()
    assert (result.survival.last_step[alive] == result.n_iter).all()


def test_criticality_sees_a_point_that_is_not_critical():
    problem = random_problem(0, 1.0, 1.0, (2.0, 0.05), (20.0, 5.0))
    _, W = problem.scatter.leading_eigenvectors(3)
    assert problem.criticality(W, W, W) > 0.1
    # At zero the convex penalties allow a pull up to their weight and no more.
    coupling = Coupling(RowPenalty(2.0, 1.0), 1.0, 0.0)
    assert coupling.criticality(np.full((1, 1), 1.5), np.zeros((1, 1))) == 0.0
    assert coupling.criticality(np.full((1, 1), 2.5), np.zeros((1, 1))) == pytest.approx(0.5)
    weighted = Coupling(RowPenalty(2.0, 1.0, np.array([0.5])), 1.0, 0.0)
    assert weighted.criticality(np.full((1, 1), 2.5), np.zeros((1, 1))) == pytest.approx(1.5)


def test_histories_and_survival_tell_what_happened():
    problem = random_problem(4, 0.0, 0.5, (1.5, 0.1), (20.0, 5.0))
    _, W = problem.scatter.leading_eigenvectors(3)
    seen = []
    result = proximal_alternation(problem, W, max_iter=7, tol=0.0, callback=seen.append)
    assert result.n_iter == 7
    assert result.stopping_reason == "max_iter"
    assert result.objective_history.shape == (8,)
    assert result.row_gap_history.shape == result.element_gap_history.shape == (7,)
    assert result.row_gap_history[-1] == pytest.approx(np.linalg.norm(result.W - result.V))
    assert result.element_gap_history[-1] == pytest.approx(np.linalg.norm(result.W - result.U))
    assert [progress.iteration for progress in seen] == list(range(1, 8))
    alive = np.array([row_norms(progress.V) > 0 for progress in seen])
    last = np.where(alive.any(axis=0), 7 - alive[::-1].argmax(axis=0), 0)
    np.testing.assert_array_equal(result.survival.last_step, last)
    assert (last < 7).any()
    assert (last == 7).any()


def test_a_callback_can_stop_the_run():
    problem = random_problem(4, 0.0, 0.5, (1.0, 0.1), (20.0, 5.0))
    _, W = problem.scatter.leading_eigenvectors(3)
    result = proximal_alternation(problem, W, tol=0.0, callback=lambda now: now.iteration == 3)
    assert (result.n_iter, result.stopping_reason) == (3, "callback")


def test_stopping_follows_the_relative_change_of_the_true_objective():
    problem = random_problem(1, 0.5, 0.5, (2.0, 0.05), (20.0, 5.0))
    _, W = problem.scatter.leading_eigenvectors(3)
    result = proximal_alternation(problem, W, tol=1e-4)
    f = result.objective_history
    change = np.abs(np.diff(f)) / np.maximum(1.0, np.abs(f[:-1]))
    assert change[-1] < 1e-4
    assert (change[:-1] >= 1e-4).all()
    recomputed = problem.objective(result.W, problem.scatter @ result.W, result.U, result.V)
    assert f[-1] == pytest.approx(recomputed)


def test_without_penalties_the_solution_is_pca():
    problem = Problem(random_problem(2, 0, 0, (1, 1), (1, 1)).scatter, None, None, 0.01)
    start = polar_factor(np.random.default_rng(0).standard_normal((15, 3)))
    result = proximal_alternation(problem, start, w_step=PolarStep(None), max_iter=2000, tol=1e-14)
    _, vectors = problem.scatter.leading_eigenvectors(3)
    np.testing.assert_allclose(result.W @ result.W.T, vectors @ vectors.T, atol=1e-5)
    assert result.U is result.W
    assert result.V is result.W


def test_a_vanishing_element_weight_is_the_model_without_that_term():
    # lambda_element = 0 leaves PCA with a row penalty, the SPCAFS model.
    both = random_problem(3, 0.5, 0.5, (2.0, 1e-14), (20.0, 1e-8), tau=0.01)
    alone = Problem(both.scatter, both.row, None, both.tau)
    _, W = both.scatter.leading_eigenvectors(3)
    kept = [proximal_alternation(problem, W, tol=1e-10, max_iter=3000) for problem in (both, alone)]
    np.testing.assert_allclose(kept[0].V, kept[1].V, atol=1e-5)
    assert kept[0].objective_history[-1] == pytest.approx(kept[1].objective_history[-1], rel=1e-6)
