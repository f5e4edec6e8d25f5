"""The agreement of clusters, and the numbers that are tried."""

from __future__ import annotations

import numpy as np
import pytest

from bsufs.selectors._agreement import Agreement, fewest


def test_columns_that_show_the_target_agree_with_it():
    target = np.repeat(np.arange(5), 20)
    X = np.column_stack([target, target**2]) * 10.0
    agreement = Agreement([target], None, [5], 0)
    assert agreement.of(X) > agreement.of(np.random.default_rng(0).standard_normal((100, 2))) + 0.3


def test_a_weight_counts_like_copies_of_the_row():
    rng = np.random.default_rng(1)
    X, target = rng.standard_normal((700, 3)), rng.integers(6, size=700)
    copies = rng.integers(1, 4, size=700)
    weighted = Agreement([target], copies.astype(float), [5], 0).of(X)
    repeated = Agreement([np.repeat(target, copies)], None, [5], 0).of(np.repeat(X, copies, axis=0))
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
    def of(self, X, known):
        return 0.8 if X.shape[1] >= reached else 0.5

    monkeypatch.setattr(Agreement, "of", of)
    agreement = Agreement([np.zeros(4, dtype=int)], None, [1], 0)
    curve = agreement.curve(lambda number: np.ones((4, number)), n_columns)
    assert list(curve) == tried
    assert fewest(curve) == chosen
