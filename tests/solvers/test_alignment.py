"""Greedy alignment against kernels that are formed and compared one by one."""

import numpy as np
import pytest

from bsufs.scatter import make_scatter
from bsufs.solvers.alignment import aligned_columns
from bsufs.solvers.budget import Budget


def _alignment(X, T, columns):
    """Form the kernel of some columns and compare it with T."""
    Z = (X - X.mean(axis=0))[:, columns]
    K = Z @ Z.T
    return np.sum(K * T) / np.linalg.norm(K)


def _problem(n, d, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + 5.0
    factor = rng.standard_normal((n, 3))
    T = factor @ factor.T
    Xc = X - X.mean(axis=0)
    target = np.einsum("ij,ij->j", factor.T @ Xc, factor.T @ Xc)
    return X, T, target


@pytest.mark.parametrize(("n", "d"), [(30, 8), (6, 12)])
@pytest.mark.parametrize("seed", [0, 1])
def test_every_pick_is_the_best_by_brute_force(n, d, seed):
    X, T, target = _problem(n, d, seed)
    picks, gains = aligned_columns(make_scatter(X), target, 5)
    taken = []
    for pick in picks:
        others = [i for i in range(d) if i not in taken]
        values = [_alignment(X, T, [*taken, i]) for i in others]
        assert pick == others[int(np.argmax(values))]
        taken.append(pick)
    rest = np.setdiff1d(np.arange(d), picks)
    expected = np.array([_alignment(X, T, [*taken, i]) for i in rest])
    # Alignment is known up to a common factor.
    np.testing.assert_allclose(gains[rest] / gains[rest[0]], expected / expected[0], rtol=1e-10)


def test_forced_columns_come_first():
    X, _, target = _problem(30, 8, 2)
    forced = np.zeros(8, dtype=bool)
    forced[[1, 6]] = True
    picks, _ = aligned_columns(make_scatter(X), target, 4, forced=forced)
    assert set(picks[:2]) == {1, 6}
    assert np.unique(picks).size == 4


def test_barred_columns_are_not_picked():
    X, _, target = _problem(30, 8, 2)
    first = aligned_columns(make_scatter(X), target, 1)[0][0]
    barred = np.arange(8) == first
    picks, _ = aligned_columns(make_scatter(X), target, 7, barred=barred)
    assert sorted([*picks, first]) == list(range(8))


def test_columns_without_variance_are_no_trouble():
    X, _, target = _problem(30, 4, 3)
    X[:, 2] = 1.0
    target[2] = 0.0
    picks, gains = aligned_columns(make_scatter(X), target, 4)
    assert sorted(picks) == [0, 1, 2, 3]
    assert np.isfinite(gains).all()
    nothing, gains = aligned_columns(make_scatter(np.ones((5, 3))), np.zeros(3), 2)
    np.testing.assert_array_equal(nothing, [0, 1])
    np.testing.assert_array_equal(gains, 0.0)


@pytest.mark.parametrize("magnitude", [1e-80, 1e80])
def test_units_do_not_matter(magnitude):
    X, _, target = _problem(30, 8, 4)
    expected, ratios = aligned_columns(make_scatter(X), target, 5)
    large = make_scatter(magnitude * X)
    # The fourth powers of such entries, of which kernels are compared, are out of range.
    picks, gains = aligned_columns(large, magnitude**2 * target, 5)
    np.testing.assert_array_equal(picks, expected)
    np.testing.assert_allclose(gains / gains.max(), ratios / ratios.max(), rtol=1e-10)


@pytest.mark.parametrize(("n", "d"), [(30, 9), (6, 9)])
def test_groups_are_picked_by_their_joint_kernels(n, d):
    X, T, target = _problem(n, d, 3)
    groups = np.array([0, 1, 1, 2, 0, 3, 3, 3, 4])
    picks, gains = aligned_columns(make_scatter(X), target, 3, groups=groups)
    taken = []
    for pick in picks:
        others = [g for g in range(5) if g not in taken]
        values = [_alignment(X, T, np.isin(groups, [*taken, g])) for g in others]
        assert pick == others[int(np.argmax(values))]
        taken.append(pick)
    rest = np.setdiff1d(np.arange(5), picks)
    expected = np.array([_alignment(X, T, np.isin(groups, [*taken, g])) for g in rest])
    np.testing.assert_allclose(gains[rest] / gains[rest[0]], expected / expected[0], rtol=1e-10)


def test_a_budget_takes_what_gains_most_per_cost_and_still_fits():
    X, T, target = _problem(30, 8, 4)
    costs = np.array([1.0, 4.0, 2.0, 1.0, 3.0, 1.0, 2.0, 5.0])
    picks, _ = aligned_columns(make_scatter(X), target, 8, budget=Budget(costs, 6.0))
    taken, reached = [], 0.0
    for pick in picks:
        fits = [i for i in range(8) if i not in taken and costs[[*taken, i]].sum() <= 6.0]
        gains = np.array([_alignment(X, T, [*taken, i]) - reached for i in fits])
        worth = np.where(gains > 0, gains / costs[fits], gains * costs[fits])
        # A gain and a loss are of different units, so only gains are compared here.
        assert worth.max() < 0 or pick == fits[int(np.argmax(worth))]
        taken.append(int(pick))
        reached = _alignment(X, T, taken)
    assert not [i for i in range(8) if i not in taken and costs[[*taken, i]].sum() <= 6.0]
    everything, _ = aligned_columns(make_scatter(X), target, 8, budget=Budget(np.ones(8), 8.0))
    np.testing.assert_array_equal(everything, aligned_columns(make_scatter(X), target, 8)[0])
