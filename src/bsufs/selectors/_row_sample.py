"""A sample of rows that does not depend on how they come: all at once or in batches."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from bsufs._typing import Array, Indices


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
        return np.sort(np.argsort(drawn, kind="stable")[: self._size])

    def add(self, X: Array) -> None:
        """Take in a batch of rows of a stream."""
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

    def _reserve(self, n_needed: int, n_columns: int) -> None:
        """Make room for some rows; empty slots lose against every row."""
        n_slots = self._drawn.size
        if n_needed <= n_slots and n_columns == self._rows.shape[1]:
            return
        # Doubled, so that many small batches are not copied over and over.
        n_more = min(self._size, max(n_needed, 2 * n_slots)) - n_slots
        self._drawn = np.append(self._drawn, np.full(n_more, np.inf))
        self._places = np.append(self._places, np.full(n_more, -1))
        rows = np.empty((n_slots + n_more, n_columns))
        if n_slots:
            rows[:n_slots] = self._rows
        self._rows = rows

    def rows(self) -> Array:
        """Return the rows drawn from the stream so far."""
        in_order = np.argsort(self._places)
        return self._rows[in_order[self._places[in_order] >= 0]]
