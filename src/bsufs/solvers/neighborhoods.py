"""Which columns tell the near neighbors of each row from the rows a little further away."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from bsufs._typing import Array, Indices
from bsufs.graphs import nearest_samples
from bsufs.scatter._base import batches

# The neighbors of a row are told from the others among so many times as many.
_SURROUNDINGS = 4


class Neighborhoods:
    r"""The rows around each row, the nearest quarter of which are its neighbors.

    A column c makes the squared differences :math:`(x_{ic} - x_{jc})^2` between a row i and the
    rows j around it. Here they are seen with their mean over the rows around i taken off, and in
    units of the mean squared distance there, so that dense and thin regions count alike.

    Rows are near each other or not by their scores; `weight` says how much what is around each row
    counts. There are fewer neighbors where there are too few rows.
    """

    def __init__(self, scores: Array, n_neighbors: int, weight: Array | None = None) -> None:
        n = len(scores)
        size = min(_SURROUNDINGS * n_neighbors, n - 1)
        found = nearest_samples(scores, size + 1).others()
        self._around: Indices = found.indices
        radii = found.squared_distances.mean(axis=1, keepdims=True)
        # Copies of a row are all equally near it.
        self._units = np.divide(1.0, radii, out=np.zeros_like(radii), where=radii > 0)
        self._weight = np.ones((n, 1)) if weight is None else weight[:, None]
        n_near = max(1, size // _SURROUNDINGS)
        near = np.arange(size) < n_near
        self._contrast = np.where(near, n_near / size - 1.0, n_near / size)

    def signals(self, X: Array) -> Array:
        """Return how far the neighbors are nearer than the others around, summed over all rows."""
        n, size = self._around.shape
        weights = self._contrast * self._units * self._weight
        reached = np.bincount(self._around.ravel(), weights.ravel(), n)
        operator: Any = sparse.csr_array(
            (weights.ravel(), self._around.ravel(), np.arange(0, n * size + 1, size)), shape=(n, n)
        )
        # The weights add up to zero around each row: the squares of x_i drop out.
        return np.asarray(reached @ X**2 - 2.0 * np.einsum("ic,ic->c", X, operator @ X))

    def squares(self, X: Array) -> Array:
        """Return, for each column, the sum of squares of what it makes of all pairs."""
        return np.asarray(sum(np.einsum("pc,pc->c", seen, seen) for seen in self._pairs(X)))

    def products(self, columns: Indices, X: Array) -> Array:
        """Return the inner products of what some columns make of all pairs with every column."""
        return np.asarray(sum(seen[:, columns].T @ seen for seen in self._pairs(X)))

    def _pairs(self, X: Array) -> Iterator[Array]:
        """Go through the pairs, some at a time, and what the columns make of them."""
        factors = self._units * np.sqrt(self._weight)
        for rows in batches(len(X), self._around.shape[1] * X.shape[1]):
            seen = (X[self._around[rows]] - X[rows, None]) ** 2
            seen -= seen.mean(axis=1, keepdims=True)
            seen *= factors[rows, None]
            yield seen.reshape(-1, X.shape[1])
