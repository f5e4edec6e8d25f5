"""Agreement of clusters and classes against brute force, scikit-learn and closed forms."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import normalized_mutual_info_score

from bsufs.metrics import clustering_accuracy, normalized_mutual_information, purity

METRICS = [clustering_accuracy, normalized_mutual_information, purity]
labelings = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 3), min_size=n, max_size=n),
        st.lists(st.integers(0, 4), min_size=n, max_size=n),
    )
)


def brute_force_accuracy(true, pred):
    """Try every one-to-one map of the five possible clusters to five classes."""
    pred = np.array(pred)
    return max(np.mean(np.array(map_)[pred] == np.array(true)) for map_ in permutations(range(5)))


@settings(max_examples=60, deadline=None)
@given(labelings)
def test_accuracy_is_that_of_the_best_of_all_maps(pair):
    assert clustering_accuracy(*pair) == pytest.approx(brute_force_accuracy(*pair))


@settings(max_examples=60, deadline=None)
@given(labelings, st.sampled_from(["geometric", "arithmetic"]))
def test_mutual_information_is_that_of_scikit_learn(pair, average):
    expected = normalized_mutual_info_score(*pair, average_method=average)
    assert normalized_mutual_information(*pair, average) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(labelings)
def test_accuracy_never_exceeds_purity_and_arithmetic_never_geometric(pair):
    assert clustering_accuracy(*pair) <= purity(*pair) + 1e-12
    assert (
        normalized_mutual_information(*pair, "arithmetic")
        <= normalized_mutual_information(*pair) + 1e-12
    )


@pytest.mark.parametrize("metric", METRICS)
def test_names_and_order_mean_nothing(metric):
    rng = np.random.default_rng(0)
    true, pred = rng.integers(4, size=200), rng.integers(6, size=200)
    order = rng.permutation(200)
    names = np.array(["e", "b", "f", "a", "d", "c"])
    assert metric(true, names[pred]) == pytest.approx(metric(true, pred))
    assert metric(7.5 - true, pred) == pytest.approx(metric(true, pred))
    assert metric(true[order], pred[order]) == pytest.approx(metric(true, pred))
    assert metric(true, names[true]) == pytest.approx(1.0)


def test_left_over_clusters_and_classes_are_wrong():
    classes = np.repeat([0, 1], 6)
    assert clustering_accuracy(classes, np.arange(12)) == pytest.approx(2 / 12)
    assert clustering_accuracy(np.arange(12), classes) == pytest.approx(2 / 12)
    assert clustering_accuracy(classes, np.zeros(12)) == pytest.approx(1 / 2)


def test_purity_of_one_cluster_and_of_single_samples():
    classes = np.array([0, 0, 0, 1, 2])
    assert purity(classes, np.zeros(5)) == pytest.approx(3 / 5)
    assert purity(classes, np.arange(5)) == 1.0
    assert purity(classes, [0, 0, 1, 1, 1]) == pytest.approx(3 / 5)


@pytest.mark.parametrize("average", ["geometric", "arithmetic"])
def test_mutual_information_of_one_cluster(average):
    one, two = [3, 3, 3, 3], [0, 0, 1, 1]
    assert normalized_mutual_information(one, one, average) == 1.0
    assert normalized_mutual_information(two, one, average) == 0.0
    assert normalized_mutual_information(one, two, average) == 0.0


@pytest.mark.parametrize("metric", METRICS)
def test_errors_name_the_labels(metric):
    with pytest.raises(ValueError, match="one entry per sample, got 3 and 2"):
        metric([0, 1, 2], [0, 1])
    with pytest.raises(ValueError, match="labels_pred must be one-dimensional"):
        metric([0, 1], [[0], [1]])
    with pytest.raises(ValueError, match=r"labels_true .* not empty"):
        metric([], [])


def test_unknown_average():
    with pytest.raises(ValueError, match="average must be 'geometric' or 'arithmetic', got 'max'"):
        normalized_mutual_information([0, 1], [0, 1], "max")
