"""A sample of rows that does not depend on how they come: all at once or in batches."""

import copy
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from bsufs._typing import Array, Indices

# Rows whose random projections differ by less than this share of the largest are the same.
_SAME = 1e-11


class RowSample:
    """Rows drawn at random without replacement: the same ones from a stream as from all rows.

    Every row draws a number when it comes, and those with the smallest are the sample. So how the
    rows are cut into batches does not matter, and how many there will be need not be known.
    """

    def __init__(self, size: int, random_state: Any) -> None:
        self._size = size
        self._random = copy.deepcopy(check_random_state(random_state))
        self._n_seen = 0
        # By slot: the number that its row drew, the row's place in the stream, and what is in it.
        # There are no more slots than the rows so far can fill, twice over.
        self._drawn = np.empty(0)
        self._places = np.empty(0, dtype=np.intp)
        self._weights = np.empty(0)
        self._rows: Array = np.empty((0, 0))

    def of(self, X: Any) -> Any:
        """Draw from rows that are all at hand."""
        numbers = self.numbers(X.shape[0])
        return X if numbers is None else X[numbers]

    def numbers(self, n_rows: int) -> Indices | None:
        """Draw from a given number of rows."""
        if n_rows <= self._size:
            return None
        drawn = copy.deepcopy(self._random).random_sample(n_rows)
        # A partition, not a sort, which would take longer than the fit of few columns.
        last = np.partition(drawn, self._size - 1)[self._size - 1]
        smallest = np.flatnonzero(drawn < last)
        level = np.flatnonzero(drawn == last)[: self._size - smallest.size]
        return np.sort(np.append(smallest, level))

    def among(self, n_rows: int, weight: Array | None) -> Indices | None:
        """Draw from those of some rows that have a weight; None stands for all rows."""
        if weight is None or weight.all():
            return self.numbers(n_rows)
        weighty = np.flatnonzero(weight)
        drawn = self.numbers(weighty.size)
        return weighty if drawn is None else weighty[drawn]

    def add(self, X: Array, weight: Array | None = None) -> None:
        """Take in a batch of rows of a stream; those without weight are passed over."""
        if weight is not None and not weight.all():
            X, weight = X[weight > 0], weight[weight > 0]
        weights = np.ones(X.shape[0]) if weight is None else weight
        drawn = self._random.random_sample(X.shape[0])
        places = np.arange(self._n_seen, self._n_seen + X.shape[0])
        self._n_seen += X.shape[0]
        self._reserve(min(self._size, self._n_seen), X.shape[1])
        n_slots = self._drawn.size
        best = np.lexsort(
            (np.concatenate([self._places, places]), np.concatenate([self._drawn, drawn]))
        )[:n_slots]
        new = best[best >= n_slots] - n_slots
        left = np.setdiff1d(np.arange(n_slots), best)
        self._drawn[left], self._places[left], self._rows[left] = drawn[new], places[new], X[new]
        self._weights[left] = weights[new]

    def _reserve(self, n_needed: int, n_columns: int) -> None:
        """Make room for some rows; empty slots lose against every row."""
        n_slots = self._drawn.size
        if n_needed <= n_slots and n_columns == self._rows.shape[1]:
            return
        # Doubled, so that many small batches are not copied over and over.
        n_more = min(self._size, max(n_needed, 2 * n_slots)) - n_slots
        self._drawn = np.append(self._drawn, np.full(n_more, np.inf))
        self._places = np.append(self._places, np.full(n_more, -1))
        self._weights = np.append(self._weights, np.ones(n_more))
        rows = np.empty((n_slots + n_more, n_columns))
        if n_slots:
            rows[:n_slots] = self._rows
        self._rows = rows

    def rows(self) -> Array:
        """Return the rows drawn from the stream so far."""
        return self._rows[self._filled_slots()]

    def weights(self) -> Array | None:
        """Return the weights of these rows; None where all are 1."""
        weights = self._weights[self._filled_slots()]
        return None if (weights == 1.0).all() else weights

    def _filled_slots(self) -> Indices:
        in_order = np.argsort(self._places)
        return in_order[self._places[in_order] >= 0]


class DistinctRows:
    """Rows of which copies are taken together, their weights added up.

    What is done with them cannot tell a weight from copies. Rows that all differ and weigh alike
    stay as they are; otherwise they come in an order that depends on their contents alone.
    """

    def __init__(self, rows: Array, weight: Array | None) -> None:
        n, m = rows.shape
        # The same numbers may be rounded differently in another place of a product.
        prints = rows @ np.random.default_rng(0).standard_normal((m, 2))
        by_print = np.argsort(prints[:, 0], kind="stable")
        steps = np.abs(np.diff(prints[by_print], axis=0)).max(axis=1)
        first = np.append(True, steps > _SAME * np.abs(prints).max())
        self.total_weight = float(n if weight is None else weight.sum())
        # The row that stands for each distinct one, and the distinct one of each row.
        self.first = self.group = np.arange(n)
        self.weight: Array | None = None
        if not first.all() or weight is not None:
            self.first = by_print[first]
            self.group = np.empty(n, dtype=np.intp)
            self.group[by_print] = np.cumsum(first) - 1
            self.weight = np.asarray(np.bincount(self.group, weight), dtype=np.float64)
        self.rows = rows[self.first] if self.weight is not None else rows

    def of_all(self, labels: Any) -> Any:
        """Give each row what was found out about the one that stands for it."""
        return labels[:, self.group]
