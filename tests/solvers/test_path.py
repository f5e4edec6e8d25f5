"""The path: who dies when, the weights that follow, and forced and barred rows."""

import numpy as np
import pytest

from bsufs.penalties import ElementPenalty, RowPenalty, row_norms
from bsufs.scatter import make_scatter
from bsufs.solvers.alternation import Coupling
from bsufs.solvers.path import sparsity_path
from bsufs.solvers.survival import Survival
from bsufs.solvers.w_steps import TrustRegionStep


def start(n=80, d=40, m=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m)) @ rng.standard_normal((m, d)) + rng.standard_normal((n, d))
    scatter = make_scatter(X)
    values, W = scatter.leading_eigenvectors(m)
    return scatter.scaled(1.0 / values[0]), W


SETTINGS = {"p": 0.0, "beta_row": 10.0, "tau": 1e-3}


@pytest.mark.parametrize("p", [0.0, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("element", [False, True])
def test_the_path_goes_from_all_rows_to_one_and_each_weight_kills_whom_it_should(p, element):
    scatter, W = start()
    seen = []
    coupling = Coupling(ElementPenalty(1e-3, 0.5), 1.0, 1e-3) if element else None
    path = sparsity_path(scatter, W, **{**SETTINGS, "p": p}, element=coupling, callback=seen.append)
    assert path.stopping_reason == "path_complete"
    assert path.n_alive[-1] == 1
    before = np.concatenate([[40], path.n_alive[:-1]])
    np.testing.assert_array_equal(
        path.n_alive, before - np.maximum(1, np.round(0.05 * before)).astype(int)
    )
    frame, copy = W, W
    for step, progress in enumerate(seen):
        # The exact proximal map with the weight that the path reports gives the same rows.
        Z = (10.0 * frame + 1e-3 * copy) / (10.0 + 1e-3)
        weight = path.lambda_row[step] * (1 - 1e-9)
        expected = RowPenalty(weight, p).prox(Z, 1.0 / (10.0 + 1e-3))
        alive = row_norms(progress.V) > 0
        assert alive.sum() == progress.n_alive == path.n_alive[step]
        np.testing.assert_allclose(progress.V[alive], expected[alive], atol=1e-7)
        frame, copy = progress.W, progress.V
    assert (path.U is path.W) == (not element)
    shares = path.explained_variance_ratio
    assert shares.shape == (path.n_iter + 1,)
    assert shares[0] == max(shares)
    np.testing.assert_allclose(shares[-1], np.vdot(path.W, scatter @ path.W) / scatter.trace())


def test_all_rows_are_ranked_by_one_run():
    scatter, W = start()
    scores = sparsity_path(scatter, W, **SETTINGS).survival.scores()
    assert np.unique(scores).size == 40
    assert (scores >= 0).all()
    assert (scores <= 1).all()


def test_forced_rows_never_die_and_barred_ones_never_live():
    scatter, W = start()
    forced, barred = np.zeros((2, 40), dtype=bool)
    forced[[3, 4]] = True
    barred[[0, 1, 2]] = True
    lives = []
    path = sparsity_path(
        scatter,
        W,
        **SETTINGS,
        forced=forced,
        barred=barred,
        callback=lambda now: lives.append(row_norms(now.V) > 0),
    )
    lives = np.array(lives)
    assert lives[:, forced].all()
    assert not lives[:, barred].any()
    assert path.n_alive[-1] == 3
    assert (path.survival.last_step[barred] == 0).all()


def test_equal_rows_die_one_after_the_other():
    rng = np.random.default_rng(0)
    column = rng.standard_normal((30, 1))
    scatter = make_scatter(np.repeat(column, 8, axis=1))
    W = np.full((8, 1), 1 / np.sqrt(8))
    path = sparsity_path(scatter, W, **SETTINGS)
    np.testing.assert_array_equal(path.n_alive, np.arange(7, 0, -1))


def test_the_path_can_be_stopped_and_bounded():
    scatter, W = start()
    assert sparsity_path(scatter, W, **SETTINGS, max_iter=4).stopping_reason == "max_iter"
    stopped = sparsity_path(scatter, W, **SETTINGS, callback=lambda now: now.n_alive < 20)
    assert stopped.stopping_reason == "callback"
    assert stopped.n_alive[-1] < 20 <= stopped.n_alive[-2]


def test_a_faster_path_has_fewer_steps():
    scatter, W = start()
    steps = [sparsity_path(scatter, W, **SETTINGS, death_rate=r).n_iter for r in (0.05, 0.2, 0.5)]
    assert steps[0] > steps[1] > steps[2]


def test_the_trust_region_follows_the_path_too():
    scatter, W = start()
    polar = sparsity_path(scatter, W, **SETTINGS)
    exact = sparsity_path(scatter, W, **SETTINGS, w_step=TrustRegionStep())
    np.testing.assert_array_equal(polar.n_alive, exact.n_alive)
    order = [np.argsort(-path.survival.scores())[:10] for path in (polar, exact)]
    assert np.intersect1d(*order).size >= 6


def test_smallest_faithful_reads_the_path():
    scatter, W = start()
    path = sparsity_path(scatter, W, **SETTINGS)
    shares = path.explained_variance_ratio
    for share in (0.5, 0.9, 0.99):
        k = path.smallest_faithful(share)
        step = int(np.flatnonzero(path.n_alive == k)[0])
        assert shares[step + 1] >= share * shares[0] or step == 0
        assert (shares[step + 2 :] < share * shares[0]).all()
    assert path.smallest_faithful(2.0) == path.n_alive[0]
    single = sparsity_path(scatter, W, **SETTINGS, barred=np.arange(40) > 0)
    assert (single.n_iter, single.smallest_faithful(0.9)) == (0, 1)


def test_survival_orders_by_step_then_by_norm():
    survival = Survival(4)
    survival.record(np.array([0.9, 0.5, 0.4, 0.1]), np.array([True, True, False, False]))
    survival.record(np.array([0.8, 0.2, 0.99, 0.99]), np.array([True, False, False, False]))
    np.testing.assert_array_equal(survival.last_step, [2, 1, 0, 0])
    np.testing.assert_allclose(survival.last_norm, [0.8, 0.2, 0.4, 0.1])
    np.testing.assert_array_equal(np.argsort(-survival.scores()), [0, 1, 2, 3])
