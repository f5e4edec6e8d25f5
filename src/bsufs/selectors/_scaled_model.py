"""The weights of BSUFS in the units in which its problem is solved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bsufs._typing import Array
from bsufs.penalties import ElementPenalty, RowPenalty, strength_for_threshold
from bsufs.scatter import Scatter
from bsufs.solvers.alternation import Coupling


@dataclass(frozen=True)
class ScaledModel:
    """The operator and the weights in the units in which the problem is solved.

    With relative scale S is divided by its norm, so that every weight is a plain number and the
    objective does not depend on the units of X.
    """

    scatter: Scatter
    relative: bool
    n_components: int
    p: float
    beta_row: float
    tau: float
    element: Coupling | None
    shrink: float

    @classmethod
    def of(
        cls, selector: Any, scatter: Scatter, leading_eigenvalue: float, n_components: int
    ) -> Self:
        """Translate the parameters of a selector for the data at hand."""
        relative = selector.scale == "relative"
        shrink = 1.0
        if relative:
            scatter = scatter.scaled(1.0 / leading_eigenvalue)
        else:
            # The weights are meant for the data as they came; the operator may hold them in units
            # of a power of two. Beyond the bounds the data dwarf the weights, or the weights the
            # data, and only the ratios among the weights still matter.
            shrink = min(max(_power_of_four(-scatter.unit_exponent), 1e-250), 1e250)
        tau, beta_element = selector.tau * shrink, selector.beta_element * shrink
        element = None
        if selector.lambda_element > 0:
            weight = selector.lambda_element * shrink
            if relative:
                threshold = selector.lambda_element / math.sqrt(scatter.shape[0])
                weight = strength_for_threshold(threshold, selector.q) * (beta_element + tau)
            element = Coupling(ElementPenalty(_finite(weight), selector.q), beta_element, tau)
        return cls(
            scatter=scatter,
            relative=relative,
            n_components=n_components,
            p=selector.p,
            beta_row=selector.beta_row * shrink,
            tau=tau,
            element=element,
            shrink=shrink,
        )

    def in_given_units(self, objectives: Array) -> Array:
        """Return values of the objective for the data and the weights as they came."""
        if self.relative:
            return objectives
        exponent = 2 * self.scatter.unit_exponent
        with np.errstate(over="ignore", under="ignore"):
            # Infinite where the data are so large that no double holds the value.
            return np.ldexp(objectives, exponent) if exponent > 0 else objectives / self.shrink

    @property
    def average_norm(self) -> float:
        """Root mean square of the row norms of a frame."""
        return math.sqrt(self.n_components / self.scatter.shape[0])

    def row(self, lambda_row: float, row_weights: NDArray[np.float64] | None) -> Coupling | None:
        """Return the row penalty of a fixed weight; None where it is switched off."""
        if lambda_row == 0:
            return None
        weight = lambda_row * self.shrink
        if self.relative:
            strength = strength_for_threshold(lambda_row * self.average_norm, self.p)
            weight = strength * (self.beta_row + self.tau)
        return Coupling(RowPenalty(_finite(weight), self.p, row_weights), self.beta_row, self.tau)

    def lambda_row_that_keeps(self, norm: float) -> float:
        """Return the weight whose threshold a row of W of this norm just passes at first."""
        threshold = 0.999 * norm * self.beta_row / (self.beta_row + self.tau)
        if self.relative:
            return threshold / self.average_norm
        strength = float(strength_for_threshold(threshold, self.p))
        return strength * (self.beta_row + self.tau) / self.shrink


def _finite(weight: float) -> float:
    """Return a weight that a double can hold: beyond it nothing lives anyway."""
    return min(weight, 1e300)


def _power_of_four(exponent: int) -> float:
    """Return 4**exponent, or the nearest double where that is out of range."""
    return math.ldexp(1.0, max(-1000, min(2 * exponent, 1000)))
