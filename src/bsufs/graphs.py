"""Nearest-neighbor graphs of samples: the one source of neighbors, affinities and Laplacians.

Everything here is sparse or works in batches of rows: no array of n x n numbers is ever kept.
Neighbors are exact, and samples at equal distance are taken in the order of their rows, so that
the same data give the same graph everywhere. The search is a blockwise one of its own for that
reason: it keeps ties of whole numbers exact and gives them to the lower index, which tree searches
do not promise, and this layer does not import scikit-learn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from bsufs._linalg import largest_eigenpairs, some_eigenpairs
from bsufs._typing import Array, Indices
from bsufs.scatter import safe_unit_exponent

# Temporary arrays of about this many bytes stay out of the memory budget.
_BATCH_BYTES = 32 * 2**20
# Up to this many samples a dense eigendecomposition is faster than Lanczos, and safer.
_SMALL = 400
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Neighbors:
    """The nearest samples of each sample, nearest first."""

    indices: Indices
    squared_distances: Array
    mean_distance: float = float("nan")

    def others(self, *, reference: bool = False) -> Neighbors:
        """Return the neighbors without the sample itself, one fewer for each sample.

        A sample whose copies have crowded it out of its own list gives up its last neighbor. The
        reference implementations take the first for the sample, be it a copy.
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
    values = X.data if sparse.issparse(X) else X
    exponent = safe_unit_exponent(float(np.abs(values).max(initial=0.0)))
    if not exponent:
        return X
    values = np.ldexp(values, -exponent)
    if sparse.issparse(X):
        return sparse.csr_array((values, X.indices, X.indptr), shape=X.shape)
    return values


def _double(X: Any) -> Any:
    """Return a dense array, or a sparse one by rows, of double precision."""
    if sparse.issparse(X):
        return sparse.csr_array(X, dtype=np.float64)
    return np.asarray(X, dtype=np.float64)


def _row_products(X: Any, Y: Any) -> Array:
    """Return the scalar products of the rows of X with those of Y."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(Y).sum(axis=1)).ravel()
    products: Array = np.einsum("ij,ij->i", X, Y)
    return products


def row_batches(n_rows: int, bytes_per_row: int) -> Iterator[slice]:
    """Cut rows into slices that need little memory at a time."""
    step = max(1, _BATCH_BYTES // max(bytes_per_row, 1))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def nearest_samples(X: Any, count: int, *, with_mean_distance: bool = False) -> Neighbors:
    """Find the nearest samples of each sample, itself among them.

    Samples at equal distance come in the order of their rows, so a copy in an earlier row comes
    before the sample itself.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The data.
    count : int
        How many, from 1 to n_samples.
    with_mean_distance : bool, default=False
        Whether to compute the mean of all distances on the way.

    Returns
    -------
    Neighbors
        Indices and squared distances.

    Examples
    --------
    >>> import numpy as np
    >>> from bsufs.graphs import nearest_samples
    >>> nearest_samples(np.array([[0.0], [1.0], [2.0]]), 2).indices
    array([[0, 1],
           [1, 0],
           [2, 1]])
    """
    n = X.shape[0]
    if not 1 <= count <= n:
        raise ValueError(f"count must be from 1 to n_samples = {n}, got {count}.")
    X = _double(X)
    if not sparse.issparse(X):
        # Distances do not see a shift, and without a common offset the formula below loses fewer
        # digits. A row of the data, unlike the mean, leaves whole numbers whole and ties exact.
        X = X - X[0]
    squares = _row_products(X, X)
    indices = np.empty((n, count), dtype=np.intp)
    distances = np.empty((n, count))
    total = 0.0
    for rows in row_batches(n, 8 * n):
        products = X[rows] @ X.T
        if sparse.issparse(products):
            products = products.toarray()
        products *= -2.0
        products += squares[rows, None]
        products += squares
        D = np.maximum(products, 0.0, out=products)
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
    distances ("heat"), or the cosine of the two samples ("cosine"; a negative one joins nothing).

    Parameters
    ----------
    neighbors : Neighbors
        Neighbors of each sample; the sample itself is skipped. "heat" needs the mean distance.
    weight : {"binary", "heat", "cosine"}
        Kind of weight.
    X : array or sparse matrix of shape (n_samples, n_features), optional
        The data, for the cosine.

    Returns
    -------
    sparse array of shape (n_samples, n_samples)
        Non-negative weights, zero on the diagonal.
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
    other = rows != columns
    G = sparse.csr_array((values[other], (rows[other], columns[other])), shape=(n, n))
    G = sparse.csr_array(G.maximum(G.T))
    G.eliminate_zeros()
    return G


def _cosines(X: Any, rows: Indices, columns: Indices) -> Array:
    X = _double(X)
    lengths = np.sqrt(_row_products(X, X))
    products = np.empty(rows.size)
    for pairs in row_batches(rows.size, 16 * X.shape[1]):
        products[pairs] = _row_products(X[rows[pairs]], X[columns[pairs]])
    scale = lengths[rows] * lengths[columns]
    cosines: Array = np.divide(products, scale, out=np.zeros_like(products), where=scale > 0)
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
    """Find the connected components of a graph, the largest first.

    Components of equal size are numbered in the order of their first samples.
    """
    count, raw = connected_components(A, directed=False)
    sizes = np.bincount(raw, minlength=count)
    _, firsts = np.unique(raw, return_index=True)
    rank = np.empty(count, dtype=np.intp)
    rank[np.lexsort((firsts, -sizes))] = np.arange(count)
    return int(count), rank[raw]


def lowest_eigenpairs(L: Any, null: Any, bound: float, count: int) -> tuple[Array, Array]:
    """Return the lowest eigenpairs of a Laplacian outside its known null space.

    It is known from the components of the graph. Taking it out leaves nothing that repeats exactly,
    which is what a Lanczos iteration cannot see.
    """
    n = L.shape[0]
    if count == 0:
        return np.empty(0), np.empty((n, 0))
    if n <= _SMALL or count > n // 4:
        matrix = L.toarray() + bound * (null @ null.T).toarray()
        return some_eigenpairs(matrix, 0, count - 1)
    null_transposed = sparse.csr_array(null.T)

    def mirrored(v: Array) -> Array:
        # Eigenvalues bound - value, with zero for the null space: the lowest become the largest.
        image: Array = bound * (v - null @ (null_transposed @ v)) - L @ v
        return image

    start = np.random.default_rng(0).standard_normal((n,))
    values, vectors = largest_eigenpairs(mirrored, n, count, start)
    ascending = np.argsort(-values, kind="stable")
    return bound - values[ascending], vectors[:, ascending]


def lowest_laplacian_eigenvectors(A: Any, count: int) -> tuple[Array, Array]:
    """Return the lowest eigenvectors of the Laplacian of a graph.

    The eigenvectors of the eigenvalue zero are the indicators of the connected components, the
    largest first.
    """
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
    n = G.shape[0]
    degrees = G.sum(axis=1)
    isolated = degrees <= 0
    inverse_root = np.where(isolated, 0.0, 1.0 / np.sqrt(np.where(isolated, 1.0, degrees)))
    scaling = sparse.diags_array(inverse_root)
    N = sparse.csr_array(scaling @ G @ scaling)
    n_connected, labels = components_by_size(G)
    null = _indicators(labels, n_connected, np.where(isolated, 1.0, np.sqrt(degrees)))
    L = sparse.csr_array(sparse.diags_array(np.where(isolated, 0.0, 1.0)) - symmetric(N))
    pieces = _piece_vectors(null, labels, np.sqrt(degrees), count)
    rest = max(0, min(count - pieces.shape[1], n - n_connected))
    values, vectors = lowest_eigenpairs(L, null, 2.0, rest)
    values = np.concatenate([np.ones(pieces.shape[1]), 1.0 - values])
    kept = np.abs(values) >= floor
    responses = inverse_root[:, None] * np.hstack([pieces, vectors])
    return values[kept], responses[:, kept]


def _piece_vectors(null: Any, labels: Indices, constant: Array, count: int) -> Array:
    """Return an orthonormal basis of the null space of a graph without its constant vector.

    At most `count` vectors: the indicators from the second on, orthogonal to the constant.
    """
    # Pieces come in order of size; those of a single sample have no edge, and no eigenvalue one.
    n_pieces = int(np.count_nonzero(np.bincount(labels) > 1))
    if n_pieces < 2:
        return np.empty((labels.size, 0))
    indicators = null[:, 1 : min(1 + count, n_pieces)].toarray()
    Q: Array = np.linalg.qr(np.column_stack([constant, indicators]))[0]
    return Q[:, 1:]


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
    alive = (descending * np.arange(1, k + 1) > excess).sum(axis=1)
    level = excess[np.arange(V.shape[0]), alive - 1] / alive
    projected: Array = np.maximum(V - level[:, None], 0.0)
    return projected


def reconstruction_weights(X: Array, indices: Indices, ridge: float) -> Array:
    """Return the weights with which its neighbors reconstruct each sample, summing to one."""
    n, k = indices.shape
    weights = np.empty((n, k))
    for rows in row_batches(n, 8 * k * X.shape[1]):
        steps = X[indices[rows]] - X[rows, None, :]
        gram = steps @ steps.transpose(0, 2, 1)
        trace = np.trace(gram, axis1=1, axis2=2)
        # Copies of the sample reconstruct it whatever their weights: take equal ones.
        gram[trace <= 0] = np.eye(k)
        gram += (ridge * trace)[:, None, None] * np.eye(k)
        weights[rows] = np.linalg.solve(gram, np.ones((gram.shape[0], k, 1)))[:, :, 0]
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def _local_grams(X: Array, indices: Indices) -> Iterator[tuple[slice, Array]]:
    """Go through batches of neighborhoods: the products of their samples, centered in each."""
    n, k = indices.shape
    for rows in row_batches(n, 16 * k * X.shape[1]):
        local = X[indices[rows]]
        local = local - local.mean(axis=1, keepdims=True)
        yield rows, local @ local.transpose(0, 2, 1)


def local_variance(X: Array, indices: Indices) -> float:
    """Return the mean eigenvalue, other than zero, of the scatter matrices of neighborhoods."""
    n, k = indices.shape
    total = sum(float(np.einsum("ijj->", gram)) for _, gram in _local_grams(X, indices))
    return total / float(n * max(k - 1, 1))


def discriminative_laplacian(
    X: Array, indices: Indices, ridge: float, *, swapped_ridge: bool = False
) -> Any:
    r"""Return the sum of the local discriminative matrices of all neighborhoods.

    A neighborhood with centered samples :math:`Y_i` adds :math:`J(\lambda I + Y_i Y_i')^{-1}J` to
    its rows and columns, with J the centering matrix. The sum is positive semidefinite, and
    constant vectors are in its null space. The swapped ridge makes it
    :math:`J(I + \lambda Y_i Y_i')^{-1}J`.
    """
    n, k = indices.shape
    J = np.eye(k) - 1.0 / k
    blocks = np.empty((n, k, k))
    shift = 1.0 / ridge if swapped_ridge else ridge
    for rows, gram in _local_grams(X, indices):
        blocks[rows] = J @ np.linalg.inv(gram + shift * np.eye(k)) @ J
    if swapped_ridge:
        blocks /= ridge
    left = np.repeat(indices, k, axis=1).ravel()
    right = np.tile(indices, (1, k)).ravel()
    return symmetric(sparse.coo_array((blocks.ravel(), (left, right)), shape=(n, n)).tocsr())
