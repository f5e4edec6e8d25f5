"""A projection and a graph with a given number of pieces, learned together.

Minimizes over affinities A with rows on the simplex, frames W (d x m) and F (n x c)

    sum_ij (||W'z_i - W'z_j||^2 a_ij + r a_ij^2) + gamma sum_i ||w^i|| + 2 weight tr(F' L_A F)

one block at a time. The weight of the last term is doubled while the graph has fewer than c pieces
and halved while it has more, until it has c.
"""

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
    symmetric,
)
from bsufs.scatter._base import batches
from bsufs.solvers.forms import samples_form
from bsufs.solvers.reweighted import reweighted_eigenvectors
from bsufs.solvers.solution import History, Solution

# The neighbors are those of the data at first, and those of the projected data from this
# iteration on.
_FIRST_NEW_NEIGHBORS = 6
# A sum of eigenvalues of a Laplacian above the first number is not zero; below the second it is.
_NOT_ZERO = 1e-9
_ZERO = 1e-11


def structured_graph(
    Z: Array,
    basis: Array | None,
    *,
    n_components: int,
    n_clusters: int,
    n_neighbors: int,
    gamma: float,
    max_iter: int,
    max_reweightings: int,
    tol: float,
    reference: bool = False,
) -> tuple[Solution, Any, float]:
    """Learn a projection of standardized data Z and a graph in pieces.

    The projection stays in the span of `basis`, if there is one. Returns it with the affinities of
    the graph and the last weight of the term that asks for pieces. With `reference` neighbors that
    are equally far, copies of samples, and the value that ends a step of W are treated as in the
    reference code.
    """

    def w_step(A: Any) -> Solution:
        return reweighted_eigenvectors(
            samples_form(Z, laplacian(A), basis),
            n_components,
            gamma=gamma,
            max_iter=max_reweightings,
            tol=tol,
            plain_value=reference,
        )

    c = n_clusters
    indices, weights, r = adaptive_neighbors(Z, n_neighbors, reference=reference)
    rank_weight = r
    A = symmetric(directed_affinity(indices, weights))
    step = w_step(A)
    if not step.objective_history.size:
        # Nothing varies: no graph is better than the first.
        return step, A, r
    F = lowest_laplacian_eigenvectors(A, c)[1]
    history = History(None, first=step.objective_history[-1])
    for iteration in range(1, max_iter + 1):
        P = Z @ step.W
        if iteration >= _FIRST_NEW_NEIGHBORS:
            found = nearest_samples(P, indices.shape[1] + 1)
            indices = found.others(reference=reference).indices
        costs = pair_distances(P, indices) + rank_weight * pair_distances(F, indices)
        A = symmetric(directed_affinity(indices, onto_simplex(costs / (-2.0 * r))))
        step = w_step(A)
        history.values.append(step.objective_history[-1])
        values, vectors = lowest_laplacian_eigenvectors(A, min(c + 1, Z.shape[0]))
        too_few, too_many = values[:c].sum() > _NOT_ZERO, values.sum() < _ZERO
        if too_few:
            rank_weight *= 2.0
        elif too_many:
            rank_weight /= 2.0
            continue
        F = vectors[:, :c]
        if not too_few and iteration > 1:
            history.stopping_reason = "converged"
            break
    return history.solution(step.W), A, rank_weight


def pair_distances(P: Array, indices: Indices) -> Array:
    """Return the squared distances of samples to their neighbors."""
    n, k = indices.shape
    distances = np.empty((n, k))
    for rows in batches(n, k * P.shape[1]):
        steps = P[indices[rows]] - P[rows, None, :]
        distances[rows] = np.einsum("ijk,ijk->ij", steps, steps)
    return distances
