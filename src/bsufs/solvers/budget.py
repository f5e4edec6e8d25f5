"""Picks that cost something: how much each is worth, and which can still be paid."""

from dataclasses import dataclass

import numpy as np

from bsufs._typing import Array, Indices, Mask

# Costs that add up to the budget but for rounding are within it.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Budget:
    """The positive cost of each column, or group of columns, and how much may be spent in all."""

    costs: Array
    total: float

    def of(self, which: Indices) -> "Budget":
        """Return the same for some of the columns or groups."""
        return Budget(self.costs[which], self.total)

    def fits(self, spent: float) -> Mask:
        """Tell what can still be paid after something was spent."""
        return np.asarray(spent + self.costs <= self.total * (1.0 + _ROUNDING))

    def per_cost(self, gains: Array) -> Array:
        """Return gains per cost; a loss counts more the more it costs."""
        return np.where(gains > 0, gains / self.costs, gains * self.costs)

    def paid(self, in_order: Indices) -> Mask:
        """Tell which are paid for in some order: each that still fits when its turn comes."""
        paid, spent = np.zeros(in_order.size, dtype=bool), 0.0
        for number, which in enumerate(in_order):
            paid[number] = self.of(which).fits(spent)
            spent += self.costs[which] if paid[number] else 0.0
        return paid
