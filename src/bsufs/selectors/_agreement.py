"""How many columns clusters need: the fewest that show a target as well as more of them would."""

from collections.abc import Callable, Sequence

import numpy as np

from bsufs._typing import Array, Indices, Mask
from bsufs.metrics.label_free import clustering_similarities
from bsufs.selectors._row_sample import DistinctRows

# Agreement counts as equal to the best when it is lower by no more than this.
TOLERANCE = 0.02
# Columns, rows, target clusterings to start from, and iterations of k-means, at most.
_MOST_COLUMNS, _MOST_ROWS, _MOST_STARTS, _MAX_ITER = 128, 512, 4, 5


class Agreement:
    """How well clusters of some columns agree with target clusterings, from 0 to 1.

    k-means starts at one row of each cluster of some targets, and its clusters are compared with
    all targets: the mean normalized mutual information, 2 I / (H + H). A single row tells too
    little of its cluster to bring back one that the columns do not show.
    """

    def __init__(self, X: Array, targets: Sequence[Indices], weight: Array | None) -> None:
        # Copies of a row count like a weight.
        distinct = DistinctRows(X, weight)
        step = -(-distinct.first.size // _MOST_ROWS)
        rows = distinct.first[::step]
        self._X, self._weight = (
            X[rows],
            None if distinct.weight is None else distinct.weight[::step],
        )
        self._targets = np.stack(targets).astype(np.intp)[:, rows]
        some = np.unique(np.linspace(0, len(targets) - 1, _MOST_STARTS).round().astype(np.intp))
        members = self._targets[some][:, None] == np.arange(self._targets.max() + 1)[:, None]
        # One in the middle, in their order; a cluster may have no member among these rows.
        middle = (members.sum(axis=2, keepdims=True) + 1) // 2
        self._starts = members & (members.cumsum(axis=2) == middle)

    def of(self, n_columns: int) -> float:
        """Return how well clusters of the first columns agree with the targets."""
        found = _clusters(self._X[:, :n_columns], self._starts, self._weight)
        similarities = [
            clustering_similarities(labels, self._targets, "nmi-arithmetic", self._weight)
            for labels in found.argmax(axis=1)
        ]
        return float(np.mean(similarities))


def _clusters(X: Array, members: Mask, weight: Array | None) -> Mask:
    """Improve clusterings, given by the members of each cluster (runs x clusters x rows)."""
    for _ in range(_MAX_ITER):
        shares = members.reshape(-1, len(X)) * (1.0 if weight is None else weight)
        counts = shares.sum(axis=1)
        centers = (shares @ X) / np.where(counts > 0, counts, 1.0)[:, None]
        # Squared distances, but for what all centers have in common; nothing joins an empty one.
        distances = (-2.0 * centers) @ X.T
        lengths = np.where(counts > 0, np.einsum("ij,ij->i", centers, centers), np.inf)
        distances += lengths[:, None]
        distances = distances.reshape(members.shape)
        before, members = members, distances == distances.min(axis=1, keepdims=True)
        if np.array_equal(members, before):
            break
    return members


def agreement_curve(
    columns: Callable[[int], Array],
    n_columns: Indices,
    targets: Sequence[Indices],
    weight: Array | None,
) -> dict[int, float]:
    """Return the agreement of some numbers of columns or groups, enough to see the fewest.

    The first j of them are `n_columns[j - 1]` columns; `columns(n)` gives the first n columns. From
    the largest number down they are halved, to 2, or to one group of several columns, as long as
    the agreement lasts; at last one between is tried.
    """
    most = max(1, int(np.searchsorted(n_columns, _MOST_COLUMNS, side="right")))
    least = min(most, 1 if n_columns[0] > 1 else 2)
    agreement = Agreement(columns(n_columns[most - 1]), targets, weight)
    curve = {most: agreement.of(n_columns[most - 1])}
    while min(curve) == fewest(curve) > least:
        number = max(1 << ((min(curve) - 1).bit_length() - 1), least)
        curve[number] = agreement.of(n_columns[number - 1])
    between = 3 * fewest(curve) // 4
    if between not in curve and between > least:
        curve[between] = agreement.of(n_columns[between - 1])
    return dict(sorted(curve.items()))


def fewest(curve: dict[int, float]) -> int:
    """Return the smallest number that agrees as well as the best, but for the tolerance."""
    return min(j for j, value in curve.items() if value >= max(curve.values()) - TOLERANCE)
