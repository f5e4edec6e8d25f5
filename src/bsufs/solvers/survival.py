"""Ranking rows by survival: how long a row stayed alive, then how large it was."""

from __future__ import annotations

import numpy as np

from bsufs._typing import Array, Mask


class Survival:
    """The last iteration at which each row was alive, and its norm when it was last looked at.

    A sparse solution says nothing about the rows it has dropped; the order in which it dropped
    them does. Rows of an orthonormal frame have norm at most one, so iteration plus norm orders
    rows first by survival and then by norm.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    """

    def __init__(self, n_rows: int) -> None:
        self.n_steps = 0
        self.last_step = np.zeros(n_rows, dtype=np.intp)
        self.last_norm = np.zeros(n_rows)

    def record(self, norms: Array, alive: Mask) -> None:
        """Note which rows are alive after one more iteration.

        Parameters
        ----------
        norms : array of shape (n_rows,)
            Row norms before the threshold was applied.
        alive : array of bool of shape (n_rows,)
            Which rows passed it.
        """
        died_now = self.last_step == self.n_steps
        self.n_steps += 1
        self.last_step[alive] = self.n_steps
        watched = alive | died_now
        self.last_norm[watched] = norms[watched]

    def scores(self) -> Array:
        """Return the share of the run each row survived, with its norm as the decimals.

        Returns
        -------
        array of shape (n_rows,)
            Numbers in [0, 1], larger for rows that lived longer.
        """
        below_one = np.minimum(self.last_norm, 1.0 - 1e-9)
        scores: Array = (self.last_step + below_one) / (self.n_steps + 1.0)
        return scores
