import numpy as np
from numpy.testing import assert_allclose

from bsufs.solvers.neighborhoods import Neighborhoods


def seen_by_pairs(X, k):
    """Return what each column makes of every pair (i, j), and who is a neighbor, pair by pair."""
    n = len(X)
    D = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    seen, near = [], []
    for i in range(n):
        around = [j for j in np.argsort(D[i], kind="stable") if j != i][: 4 * k]
        differences = (X[around] - X[i]) ** 2
        scale = D[i, around].mean()
        seen.append((differences - differences.mean(axis=0)) / scale)
        near.append(np.arange(len(around)) < max(1, len(around) // 4))
    return np.concatenate(seen), np.concatenate(near)


def test_sums_over_pairs_are_those_of_a_loop():
    rng = np.random.default_rng(0)
    for n, k in ((30, 3), (9, 5)):
        X = rng.standard_normal((n, 4)) * [1.0, 2.0, 3.0, 0.1]
        seen, near = seen_by_pairs(X, k)
        around = Neighborhoods(X, k)
        # The mean is off already, so it does not matter what is added to the target.
        assert_allclose(around.signals(X), -near.astype(float) @ seen, rtol=1e-9)
        assert_allclose(around.squares(X), (seen**2).sum(axis=0), rtol=1e-9)
        assert_allclose(around.products(np.array([1, 3]), X), seen[:, [1, 3]].T @ seen, rtol=1e-9)


def test_copies_of_a_row_tell_nothing():
    X = np.repeat(np.eye(2), 30, axis=0)
    around = Neighborhoods(X, 3)
    assert_allclose(around.signals(X), 0.0, atol=1e-12)
    assert_allclose(around.squares(X), 0.0, atol=1e-12)
