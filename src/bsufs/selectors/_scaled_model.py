"""The weights of BSUFS in the units in which its problem is solved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

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
    unit: float

    @classmethod
    def of(
        cls, selector: Any, scatter: Scatter, leading_eigenvalue: float, n_components: int
    ) -> Self:
        """Translate the parameters of a selector for the data at hand."""
        relative = selector.scale == "relative"
        if relative:
            scatter, unit = scatter.scaled(1.0 / leading_eigenvalue), 1.0
        else:
            # The weights are meant for the data as they came; the operator may hold them in units
            # of a power of two.
            unit = _power_of_four(scatter.unit_exponent)
        shrink = 1.0 if relative else _power_of_four(-scatter.unit_exponent)
        tau = min(selector.tau * shrink, 1e300)
        beta_element = min(selector.beta_element * shrink, 1e300)
        element = None
        if selector.lambda_element > 0:
            weight = min(selector.lambda_element * shrink, 1e300)
            if relative:
                threshold = selector.lambda_element / math.sqrt(scatter.shape[0])
                weight = float(strength_for_threshold(threshold, selector.q)) * (beta_element + tau)
            element = Coupling(ElementPenalty(weight, selector.q), beta_element, tau)
        return cls(
            scatter=scatter,
            relative=relative,
            n_components=n_components,
            p=selector.p,
            beta_row=min(selector.beta_row * shrink, 1e300),
            tau=tau,
            element=element,
            unit=unit,
        )

    @property
    def average_norm(self) -> float:
        """Root mean square of the row norms of a frame."""
        return math.sqrt(self.n_components / self.scatter.shape[0])

    def row(self, lambda_row: float, row_weights: NDArray[np.float64] | None) -> Coupling | None:
        """Return the row penalty of a fixed weight; None where it is switched off."""
        if lambda_row == 0:
            return None
        weight = min(lambda_row / self.unit, 1e300)
        if self.relative:
            strength = float(strength_for_threshold(lambda_row * self.average_norm, self.p))
            weight = strength * (self.beta_row + self.tau)
        return Coupling(RowPenalty(weight, self.p, row_weights), self.beta_row, self.tau)

    def lambda_row_that_keeps(self, norm: float) -> float:
        """Return the weight whose threshold a row of W of this norm just passes at first."""
        threshold = 0.999 * norm * self.beta_row / (self.beta_row + self.tau)
        if self.relative:
            return threshold / self.average_norm
        strength = float(strength_for_threshold(threshold, self.p))
        return strength * (self.beta_row + self.tau) * self.unit


def _power_of_four(exponent: int) -> float:
    """Return 4**exponent, or the nearest double where that is out of range."""
    return math.ldexp(1.0, max(-1000, min(2 * exponent, 1000)))
