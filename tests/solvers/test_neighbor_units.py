"""Distances in units of the differences between neighbors: what may and what may not matter."""

import numpy as np
import pytest

from bsufs.solvers.neighbor_units import in_neighbor_units


def groups_beside_a_long_axis(n=120, seed=0):
    """Return rows of two groups, and a third axis on which they vary far more."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 2
    scores = 0.3 * rng.standard_normal((n, 3))
    scores[:, 0] += np.where(group, 1.0, -1.0)
    scores[:, 2] = 40.0 * rng.standard_normal(n)
    return scores, group


def test_rows_have_unit_length():
    rows = in_neighbor_units(groups_beside_a_long_axis()[0], 3)
    np.testing.assert_allclose((rows**2).sum(axis=1), 1.0)


@pytest.mark.parametrize("n_neighbors", [1, 3, 500])
def test_units_of_the_scores_do_not_matter(n_neighbors):
    scores, _ = groups_beside_a_long_axis()
    cosines = [
        rows @ rows.T
        for rows in (
            in_neighbor_units(scores, n_neighbors),
            in_neighbor_units(scores * [1e-3, 1.0, 1e3] + [5.0, 0.0, -1e3], n_neighbors),
        )
    ]
    np.testing.assert_allclose(cosines[0], cosines[1], atol=1e-8)


def test_groups_are_nearer_than_a_long_axis_lets_them_be():
    scores, group = groups_beside_a_long_axis()
    rows = in_neighbor_units(scores, 3)
    same = group[:, None] == group
    others = ~np.eye(group.size, dtype=bool)

    def gap(A):
        cosines = A @ A.T
        return cosines[same & others].mean() - cosines[~same].mean()

    directions = scores - scores.mean(axis=0)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    assert gap(rows) > 0.5 > 10 * gap(directions)


def test_two_rows_and_equal_rows_are_no_error():
    assert np.isfinite(in_neighbor_units(np.array([[0.0], [1.0]]), 3)).all()
    doubled = np.repeat(groups_beside_a_long_axis(20)[0], 4, axis=0)
    assert np.isfinite(in_neighbor_units(doubled, 3)).all()


def test_rows_are_looked_at_some_at_a_time(monkeypatch):
    scores, _ = groups_beside_a_long_axis()
    expected = in_neighbor_units(scores, 3)
    monkeypatch.setattr(
        "bsufs.solvers.neighbor_units.batches",
        lambda total, width: [slice(0, 7), slice(7, 100), slice(100, total)],
    )
    np.testing.assert_allclose(in_neighbor_units(scores, 3), expected, atol=1e-9)
