"""What the iterative methods return, and when they stop."""

from dataclasses import dataclass

import numpy as np

from bsufs._typing import Array


@dataclass(frozen=True)
class Solution:
    """A matrix W with one row for each feature, and how it was reached."""

    W: Array
    objective_history: Array
    n_iter: int
    stopping_reason: str


class History:
    """The values of an objective, watched until two in a row differ by less than `tol`."""

    def __init__(self, tol: float | None, first: float | None = None) -> None:
        self.tol = tol
        self.values = [] if first is None else [first]
        self.stopping_reason = "max_iter"
        self._n_first = len(self.values)

    def settled(self, value: float) -> bool:
        """Note the value of an iteration; return whether it was the last one needed."""
        self.values.append(value)
        if self.tol is None or len(self.values) < 2:
            return False
        if abs(self.values[-1] - self.values[-2]) < self.tol:
            self.stopping_reason = "converged"
        return self.stopping_reason == "converged"

    def solution(self, W: Array) -> Solution:
        """Return what was reached."""
        n_iter = len(self.values) - self._n_first
        return Solution(W, np.array(self.values), n_iter, self.stopping_reason)
