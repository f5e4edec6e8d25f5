"""Distances in units of the differences between near neighbors."""

import numpy as np
from scipy import linalg

from bsufs._typing import Array
from bsufs.scatter._base import batches
from bsufs.scatter._clearing import weighted_mean

# Directions in which neighbors differ by less than this share of the largest are rounding.
_SMALLEST = 1e-9


def in_neighbor_units(scores: Array, n_neighbors: int, weight: Array | None = None) -> Array:
    """Return rows whose distances show clusters, whatever else makes the rows differ.

    The columns are whitened; then the space is turned and stretched until near neighbors, which
    mostly are of the same cluster, differ alike in all directions; then every row is scaled to unit
    length. Scaling the columns, or mixing them, changes nothing.

    Neighbors are the nearest in angle; one counts by the weight of the row whose neighbor it is.
    """
    Z = scores - weighted_mean(scores, weight)
    lengths = np.sqrt(weighted_mean(Z**2, weight))
    Z = Z / np.where(lengths > 0, lengths, 1.0)
    directions = _unit_rows(Z)
    k = min(n_neighbors, len(Z) - 1)
    near = np.empty((len(Z), k), dtype=np.intp)
    # Some rows at a time: all of them at once would make an array of n x n.
    for rows in batches(len(Z), len(Z)):
        cosines = directions[rows] @ directions.T
        own, here = np.arange(len(cosines)), np.arange(len(Z))[rows]
        # Few times the largest: faster than a partition.
        for place in range(k):
            cosines[own, here] = -np.inf
            here = cosines.argmax(axis=1)
            near[rows, place] = here
    differences = Z[:, None, :] - Z[near]
    if weight is not None:
        differences *= np.sqrt(weight / weight.mean())[:, None, None]
    differences = differences.reshape(-1, Z.shape[1])
    values, axes = linalg.eigh(differences.T @ differences / len(differences), check_finite=False)
    if values[-1] <= 0.0:
        # Every row is there several times over: neighbors tell nothing.
        return directions
    return _unit_rows(Z @ (axes / np.sqrt(np.maximum(values, _SMALLEST * values[-1]))))


def _unit_rows(Z: Array) -> Array:
    return Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-12)
