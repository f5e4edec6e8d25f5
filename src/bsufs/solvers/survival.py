"""Ranking rows by survival: how long a row stayed alive, then how large it was."""

import numpy as np

from bsufs._typing import Array, Indices, Mask


class Survival:
    """The last iteration at which each row was alive, and its norm when it was last looked at.

    A sparse solution says nothing about the rows it has dropped; the order in which it dropped
    them does. Rows of an orthonormal frame have norm at most one, so iteration plus norm orders
    rows first by survival and then by norm. Norms of groups of rows are divided by `largest`, the
    most that they can be.
    """

    def __init__(self, n_rows: int, largest: float = 1.0) -> None:
        self.largest = largest
        self.n_steps = 0
        self.last_step = np.zeros(n_rows, dtype=np.intp)
        self.last_norm = np.zeros(n_rows)

    def record(self, norms: Array, alive: Mask, rows: Indices | None = None) -> None:
        """Note which rows are alive after one more iteration."""
        rows = np.arange(self.last_step.size) if rows is None else rows
        watched = alive | (self.last_step[rows] == self.n_steps)
        self.last_norm[rows[watched]] = norms[watched] / self.largest
        self.n_steps += 1
        self.last_step[rows[alive]] = self.n_steps

    def settle(self, rows: Indices) -> None:
        """Put the rows that lived to the end in a given order instead of that of their norms."""
        self.last_norm[rows] = np.linspace(1.0, 0.0, rows.size + 2)[1:-1]

    def scores(self) -> Array:
        """Return the share of the run each row survived, with its norm as the decimals."""
        below_one = np.minimum(self.last_norm, 1.0 - 1e-9)
        return (self.last_step + below_one) / (self.n_steps + 1.0)
