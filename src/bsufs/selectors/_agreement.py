"""How many columns clusters need: the fewest that show a target as well as more of them would."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bsufs._typing import Array, Indices
from bsufs.metrics.kmeans import batched_kmeans
from bsufs.metrics.label_free import clustering_similarities
from bsufs.selectors._row_sample import DistinctRows

# Agreement counts as equal to the best when it is lower by no more than this.
TOLERANCE = 0.02
# Columns, rows and iterations at most.
_MOST_COLUMNS, _MOST_ROWS, _MAX_ITER = 128, 512, 10
# Runs of k-means for each number of columns; more of few rows, which tell less and cost little.
_FEWEST_RUNS, _MOST_RUNS, _ROWS_IN_ALL = 3, 12, 1536


class Agreement:
    """How well clusters of some columns agree with target clusterings, from 0 to 1.

    The mean normalized mutual information, 2 I / (H + H), of runs of k-means with all targets.
    """

    def __init__(
        self, targets: Sequence[Indices], weight: Array | None, n_clusters: Sequence[int], seed: int
    ) -> None:
        self._targets = np.stack(targets).astype(np.intp)
        self._weight, self._n_clusters, self._seed = weight, n_clusters, seed

    def of(self, X: Array, known: DistinctRows | None = None) -> float:
        """Return how well clusters of all columns of X agree with the targets.

        Copies of rows are told by `known`, the same rows with all columns.
        """
        known = DistinctRows(X, self._weight) if known is None else known
        some = np.arange(0, known.first.size, -(-known.first.size // _MOST_ROWS))
        rows = np.flatnonzero(np.isin(known.group, some))
        settings: Any = {
            "n_runs": min(max(_ROWS_IN_ALL // some.size, _FEWEST_RUNS), _MOST_RUNS),
            "max_iter": _MAX_ITER,
            "sample_weight": None if known.weight is None else known.weight[some],
            "random_state": self._seed,
        }
        among = np.searchsorted(some, known.group[rows])
        found = [
            batched_kmeans(X[known.first[some]], min(number, some.size), **settings).labels
            for number in self._n_clusters
        ]
        targets = self._targets[:, rows]
        weight = None if self._weight is None else self._weight[rows]
        similarities = [
            clustering_similarities(labels[among], targets, "nmi-arithmetic", weight)
            for runs in found
            for labels in runs
        ]
        return float(np.mean(similarities))

    def curve(self, columns: Callable[[int], Array], n_columns: Indices) -> dict[int, float]:
        """Return the agreement of some numbers of columns, enough of them to see the fewest.

        `columns(j)` gives the first j columns or groups, which are `n_columns[j - 1]` columns. From
        the largest number down they are halved, to 2, or to one group of several columns, as long
        as the agreement lasts; at last one between is tried.
        """
        most = max(1, int(np.searchsorted(n_columns, _MOST_COLUMNS, side="right")))
        least = min(most, 1 if n_columns[0] > 1 else 2)
        X = columns(most)
        known = DistinctRows(X, self._weight)
        curve = {most: self.of(X, known)}
        while min(curve) == fewest(curve) > least:
            number = max(1 << ((min(curve) - 1).bit_length() - 1), least)
            curve[number] = self.of(columns(number), known)
        between = 3 * fewest(curve) // 4
        if between not in curve and between > least:
            curve[between] = self.of(columns(between), known)
        return dict(sorted(curve.items()))


def fewest(curve: dict[int, float]) -> int:
    """Return the smallest number that agrees as well as the best, but for the tolerance."""
    return min(j for j, value in curve.items() if value >= max(curve.values()) - TOLERANCE)
