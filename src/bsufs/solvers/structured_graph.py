"""A projection and a graph with a given number of pieces, learned together.

Minimizes over affinities A with rows on the simplex, frames W (d x m) and F (n x c)

    sum_ij (||W'z_i - W'z_j||^2 a_ij + r a_ij^2) + gamma sum_i ||w^i|| + 2 weight tr(F' L_A F)

one block at a time. The weight of the last term is doubled while the graph has fewer than c pieces
and halved while it has more, until it has c.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bsufs._typing import Array, Indices
from bsufs.graphs import (
    adaptive_neighbors,
    directed_affinity,
    laplacian,
    lowest_laplacian_eigenvectors,
    nearest_samples,
    onto_simplex,
    row_batches,
    symmetric,
)
from bsufs.solvers.reweighted import (
    QuadraticForm,
    ReweightedResult,
    plain_value,
    reweighted_eigenvectors,
)

# The neighbors are those of the data at first, and those of the projected data from this
# iteration on.
_FIRST_NEW_NEIGHBORS = 6
# A sum of eigenvalues of a Laplacian above the first number is not zero; below the second it is.
_NOT_ZERO = 1e-9
_ZERO = 1e-11


@dataclass(frozen=True)
class GraphSettings:
    """What is asked of the projection and of the graph."""

    n_components: int
    n_clusters: int
    n_neighbors: int
    gamma: float
    max_iter: int
    max_reweightings: int
    tol: float
    literal: bool


@dataclass(frozen=True)
class StructuredGraphResult:
    """What the alternation came to."""

    W: Array
    affinity: Any
    rank_weight: float
    objective_history: Array
    n_iter: int
    stopping_reason: str


def structured_graph(
    Z: Array, make_form: Callable[[Any], QuadraticForm], settings: GraphSettings
) -> StructuredGraphResult:
    """Learn a projection and a graph in pieces.

    Parameters
    ----------
    Z : array of shape (n, d)
        Standardized data.
    make_form : callable
        Takes the Laplacian of a graph and returns the form Z'LZ.
    settings : GraphSettings
        What is asked for.

    Returns
    -------
    StructuredGraphResult
        The projection and the graph.
    """
    c = settings.n_clusters
    indices, weights, r = adaptive_neighbors(Z, settings.n_neighbors, literal=settings.literal)
    rank_weight = r
    A = symmetric(directed_affinity(indices, weights))
    F = lowest_laplacian_eigenvectors(A, c)[1]
    step = _w_step(make_form(laplacian(A)), settings)
    history = [step.objective_history[-1]]
    reason = "max_iter"
    n_iter = 0
    while n_iter < settings.max_iter:
        n_iter += 1
        P = Z @ step.W
        if n_iter >= _FIRST_NEW_NEIGHBORS:
            found = nearest_samples(P, indices.shape[1] + 1)
            indices = (found.after_first() if settings.literal else found.others()).indices
        costs = pair_distances(P, indices) + rank_weight * pair_distances(F, indices)
        A = symmetric(directed_affinity(indices, onto_simplex(costs / (-2.0 * r))))
        step = _w_step(make_form(laplacian(A)), settings)
        history.append(step.objective_history[-1])
        values, vectors = lowest_laplacian_eigenvectors(A, min(c + 1, Z.shape[0]))
        if values[:c].sum() > _NOT_ZERO:
            rank_weight *= 2.0
            F = vectors[:, :c]
        elif values.sum() < _ZERO:
            rank_weight /= 2.0
        else:
            F = vectors[:, :c]
            if n_iter > 1:
                reason = "converged"
                break
    return StructuredGraphResult(
        W=step.W,
        affinity=A,
        rank_weight=rank_weight,
        objective_history=np.array(history),
        n_iter=n_iter,
        stopping_reason=reason,
    )


def _w_step(form: QuadraticForm, settings: GraphSettings) -> ReweightedResult:
    return reweighted_eigenvectors(
        form,
        settings.n_components,
        gamma=settings.gamma,
        max_iter=settings.max_reweightings,
        tol=settings.tol,
        value=plain_value(settings.gamma) if settings.literal else None,
    )


def pair_distances(P: Array, indices: Indices) -> Array:
    """Return the squared distances of samples to their neighbors."""
    n, k = indices.shape
    distances = np.empty((n, k))
    for rows in row_batches(n, 8 * k * P.shape[1]):
        steps = P[indices[rows]] - P[rows, None, :]
        distances[rows] = np.einsum("ijk,ijk->ij", steps, steps)
    return distances
