"""What it changes to take several steps of the path at once while many rows remain.

``BSUFS_DATA=<folder> python -m benchmarks.steps`` prints the mean accuracy of k-means on 20, 50 and
100 columns selected by BSUFS, and how many of these a path that takes single steps selects as well.
"""

import numpy as np

from benchmarks.timing import markdown_table
from bsufs import BSUFS
from bsufs.metrics import batched_kmeans, clustering_accuracy
from bsufs.solvers import path
from bsufs_paper.datasets import load_dataset

DATASETS = [
    "COIL20",
    "Isolet",
    "USPS",
    "umist",
    "GLIOMA",
    "pie",
    "LUNG",
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
]
NUMBERS = (20, 50, 100)
# Rows above which several steps are taken at once, and how many.
SCHEDULES = ((256, 1), (1024, 4), (512, 4), (256, 2), (256, 4), (256, 8))


def accuracies(X, y, best_first):
    values = []
    for k in NUMBERS:
        runs = batched_kmeans(X[:, best_first[:k]], len(set(y)), n_runs=40, random_state=0)
        values.append(100 * np.mean([clustering_accuracy(y, labels) for labels in runs.labels]))
    return values


def main():
    found = {schedule: [] for schedule in SCHEDULES}
    shared = {schedule: [] for schedule in SCHEDULES}
    for name in DATASETS:
        data = load_dataset(name)
        for schedule in SCHEDULES:
            path._MANY_ROWS, path._STEPS_AT_ONCE = schedule
            best_first = np.argsort(BSUFS(100).fit(data.data).ranking_)
            if schedule == SCHEDULES[0]:
                single = best_first
            found[schedule].append(accuracies(data.data, data.target, best_first))
            shared[schedule].append(
                [np.intersect1d(best_first[:k], single[:k]).size / k for k in NUMBERS]
            )
    rows = [
        (
            *schedule,
            *(f"{value:.1f}" for value in np.mean(found[schedule], axis=0)),
            f"{np.mean(found[schedule]):.1f}",
            f"{100 * np.mean(shared[schedule]):.0f} %",
        )
        for schedule in SCHEDULES
    ]
    header = ("above", "steps at once", *(f"k = {k}" for k in NUMBERS), "mean", "same columns")
    print(markdown_table(header, rows))


if __name__ == "__main__":
    main()
