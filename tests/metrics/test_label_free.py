"""Measures without labels against NumPy, least squares and the published formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import norm
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from bsufs.metrics import label_free, nogueira_stability, reconstruction, redundancy
from bsufs.metrics.label_free import clustering_similarities, wilson_interval


def mean_absolute_correlation(X):
    return np.abs(np.corrcoef(X.T)[np.triu_indices(X.shape[1], 1)]).mean()


@pytest.mark.parametrize("entries", [1, 30, 70, 2**20])
def test_redundancy_is_the_mean_absolute_correlation(entries, monkeypatch):
    monkeypatch.setattr(label_free, "_ENTRIES", entries)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 10)) @ rng.normal(size=(10, 10)) + 100
    assert redundancy(X) == pytest.approx(mean_absolute_correlation(X))


def test_redundancy_of_features_is_that_of_columns_where_each_is_one():
    X = np.random.default_rng(0).normal(size=(30, 6)) @ np.random.default_rng(1).normal(size=(6, 6))
    found = label_free.redundancy_of_features(X, np.array([4, 0, 1, 2, 5, 3]))
    assert found == pytest.approx([redundancy(X[:, :number]) for number in range(1, 7)])
    several = label_free.redundancy_of_features(X, np.array([2, 2, 0, 0, 0, 1]))
    among = np.abs(np.corrcoef(X.T))
    pairs = [among[:2, 2:5].max(), among[:2, 5].max(), among[2:5, 5].max()]
    assert several == pytest.approx([0.0, pairs[0], np.mean(pairs)])


def test_redundancy_of_extreme_units():
    X = np.random.default_rng(1).normal(size=(30, 4)) @ np.diag([1e200, 1e-200, 1.0, 1e10])
    assert redundancy(X) == pytest.approx(mean_absolute_correlation(X / np.abs(X).max(axis=0)))


def test_constant_columns_are_uncorrelated():
    x = np.random.default_rng(2).normal(size=20)
    X = np.column_stack([x, -2 * x + 1, np.full(20, 0.1), np.zeros(20)])
    assert redundancy(X) == pytest.approx(1 / 6)
    assert redundancy(X[:, 2:]) == 0.0
    assert redundancy(X[:, :1]) == 0.0
    assert redundancy(X[:, :2]) == pytest.approx(1.0)


@pytest.mark.parametrize("shape", [(40, 8), (8, 40)])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_reconstruction_is_that_of_least_squares(shape, kind):
    X = np.random.default_rng(3).normal(size=shape) + 3
    support = np.array([1, 4, 6])
    Xc = X - X.mean(axis=0)
    B = np.linalg.lstsq(Xc[:, support], Xc, rcond=None)[0]
    expected = 1 - np.sum((Xc - Xc[:, support] @ B) ** 2) / np.sum(Xc**2)
    assert reconstruction(kind(X), support) == pytest.approx(expected)
    mask = np.isin(np.arange(shape[1]), support)
    assert reconstruction(kind(X), mask) == pytest.approx(expected)
    assert reconstruction(kind(X), support[[2, 0, 0, 1]]) == pytest.approx(expected)


def test_reconstruction_at_the_ends():
    X = np.random.default_rng(4).normal(size=(10, 4))
    assert reconstruction(X, []) == 0.0
    assert reconstruction(X, np.ones(4, dtype=bool)) == pytest.approx(1.0)
    assert reconstruction(np.ones((5, 2)), [0]) == 1.0


@pytest.mark.parametrize(
    ("support", "message"),
    [
        ([True, False], "must have shape"),
        ([0, 4], "numbers from 0 to 3, got numbers from 0 to 4"),
        ([0.5], "array of float64"),
        ([[0, 1]], "one-dimensional"),
    ],
)
def test_unfit_supports(support, message):
    with pytest.raises(ValueError, match=message):
        reconstruction(np.eye(4), support)


def random_masks(rng, n_selections, n_features, probability):
    return rng.random((n_selections, n_features)) < probability


def published_stability(Z):
    """Definition 4 of Nogueira, Sechidis and Brown, term by term."""
    M, d = Z.shape
    spread = sum(M / (M - 1) * p * (1 - p) for p in Z.mean(axis=0)) / d
    k = Z.sum(axis=1).mean()
    return 1 - spread / (k / d * (1 - k / d))


def test_stability_is_the_published_formula():
    Z = random_masks(np.random.default_rng(0), 12, 20, np.linspace(0.05, 0.9, 20))
    assert nogueira_stability(Z).value == pytest.approx(published_stability(Z))


def test_stability_of_equal_sizes_is_the_corrected_mean_overlap():
    """With equal sizes it is Kuncheva's index: (|A & B| - k^2/d) / (k - k^2/d), over all pairs."""
    rng = np.random.default_rng(1)
    d, k, M = 15, 5, 6
    selections = [rng.permutation(d)[:k] for _ in range(M)]
    overlaps = [len(set(selections[i]) & set(selections[j])) for i in range(M) for j in range(i)]
    expected = (np.mean(overlaps) - k**2 / d) / (k - k**2 / d)
    assert nogueira_stability(selections, d).value == pytest.approx(expected)


def test_identical_selections_are_perfectly_stable():
    stability = nogueira_stability([[3, 1, 2], [1, 2, 3], [2, 3, 1]], n_features=9)
    assert stability.value == pytest.approx(1.0)
    assert stability.variance == pytest.approx(0.0, abs=1e-15)
    assert stability.lower == pytest.approx(1.0)
    assert stability.upper == pytest.approx(1.0)


def test_random_selections_are_not_stable():
    rng = np.random.default_rng(2)
    values = [nogueira_stability(random_masks(rng, 10, 50, 0.3)).value for _ in range(100)]
    assert abs(np.mean(values)) < 0.01


def test_order_and_kind_of_selections_mean_nothing():
    rng = np.random.default_rng(3)
    Z = random_masks(rng, 8, 12, 0.4)
    expected = nogueira_stability(Z)
    numbers = [rng.permutation(np.flatnonzero(row)) for row in Z]
    for other in (
        nogueira_stability(Z[::-1]),
        nogueira_stability(Z[:, rng.permutation(12)]),
        nogueira_stability(numbers, 12),
    ):
        assert other.value == pytest.approx(expected.value)
        assert other.variance == pytest.approx(expected.variance)


def test_variance_is_about_that_of_leaving_one_out():
    """The asymptotic variance against the jackknife, for selections of different sizes."""
    Z = random_masks(np.random.default_rng(4), 400, 30, np.linspace(0.02, 0.8, 30))
    left_out = np.array([published_stability(np.delete(Z, i, axis=0)) for i in range(400)])
    jackknife = 399 / 400 * np.sum((left_out - left_out.mean()) ** 2)
    assert nogueira_stability(Z).variance == pytest.approx(jackknife, rel=0.02)


def test_interval_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(5)
    p = np.linspace(0.05, 0.9, 40)
    truth = 1 - np.mean(p * (1 - p)) / (p.mean() * (1 - p.mean()))
    intervals = [nogueira_stability(random_masks(rng, 100, 40, p), None, 0.9) for _ in range(400)]
    covered = np.mean([i.lower <= truth <= i.upper for i in intervals])
    assert 0.85 < covered < 0.95


def test_no_choice_has_no_stability():
    for Z in (np.zeros((3, 4), dtype=bool), np.ones((3, 4), dtype=bool)):
        assert np.isnan(nogueira_stability(Z).value)
    assert nogueira_stability([[], [1], [1]], 4).value < 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0]], 3), "at least two"),
        (([[0], [1]],), "n_features must be given"),
        (([[0], [3]], 3), r"selections\[1\] must hold column numbers"),
        (([[0], [1]], 3, 1.0), "confidence must be between 0 and 1"),
    ],
)
def test_unfit_selections(arguments, message):
    with pytest.raises(ValueError, match=message):
        nogueira_stability(*arguments)


# --- pairs of clusterings, and frequencies --------------------------------------------------------


SCIKIT_LEARN = {
    "nmi": lambda a, b: normalized_mutual_info_score(a, b, average_method="geometric"),
    "nmi-arithmetic": normalized_mutual_info_score,
    "ari": adjusted_rand_score,
}


@pytest.mark.parametrize("measure", SCIKIT_LEARN)
def test_similarities_are_those_of_scikit_learn(measure):
    rng = np.random.default_rng(0)
    for n, first, second in ((30, 4, 3), (7, 7, 2), (200, 2, 12)):
        one, others = rng.integers(0, first, n), rng.integers(0, second, (5, n))
        expected = [SCIKIT_LEARN[measure](one, other) for other in others]
        found = clustering_similarities(one, others, measure)
        assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("measure", SCIKIT_LEARN)
@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([0, 0, 0], [0, 0, 0], 1.0),
        ([0, 0, 0], [0, 1, 2], 0.0),
        ([0, 1, 2], [0, 0, 0], 0.0),
        ([0, 1, 2], [2, 0, 1], 1.0),
        ([3, 3, 5, 5], [1, 1, 0, 0], 1.0),
        ([0], [0], 1.0),
        # Shares of 49 samples that are summed one by one miss 1 by rounding.
        (list(range(49)), [0] * 49, 0.0),
    ],
)
def test_similarities_at_the_ends(measure, first, second, expected):
    assert clustering_similarities(np.array(first), np.array([second]), measure) == [expected]


@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_ends_of_the_wilson_interval_reject_at_the_level(confidence):
    z = norm.ppf((1 + confidence) / 2)
    share = np.array([0.0, 0.1, 0.5, 0.95, 1.0])
    for end in wilson_interval(share, 20, confidence):
        # Each end is the probability under which the share is just z standard errors away.
        away = np.abs(share - end)
        assert away == pytest.approx(z * np.sqrt(end * (1 - end) / 20), abs=1e-8)
