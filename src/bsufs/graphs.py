"""Nearest-neighbor graphs of samples: the one source of neighbors, affinities and Laplacians.

Nothing here keeps an array of n x n numbers. Neighbors are exact, and samples at equal distance are
taken in the order of their rows, which scikit-learn's searches do not promise.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.preprocessing import normalize

from bsufs._linalg import largest_eigenpairs
from bsufs._typing import Array, Indices
from bsufs.scatter import safe_unit_exponent
from bsufs.scatter._base import batches

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Neighbors:
    """The nearest samples of each sample, nearest first."""

    indices: Indices
    squared_distances: Array
    mean_distance: float = float("nan")

    def others(self, *, reference: bool = False) -> "Neighbors":
        """Return the neighbors without the sample, or the last where duplicates crowd it out.

        The reference implementations take the first for the sample, be it a duplicate.
        """
        n, count = self.indices.shape
        dropped = self.indices == np.arange(n)[:, None]
        dropped[~dropped.any(axis=1), count - 1] = True
        if reference:
            dropped[:] = np.arange(count) == 0
        return Neighbors(
            self.indices[~dropped].reshape(n, count - 1),
            self.squared_distances[~dropped].reshape(n, count - 1),
            self.mean_distance,
        )


def in_safe_units(X: Any) -> Any:
    """Return the data in double precision, in units in which their squares stay in range."""
    X = _double(X)
    if not sparse.issparse(X):
        exponent = safe_unit_exponent(float(np.abs(X).max(initial=0.0)))
        return np.ldexp(X, -exponent) if exponent else X
    return sparse.csr_array((in_safe_units(X.data), X.indices, X.indptr), shape=X.shape)


def _double(X: Any) -> Any:
    """Return a dense array, or a sparse one by rows, of double precision."""
    if sparse.issparse(X):
        return sparse.csr_array(X, dtype=np.float64)
    return np.asarray(X, dtype=np.float64)


def nearest_samples(X: Any, count: int, *, with_mean_distance: bool = False) -> Neighbors:
    """Find the nearest samples of each sample, itself among them.

    Samples at equal distance come in the order of their rows, so a duplicate in an earlier row
    comes before the sample itself. X may be sparse; the mean of all distances is computed on the
    way if it is wanted.
    """
    n = X.shape[0]
    if not 1 <= count <= n:
        raise ValueError(f"count must be from 1 to n_samples = {n}, got {count}.")
    X = _double(X)
    if not sparse.issparse(X):
        # Distances do not see a shift, and without a common offset the formula below loses fewer
        # digits. A row of the data, unlike the mean, leaves whole numbers whole and ties exact.
        X = X - X[0]
    indices = np.empty((n, count), dtype=np.intp)
    distances = np.empty((n, count))
    total = 0.0
    for rows in batches(n, n):
        D = euclidean_distances(X[rows], X, squared=True)
        D[np.arange(rows.stop - rows.start), np.arange(rows.start, rows.stop)] = 0.0
        indices[rows], distances[rows] = _smallest(D, count)
        if with_mean_distance:
            total += float(np.sqrt(D, out=D).sum())
    mean = total / n**2 if with_mean_distance else float("nan")
    return Neighbors(indices, distances, mean)


def _smallest(D: Array, count: int) -> tuple[Indices, Array]:
    """Return columns and values of the smallest entries of each row, ties to the lower column."""
    bound = np.partition(D, count - 1, axis=1)[:, count - 1]
    rows, columns = np.nonzero(bound[:, None] >= D)
    values = D[rows, columns]
    order = np.lexsort((columns, values, rows))
    # More than `count` entries of a row reach its bound when the last ones are tied.
    first = np.searchsorted(rows, np.arange(D.shape[0]))
    kept = order[first[:, None] + np.arange(count)]
    return columns[kept], values[kept]


def affinity(neighbors: Neighbors, weight: str, X: Any = None) -> Any:
    r"""Return the symmetric affinity matrix of a nearest-neighbor graph.

    Two samples are joined if one is among the neighbors of the other, by the larger of the two
    weights. The weights are 1 ("binary"), :math:`\exp(-d^2 / 2t^2)` with t the mean of all
    distances ("heat", which needs it), or the cosine of the two samples ("cosine", which needs the
    data; a negative one joins nothing). No sample is joined to itself.
    """
    n, count = neighbors.indices.shape
    rows = np.repeat(np.arange(n), count)
    columns = neighbors.indices.ravel()
    if weight == "binary":
        values = np.ones(n * count)
    elif weight == "heat":
        width = neighbors.mean_distance
        # All samples equal: every distance is zero, and so is their mean.
        scale = 2.0 * width**2 if width > 0 else 1.0
        values = np.exp(-neighbors.squared_distances.ravel() / scale)
    else:
        values = _cosines(X, rows, columns)
    values[rows == columns] = 0.0
    G = directed_affinity(neighbors.indices, values)
    G = sparse.csr_array(G.maximum(G.T))
    G.eliminate_zeros()
    return G


def _cosines(X: Any, rows: Indices, columns: Indices) -> Array:
    X = normalize(_double(X))
    cosines = np.empty(rows.size)
    for pairs in batches(rows.size, 2 * X.shape[1]):
        left, right = X[rows[pairs]], X[columns[pairs]]
        products = left.multiply(right) if sparse.issparse(X) else left * right
        cosines[pairs] = products.sum(axis=1)
    return cosines


def directed_affinity(indices: Indices, weights: Array) -> Any:
    """Return the matrix that holds the weight of each sample's neighbors in its row."""
    n, k = indices.shape
    rows = np.repeat(np.arange(n), k)
    return sparse.csr_array((weights.ravel(), (rows, indices.ravel())), shape=(n, n))


def symmetric(A: Any) -> Any:
    """Return (A + A') / 2 as a sparse array."""
    return sparse.csr_array((A + A.T) * 0.5)


def laplacian(A: Any) -> Any:
    """Return the Laplacian of a symmetric affinity matrix, degrees minus affinities."""
    return sparse.csr_array(sparse.diags_array(A.sum(axis=1)) - A)


def components_by_size(A: Any) -> tuple[int, Indices]:
    """Find the connected components of a graph, the largest first, then by their first samples."""
    count, raw = connected_components(A, directed=False)
    _, firsts, sizes = np.unique(raw, return_index=True, return_counts=True)
    rank = np.argsort(np.lexsort((firsts, -sizes)))
    return int(count), rank[raw]


def lowest_eigenpairs(L: Any, null: Any, bound: float, count: int) -> tuple[Array, Array]:
    """Return the lowest eigenpairs of a Laplacian outside its known null space."""

    def mirrored(V: Array) -> Array:
        # Eigenvalues bound - value, with zero for the null space: the lowest become the largest,
        # and nothing repeats exactly, which a Lanczos iteration cannot see.
        return np.asarray(bound * (V - null @ (null.T @ V)) - L @ V)

    values, vectors = largest_eigenpairs(mirrored, L.shape[0], count)
    return bound - values, vectors


def lowest_laplacian_eigenvectors(A: Any, count: int) -> tuple[Array, Array]:
    """Return the lowest eigenpairs of the Laplacian of a graph, indicators of components first."""
    n = A.shape[0]
    n_connected, labels = components_by_size(A)
    null = _indicators(labels, n_connected, np.ones(n))
    rest = max(count - n_connected, 0)
    L = laplacian(A)
    bound = 2.0 * float(A.sum(axis=1).max(initial=0.0)) or 1.0
    values, vectors = lowest_eigenpairs(L, null, bound, rest)
    known = null[:, : count - rest].toarray()
    return (
        np.concatenate([np.zeros(known.shape[1]), np.maximum(values, 0.0)]),
        np.hstack([known, vectors]),
    )


def spectral_responses(G: Any, count: int, floor: float = 1e-6) -> tuple[Array, Array]:
    r"""Return the smoothest functions on a graph: the solutions of :math:`Gf = \mu Df`.

    With D the degrees, these are :math:`f = D^{-1/2}y` for the leading eigenvectors y of
    :math:`D^{-1/2} G D^{-1/2}` other than that of the constant, :math:`D^{1/2}1`, to which they are
    orthogonal. On a graph in several pieces the first are constant on each piece: the indicators
    of all pieces but the largest, in order of size, made orthogonal to the constant and then to
    each other. Samples without an edge belong to no piece.
    """
    roots = np.sqrt(G.sum(axis=1))
    joined = roots > 0
    inverse_roots = np.divide(1.0, roots, out=np.zeros_like(roots), where=joined)
    scaling = sparse.diags_array(inverse_roots)
    L = sparse.csr_array(sparse.diags_array(1.0 * joined) - symmetric(scaling @ G @ scaling))
    n_connected, labels = components_by_size(G)
    null = _indicators(labels, n_connected, np.where(joined, roots, 1.0))
    # Pieces come in order of size; those of a single sample have no edge, and no eigenvalue one.
    n_pieces = int(np.count_nonzero(np.bincount(labels) > 1))
    indicators = null[:, 1 : min(1 + count, n_pieces)].toarray()
    pieces = np.linalg.qr(np.column_stack([roots, indicators]))[0][:, 1:]
    rest = max(0, min(count - pieces.shape[1], labels.size - n_connected))
    values, vectors = lowest_eigenpairs(L, null, 2.0, rest)
    values = np.concatenate([np.ones(pieces.shape[1]), 1.0 - values])
    kept = np.abs(values) >= floor
    responses = inverse_roots[:, None] * np.hstack([pieces, vectors])
    return values[kept], responses[:, kept]


def _indicators(labels: Indices, count: int, weights: Array) -> Any:
    """Return the indicators of components times weights, each of unit length."""
    lengths = np.sqrt(np.bincount(labels, weights=weights**2, minlength=count))
    values = weights / lengths[labels]
    return sparse.csr_array((values, (np.arange(labels.size), labels)), shape=(labels.size, count))


def adaptive_weights(squared_distances: Array, *, reference: bool = False) -> tuple[Array, Array]:
    r"""Return neighbor weights on the simplex that fall to zero at the last neighbor.

    For :math:`d_1 \le \dots \le d_{k+1}` they are :math:`(d_{k+1} - d_j) / s` with
    :math:`s = k d_{k+1} - \sum_{j \le k} d_j`, the minimizer of
    :math:`\sum_j d_j a_j + \tfrac{s}{2} \sum_j a_j^2` over the simplex.
    """
    near, last = squared_distances[:, :-1], squared_distances[:, -1:]
    k = near.shape[1]
    slack = k * last[:, 0] - near.sum(axis=1)
    if reference:
        weights: Array = (last - near) / (slack + _EPS)[:, None]
        weights[weights > 10.0] = 1.0
        return weights, slack
    tied = (slack <= _EPS * k * last[:, 0])[:, None]
    return np.where(tied, 1.0 / k, (last - near) / np.where(tied, 1.0, slack[:, None])), slack


def adaptive_neighbors(
    X: Array, n_neighbors: int, *, reference: bool = False
) -> tuple[Indices, Array, float]:
    """Find neighbors, their adaptive weights, and half the mean slack."""
    n = X.shape[0]
    others = nearest_samples(X, min(n_neighbors + 2, n)).others(reference=reference)
    if others.indices.shape[1] == 1:
        return others.indices, np.ones((n, 1)), 1.0
    weights, slack = adaptive_weights(others.squared_distances, reference=reference)
    # Neighbors that are all equally far leave no slack; any positive number will do.
    return others.indices[:, :-1], weights, float(slack.mean()) / 2.0 or 1.0


def onto_simplex(V: Array) -> Array:
    """Project each row onto the probability simplex."""
    k = V.shape[1]
    # A shift of a row does not move its projection; from the maximum on large numbers do no harm.
    V = V - V.max(axis=1, keepdims=True)
    descending = -np.sort(-V, axis=1)
    excess = np.cumsum(descending, axis=1) - 1.0
    positive = (descending * np.arange(1, k + 1) > excess).sum(axis=1)
    level = excess[np.arange(V.shape[0]), positive - 1] / positive
    return np.asarray(np.maximum(V - level[:, None], 0.0))


def reconstruction_weights(X: Array, indices: Indices, ridge: float) -> Array:
    """Return the weights with which its neighbors reconstruct each sample, summing to one."""
    n, k = indices.shape
    weights = np.empty((n, k))
    for rows in batches(n, k * X.shape[1]):
        steps = X[indices[rows]] - X[rows, None, :]
        gram = steps @ steps.transpose(0, 2, 1)
        trace = np.trace(gram, axis1=1, axis2=2)
        # Copies of the sample reconstruct it whatever their weights: take equal ones.
        gram[trace <= 0] = np.eye(k)
        gram += (ridge * trace)[:, None, None] * np.eye(k)
        weights[rows] = np.linalg.solve(gram, np.ones((gram.shape[0], k, 1)))[:, :, 0]
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def local_grams(X: Array, indices: Indices) -> Array:
    """Return the scalar products of the samples of each neighborhood, centered in it."""
    n, k = indices.shape
    grams = np.empty((n, k, k))
    for rows in batches(n, 2 * k * X.shape[1]):
        local = X[indices[rows]]
        local = local - local.mean(axis=1, keepdims=True)
        grams[rows] = local @ local.transpose(0, 2, 1)
    return grams


def discriminative_laplacian(
    grams: Array, indices: Indices, ridge: float, *, swapped_ridge: bool = False
) -> Any:
    r"""Return the sum of the local discriminative matrices of all neighborhoods.

    A neighborhood with centered samples :math:`Y_i` adds :math:`J(\lambda I + Y_i Y_i')^{-1}J` to
    its rows and columns, with J the centering matrix. The sum is positive semidefinite, and
    constant vectors are in its null space. The swapped ridge makes it
    :math:`J(I + \lambda Y_i Y_i')^{-1}J`.
    """
    n, k = indices.shape
    J = np.eye(k) - 1.0 / k
    shift = 1.0 / ridge if swapped_ridge else ridge
    blocks = J @ np.linalg.inv(grams + shift * np.eye(k)) @ J
    if swapped_ridge:
        blocks /= ridge
    left = np.repeat(indices, k, axis=1).ravel()
    right = np.tile(indices, (1, k)).ravel()
    return symmetric(sparse.coo_array((blocks.ravel(), (left, right)), shape=(n, n)).tocsr())
