"""The path: who dies when, the weights that follow, and forced and barred rows."""

import itertools

import numpy as np
import pytest

from bsufs.penalties import ElementPenalty, RowPenalty, row_norms
from bsufs.scatter import make_scatter
from bsufs.solvers.alternation import Coupling
from bsufs.solvers.path import _by_regression, _largest, sparsity_path
from bsufs.solvers.survival import Survival
from bsufs.solvers.w_steps import TrustRegionStep
from bsufs.stiefel import polar_factor


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
    assert path.n_alive[-1] == 3
    before = np.concatenate([[40], path.n_alive[:-1]])
    np.testing.assert_array_equal(
        path.n_alive, np.maximum(before - np.maximum(1, np.round(0.05 * before)), 3)
    )
    frame, copy, rows = W, W, np.arange(40)
    for step, progress in enumerate(seen):
        # The exact proximal map with the weight that the path reports gives the same rows.
        Z = (10.0 * frame + 1e-3 * copy) / (10.0 + 1e-3)
        weight = path.lambda_row[step] * (1 - 1e-9)
        expected = np.zeros((40, frame.shape[1]))
        expected[rows] = RowPenalty(weight, p).prox(Z, 1.0 / (10.0 + 1e-3))
        alive = row_norms(progress.V) > 0
        assert alive.sum() == progress.n_alive == path.n_alive[step]
        np.testing.assert_allclose(progress.V[alive], expected[progress.rows[alive]], atol=1e-7)
        # Dead rows have left the problem.
        assert not progress.W[~alive].any()
        frame, copy, rows = progress.W, progress.V, progress.rows
    assert step > 20
    last = path.at(1)
    np.testing.assert_allclose(last.W.T @ last.W, np.eye(3), atol=1e-12)
    shares = path.component_variance_ratio
    assert shares.shape == (path.n_iter + 1,)
    assert shares[0] == max(shares)


def test_dead_rows_are_as_if_they_were_not_there():
    # A step of the path is the alternation on the submatrix of the living rows.
    scatter, W = start()
    seen = []
    sparsity_path(scatter, W, **SETTINGS, callback=seen.append)
    S = scatter @ np.eye(40)
    for before, after in itertools.pairwise(seen[:25]):
        V = np.zeros((40, 3))
        frame = np.zeros((40, 3))
        frame[before.rows] = before.W
        V[after.rows] = after.V
        alive = V.any(axis=1)
        L = 10.0 * V[alive] + 1e-3 * frame[alive]
        expected = polar_factor(2.0 * (S @ frame)[alive] + L)
        new = np.zeros((40, 3))
        new[after.rows] = after.W
        np.testing.assert_allclose(new[alive], expected, atol=1e-10)


@pytest.mark.parametrize("n_keep", [1, 5, 17, 40])
def test_the_iterates_are_those_of_the_step_asked_for(n_keep, monkeypatch):
    scatter, W = start()
    path = sparsity_path(scatter, W, **SETTINGS, n_keep=n_keep)
    kept = path.at(n_keep)
    enough = [n for n in (40, *path.n_alive) if n >= n_keep]
    assert np.count_nonzero(kept.V.any(axis=1)) == enough[-1]
    np.testing.assert_allclose(kept.W.T @ kept.W, np.eye(3), atol=1e-12)
    assert kept.spread(kept.U, 40).shape == (40, 3)
    # A path that was not told keeps them all, or those of its last steps.
    afterwards = sparsity_path(scatter, W, **SETTINGS).at(n_keep)
    for name in "WUV":
        np.testing.assert_array_equal(
            kept.spread(getattr(kept, name), 40), afterwards.spread(getattr(afterwards, name), 40)
        )
    monkeypatch.setattr("bsufs.solvers.path._FEW_ROWS", 10)
    few = sparsity_path(scatter, W, **{**SETTINGS, "drop_rate": 1e-3}).at(n_keep)
    assert (few is None) == (n_keep > 10)


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
        callback=lambda now: lives.append(now.rows[row_norms(now.V) > 0]),
    )
    assert all({3, 4} <= set(rows) and not {0, 1, 2} & set(rows) for rows in lives)
    assert path.n_alive[-1] == 3
    assert (path.survival.last_step[barred] == 0).all()


def test_the_last_row_that_competes_with_forced_ones_lives():
    scatter, W = start(m=1)
    path = sparsity_path(scatter, W, **SETTINGS, forced=np.isin(np.arange(40), [3, 4]))
    # Where a single row is left there is nothing to choose any more.
    np.testing.assert_array_equal(path.n_alive[-2:], [4, 3])
    assert np.count_nonzero(path.survival.last_step == path.n_iter) == 3


def test_equal_rows_die_one_after_the_other():
    rng = np.random.default_rng(0)
    column = rng.standard_normal((30, 1))
    scatter = make_scatter(np.repeat(column, 8, axis=1))
    W = np.full((8, 1), 1 / np.sqrt(8))
    for p in (0.0, 0.5, 0.9):
        alive = []
        path = sparsity_path(
            scatter,
            W,
            **{**SETTINGS, "p": p},
            callback=lambda now, alive=alive: alive.append(np.count_nonzero(row_norms(now.V))),
        )
        # A living row that ties with a dying one is alive, not at the threshold's zero.
        np.testing.assert_array_equal(alive, np.arange(7, 0, -1))
        np.testing.assert_array_equal(path.n_alive, alive)


def test_the_path_can_be_stopped_and_bounded():
    scatter, W = start()
    assert sparsity_path(scatter, W, **SETTINGS, max_iter=4).stopping_reason == "max_iter"
    stopped = sparsity_path(scatter, W, **SETTINGS, callback=lambda now: now.n_alive < 20)
    assert stopped.stopping_reason == "callback"
    assert stopped.n_alive[-1] < 20 <= stopped.n_alive[-2]


def test_a_faster_path_has_fewer_steps():
    scatter, W = start()
    steps = [sparsity_path(scatter, W, **SETTINGS, drop_rate=r).n_iter for r in (0.05, 0.2, 0.5)]
    assert steps[0] > steps[1] > steps[2]


@pytest.mark.parametrize("drop_rate", [0.05, 0.3, 0.9])
def test_steps_are_larger_while_many_rows_remain(drop_rate):
    scatter, W = start(n=30, d=700)
    n_alive = sparsity_path(scatter, W, **SETTINGS, drop_rate=drop_rate).n_alive
    many = np.concatenate([[700], n_alive[:-1]]) > 256
    before = np.concatenate([[700], n_alive[:-1]])
    single = np.maximum(before - np.maximum(1, np.round(drop_rate * before)), 3)
    np.testing.assert_array_equal(n_alive[~many], single[~many])
    four = np.maximum(np.round(before * (1.0 - drop_rate) ** 4), 256)
    np.testing.assert_array_equal(n_alive[many], np.minimum(single, four)[many])


def test_the_trust_region_follows_the_path_too():
    scatter, W = start()
    polar = sparsity_path(scatter, W, **SETTINGS)
    exact = sparsity_path(scatter, W, **SETTINGS, w_step=TrustRegionStep())
    np.testing.assert_array_equal(polar.n_alive, exact.n_alive)
    order = [np.argsort(-path.survival.scores())[:10] for path in (polar, exact)]
    assert np.intersect1d(*order).size >= 6


def test_a_single_candidate_has_no_path():
    scatter, W = start()
    single = sparsity_path(scatter, W, **SETTINGS, barred=np.arange(40) > 0)
    assert (single.n_iter, single.stopping_reason) == (0, "path_complete")


def test_the_last_rows_are_ordered_by_what_they_explain():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5)) @ rng.standard_normal((5, 30)) + rng.standard_normal((60, 30))
    scatter = make_scatter(X)
    _, W = scatter.leading_eigenvectors(5)
    path = sparsity_path(scatter, W, p=0.5, beta_row=1e4, tau=1.0)
    last = np.flatnonzero(path.survival.last_step == path.n_iter)
    assert last.size == 5
    chosen = []
    for _ in range(5):  # plain greedy regression
        shares = [scatter.explained_share(np.array([*chosen, row])) for row in last]
        shares = [-1.0 if row in chosen else x for row, x in zip(last, shares, strict=True)]
        chosen.append(int(last[np.argmax(shares)]))
    np.testing.assert_array_equal(np.argsort(-path.survival.scores())[:5], chosen)


def test_rows_that_tell_nothing_new_are_the_last_of_the_last():
    X = np.random.default_rng(0).standard_normal((20, 5)) * [1, 3, 2, 1, 1]
    X[:, 3] = X[:, 1] - X[:, 2]
    X[:, 4] = 7.0
    scatter, rows = make_scatter(X), np.arange(5)
    free = np.zeros(5, dtype=bool)
    order = _by_regression(scatter, rows, free)
    assert sorted(order) == [0, 1, 2, 3, 4]
    # One of three columns that depend on each other, then the constant one.
    assert order[3] in (1, 2, 3)
    assert order[4] == 4
    constant_first = _by_regression(scatter, rows, rows == 4)
    np.testing.assert_array_equal(constant_first, [4, *order[:4]])


def test_survival_orders_by_step_then_by_norm():
    survival = Survival(4)
    survival.record(np.array([0.9, 0.5, 0.4, 0.1]), np.array([True, True, False, False]))
    survival.record(np.array([0.8, 0.2, 0.99, 0.99]), np.array([True, False, False, False]))
    np.testing.assert_array_equal(survival.last_step, [2, 1, 0, 0])
    np.testing.assert_allclose(survival.last_norm, [0.8, 0.2, 0.4, 0.1])
    np.testing.assert_array_equal(np.argsort(-survival.scores()), [0, 1, 2, 3])


def test_no_norm_makes_up_for_a_step():
    survival = Survival(2)
    survival.record(np.array([1.0, 0.5]), np.array([True, True]))
    survival.record(np.array([1.0, 0.0]), np.array([False, True]))
    assert survival.scores()[0] < survival.scores()[1]


@pytest.mark.parametrize("tied", [False, True])
def test_the_survivors_are_the_first_of_a_stable_sort(tied):
    rng = np.random.default_rng(0)
    for _ in range(300):
        d = int(rng.integers(2, 30))
        norms = rng.integers(0, 5, d).astype(float) if tied else rng.random(d)
        competing = rng.random(d) < 0.7
        competing[0] = True
        count = int(rng.integers(0, np.count_nonzero(competing)))
        order = np.argsort(np.where(competing, -norms, np.inf), kind="stable")
        alive, largest_dying = _largest(norms, competing, count)
        assert sorted(order[:count]) == list(np.flatnonzero(alive))
        assert largest_dying == norms[order[count]]


def test_groups_of_one_row_change_nothing():
    scatter, W = start()
    expected = sparsity_path(scatter, W, **SETTINGS)
    path = sparsity_path(scatter, W, **SETTINGS, groups=np.arange(40))
    np.testing.assert_array_equal(path.n_alive, expected.n_alive)
    np.testing.assert_array_equal(path.lambda_row, expected.lambda_row)
    np.testing.assert_array_equal(path.survival.last_step, expected.survival.last_step)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_groups_are_eliminated_together_by_the_weight_that_the_path_reports(p):
    scatter, W = start()
    groups = np.repeat(np.arange(15), [1, 2, 5] * 5)[:40]
    forced, seen = groups == 2, []
    path = sparsity_path(
        scatter, W, **{**SETTINGS, "p": p}, groups=groups, forced=forced, callback=seen.append
    )
    frame, copy, rows = W, W, np.arange(40)
    for step, progress in enumerate(seen):
        Z = (10.0 * frame + 1e-3 * copy) / (10.0 + 1e-3)
        numbers = groups[rows]
        weights = np.where(np.arange(numbers.max() + 1) == 2, 0.0, 1.0)
        penalty = RowPenalty(path.lambda_row[step] * (1 - 1e-9), p, weights, numbers)
        expected = np.zeros((40, 3))
        expected[rows] = penalty.prox(Z, 1.0 / (10.0 + 1e-3))
        full = np.zeros((40, 3))
        full[progress.rows] = progress.V
        alive = row_norms(full) > 0
        np.testing.assert_allclose(full[alive], expected[alive], atol=1e-7)
        assert np.isin(groups, groups[alive]).tolist() == alive.tolist()
        assert np.unique(groups[alive]).size == path.n_alive[step]
        frame, copy, rows = progress.W, progress.V, progress.rows
    last = path.at(1)
    # Rows enough for a frame remain, and the forced ones among them.
    assert last.rows.size >= 3
    assert np.isin(np.flatnonzero(forced), last.rows).all()
    survival = path.survival.scores()
    assert survival.max() <= 1.0
    assert set(groups[survival >= survival[forced].max()]) == {2}
