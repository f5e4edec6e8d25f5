"""Measure how well settings are chosen without labels: accuracy and regret on public datasets.

Every number is the accuracy (ACC, in %) of plain k-means++ on the selected columns, after the best
matching of clusters and classes. The settings compared are those of `LabelFreeSearch` for
`ClusterAlignment`, the default of the command line, and for `BSUFS`.
The oracle, and any criterion or combination chosen by its results, is chosen with search
repetitions; what is printed comes from fresh ones. A criterion is chosen on all datasets but one
and evaluated on that one, for each in turn; so are the constants of `ClusterAlignment`.

The datasets are not part of the project. The environment variable BSUFS_DATA names the folder with
COIL20.mat, Isolet.mat, USPS.mat, umist.mat, GLIOMA.mat, pie.mat and lung_small.mat:

    BSUFS_DATA=<folder> python -m benchmarks.tuning [--datasets LUNG USPS ...] [--cache <folder>]

fastcan is compared where it is installed (`pip install ".[bench]"`). With a cache folder a run that
was stopped goes on where it was, and datasets can be measured one at a time.
"""

from __future__ import annotations

import argparse
import pickle
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from sklearn.decomposition import PCA
from sklearn.model_selection import ParameterGrid

from benchmarks.defaults import (
    NAMES,
    datasets_named,
    error,
    file_of,
    load,
    random_rankings,
    ranked,
    show,
    without_each,
)
from bsufs.metrics import batched_kmeans, clustering_accuracy, nogueira_stability
from bsufs.selectors import (
    BSUFS,
    ClusterAlignment,
    ColumnSubset,
    LaplacianScore,
    MaxVariance,
    PCARowNorms,
)
from bsufs.tuning import ConsensusSelector, default_grid
from bsufs.tuning.criteria import CRITERIA, Criterion, EvaluationData, RankMean, oriented

SIZES = (20, 50, 80, 100)
# Seeds of the repetitions: for choosing with labels, and for what is printed.
SEARCH_SEED, FRESH_SEED = 11, 22
N_SEARCH = 12
CONSENSUS: dict[str, dict[str, Any]] = {
    "consensus": {},
    "consensus of ranks": {"aggregate": "rank"},
    "consensus over halves": {"n_pairs": 5},
}
METHODS = {
    "variance": MaxVariance,
    "Laplacian score": LaplacianScore,
    "PCA row norms": PCARowNorms,
    "greedy column subset": ColumnSubset,
}
FAMILIES = {"ClusterAlignment": ClusterAlignment, "BSUFS": BSUFS}
# Other values for the constants of ClusterAlignment, the defaults among them.
VARIANTS = {
    "flattening": [0.25, 0.5, 0.75],
    "scaling": [0.0, 0.5, 1.0],
    "survival_power": [0.0, 0.25, 1.0],
}
SEEDS = range(1, 6)
SINGLE = tuple(c for c in CRITERIA.values() if isinstance(c, Criterion))
EVERYTHING = RankMean(SINGLE)


class Memory:
    """Answers by key, kept in a file between runs."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.answers: dict[Any, Any] = {}
        self.saved = time.monotonic()
        if file is not None and file.exists():
            self.answers = pickle.loads(file.read_bytes())

    def __call__(self, key: Any, compute: Callable[[], Any]) -> Any:
        """Return the answer to a question, computed if it is a new one."""
        if key not in self.answers:
            self.answers[key] = compute()
            if time.monotonic() - self.saved > 20:
                self.save()
        return self.answers[key]

    def save(self) -> None:
        """Write the answers to the file, all or nothing."""
        self.saved = time.monotonic()
        if self.file is not None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            half_written = self.file.with_suffix(".new")
            half_written.write_bytes(pickle.dumps(self.answers))
            half_written.replace(self.file)


@dataclass
class Searched:
    """What the settings of one method reach, and what the criteria say of them.

    The arrays have the shape (settings, sizes), with repetitions last.
    """

    search: np.ndarray
    fresh: np.ndarray
    criteria: dict[str, np.ndarray]

    def pick(self, criterion: Criterion | RankMean) -> np.ndarray:
        """Return the setting that a criterion chooses for each size."""
        return np.array(
            [
                int(np.argmax(oriented(criterion, self._values(criterion, size))))
                for size in range(len(SIZES))
            ]
        )

    def _values(self, criterion: Criterion | RankMean, size: int) -> np.ndarray:
        columns = {name: values[:, size] for name, values in self.criteria.items()}
        if isinstance(criterion, RankMean):
            return criterion.combine(columns)
        return columns[criterion.name]

    def correlation(self, criterion: Criterion | RankMean, size: int) -> float:
        """Return the rank correlation of a criterion with ACC over the grid."""
        values = oriented(criterion, self._values(criterion, size))
        if np.ptp(values) == 0:
            return 0.0
        return float(spearmanr(values, self.fresh[:, size].mean(axis=1)).statistic)

    def reached(self, picks: np.ndarray, acc: np.ndarray) -> np.ndarray:
        """Return ACC of the settings picked, (sizes, repetitions)."""
        return np.stack([acc[pick, size] for size, pick in enumerate(picks)])

    def oracle(self) -> np.ndarray:
        """Return ACC of the settings that are best by labels."""
        return self.reached(self.search.mean(axis=2).argmax(axis=0), self.fresh)


@dataclass
class Measured:
    """What was measured on a dataset."""

    name: str
    searched: dict[str, Searched]
    # ACC of the variants of ClusterAlignment, (variants, sizes, repetitions).
    variants_search: np.ndarray
    variants_fresh: np.ndarray
    # ACC of what is not tuned, (sizes, repetitions).
    others: dict[str, np.ndarray]


def fastcan_ranking(X: np.ndarray) -> np.ndarray:
    """Return the columns that fastcan takes first, judged by the principal components."""
    from fastcan import FastCan

    m = BSUFS(1).fit(X).n_components_
    most = min(max(SIZES), X.shape[0] - 1, X.shape[1])
    scores = PCA(m, random_state=0).fit_transform(X)
    return np.asarray(FastCan(most, verbose=0).fit(X, scores).indices_)


class Laboratory:
    """A dataset on which methods are tried; what was computed once is remembered."""

    def __init__(self, name: str, memory: Memory, repetitions: int) -> None:
        self.X, y = load(name)
        self.classes = np.unique(y, return_inverse=True)[1]
        self.n_classes = int(self.classes.max()) + 1
        self.data = EvaluationData(self.X)
        self.memory = memory
        self.repetitions = repetitions

    def acc(self, features: np.ndarray, seed: int, n_runs: int) -> np.ndarray:
        """Return ACC in % of every run of k-means."""
        columns = np.unique(features)

        def cluster() -> np.ndarray:
            Z = self.X[:, columns]
            runs = batched_kmeans(Z, self.n_classes, n_runs=n_runs, random_state=seed)
            return np.array(
                [100 * clustering_accuracy(self.classes, labels) for labels in runs.labels]
            )

        return self.memory(("acc", columns.tobytes(), seed, n_runs), cluster)

    def curve(self, ranking: np.ndarray, seed: int, n_runs: int) -> np.ndarray:
        """Return ACC by size and run."""
        return np.stack([self.acc(ranking[:k], seed, n_runs) for k in SIZES])

    def fresh(self, ranking: np.ndarray) -> np.ndarray:
        """Return ACC by size and repetition, with the seed of what is printed."""
        return self.curve(ranking, FRESH_SEED, self.repetitions)

    def ranking(self, method: Any, setting: dict[str, Any], data: Any = None) -> np.ndarray:
        """Return the columns that a setting finds, best first."""
        return ranked(method(100, **setting).fit(self.X if data is None else data))

    def remembered(self, method: Any, setting: dict[str, Any]) -> np.ndarray:
        """Return the ranking of a setting on all rows."""
        key = ("ranking", key_of(method, setting))
        return self.memory(key, partial(self.ranking, method, setting))

    def searched(self, method: Any) -> Searched:
        """Try every setting of the default grid, and ask every criterion about it."""
        settings = list(ParameterGrid(default_grid(method(), self.X)))
        rankings = [self.remembered(method, setting) for setting in settings]
        criteria = {
            criterion.name: np.array(
                [
                    self._values(criterion, method, setting, ranking)
                    for setting, ranking in zip(settings, rankings, strict=True)
                ]
            )
            for criterion in SINGLE
        }
        search = [self.curve(ranking, SEARCH_SEED, N_SEARCH) for ranking in rankings]
        fresh = [self.fresh(ranking) for ranking in rankings]
        return Searched(np.array(search), np.array(fresh), criteria)

    def _values(
        self, criterion: Criterion, method: Any, setting: dict[str, Any], ranking: np.ndarray
    ) -> list[float]:
        """Return what a criterion says of a setting, by size."""
        if criterion.needs_selector:
            key = ("stability", key_of(method, setting))
            return self.memory(key, partial(self._stability, method, setting))
        return [self._judged(criterion, ranking[:k]) for k in SIZES]

    def _judged(self, criterion: Criterion, features: np.ndarray) -> float:
        columns = np.unique(features)
        key = ("criterion", repr(criterion), columns.tobytes())
        return self.memory(key, partial(criterion.judge, self.data, self.data.columns(columns)))

    def _stability(self, method: Any, setting: dict[str, Any]) -> list[float]:
        criterion = CRITERIA["stability"]
        parts = [self.data.subsample(i, criterion.share) for i in range(criterion.n_subsamples)]
        rankings = [self.ranking(method, setting, part) for part in parts]
        # One ranking serves all sizes, where the criterion itself would select for each.
        return [
            nogueira_stability([ranking[:k] for ranking in rankings], self.X.shape[1]).value
            for k in SIZES
        ]

    def variants(self, seed: int, n_runs: int) -> np.ndarray:
        """Return ACC of ClusterAlignment with other constants."""
        rankings = [
            self.remembered(ClusterAlignment, setting) for setting in ParameterGrid(VARIANTS)
        ]
        return np.array([self.curve(ranking, seed, n_runs) for ranking in rankings])

    def others(self) -> dict[str, np.ndarray]:
        """Return ACC of what is not tuned."""
        found = {
            label: self.fresh(self.memory(("ranking", label), compute))
            for label, compute in self._untuned().items()
        }
        seeds = [self.remembered(ClusterAlignment, {"random_state": seed}) for seed in SEEDS]
        found["ClusterAlignment, mean of 5 seeds"] = np.mean(
            [self.fresh(ranking) for ranking in seeds], axis=0
        )
        d = self.X.shape[1]
        chance = [self.fresh(ranking) for ranking in random_rankings(d)]
        found["random, mean of 10"] = np.mean(chance, axis=0)
        whole = self.acc(np.arange(d), FRESH_SEED, self.repetitions)
        found["all features"] = np.tile(whole, (len(SIZES), 1))
        return found

    def _untuned(self) -> dict[str, Callable[[], np.ndarray]]:
        """Return how the rankings of methods with their defaults are made."""
        rankings: dict[str, Callable[[], np.ndarray]] = {
            label: partial(self.ranking, method, {}) for label, method in FAMILIES.items()
        }
        if find_spec("fastcan") is not None:
            rankings["fastcan"] = partial(fastcan_ranking, self.X)
        over_the_grid = {"param_grid": default_grid(BSUFS(), self.X), "n_rotations": 0}
        consensus = CONSENSUS | {"consensus over the grid": over_the_grid}
        for label, parameters in consensus.items():
            make = partial(ConsensusSelector, n_features_to_select=100, **parameters)
            rankings[label] = partial(lambda make: ranked(make().fit(self.X)), make)
        for label, method in METHODS.items():
            rankings[label] = partial(self.ranking, method, {})
        return rankings


def key_of(method: Any, setting: dict[str, Any]) -> str:
    """Return the name under which results of a setting are remembered."""
    return f"{method.__name__} {sorted(setting.items())!r}"


def measure(name: str, memory: Memory, repetitions: int) -> Measured:
    """Select, judge and cluster on a dataset."""
    laboratory = Laboratory(name, memory, repetitions)
    measured = Measured(
        name,
        others=laboratory.others(),
        searched={label: laboratory.searched(method) for label, method in FAMILIES.items()},
        variants_search=laboratory.variants(SEARCH_SEED, N_SEARCH),
        variants_fresh=laboratory.variants(FRESH_SEED, repetitions),
    )
    memory.save()
    return measured


def left_out(searched: list[Searched], choices: Iterable[Criterion | RankMean]) -> Any:
    """Choose a criterion on all datasets but one, and return what it reaches on that one."""
    choices = list(choices)
    seen = np.array(
        [[data.reached(data.pick(c), data.search).mean() for c in choices] for data in searched]
    )
    picks = without_each(seen)
    reached = [
        data.reached(data.pick(choices[pick]), data.fresh)
        for data, pick in zip(searched, picks, strict=True)
    ]
    return np.array(reached), [choices[pick] for pick in picks]


def described(criterion: Criterion | RankMean) -> str:
    """Return a name that tells combinations apart."""
    if isinstance(criterion, RankMean):
        return " + ".join(part.name for part in criterion.criteria)
    return criterion.name


def search_results(measured: list[Measured], family: str) -> tuple[dict[str, Any], list[str]]:
    """Return ACC of what is chosen among the settings of a method, and notes on the choices."""
    searched = [data.searched[family] for data in measured]
    results = {"oracle (needs labels)": np.array([data.oracle() for data in searched])}
    for criterion in (*SINGLE, CRITERIA["rank_mean"], EVERYTHING):
        label = "rank mean of all" if criterion is EVERYTHING else criterion.name
        reached = [data.reached(data.pick(criterion), data.fresh) for data in searched]
        results[f"by {label}"] = np.array(reached)
    notes = []
    if len(measured) > 1:
        subsets = [RankMean(parts) for size in range(1, 7) for parts in combinations(SINGLE, size)]
        for label, choices in (("criterion", SINGLE), ("combination", subsets)):
            results[f"{label} chosen on the others"], picks = left_out(searched, choices)
            chosen = (f"{d.name}: {described(p)}" for d, p in zip(measured, picks, strict=True))
            notes.append(f"{label.capitalize()} chosen on the other datasets: {'; '.join(chosen)}.")
    results["mean of the grid"] = np.array([data.fresh.mean(axis=0) for data in searched])
    return {f"{family}: {label}": acc for label, acc in results.items()}, notes


def variant_results(measured: list[Measured]) -> tuple[dict[str, Any], list[str]]:
    """Return ACC of ClusterAlignment with other constants."""
    fresh = np.array([data.variants_fresh for data in measured])
    results = {"ClusterAlignment, mean of 27 variants": fresh.mean(axis=1)}
    if len(measured) == 1:
        return results, []
    seen = np.array([data.variants_search.mean(axis=(1, 2)) for data in measured])
    picks = without_each(seen)
    results["ClusterAlignment, variant chosen on the others"] = np.array(
        [fresh[i, pick] for i, pick in enumerate(picks)]
    )
    settings = list(ParameterGrid(VARIANTS))
    chosen = (f"{d.name}: {settings[p]}" for d, p in zip(measured, picks, strict=True))
    by_variant = fresh.mean(axis=(0, 2, 3))
    return results, [
        f"The variants have means from {by_variant.min():.1f} to {by_variant.max():.1f}.",
        f"Variant chosen on the other datasets: {'; '.join(chosen)}.",
    ]


def print_accuracy(measured: list[Measured]) -> None:
    """Print ACC of everything, and how far it is from the oracle and from random columns."""
    results = {label: np.array([d.others[label] for d in measured]) for label in measured[0].others}
    found, notes = variant_results(measured)
    results |= found
    for family in FAMILIES:
        found, about = search_results(measured, family)
        results |= found
        notes += [f"{family}: {note}" for note in about]
    oracle = np.maximum.reduce(
        [results[f"{family}: oracle (needs labels)"].mean(axis=2) for family in FAMILIES]
    )

    chance = results["random, mean of 10"].mean(axis=2)
    greedy = results["greedy column subset"].mean(axis=2)
    rows = []
    for label, acc in results.items():
        by_size = acc.mean(axis=(0, 2))
        each = acc.mean(axis=2)
        regret = (oracle - each).mean(axis=1)
        spread = f" ± {error(regret):.1f}" if len(measured) > 1 else ""
        better = [int(np.sum(each[:, -1] > rival[:, -1])) for rival in (chance, greedy)]
        rows.append(
            [label, *by_size, float(by_size.mean()), f"{regret.mean():.1f}{spread}"]
            + [f"{count} of {len(measured)}" for count in better]
            + [float(value) for value in each[:, -1]]
        )
    heads = [f"k = {k}" for k in SIZES] + ["mean", "regret"]
    heads += ["above random at k = 100", "above greedy at k = 100"]
    show([*heads, *(f"{data.name}, k = 100" for data in measured)], rows)
    print("\n\n".join(notes), "\n")


def print_correlations(measured: list[Measured]) -> None:
    """Print how well each criterion orders the settings by ACC."""
    rows = []
    for family in FAMILIES:
        for criterion in (*SINGLE, CRITERIA["rank_mean"], EVERYTHING):
            found = np.array(
                [
                    [
                        data.searched[family].correlation(criterion, size)
                        for size in range(len(SIZES))
                    ]
                    for data in measured
                ]
            )
            label = "rank mean of all" if criterion is EVERYTHING else criterion.name
            values = [f"{v:.2f}" for v in (*found.mean(axis=0), *found.mean(axis=1))]
            rows.append([f"{family}: {label}", *values])
    show([*(f"k = {k}" for k in SIZES), *(data.name for data in measured)], rows)


def between_classes(X: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the share of each column's variance that lies between classes."""
    centered = X - X.mean(axis=0)
    counts = np.bincount(classes)
    sums = np.stack([centered[classes == c].sum(axis=0) for c in range(counts.size)])
    total = (centered**2).sum(axis=0)
    between = (sums**2 / counts[:, None]).sum(axis=0)
    return np.divide(between, total, out=np.zeros_like(total), where=total > 0)


def print_where_classes_show(names: Iterable[str]) -> None:
    """Print what the classes explain of the leading components, and of columns by variance."""
    rows = []
    for name in names:
        X, y = load(name)
        classes = np.unique(y, return_inverse=True)[1]
        components = PCA(6, random_state=0).fit_transform(X)
        by_variance = np.array_split(np.argsort(X.var(axis=0)), 5)
        groups = [between_classes(X[:, part], classes).mean() for part in by_variance]
        shares = [between_classes(components, classes), groups]
        selected = [
            between_classes(X[:, method(100).fit(X).support_], classes).mean()
            for method in FAMILIES.values()
        ]
        rows.append([name, *(f"{value:.2f}" for part in (*shares, selected) for value in part)])
    heads = [f"component {i}" for i in range(1, 7)]
    heads += ["smallest variance", *(f"fifth {i}" for i in range(2, 5)), "largest variance"]
    show([*heads, *(f"{label}, k = 100" for label in FAMILIES)], rows)


def main() -> None:
    """Print the tables as Markdown."""
    parser = argparse.ArgumentParser(description="Measure choices made without labels.")
    parser.add_argument("--datasets", nargs="*", choices=NAMES, default=list(NAMES))
    parser.add_argument("--cache", type=Path, help="folder to keep results in between runs")
    parser.add_argument("--repetitions", type=int, default=24, help="fresh repetitions of k-means")
    options = parser.parse_args()
    if not datasets_named():
        return
    measured = []
    for name in options.datasets:
        stored = file_of(name)
        if not stored.exists():
            print(f"{name}: left out, BSUFS_DATA holds no {stored.name}.")
            continue
        began = time.perf_counter()
        file = None if options.cache is None else options.cache / f"{name}.pickle"
        measured.append(measure(name, Memory(file), options.repetitions))
        seconds = time.perf_counter() - began
        print(f"{name}: {seconds:.0f} s", flush=True)
    if not measured:
        return
    print("\n## Accuracy and regret\n")
    print_accuracy(measured)
    print("## Rank correlation with the accuracy over the grid\n")
    print_correlations(measured)
    print("## Share of variance between classes\n")
    print_where_classes_show(data.name for data in measured)


if __name__ == "__main__":
    main()
