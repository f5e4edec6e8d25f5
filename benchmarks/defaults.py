"""Measure what the default settings rest on: clustering accuracy on seven public datasets.

Every number is the accuracy (ACC, in %) of plain k-means++ with one start on the selected columns,
after the best matching of clusters and classes. Settings are compared with search seeds; what is
printed comes from fresh seeds. A setting chosen by its results is chosen on six datasets and
evaluated on the seventh, for each of the seven in turn.

The datasets are not part of the project. The environment variable BSUFS_DATA names the folder with
COIL20.mat, Isolet.mat, USPS.mat, umist.mat, GLIOMA.mat, pie.mat and lung_small.mat:

    BSUFS_DATA=<folder> python -m benchmarks.defaults [--only row element ...] [--cache <folder>]
"""

from __future__ import annotations

import argparse
import os
import pickle
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.io import loadmat
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from bsufs import BSUFS
from bsufs.metrics import clustering_accuracy, nogueira_stability
from bsufs.selectors import ColumnSubset, MaxVariance, PCARowNorms

NAMES = ("COIL20", "Isolet", "USPS", "umist", "GLIOMA", "pie", "LUNG")
OTHERS = ("digits", "breast cancer, scaled", "50 signal", "50 signal, 450 noise")
SIZES = (5, 10, 20, 50, 80, 100)
SMALL, MAIN = slice(0, 2), slice(2, None)  # a mean is over the last four sizes
SEARCH, FRESH, FINAL = range(100, 112), range(5000, 5016), range(7000, 7024)
BASELINES = {"variance": MaxVariance, "PCA row norms": PCARowNorms, "greedy columns": ColumnSubset}
EXPONENTS = {"0": 0.0, "1/2": 0.5, "2/3": 2 / 3, "1": 1.0}

Settings = dict[str, dict[str, Any]]
# ACC by label: an array over datasets, sizes and seeds (or subsamples).
Results = dict[str, np.ndarray]


def datasets_named() -> bool:
    """Tell whether there is a folder of the datasets to look into; print it where there is none."""
    if os.environ.get("BSUFS_DATA"):
        return True
    print("BSUFS_DATA does not name the folder of the datasets: nothing to measure.")
    return False


def file_of(name: str) -> Path:
    """Return where a dataset is stored."""
    return Path(os.environ["BSUFS_DATA"]) / f"{name.replace('LUNG', 'lung_small')}.mat"


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples and the classes of a dataset."""
    if name == "digits":
        return load_digits(return_X_y=True)
    if name == "breast cancer, scaled":
        X, y = load_breast_cancer(return_X_y=True)
        return StandardScaler().fit_transform(X), y
    if name in OTHERS:  # five classes in five factors behind 50 columns
        rng, y = np.random.default_rng(0), np.arange(500) % 5
        factors = 3.0 * np.eye(5)[y] + rng.standard_normal((500, 5))
        X = rng.standard_normal((500, 500))
        X[:, :50] += factors @ rng.standard_normal((5, 50))
        return (X if "noise" in name else X[:, :50]), y
    file = loadmat(file_of(name))
    if name == "USPS":
        X = np.hstack([file["Train_DAT"], file["Test_DAT"]]).T.astype(float)
        y = np.hstack([file["trainlabels"].ravel(), file["testlabels"].ravel()])
        first = np.hstack([np.flatnonzero(y == c)[:100] for c in np.unique(y)])
        return X[first], y[first]
    if name == "umist":
        return file["fea"].astype(float) / 255, file["gnd"].ravel()
    return file["X"].astype(float), file["Y"].ravel()


class Bench:
    """A dataset whose clusterings are computed once per set of features and seed."""

    def __init__(self, name: str) -> None:
        self.X, y = load(name)
        self.d = self.X.shape[1]
        self.classes = np.unique(y, return_inverse=True)[1]
        self.n_classes = int(self.classes.max()) + 1
        self.scores: dict[tuple[bytes, int], float] = {}

    def acc(self, features: np.ndarray, seeds: Iterable[int]) -> np.ndarray:
        """Return ACC in % for each seed."""
        columns = np.unique(features)
        key = columns.astype(np.int32).tobytes()
        Z = np.ascontiguousarray(self.X[:, columns])
        for seed in seeds:
            if (key, seed) not in self.scores:
                self.scores[key, seed] = self._cluster(Z, seed)
        return np.array([self.scores[key, seed] for seed in seeds])

    def _cluster(self, Z: np.ndarray, seed: int) -> float:
        centers, _ = kmeans_plusplus(Z, self.n_classes, random_state=seed, n_local_trials=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = KMeans(self.n_classes, init=centers, n_init=1, max_iter=200).fit(Z)
        return 100.0 * clustering_accuracy(self.classes, model.labels_)

    def curve(self, ranking: np.ndarray, seeds: Iterable[int]) -> np.ndarray:
        """Return ACC by size and seed."""
        return np.array([self.acc(ranking[:k], seeds) for k in SIZES])


def ranked(selector: Any) -> np.ndarray:
    """Return the columns of a fitted selector, best first."""
    return np.argsort(selector.ranking_, kind="stable")


def random_rankings(d: int) -> list[np.ndarray]:
    """Return ten random orders of the columns."""
    return [np.random.default_rng(draw).permutation(d) for draw in range(10)]


def row_settings(n_classes: int) -> Settings:
    """Return the grid over the row penalty and some death rates, without element term."""
    found: Settings = {}
    for p, b in product(EXPONENTS, (1, 3, 10, 30)):
        found[f"p={p} b={b}"] = {"p": EXPONENTS[p], "beta_row": b, "lambda_element": 0.0}
    for rate in (0.03, 0.08, 0.12):
        found[f"p=1/2 b=10 r={rate}"] = found["p=1/2 b=10"] | {"drop_rate": rate}
    return found


def element_settings(n_classes: int) -> Settings:
    """Return the default without an element term and with eighteen of them."""
    found: Settings = {"none": {"lambda_element": 0.0}}
    for q, theta, b in product(("0", "1/2", "2/3"), (0.25, 0.5, 1.0), (1, 10)):
        terms = {"q": EXPONENTS[q], "lambda_element": theta, "beta_element": b}
        found[f"q={q} theta={theta:g} b={b}"] = terms
    return found


def component_settings(n_classes: int) -> Settings:
    """Return the default with several rules for the number of components."""
    rules = {"auto": "auto", "10": 10, "20": 20, "0.75 K": round(0.75 * n_classes), "K": n_classes}
    rules |= {"80 % of the variance": 0.8, "90 % of the variance": 0.9}
    return {label: {"n_components": m} for label, m in rules.items()}


# The settings worth ten selections each.
PERTURBED = ("p=1/2 b=10", "p=0 b=10", "p=2/3 b=10", "p=1 b=10")
PERTURBED += ("q=1/2 theta=0.5 b=1", "q=1/2 theta=1 b=1", "q=1/2 theta=1 b=10")


def compare(bench: Bench, settings: Callable[[int], Settings]) -> dict[str, Any]:
    """Return ACC of each setting with search and fresh seeds, and its number of components."""
    found = {}
    for label, parameters in settings(bench.n_classes).items():
        selector = BSUFS(50, **parameters).fit(bench.X)
        found[label] = (bench.curve(ranked(selector), [*SEARCH, *FRESH]), selector.n_components_)
    return found


def perturb(bench: Bench) -> dict[str, Any]:
    """Select on ten subsamples of 90 % of the rows, and cluster all rows: ACC, stability, zeros."""
    n = bench.X.shape[0]
    settings = row_settings(bench.n_classes) | element_settings(bench.n_classes)
    rankings: dict[str, list[np.ndarray]] = {label: [] for label in (*PERTURBED, *BASELINES)}
    zeros: dict[str, list[float]] = {label: [] for label in PERTURBED}
    for draw in range(10):
        X = bench.X[np.random.default_rng(draw).permutation(n)[: round(0.9 * n)]]
        for label in PERTURBED:
            selector = BSUFS(50, **settings[label]).fit(X)
            rankings[label].append(ranked(selector))
            U = selector.element_sparse_components_[:, selector.support_]
            zeros[label].append((U == 0).mean())
        for label, baseline in BASELINES.items():
            rankings[label].append(ranked(baseline(50).fit(X)))
    rankings["random"] = random_rankings(bench.d)
    return {
        label: (
            np.stack([bench.curve(ranking, FRESH[:6]).mean(axis=1) for ranking in each], axis=1),
            nogueira_stability([ranking[:50] for ranking in each], bench.d).value,
            np.mean(zeros.get(label, 0.0)),
        )
        for label, each in rankings.items()
    }


def choose_size(bench: Bench) -> dict[str, tuple[int, float]]:
    """Return k and ACC of rules for the number of features, and of the best k by labels."""
    auto, everything = BSUFS().fit(bench.X), BSUFS(1.0).fit(bench.X)
    ranking, size = ranked(everything), int(auto.support_.sum())
    enough = int(np.argmax(everything.explained_variance_curve_ >= 0.9)) + 1
    grid = [k for k in (10, 15, 20, 30, 40, 50, 65, 80, 100, 150, 200) if k <= bench.d]
    best = max(grid, key=lambda k: bench.acc(ranking[:k], SEARCH).mean())
    rules = {"auto": size, "90 % of all variance": enough, "best k by labels": best}
    rules |= {"k = 50": min(50, bench.d), "k = m": auto.n_components_, "all features": bench.d}
    found = {label: (k, bench.acc(ranking[:k], FRESH).mean()) for label, k in rules.items()}
    chance = [bench.acc(order[:size], FRESH).mean() for order in random_rankings(bench.d)]
    return found | {"random, k of auto": (size, np.mean(chance))}


def as_is(bench: Bench) -> dict[str, np.ndarray]:
    """Return ACC of the default and of the baselines, with seeds used nowhere else."""
    found = {
        label: bench.curve(ranked(selector(100).fit(bench.X)), FINAL)
        for label, selector in ({"BSUFS": BSUFS} | BASELINES).items()
    }
    chance = [bench.curve(ranking, FINAL) for ranking in random_rankings(bench.d)]
    everything = np.tile(bench.acc(np.arange(bench.d), FINAL), (len(SIZES), 1))
    return found | {"random, mean of 10": np.mean(chance, axis=0), "all features": everything}


def show(heads: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Print a Markdown table; the first column has no head."""
    heads = list(heads)
    print("| | " + " | ".join(heads) + " |\n" + "|---" * (len(heads) + 1) + "|")
    for row in rows:
        cells = [f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in row]
        print("| " + " | ".join(cells) + " |")
    print()


def error(values: np.ndarray) -> float:
    """Return the standard error of the mean."""
    return float(values.std(ddof=1) / np.sqrt(values.size))


def difference(acc: np.ndarray, base: np.ndarray, sizes: slice = MAIN) -> str:
    """Return a mean difference with two errors: from seeds or subsamples, and from datasets."""
    gaps = (acc - base)[:, sizes].mean(axis=1)
    each = gaps.mean(axis=1)
    return f"{each.mean():+.2f} ± {error(gaps.mean(axis=0)):.2f} ± {error(each):.2f}"


def show_acc(results: Results, base: str) -> None:
    """Print the mean, its difference to a label, the small sizes and the mean of each dataset."""
    rows = []
    for label, acc in results.items():
        means, small = acc[:, MAIN].mean(axis=1), acc[:, SMALL].mean(axis=(0, 2))
        gap = "" if label == base else difference(acc, results[base])
        mean = f"**{means.mean():.1f}** ± {error(means.mean(axis=0)):.2f}"
        rows.append([label, mean, gap, *small, *means.mean(axis=1)])
    show(["mean", f"minus {base}", "k = 5", "k = 10", *NAMES], rows)


def without_each(seen: np.ndarray) -> list[int]:
    """Return for each dataset (row) the choice (column) that is best on the others."""
    return [int(np.delete(seen, i, axis=0).mean(axis=0).argmax()) for i in range(len(seen))]


def leave_one_out(search: Results, fresh: Results) -> str:
    """Return what choosing the best label gives: in-sample, and on datasets it has not seen."""
    labels = list(search)
    seen, new = (
        np.array([part[label][:, MAIN].mean(axis=(1, 2)) for label in labels]).T
        for part in (search, fresh)
    )
    best = int(seen.mean(axis=0).argmax())
    picks = without_each(seen)
    honest = np.mean([new[i, pick] for i, pick in enumerate(picks)])
    return (
        f"Chosen on all: {labels[best]}, {seen[:, best].mean():.2f} with search seeds, "
        f"{new[:, best].mean():.2f} with fresh ones. Chosen leaving one dataset out: {honest:.2f} "
        f"(picked: {', '.join(sorted({labels[pick] for pick in picks}))})."
    )


def print_comparison(run: Callable[..., list[Any]], settings: Any, base: str) -> None:
    """Print a comparison of settings."""
    found = run(partial(compare, settings=settings), NAMES)
    full = {label: np.array([each[label][0] for each in found]) for label in found[0]}
    n = len(SEARCH)
    search = {label: acc[:, :, :n] for label, acc in full.items()}
    fresh = {label: acc[:, :, n:] for label, acc in full.items()}
    show_acc(fresh, base)
    if settings is component_settings:
        show(NAMES, [[f"m: {label}", *(each[label][1] for each in found)] for label in full])
    print(leave_one_out(search, fresh))


def print_subsamples(run: Callable[..., list[Any]]) -> None:
    """Print accuracy and stability over subsamples."""
    found = run(perturb, NAMES)
    show_acc({x: np.array([each[x][0] for each in found]) for x in found[0]}, PERTURBED[0])
    rows = []
    for label in found[0]:
        stability = [each[label][1] for each in found]
        zeros = f"{100 * np.mean([each[label][2] for each in found]):.0f} %"
        cells = [f"{value:.2f}" for value in stability]
        rows.append([label, f"**{np.mean(stability):.3f}**", *cells, zeros])
    show(["stability", *NAMES, "zeros in U"], rows)


def print_sizes(run: Callable[..., list[Any]]) -> None:
    """Print the number of features that "auto" takes: k (ACC)."""
    names = (*NAMES, *OTHERS)
    found = run(choose_size, names)
    rows = []
    for label in found[0]:
        mean = np.mean([each[label][1] for each in found[: len(NAMES)]])
        rows.append([label, *(f"{each[label][0]} ({each[label][1]:.1f})" for each in found), mean])
    show([*names, "mean of the seven"], rows)


def print_default(run: Callable[..., list[Any]]) -> None:
    """Print the default as a user gets it."""
    found = run(as_is, NAMES)
    heads = [f"k = {k}" for k in SIZES]
    rows: list[list[Any]] = []
    for name, each in zip(NAMES, found, strict=True):
        rows += [[f"{name}: {label}", *acc.mean(axis=1)] for label, acc in each.items()]
    show(heads, rows)
    results = {label: np.array([each[label] for each in found]) for label in found[0]}
    rows = []
    for label, acc in results.items():
        cells = [f"{by_seed.mean():.1f} ± {error(by_seed):.2f}" for by_seed in acc.mean(axis=0)]
        gaps = [difference(results["BSUFS"], acc, sizes) for sizes in (SMALL, MAIN)]
        rows.append([label, *cells, *(gaps if label != "BSUFS" else ["", ""])])
    show([*heads, "BSUFS minus it, k = 5 and 10", "k = 20 to 100"], rows)


SECTIONS: dict[str, Callable[..., None]] = {
    "row": partial(print_comparison, settings=row_settings, base="p=1/2 b=10"),
    "element": partial(print_comparison, settings=element_settings, base="none"),
    "subsamples": print_subsamples,
    "components": partial(print_comparison, settings=component_settings, base="auto"),
    "sizes": print_sizes,
    "default": print_default,
}


def ask(
    question: Callable[[Bench], Any], names: Iterable[str], cache: Path | None, jobs: int
) -> list[Any]:
    """Answer a question on each dataset."""

    def answer(name: str) -> Any:
        bench = Bench(name)
        file = None if cache is None else cache / f"{name}.pickle"
        if file is not None and file.exists():
            bench.scores = pickle.loads(file.read_bytes())
        found = question(bench)
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(pickle.dumps(bench.scores))
        return found

    return Parallel(n_jobs=jobs)(delayed(answer)(name) for name in names)


def main() -> None:
    """Print the tables as Markdown."""
    parser = argparse.ArgumentParser(description="Measure what the default settings rest on.")
    parser.add_argument("--only", nargs="*", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--cache", type=Path, help="folder to keep clusterings in between runs")
    parser.add_argument("--jobs", type=int, default=1, help="datasets worked on at a time")
    options = parser.parse_args()
    if not datasets_named():
        return
    for section in options.only:
        print(f"## {section}\n")
        SECTIONS[section](partial(ask, cache=options.cache, jobs=options.jobs))
        print(flush=True)


if __name__ == "__main__":
    main()
