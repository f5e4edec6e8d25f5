"""Measure how good selections without labels are, on seventeen public datasets.

Every number is the accuracy (ACC, in %) of plain k-means++ on the selected columns with the number
of classes given, after the best matching of clusters and classes: the mean over k = 20, 50 and 100
and 24 repetitions. Labels judge, and choose nothing except where a row says so.

The datasets are not part of the project: `bsufs-paper datasets` says where they come from, and the
environment variable BSUFS_DATA names the folder that they are in.

    BSUFS_DATA=<folder> python -m benchmarks.tuning --cache <folder>

With a cache folder a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from fastcan import FastCan
from joblib import Memory
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from benchmarks.timing import markdown_table
from bsufs import alternatives
from bsufs.metrics import batched_kmeans, clustering_accuracy, nogueira_stability
from bsufs.selectors import BSUFS, ClusterAlignment, ColumnSubset, LaplacianScore, MaxVariance
from bsufs.selectors._data import FitData
from bsufs.selectors.cluster_alignment import most_components
from bsufs.tuning import ConsensusSelector, LabelFreeSearch
from bsufs.tuning.criteria import CRITERIA, oriented
from bsufs_paper.datasets import load_dataset
from bsufs_paper.reporting.paper import load_printed

SEVEN = ("COIL20", "Isolet", "USPS", "umist", "GLIOMA", "pie", "LUNG")
TEN = ("ORL", "Yale", "warpPIE10P", "warpAR10P", "colon", "lymphoma", "TOX-171", "Prostate-GE")
TEN += ("nci9", "orlraws10P")
SIZES = (20, 50, 100)
N_REPETITIONS = 24
SELECTORS = {
    "MaxVariance": MaxVariance,
    "LaplacianScore": LaplacianScore,
    "ColumnSubset": ColumnSubset,
    "BSUFS": BSUFS,
    "ConsensusSelector": lambda k: ConsensusSelector(n_features_to_select=k),
    "ClusterAlignment": ClusterAlignment,
}
METHODS = ("all columns", "random", "MaxVariance", "LaplacianScore", "ColumnSubset", "fastcan")
METHODS += ("BSUFS", "ConsensusSelector", "ClusterAlignment")
FLAGSHIPS = ("BSUFS", "ClusterAlignment")
# Methods that draw at random are measured with so many seeds.
N_SEEDS = {"random": 10, "ClusterAlignment": 4}
# Constants of the default that leave-one-dataset-out chooses among; the automatic values are first.
# Components: two views, or one view of at most so many; clusters: times the automatic number.
VARIED = {
    "n_neighbors": (3, 2, 5),
    "n_runs": (5, 2),
    "components": ("two views", 24, 12),
    "clusters": (1.0, 0.5, 2.0),
}
VARIANTS = tuple(product(*VARIED.values()))
# Seeds of k-means: for what is chosen with labels, and for everything that is printed.
SEARCH_SEED, FRESH_SEED = 11, 22
# Published for deep methods: z-scored columns, the best k of these by labels.
PUBLISHED = ("warpPIE10P", "TOX-171", "nci9", "Prostate-GE", "COIL20")
PUBLISHED_SIZES = (50, 100, 150, 200, 250, 300)


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples and the classes of a dataset."""
    dataset = load_dataset(name)
    return dataset.data, dataset.target


def accuracy(X: np.ndarray, y: np.ndarray, seed: int = FRESH_SEED) -> float:
    """Return the mean ACC of k-means on these columns."""
    runs = batched_kmeans(X, np.unique(y).size, n_runs=N_REPETITIONS, random_state=seed)
    return 100 * float(np.mean([clustering_accuracy(y, labels) for labels in runs.labels]))


def ranking(label: str, X: np.ndarray, seed: int) -> np.ndarray:
    """Return columns, best first."""
    if label == "random":
        return np.random.default_rng(seed).permutation(X.shape[1])
    if label == "fastcan":
        # Canonical correlation with the components needs more rows than columns.
        most = min(max(SIZES), X.shape[0] - 2)
        scores = PCA(BSUFS(1).fit(X).n_components_, random_state=0).fit_transform(X)
        return np.asarray(FastCan(most, verbose=0).fit(X, scores).indices_)
    selector = SELECTORS[label](max(SIZES))
    if "random_state" in selector.get_params():
        selector.set_params(random_state=seed)
    return np.argsort(selector.fit(X).ranking_)


def measured(name: str, label: str) -> list[float]:
    """Return the ACC of a method on a dataset by number of columns."""
    X, y = load(name)
    if label == "all columns":
        return [accuracy(X, y)] * len(SIZES)
    rankings = [ranking(label, X, seed) for seed in range(N_SEEDS.get(label, 1))]
    return [float(np.mean([accuracy(X[:, order[:k]], y) for order in rankings])) for k in SIZES]


def stability(name: str, label: str) -> float:
    """Return Nogueira's index over ten subsamples of 80 % of the rows, the mean over k."""
    X, _ = load(name)
    n = X.shape[0]
    parts = [np.random.default_rng(draw).permutation(n)[: round(0.8 * n)] for draw in range(10)]
    rankings = [ranking(label, X[np.sort(part)], 0) for part in parts]
    found = [nogueira_stability([order[:k] for order in rankings], X.shape[1]) for k in SIZES]
    return float(np.mean([index.value for index in found]))


def variants(name: str, settings: Iterable[tuple[Any, ...]]) -> list[float]:
    """Return the ACC of every variant of the default, the mean over k."""
    X, y = load(name)
    data = FitData(X)
    default = ClusterAlignment(max(SIZES)).fit(data)
    (automatic,), n_rows = default.n_clusters_, min(X.shape[0], default.max_samples)
    found = []
    for n_neighbors, n_runs, components, factor in settings:
        selector = clone(default).set_params(n_neighbors=n_neighbors, n_runs=n_runs)
        if components != "two views":
            most = most_components(n_rows, min(components, data.scatter.max_rank))
            selector.set_params(components=range(1, most + 1))
        selector.set_params(clusters=max(2, round(factor * automatic)))
        orders = [
            np.argsort(selector.set_params(random_state=seed).fit(data).ranking_)
            for seed in range(N_SEEDS["ClusterAlignment"])
        ]
        found.append(np.mean([accuracy(X[:, order[:k]], y) for order in orders for k in SIZES]))
    return [float(acc) for acc in found]


def several(name: str) -> dict[str, list[list[float]]]:
    """Return the ACC of three alternatives and of three of other kinds, by seed of the default."""
    X, y = load(name)
    data = FitData(X)
    found: dict[str, list[list[float]]] = {}

    def acc(order: np.ndarray) -> float:
        return float(np.mean([accuracy(X[:, order[:k]], y) for k in SIZES]))

    for seed in range(N_SEEDS["ClusterAlignment"]):
        selector = ClusterAlignment(max(SIZES), random_state=seed).fit(data)
        others = range(100 + 3 * seed, 103 + 3 * seed)
        kinds = {
            "default": [selector.ranking_],
            "alternatives": [one.ranking_ for one in alternatives(selector, data)],
            "other seeds": [
                clone(selector).set_params(random_state=s).fit(data).ranking_ for s in others
            ],
            "random": [np.random.default_rng(s).permutation(X.shape[1]) for s in others],
        }
        for kind, rankings in kinds.items():
            found.setdefault(kind, []).append([acc(np.argsort(each)) for each in rankings])
    return found


def chosen(name: str, label: str, k: int) -> dict[str, float]:
    """Return the ACC of the settings of the default grid that the criteria choose."""
    X, y = load(name)
    search = LabelFreeSearch(SELECTORS[label](k), criterion="rank_mean", report="all").fit(X)
    table = search.criteria_
    settings = table.filter(like="param_").rename(columns=lambda head: head.removeprefix("param_"))
    selectors = [
        clone(search.best_estimator_).set_params(**setting).fit(X)
        for setting in settings.to_dict("records")
    ]
    fresh = [accuracy(selector.transform(X), y) for selector in selectors]
    search_acc = [accuracy(selector.transform(X), y, SEARCH_SEED) for selector in selectors]
    found = {"the setting as it is": fresh[0]}
    for criterion in CRITERIA.values():
        values = oriented(criterion, table[criterion.name].to_numpy())
        found[criterion.name] = fresh[int(np.argmax(values))]
    found["mean over the settings"] = float(np.mean(fresh))
    return found | {"the best by labels": fresh[int(np.argmax(search_acc))]}


def best_by_labels(name: str) -> float:
    """Return the ACC of the default on z-scored columns at the best of several k."""
    X, y = load(name)
    X = StandardScaler().fit_transform(X)
    order = np.argsort(ClusterAlignment(max(PUBLISHED_SIZES)).fit(X).ranking_)

    def acc(k: int) -> float:
        runs = [KMeans(np.unique(y).size, random_state=seed) for seed in range(10)]
        labels = [run.fit_predict(X[:, order[:k]]) for run in runs]
        return 100 * float(np.mean([clustering_accuracy(y, each) for each in labels]))

    return max(acc(k) for k in PUBLISHED_SIZES)


def cleared(name: str) -> dict[str, float]:
    """Return the ACC of selections with centered rows, and of some from data with a batch.

    Three batches shift half of the columns, each by twice its standard deviation times a normal
    number. k-means judges the selected columns without that shift.
    """
    X, y = load(name)
    rng = np.random.default_rng(0)
    batch, shifts = rng.integers(0, 3, len(X)), rng.standard_normal((3, X.shape[1]))
    shifts *= 2.0 * X.std(axis=0) * (rng.random(X.shape[1]) < 0.5)
    shifted = X + shifts[batch]

    def acc(data: np.ndarray, method: Any = ClusterAlignment, **settings: Any) -> float:
        seeds = range(2 if method is ClusterAlignment else 1)
        fits = [method(max(SIZES), random_state=i, **settings).fit(data) for i in seeds]
        orders = [np.argsort(one.ranking_) for one in fits]
        return float(np.mean([accuracy(X[:, one[:k]], y) for one in orders for k in SIZES]))

    return {
        "`BSUFS`": acc(X, BSUFS),
        "`BSUFS`, `center_rows`": acc(X, BSUFS, center_rows=True),
        "`ClusterAlignment`": acc(X),
        "`center_rows`": acc(X, center_rows=True),
        "with a batch": acc(shifted),
        "with a batch, `adjust_for`": acc(shifted, adjust_for=batch.astype(str)),
    }


def chosen_number(name: str, label: str) -> list[float]:
    """Return the number of columns that "auto" keeps and its ACC, then those of 50 columns."""
    X, y = load(name)
    kept = SELECTORS[label]("auto").fit(X)
    order = np.argsort(kept.ranking_)
    k = int(kept.support_.sum())
    return [k, accuracy(X[:, order[:k]], y), accuracy(X[:, order[:50]], y)]


def show(first: str, heads: Iterable[str], rows: Iterable[Iterable[Any]], digits: int = 1) -> None:
    """Print a Markdown table of numbers."""
    cells = (
        [cell if isinstance(cell, str) else f"{cell:.{digits}f}" for cell in row] for row in rows
    )
    print(markdown_table((first, *heads), cells) + "\n", flush=True)


def print_methods(names: list[str], measured: Callable[..., Any]) -> None:
    """Print the ACC of every method by dataset, then by number of columns."""
    found = {}
    for name in names:
        found[name] = np.array([measured(name, label) for label in METHODS])
        print(f"{name}: {' '.join(f'{acc:.1f}' for acc in found[name].mean(axis=1))}", flush=True)
    printed = load_printed("clustering-acc")
    printed = printed[printed["method"] == "BSUFS"].set_index("dataset")["mean"]
    rows, groups = [], {"seven": SEVEN, "ten": TEN}
    for title, group in groups.items():
        here = [name for name in group if name in found]
        rows += [[name, *found[name].mean(axis=1), printed.get(name, "")] for name in here]
        if here:
            means = np.mean([found[name].mean(axis=1) for name in here], axis=0)
            paper = printed[here].mean() if group is SEVEN else ""
            rows.append([f"**mean of the {title}**", *means, paper])
    print()
    show("ACC", [*METHODS, "paper, tuned by labels"], rows)
    heads = [f"{title}, k = {k}" for title in groups for k in SIZES]
    by_size = [
        np.mean([found[name] for name in group if name in found], axis=0)
        for group in groups.values()
        if any(name in found for name in group)
    ]
    show(
        "by k",
        heads[: len(SIZES) * len(by_size)],
        [[label, *np.hstack(by_size)[i]] for i, label in enumerate(METHODS)],
    )


def print_stability(names: list[str], stability: Callable[..., Any]) -> None:
    """Print how alike the selections on parts of the rows are."""
    rows = [[name, *(stability(name, label) for label in FLAGSHIPS)] for name in names]
    for title, group in (("seven", SEVEN), ("ten", TEN)):
        if here := [row[1:] for row in rows if row[0] in group]:
            rows.append([f"**mean of the {title}**", *np.mean(here, axis=0)])
    show("stability", FLAGSHIPS, rows, digits=2)


def print_variants(names: list[str], variants: Callable[..., Any]) -> None:
    """Print, for each dataset, the variant that is best on the others and its ACC there."""
    table = np.array([variants(name, VARIANTS) for name in names])
    rows, found = [], {}
    for i, name in enumerate(names):
        best = int(np.argmax(np.delete(table, i, axis=0).mean(axis=0))) if len(names) > 1 else 0
        found[name] = (table[i, best], table[i, 0], table[i].min(), table[i].max())
        words = (f"{key} {value}" for key, value in zip(VARIED, VARIANTS[best], strict=True))
        rows.append([name, *found[name], ", ".join(words)])
    for title, group in (("seven", SEVEN), ("ten", TEN)):
        here = [name in group for name in names]
        if any(here):
            chosen, default = np.mean([found[name][:2] for name in names if name in group], axis=0)
            fixed = table[here].mean(axis=0)
            rows.append([f"**mean of the {title}**", chosen, default, fixed.min(), fixed.max(), ""])
    heads = ["best on the others", "default", "worst variant", "best variant", "which"]
    show("left out", heads, rows)


def print_several(names: list[str], several: Callable[..., Any]) -> None:
    """Print the alternatives, and the best of three by labels beside the best of other threes."""
    rows = []
    for name in names:
        found = several(name)
        best = [np.mean(np.max(found[kind], axis=1)) for kind in found]
        each = np.mean(found["alternatives"], axis=0)
        rows.append([name, *best, " / ".join(f"{acc:.1f}" for acc in each)])
    for title, group in (("seven", SEVEN), ("ten", TEN)):
        if here := [row[1:-1] for row in rows if row[0] in group]:
            rows.append([f"**mean of the {title}**", *np.mean(here, axis=0), ""])
    heads = ["default", "best alternative", "best of three seeds", "best of three random"]
    show("best of three", [*heads, "components 1, 2 / 3, 4 / 5, 6"], rows)


def print_criteria(names: list[str], chosen: Callable[..., Any]) -> None:
    """Print what the criteria choose among the settings of the default at k = 50."""
    names = [name for name in names if name in SEVEN]
    if not names:
        return
    found = [chosen(name, "ClusterAlignment", 50) for name in names]
    rows = []
    for label in found[0]:
        values = [each[label] for each in found]
        rows.append([label, float(np.mean(values)), *values])
    show("by", ["mean", *names], rows)


def print_published(names: list[str], best_by_labels: Callable[..., Any]) -> None:
    """Print the ACC of the default under the protocol of published deep methods."""
    names = [name for name in names if name in PUBLISHED]
    if names:
        show("z-scored", names, [["ClusterAlignment", *(best_by_labels(name) for name in names)]])


def print_cleared(names: list[str], cleared: Callable[..., Any]) -> None:
    """Print what clearing the data of row means and of a batch does to the default."""
    found = {name: cleared(name) for name in names}
    rows = [[name, *values.values()] for name, values in found.items()]
    for title, group in (("seven", SEVEN), ("ten", TEN)):
        if here := [list(found[name].values()) for name in names if name in group]:
            rows.append([f"**mean of the {title}**", *np.mean(here, axis=0)])
    show("ACC", list(found[names[0]]), rows)


def print_auto(names: list[str], chosen_number: Callable[..., Any]) -> None:
    """Print how many columns "auto" keeps, and what they are worth beside 50 of the same."""
    rows = []
    for name in names:
        found = [chosen_number(name, label) for label in FLAGSHIPS[::-1]]
        rows.append([name, *(cell for k, *accs in found for cell in (float(k), *accs))])
    if len(rows) > 1:
        rows.append(["**mean**", *np.mean([row[1:] for row in rows], axis=0)])
    heads = [f"{label}: {what}" for label in FLAGSHIPS[::-1] for what in ("k", "ACC", "ACC of 50")]
    show("auto", heads, rows)


PARTS = {
    "methods": (print_methods, measured),
    "stability": (print_stability, stability),
    "variants": (print_variants, variants),
    "alternatives": (print_several, several),
    "criteria": (print_criteria, chosen),
    "auto": (print_auto, chosen_number),
    "published": (print_published, best_by_labels),
    "cleared": (print_cleared, cleared),
}


def main() -> None:
    """Print the tables as Markdown."""
    parser = argparse.ArgumentParser(description="Measure selections made without labels.")
    parser.add_argument("--datasets", nargs="*", choices=SEVEN + TEN, default=[*SEVEN, *TEN])
    parser.add_argument("--only", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--cache", type=Path, help="folder to keep results in between runs")
    options = parser.parse_args()
    memory = Memory(options.cache, verbose=0)
    for part in options.only:
        print_part, measure = PARTS[part]
        print_part(options.datasets, memory.cache(measure))


if __name__ == "__main__":
    main()
