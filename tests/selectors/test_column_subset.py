import numpy as np
import pytest
from scipy import linalg

from bsufs.selectors import ColumnSubset
from bsufs.solvers.budget import Budget
from bsufs.solvers.column_subset import greedy_columns, greedy_groups


def naive_greedy(X):
    E = X - X.mean(axis=0)
    total = (E**2).sum(axis=0)
    picked = []
    while True:
        lengths = (E**2).sum(axis=0)
        free = lengths > 1e-12 * total
        if not free.any() or len(picked) >= min(X.shape[0] - 1, X.shape[1]):
            return picked
        gain = np.where(free, ((E.T @ E) ** 2).sum(axis=0) / np.where(free, lengths, 1), 0)
        best = int(np.argmax(gain))
        picked.append(best)
        e = E[:, best] / np.linalg.norm(E[:, best])
        for _ in range(2):
            E = E - np.outer(e, e @ E)


@pytest.mark.parametrize("shape", [(50, 12), (12, 50), (30, 30), (8, 8)])
@pytest.mark.parametrize("seed", range(4))
def test_greedy_picks_are_those_of_the_naive_rule(shape, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape) @ np.diag(np.linspace(3, 0.5, shape[1]))
    picked = greedy_columns(X - X.mean(axis=0))[0].tolist()
    expected = naive_greedy(X)
    # The last pick of a full-rank wide matrix is a choice between equals: every column left fills
    # the same one dimension.
    assert picked[:-1] == expected[:-1]
    assert len(picked) == len(expected)


@pytest.mark.parametrize("shape", [(60, 20), (21, 40)])
def test_greedy_picks_stay_right_when_the_residual_is_tiny(shape):
    # Ten strong directions, ten that are 1e-4 of them: the recursion alone would lose them.
    rng = np.random.default_rng(0)
    n, d = shape
    strong = rng.standard_normal((n, 10)) @ rng.standard_normal((10, d))
    X = strong + 1e-4 * rng.standard_normal((n, 20))[:, :10] @ rng.standard_normal((10, d))
    picked = greedy_columns(X - X.mean(axis=0))[0].tolist()
    assert picked[:16] == naive_greedy(X)[:16]


def test_explained_variance_is_that_of_regression():
    X = np.random.default_rng(0).standard_normal((40, 9)) @ np.diag(np.arange(1, 10))
    Xc = X - X.mean(axis=0)
    for method in ("greedy", "pivoted-qr"):
        selector = ColumnSubset(4, method=method).fit(X)
        best = np.argsort(selector.ranking_)
        for k in (1, 4, 9):
            A = Xc[:, best[:k]]
            residual = Xc - A @ np.linalg.lstsq(A, Xc, rcond=None)[0]
            share = 1 - (residual**2).sum() / (Xc**2).sum()
            assert selector.explained_variance_path_[k - 1] == pytest.approx(share, abs=1e-10)


@pytest.mark.parametrize("shape", [(50, 12), (12, 50)])
def test_pivots_are_those_of_scipy(shape):
    X = np.random.default_rng(0).standard_normal(shape)
    selector = ColumnSubset(5, method="pivoted-qr").fit(X)
    _, pivots = linalg.qr(X - X.mean(axis=0), mode="r", pivoting=True)
    rank = min(shape[0] - 1, shape[1])
    assert np.argsort(selector.ranking_)[:rank].tolist() == pivots[:rank].tolist()


@pytest.mark.parametrize("method", ["greedy", "pivoted-qr"])
def test_dependent_columns_rank_last_by_variance(method):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3))
    X = np.column_stack([X, 0.1 * (X @ rng.standard_normal((3, 4))), np.ones(30)])
    selector = ColumnSubset(3, method=method).fit(X)
    assert np.count_nonzero(selector.scores_) == 3
    assert selector.explained_variance_path_[-1] == pytest.approx(1.0)
    rest = np.argsort(selector.ranking_)[3:]
    assert (np.diff(X[:, rest].var(axis=0)) <= 0).all()


@pytest.mark.parametrize("method", ["greedy", "pivoted-qr"])
def test_single_column_constant_data_and_large_units(method):
    X = np.random.default_rng(0).standard_normal((20, 5))
    assert ColumnSubset(1, method=method).fit(X[:, :1]).support_.tolist() == [True]
    assert not ColumnSubset(2, method=method).fit(np.ones((5, 3))).scores_.any()
    assert np.array_equal(
        ColumnSubset(2, method=method).fit(1e200 * X).ranking_,
        ColumnSubset(2, method=method).fit(X).ranking_,
    )


def explained_by(E, columns):
    basis = linalg.orth(E[:, columns])
    return np.sum((basis.T @ E) ** 2)


@pytest.mark.parametrize("shape", [(40, 9), (6, 9)])
@pytest.mark.parametrize("by_length", [False, True])
def test_every_group_explains_most_of_what_is_left_by_brute_force(shape, by_length):
    X = np.random.default_rng(5).standard_normal(shape) * np.linspace(1, 3, 9)
    Xc = X - X.mean(axis=0)
    groups = np.array([0, 1, 1, 2, 0, 3, 3, 3, 4])
    picks, explained = greedy_groups(Xc, groups, by_length=by_length)
    E, taken = Xc, np.zeros(9, dtype=bool)
    for pick, reached in zip(picks, explained, strict=True):
        left = [g for g in range(5) if not taken[groups == g].all()]
        worth = [
            np.sum(E[:, groups == g] ** 2) if by_length else explained_by(E, groups == g)
            for g in left
        ]
        assert worth[left.index(pick)] == pytest.approx(max(worth), rel=1e-8)
        taken |= groups == pick
        E = Xc - Xc[:, taken] @ linalg.lstsq(Xc[:, taken], Xc)[0]
        assert reached == pytest.approx(explained_by(Xc, taken))
    np.testing.assert_allclose(E, 0.0, atol=1e-8)


def test_groups_of_one_column_are_picked_as_columns():
    X = np.random.default_rng(6).standard_normal((30, 8)) * np.linspace(1, 3, 8)
    Xc = X - X.mean(axis=0)
    for costs in (None, Budget(np.full(8, 2.0), 16.0)):
        groups, explained = greedy_groups(Xc, np.arange(8), budget=costs)
        columns, expected = greedy_columns(Xc)
        np.testing.assert_array_equal(groups, columns)
        np.testing.assert_allclose(explained, expected)


@pytest.mark.parametrize("method", ["greedy", "pivoted-qr"])
def test_what_must_and_must_not_be_kept_counts_in_the_picks(method):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((50, 6)) * [5.0, 4.0, 3.0, 2.0, 1.0, 0.5]
    X[:, 4] = X[:, 5] + 1e-3 * rng.standard_normal(50)
    selector = ColumnSubset(n_features_to_select=3, method=method, must_keep=[5], never_keep=[0])
    selector.fit(X)
    # Column 4 repeats what must be kept; of the others the longest explain most.
    assert selector.selected_features_.tolist() == [5, 1, 2]
    assert selector.ranking_[[4, 0]].tolist() == [5, 6]
    Xc = (X - X.mean(axis=0))[:, 1:]
    E = Xc - Xc[:, [4, 0, 1]] @ np.linalg.lstsq(Xc[:, [4, 0, 1]], Xc, rcond=None)[0]
    share = 1.0 - (E**2).sum() / (Xc**2).sum()
    assert selector.explained_variance_path_[2] == pytest.approx(share)
