"""Shares of variance between clusters against their definition, and chance against draws."""

import numpy as np
import pytest
from scipy import sparse

from bsufs.selectors._cluster_shares import Clusters, LocalRows

# Three clusters as large as each other, and a handful of outliers.
LABELS = np.repeat([4, 7, 1, 9], [20, 20, 20, 3])


def weighted_share(X, labels):
    """Return the share of the variance between clusters; small clusters count for less."""
    Xc = X - X.mean(axis=0)
    names = np.unique(labels)
    between = np.zeros(X.shape[1])
    for name in names:
        own = labels == name
        weight = min(own.sum() / (len(X) / names.size), 1.0)
        between += weight * own.sum() * Xc[own].mean(axis=0) ** 2
    return between / (Xc**2).sum(axis=0)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_small_cluster_counts_by_its_size(form):
    X = np.random.default_rng(0).standard_normal((63, 5)) + 3.0
    X[:, 0] += 50.0 * (LABELS == 9)
    X[:, 1] += 50.0 * (LABELS == 7)
    clusters = Clusters(LABELS)
    shares = LocalRows.of(form(X), 0).shares_beyond_chance([clusters])
    expected = weighted_share(X, LABELS) - clusters.share_by_chance
    np.testing.assert_allclose(shares, expected, rtol=1e-10)
    # Three of 63 samples have a fifth of the weight of a cluster that is worth a whole one.
    assert shares[0] < 0.3 < 0.9 < shares[1]


def test_the_shares_of_several_clusterings_add_up():
    X = np.random.default_rng(1).standard_normal((63, 4))
    both = [Clusters(LABELS), Clusters(np.arange(63) % 5)]
    rows = LocalRows.of(X, 0)
    np.testing.assert_allclose(
        rows.shares_beyond_chance(both), sum(rows.shares_beyond_chance([one]) for one in both)
    )


@pytest.mark.parametrize("labels", [LABELS, np.arange(63) % 2, np.arange(63) % 9])
def test_columns_that_know_nothing_have_the_mean_and_the_deviation_of_chance(labels):
    X = np.random.default_rng(2).standard_normal((63, 20_000))
    clusters = Clusters(labels)
    shares = LocalRows.of(X, 0).shares_beyond_chance([clusters])
    assert abs(shares.mean()) < 4 * clusters.deviation_by_chance / np.sqrt(20_000)
    assert shares.std() == pytest.approx(clusters.deviation_by_chance, rel=0.15)
