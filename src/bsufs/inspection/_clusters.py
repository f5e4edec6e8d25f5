"""Clusters of the rows that all columns show together, and how well some columns find them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bsufs._typing import Array, Indices
from bsufs.graphs import in_safe_units
from bsufs.metrics.kmeans import batched_kmeans
from bsufs.metrics.label_free import clustering_similarities
from bsufs.selectors._data import ColumnProblem, FitData
from bsufs.selectors._row_sample import RowSample

# More rows tell no more of a page; more clusters could not be told apart by color.
_MOST_ROWS = 1024
_MOST_CLUSTERS = 8
_ROWS_PER_CLUSTER = 6
_MOST_COMPONENTS = 24
_N_RUNS = 5


@dataclass(frozen=True)
class RowClusters:
    """Clusters of some rows by all columns, the largest first: each row, and its cluster from 0."""

    rows: Indices
    labels: Indices

    @property
    def sizes(self) -> Indices:
        """Number of rows in each cluster."""
        return np.bincount(self.labels)

    def agreement(self, columns: Array) -> float:
        """Return the adjusted Rand index of k-means on some columns of these rows with them."""
        columns = in_safe_units(columns)
        # Nothing to cluster by: one cluster, which chance would find too.
        if not np.ptp(columns, axis=0).any():
            return 0.0
        n_clusters = int(np.count_nonzero(self.sizes))
        runs = batched_kmeans(columns, n_clusters, n_runs=_N_RUNS, random_state=0)
        return float(clustering_similarities(self.labels, runs.labels[[runs.best]], "ari")[0])


def find_clusters(data: FitData) -> RowClusters | None:
    """Cluster rows by the leading components of all columns; None where too few rows vary.

    Of 2 to 8 clusters, k-means takes the number at which its restarts agree best.
    """
    n, d = data.X.shape
    most = min(_MOST_CLUSTERS, min(n, _MOST_ROWS) // _ROWS_PER_CLUSTER)
    if most < 2 or data.scatter.trace() <= 0:
        return None
    sample = RowSample(_MOST_ROWS, 0)
    rows = data.some_rows(sample, ColumnProblem.of(data, np.zeros(d, dtype=bool)))
    n_components = min(_MOST_COMPONENTS, data.scatter.max_rank, d)
    scores = rows @ data.scatter.leading_eigenvectors(n_components)[1]
    best, labels = -np.inf, np.zeros(0, dtype=np.intp)
    for n_clusters in range(2, most + 1):
        runs = batched_kmeans(scores, n_clusters, n_runs=_N_RUNS, random_state=0)
        found = runs.labels[runs.best]
        agreement = float(clustering_similarities(found, runs.labels, "ari").mean())
        if agreement > best + 1e-9:
            best, labels = agreement, found
    by_size = np.argsort(-np.bincount(labels), kind="stable")
    numbers = sample.among(n, data.sample_weight)
    return RowClusters(np.arange(n) if numbers is None else numbers, np.argsort(by_size)[labels])
