"""How well k-means finds classes that a table has a column of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from bsufs.metrics import batched_kmeans, clustering_accuracy, normalized_mutual_information

# The classes of the rows that have one, and the numbers of these rows.
Classes = tuple[Any, Any]
_KMEANS_RUNS = 20
# Scores of more classes than this take minutes and say little.
MOST_CLASSES = 100


def classes_in(cells: Sequence[Any], label: str) -> Classes:
    """Return the classes of the rows that have one, and which rows these are."""
    rows = [row for row, cell in enumerate(cells) if cell is not None and str(cell).strip()]
    labels = np.array([str(cells[row]) for row in rows])
    n_classes = len(set(labels.tolist()))
    if not 2 <= n_classes <= len(rows) / 2:
        raise ValueError(
            f"--label {label!r} must hold classes: at least two, of two rows each on average. It "
            f"has {n_classes} different values in {len(rows)} rows."
        )
    return labels, np.array(rows)


def cluster(X: Any, classes: Classes, seed: int) -> dict[str, float]:
    """Run k-means and return how well it finds the classes."""
    labels, rows = classes
    part = X[rows].toarray() if sparse.issparse(X) else X[rows]
    runs = batched_kmeans(part, len(set(labels)), n_runs=_KMEANS_RUNS, random_state=seed)
    found = runs.labels[runs.best]
    return {
        "accuracy": clustering_accuracy(labels, found),
        "information": normalized_mutual_information(labels, found),
    }
