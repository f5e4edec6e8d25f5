"""The agreement of clusters, and the numbers that are tried."""

from __future__ import annotations

import numpy as np
import pytest

from bsufs.selectors._agreement import Agreement, agreement_curve, fewest


def test_columns_that_show_the_target_agree_with_it():
    target = np.repeat(np.arange(5), 20)
    X = np.column_stack([target, target**2]) * 10.0
    noise = np.random.default_rng(0).standard_normal((100, 2))
    assert Agreement(X, [target], None).of(2) == pytest.approx(1.0)
    assert Agreement(noise, [target], None).of(2) < 0.7


def test_only_the_first_columns_count():
    rng = np.random.default_rng(2)
    target = np.repeat(np.arange(5), 20)
    X = np.column_stack([rng.standard_normal((100, 2)), target * 10.0])
    agreement = Agreement(X, [target], None)
    assert agreement.of(2) == Agreement(X[:, :2], [target], None).of(2) < agreement.of(3) - 0.3


def test_clusters_are_compared_with_every_target():
    target = np.repeat(np.arange(4), 10)
    other = np.tile(np.arange(4), 10)
    X = 10.0 * target[:, None]
    both = Agreement(X, [target, other], None).of(1)
    # One start is at the clusters of the column, the other may find them or not.
    assert Agreement(X, [target, target], None).of(1) == pytest.approx(1.0)
    assert 0.25 < both < 0.75


def test_a_cluster_without_rows_stays_empty():
    # Of a sample of the rows, some clusters may have none.
    target = np.repeat([0, 2], 5)
    X = 10.0 * target[:, None] + np.arange(10.0)[:, None]
    assert Agreement(X, [target], None).of(1) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(3))
def test_a_start_does_not_remember_what_the_columns_do_not_show(seed):
    rng = np.random.default_rng(seed)
    X, target = rng.standard_normal((300, 60)), rng.integers(10, size=300)
    another = rng.permutation(target)
    here, there = (Agreement(X, [one], None).of(60) for one in (target, another))
    unrelated = Agreement(rng.standard_normal((300, 1)), [target], None).of(1)
    assert max(here, there) < unrelated + 0.05


def test_a_weight_counts_like_copies_of_the_row():
    rng = np.random.default_rng(1)
    X, target = rng.standard_normal((700, 3)), rng.integers(6, size=700)
    copies = rng.integers(1, 4, size=700)
    weighted = Agreement(X, [target], copies.astype(float)).of(3)
    repeated = Agreement(np.repeat(X, copies, axis=0), [np.repeat(target, copies)], None).of(3)
    assert weighted == pytest.approx(repeated, rel=1e-12)


@pytest.mark.parametrize(
    ("reached", "n_columns", "tried", "chosen"),
    [
        # Agreement that lasts down to 16 columns.
        (16, np.arange(1, 1000), [8, 12, 16, 32, 64, 128], 16),
        (11, np.arange(1, 1000), [8, 12, 16, 32, 64, 128], 12),
        (1, np.arange(1, 31), [2, 4, 8, 16, 30], 2),
        (30, np.arange(1, 31), [16, 22, 30], 30),
        # Groups of fifty columns: two of them are the most to look at, one the least.
        (1, np.arange(50, 1000, 50), [1, 2], 1),
        (1, np.array([500, 600]), [1], 1),
        (1, np.array([1]), [1], 1),
        (2, np.array([1, 2]), [2], 2),
    ],
)
def test_numbers_are_halved_as_long_as_the_agreement_lasts(
    monkeypatch, reached, n_columns, tried, chosen
):
    def of(self, n):
        return 0.8 if np.searchsorted(n_columns, n) + 1 >= reached else 0.5

    monkeypatch.setattr(Agreement, "of", of)
    target = np.zeros(4, dtype=int)
    curve = agreement_curve(lambda n: np.ones((4, n)), n_columns, [target], None)
    assert list(curve) == tried
    assert fewest(curve) == chosen
