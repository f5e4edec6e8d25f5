"""Measure the default on ten public datasets that had no part in its design.

The accuracy (ACC, in %) of plain k-means++ on the selected columns, the mean of 24 repetitions.
BSUFS_DATA names the folder with ORL.mat, Yale.mat and the others:

    BSUFS_DATA=<folder> python -m benchmarks.further
"""

from __future__ import annotations

import numpy as np

from benchmarks.defaults import datasets_named, file_of, load, random_rankings, ranked, show
from bsufs import BSUFS, ClusterAlignment
from bsufs.metrics import batched_kmeans, clustering_accuracy
from bsufs.selectors import ColumnSubset

NAMES = (
    "ORL",
    "Yale",
    "warpPIE10P",
    "warpAR10P",
    "colon",
    "lymphoma",
    "TOX-171",
    "Prostate-GE",
    "nci9",
    "orlraws10P",
)
SIZES = (20, 50, 100)
METHODS = {"ClusterAlignment": ClusterAlignment, "BSUFS": BSUFS, "greedy columns": ColumnSubset}
N_RUNS = 24


def accuracy(X: np.ndarray, classes: np.ndarray) -> float:
    """Return the mean ACC in % of k-means on these columns."""
    runs = batched_kmeans(X, np.unique(classes).size, n_runs=N_RUNS, random_state=22)
    return 100 * float(np.mean([clustering_accuracy(classes, labels) for labels in runs.labels]))


def measure(name: str) -> dict[str, list[float]]:
    """Return the ACC on one dataset by method and number of columns."""
    X, y = load(name)
    rankings = {label: [ranked(method(max(SIZES)).fit(X))] for label, method in METHODS.items()} | {
        "random columns": random_rankings(X.shape[1])
    }
    found = {
        label: [np.mean([accuracy(X[:, order[:k]], y) for order in orders]) for k in SIZES]
        for label, orders in rankings.items()
    }
    return found | {"all columns": [accuracy(X, y)] * len(SIZES)}


def main() -> None:
    """Measure every dataset that is there, and print the means."""
    if not datasets_named():
        return
    names = [name for name in NAMES if file_of(name).exists()]
    found = {name: measure(name) for name in names}
    labels = [*METHODS, "random columns", "all columns"]
    mean = {label: np.mean([found[name][label] for name in names], axis=0) for label in labels}
    show(
        [*(f"k = {k}" for k in SIZES), "mean", *names],
        [
            [label, *mean[label], mean[label].mean()]
            + [float(np.mean(found[name][label])) for name in names]
            for label in labels
        ],
    )


if __name__ == "__main__":
    main()
