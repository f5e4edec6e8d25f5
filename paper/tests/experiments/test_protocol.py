import numpy as np
import pytest

from bsufs.metrics import batched_kmeans, clustering_accuracy
from bsufs_paper.experiments import Protocol
from bsufs_paper.experiments.protocol import judge


def blobs(seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(90) % 3
    return rng.standard_normal((90, 4)) + 2.0 * rng.standard_normal((3, 4))[y], y


def test_the_defaults_are_those_of_the_paper():
    protocol = Protocol()
    assert protocol.feature_counts == (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
    assert (protocol.kmeans_init, protocol.n_starts, protocol.max_iter) == ("k-means++", 1, 200)
    assert protocol.confirmation_repetitions == 50


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kmeans_init", "k-means"),
        ("n_starts", 0),
        ("max_iter", 1.5),
        ("search_repetitions", True),
        ("confirmation_repetitions", -1),
        ("feature_counts", []),
        ("feature_counts", [10, 0]),
        ("seed", -1),
        ("seed", "one"),
    ],
)
def test_a_bad_field_is_named(field, value):
    with pytest.raises(ValueError, match=field):
        Protocol(**{field: value})


def test_search_and_confirmation_use_other_seeds_and_datasets_too():
    protocol = Protocol()
    seeds = {
        protocol.judging(dataset, stage)["seed"]
        for dataset in ("USPS", "LUNG")
        for stage in ("search", "confirm")
    } | {Protocol(seed=1).judging("USPS", "search")["seed"]}
    assert len(seeds) == 5


def test_repetitions_depend_on_the_stage():
    protocol = Protocol(search_repetitions=2, confirmation_repetitions=9)
    assert protocol.judging("USPS", "search")["repetitions"] == 2
    assert protocol.judging("USPS", "confirm")["repetitions"] == 9


def test_the_scores_are_those_of_kmeans_from_the_same_seed():
    X, y = blobs()
    judging = Protocol(confirmation_repetitions=6).judging("USPS", "confirm")
    scores = judge(X, y, 3, **judging)
    runs = batched_kmeans(X, 3, n_runs=6, max_iter=200, random_state=judging["seed"])
    expected = [clustering_accuracy(y, labels) for labels in runs.labels]
    np.testing.assert_array_equal(scores["acc"], expected)
    assert {name: len(values) for name, values in scores.items()} == dict.fromkeys(
        ("acc", "nmi", "nmi_arithmetic", "purity"), 6
    )


def test_of_several_starts_that_of_least_inertia_counts():
    X, y = blobs(3)
    judging = Protocol(n_starts=4, confirmation_repetitions=5, kmeans_init="random").judging(
        "USPS", "confirm"
    )
    scores = judge(X, y, 3, **judging)
    runs = batched_kmeans(
        X, 3, n_runs=20, init="random", max_iter=200, random_state=judging["seed"]
    )
    best = runs.inertia.reshape(5, 4).argmin(axis=1) + 4 * np.arange(5)
    expected = [clustering_accuracy(y, runs.labels[run]) for run in best]
    np.testing.assert_array_equal(scores["acc"], expected)
    assert len(set(best % 4)) > 1  # otherwise the test shows nothing
