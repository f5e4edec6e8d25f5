"""Ranking by survival on the sparsity path, for every selector that wants it."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bsufs._typing import Array, Indices, Mask
from bsufs.penalties import ElementPenalty, RowPenalty, strength_for_threshold
from bsufs.scatter import Scatter
from bsufs.solvers.alternation import Coupling
from bsufs.solvers.components import in_units_of
from bsufs.solvers.path import PathResult, sparsity_path


@dataclass(frozen=True)
class ScaledModel:
    """The operator and the weights in the units in which the problem is solved.

    With relative weights S is divided by its norm, so that every weight is a plain number and the
    objective does not depend on the units of X.
    """

    scatter: Scatter
    p: float
    n_components: int
    beta_row: float
    tau: float
    element: Coupling | None
    relative: bool
    shrink: float
    groups: Indices | None

    @classmethod
    def of(
        cls,
        scatter: Scatter,
        eigenvalue: float,
        n_components: int,
        groups: Indices | None,
        *,
        p: float,
        q: float,
        lambda_element: float,
        beta_row: float,
        beta_element: float,
        tau: float,
        relative: bool,
    ) -> "ScaledModel":
        """Translate the weights of `BSUFS` for data with a given leading eigenvalue."""
        shrink = 1.0
        if relative:
            scatter = scatter.scaled(1.0 / eigenvalue)
        else:
            # The weights are meant for the data as they came; the operator may hold them in units
            # of a power of two. Beyond the bounds the data dwarf the weights, or the weights the
            # data, and only the ratios among the weights still matter.
            shrink = min(max(in_units_of(scatter.unit_exponent, 1.0), 1e-250), 1e250)
        tau, beta_element = tau * shrink, beta_element * shrink
        element = None
        if lambda_element > 0:
            weight = lambda_element * shrink
            if relative:
                threshold = lambda_element / math.sqrt(scatter.shape[0])
                weight = strength_for_threshold(threshold, q) * (beta_element + tau)
            element = Coupling(ElementPenalty(_finite(weight), q), beta_element, tau)
        beta_row *= shrink
        return cls(scatter, p, n_components, beta_row, tau, element, relative, shrink, groups)

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
        """Root mean square of the norms of the rows of a frame, or of its groups of rows."""
        n_rows = self.scatter.shape[0] if self.groups is None else int(self.groups.max()) + 1
        return math.sqrt(self.n_components / n_rows)

    def row(self, lambda_row: float, row_weights: Array | None) -> Coupling | None:
        """Return the row penalty of a fixed weight; None where it is switched off."""
        if lambda_row == 0:
            return None
        weight = lambda_row * self.shrink
        if self.relative:
            strength = strength_for_threshold(lambda_row * self.average_norm, self.p)
            weight = strength * (self.beta_row + self.tau)
        penalty = RowPenalty(_finite(weight), self.p, row_weights, self.groups)
        return Coupling(penalty, self.beta_row, self.tau)

    def lambda_row_that_keeps(self, norm: float) -> float:
        """Return the weight whose threshold a row of W of this norm just passes at first."""
        threshold = 0.999 * norm * self.beta_row / (self.beta_row + self.tau)
        if self.relative:
            return threshold / self.average_norm
        strength = float(strength_for_threshold(threshold, self.p))
        return strength * (self.beta_row + self.tau) / self.shrink


def rank_by_path(
    model: ScaledModel, W: Array, *, forced: Mask, duplicates: Mask, **settings: Any
) -> tuple[Array, PathResult]:
    """Score all features by how long they survive on the sparsity path.

    W starts orthonormal, usually as the leading eigenvectors. Forced features are never eliminated;
    for duplicates another one stands. The other settings are those of `sparsity_path`.

    The scores are in [0, 1]: larger for features that were eliminated later, at least 1/2 for all
    that are no duplicates, 0 for constant columns. The path itself is returned with them.
    """
    path = sparsity_path(
        model.scatter,
        W,
        p=model.p,
        beta_row=model.beta_row,
        tau=model.tau,
        element=model.element,
        forced=forced,
        barred=duplicates,
        groups=model.groups,
        **settings,
    )
    constant = model.scatter.diagonal() <= 0
    return below_all_others(path.survival.scores(), duplicates, constant), path


def below_all_others(scores: Array, duplicates: Mask, constant: Mask) -> Array:
    """Put duplicates below all other features, constant ones at the bottom."""
    # Survival scores lie in [0, 1]: one unit apart keeps the classes apart and the order within.
    raised = np.where(duplicates, scores, 1.0 + scores) / 2.0
    return np.where(constant, 0.0, raised)


def _finite(weight: float) -> float:
    """Return a weight that a double can hold: beyond it no row remains anyway."""
    return min(weight, 1e300)
