"""Iterations in blocks: the same steps, graphs of one size, and nothing large in one place."""

from functools import partial

import numpy as np
import pytest
from dask.sizeof import sizeof
from tests.distributed.test_columns import in_blocks, low_rank_and_noise

from bsufs.distributed import _tasks, iteration
from bsufs.penalties import ElementPenalty, RowPenalty
from bsufs.solvers.alternation import Coupling, Problem, proximal_alternation
from bsufs.solvers.path import sparsity_path
from bsufs.solvers.row_blocks import Report
from bsufs.solvers.w_steps import PolarStep, TrustRegionStep

ELEMENT = Coupling(ElementPenalty(1e-3, 0.5), 1.0, 1e-3)


def both(n=30, widths=(50, 1, 39), m=4):
    scatter, local = in_blocks(low_rank_and_noise(n, sum(widths)), widths)
    values, frame = scatter.leading_eigenvectors(m)
    _, W = local.leading_eigenvectors(m)
    return (scatter.scaled(1 / values[0]), frame), (local.scaled(1 / values[0]), W)


def same_path(result, expected, tol=1e-9):
    for name in ("lambda_row", "objective_history", "component_variance_ratio", "W", "U", "V"):
        np.testing.assert_allclose(getattr(result, name), getattr(expected, name), atol=tol)
    np.testing.assert_array_equal(result.n_alive, expected.n_alive)
    np.testing.assert_allclose(result.survival.scores(), expected.survival.scores(), atol=tol)


@pytest.mark.parametrize("n_steps", [1, 3])
@pytest.mark.parametrize("element", [None, ELEMENT], ids=["rows", "both"])
@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_the_path_is_the_same(p, element, n_steps):
    follow = partial(
        sparsity_path,
        p=p,
        beta_row=10.0,
        tau=1e-3,
        element=element,
        drop_rate=0.2,
        n_keep=20,
        forced=np.arange(90) == 7,
        barred=np.arange(90) == 11,
        w_step=PolarStep(n_steps),
    )
    blocks, local = both()
    same_path(follow(*blocks), follow(*local))


@pytest.mark.parametrize("n_steps", [1, 2])
def test_a_weak_tie_leaves_steps_that_gram_matrices_cannot_do(n_steps, monkeypatch):
    careful = []
    monkeypatch.setattr(iteration, "_joint_turns", spied(iteration._joint_turns, careful))
    follow = partial(
        sparsity_path, p=0.5, beta_row=1e-3, tau=1e-6, drop_rate=0.3, w_step=PolarStep(n_steps)
    )
    blocks, local = both(m=6)
    result, expected = follow(*blocks), follow(*local)
    assert careful
    same_path(result, expected, 1e-7)


def test_a_step_is_done_again_where_any_of_its_polar_steps_was_unsound(monkeypatch):
    answers = iter([False, True])
    (scatter, frame), (local, W) = both()
    # The first of two polar steps cannot be told from Gram matrices, the second one could.
    real = iteration._joint_by_gram

    def joint(stacked):
        if next(answers, True):
            return real(stacked)
        m = stacked.shape[1]
        return iteration._Joint(np.zeros((m, m)), np.zeros_like(stacked[m:]), sound=False)

    monkeypatch.setattr(iteration, "_joint_by_gram", joint)
    follow = partial(sparsity_path, p=0.5, beta_row=10.0, tau=1e-3, max_iter=3, w_step=PolarStep(2))
    same_path(follow(scatter, frame), follow(local, W))


def spied(function, calls):
    def spy(*arguments):
        calls.append(arguments)
        return function(*arguments)

    return spy


@pytest.mark.parametrize("forced", [None, 3])
def test_fixed_weights_give_the_same(forced):
    weights = None
    if forced is not None:
        weights = np.where(np.arange(90) == forced, 0.0, np.where(np.arange(90) == 5, np.inf, 1.0))
    row = Coupling(RowPenalty(0.3, 0.5, weights), 10.0, 1e-3)

    def solve(scatter, W):
        problem = Problem(scatter, row, ELEMENT, 1e-3)
        return proximal_alternation(problem, W, first_center=0.0 * W, max_iter=12, tol=0.0)

    blocks, local = both()
    result, expected = solve(*blocks), solve(*local)
    for name in ("objective_history", "row_gap_history", "element_gap_history", "W", "U", "V"):
        np.testing.assert_allclose(getattr(result, name), getattr(expected, name), atol=1e-9)
    np.testing.assert_allclose(result.survival.scores(), expected.survival.scores(), atol=1e-9)


def watched(monkeypatch):
    """The sizes of the graphs that are submitted, and all results that are kept."""
    graphs, results = [], []
    real = _tasks._dask.persist

    def spy(bundle):
        graphs.append(len(bundle.__dask_graph__()))
        (kept,) = real(bundle)
        results.extend(one.content for one in kept)
        return (kept,)

    monkeypatch.setattr(_tasks._dask, "persist", spy)
    return graphs, results


def test_every_iteration_submits_a_graph_of_the_same_size(monkeypatch):
    (scatter, frame), _ = both(widths=(40, 30, 20))
    graphs, _ = watched(monkeypatch)
    steps = []

    def note(progress):
        steps.append(len(graphs))

    sparsity_path(
        scatter, frame, p=0.5, beta_row=10.0, tau=1e-3, drop_rate=0.05, callback=note, max_iter=20
    )
    # One graph for the start, and one for each iteration while no rows are taken out.
    assert steps == list(range(2, 22))
    assert len(set(graphs[1:])) == 1


def numbers_in(thing):
    """How many numbers the arrays in a result have in common memory or apart."""
    if isinstance(thing, np.ndarray):
        return [thing.size]
    return (
        [size for part in vars(thing).values() for size in numbers_in(part)]
        if (hasattr(thing, "__dict__"))
        else []
    )


def test_no_array_is_larger_than_a_block(monkeypatch):
    n, widths, m = 30, (40, 30, 30, 50), 3
    (scatter, frame), _ = both(n, widths, m)
    _, results = watched(monkeypatch)
    sparsity_path(scatter, frame, p=0.5, beta_row=10.0, tau=1e-3, drop_rate=0.2)
    sizes = [size for result in results for size in numbers_in(result)]
    assert len(sizes) > 100
    assert max(sizes) <= max(n * max(widths), n * m)


def test_work_shrinks_with_the_living_rows():
    (scatter, frame), _ = both(widths=(60, 60, 60))
    seen = []
    sparsity_path(
        scatter,
        frame,
        p=0.5,
        beta_row=10.0,
        tau=1e-3,
        drop_rate=0.2,
        callback=lambda now: seen.append(now.rows.size),
    )
    assert seen[0] == 180
    assert seen[-1] < 60


def test_a_callback_sees_the_iterates_when_it_looks():
    blocks, local = both()
    looks = []
    for scatter, W in (blocks, local):
        looks.append([])
        sparsity_path(
            scatter,
            W,
            p=0.5,
            beta_row=10.0,
            tau=1e-3,
            max_iter=3,
            callback=lambda now, seen=looks[-1]: seen.append((now.W, now.U, now.V)),
        )
    for one, other in zip(*looks, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


@pytest.mark.parametrize("w_step", [TrustRegionStep(), PolarStep(None)])
def test_other_steps_are_an_error(w_step):
    (scatter, frame), _ = both()
    with pytest.raises(ValueError, match="w_step must be a given number of polar steps"):
        sparsity_path(scatter, frame, p=0.5, beta_row=10.0, tau=1e-3, w_step=w_step)


def test_dask_is_told_how_large_a_state_is():
    # It would believe some fifty bytes, and send states around as if that cost nothing.
    W = np.zeros((50, 4))
    copies = iteration.BlockState(W, W, None, None)
    state = iteration.BlockState(W, W, copies, Report(np.zeros(2), (np.zeros(50),)))
    assert sizeof(state) - 4 * W.nbytes - 52 * 8 in range(200)
