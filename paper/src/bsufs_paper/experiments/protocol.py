"""How a selection is judged: k-means on the selected features against the classes, many times."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bsufs._typing import Array, Indices
from bsufs.metrics import batched_kmeans, clustering_accuracy, normalized_mutual_information, purity

Stage = Literal["search", "confirm"]
INITIALIZATIONS = ("k-means++", "random", "greedy-k-means++")


@dataclass(frozen=True)
class Protocol:
    """The rules of a comparison.

    Settings are searched with few repetitions and the winner is judged again with fresh seeds:
    the best of many noisy means is too high by several points, and a second draw is not.

    Parameters
    ----------
    kmeans_init : {"k-means++", "random", "greedy-k-means++"}, default="k-means++"
        How k-means starts. The first two agree with the paper's values for all features; the
        third, scikit-learn's own, does not compare with them.
    n_starts : int, default=1
        Starts of a repetition, of which that with the smallest inertia counts.
    max_iter : int, default=200
        Iterations of k-means at most.
    search_repetitions : int, default=5
        Repetitions while settings are searched.
    confirmation_repetitions : int, default=50
        Repetitions, with other seeds, of what is reported.
    feature_counts : tuple of int, default=(10, 20, ..., 100)
        Numbers of features that are tried.
    seed : int, default=0
        Seed of all starts of k-means.

    Examples
    --------
    >>> from bsufs_paper.experiments import Protocol
    >>> Protocol(search_repetitions=3).confirmation_repetitions
    50
    """

    kmeans_init: str = "k-means++"
    n_starts: int = 1
    max_iter: int = 200
    search_repetitions: int = 5
    confirmation_repetitions: int = 50
    feature_counts: tuple[int, ...] = tuple(range(10, 101, 10))
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kmeans_init not in INITIALIZATIONS:
            raise ValueError(
                f"kmeans_init must be one of {', '.join(INITIALIZATIONS)}, got "
                f"{self.kmeans_init!r}."
            )
        for name in ("n_starts", "max_iter", "search_repetitions", "confirmation_repetitions"):
            _require_positive_integer(name, getattr(self, name))
        if not isinstance(self.feature_counts, list | tuple) or not self.feature_counts:
            raise ValueError(
                f"feature_counts must be a list of numbers, got {self.feature_counts!r}."
            )
        for count in self.feature_counts:
            _require_positive_integer("feature_counts", count)
        object.__setattr__(self, "feature_counts", tuple(sorted(set(self.feature_counts))))
        if not isinstance(self.seed, int) or self.seed < 0:
            raise ValueError(f"seed must be a non-negative integer, got {self.seed!r}.")

    def judging(self, dataset: str, stage: Stage) -> dict[str, Any]:
        """Return the arguments of `judge` in one stage: the seeds of the two stages differ."""
        search = stage == "search"
        text = f"{self.seed}/{dataset}/{stage}"
        return {
            "kmeans_init": self.kmeans_init,
            "n_starts": self.n_starts,
            "max_iter": self.max_iter,
            "repetitions": self.search_repetitions if search else self.confirmation_repetitions,
            "seed": int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big"),
        }


def judge(
    X: Array,
    target: Indices,
    n_clusters: int,
    *,
    kmeans_init: str,
    n_starts: int,
    max_iter: int,
    repetitions: int,
    seed: int,
) -> dict[str, Array]:
    """Cluster many times and compare with the classes."""
    runs = batched_kmeans(
        X,
        n_clusters,
        n_runs=repetitions * n_starts,
        init=kmeans_init,
        max_iter=max_iter,
        random_state=seed,
    )
    inertia = runs.inertia.reshape(repetitions, n_starts)
    kept = np.arange(repetitions) * n_starts + inertia.argmin(axis=1)
    labels = runs.labels[kept]
    return {
        "acc": np.array([clustering_accuracy(target, found) for found in labels]),
        "nmi": np.array([normalized_mutual_information(target, found) for found in labels]),
        "nmi_arithmetic": np.array(
            [normalized_mutual_information(target, found, "arithmetic") for found in labels]
        ),
        "purity": np.array([purity(target, found) for found in labels]),
    }


def _require_positive_integer(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a positive integer, got {value!r}.")
