"""Ranking by survival on the sparsity path, for every selector that wants it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bsufs._typing import Array, Indices, Mask
from bsufs.penalties import ElementPenalty, RowPenalty, strength_for_threshold
from bsufs.scatter import Scatter
from bsufs.solvers.alternation import Coupling
from bsufs.solvers.path import PathResult, sparsity_path


@dataclass(frozen=True)
class Weights:
    """The weights of the bi-sparse problem, as plain numbers or relative to the data.

    Parameters
    ----------
    p, q : float, default=0.5
        Exponents of the row and of the element penalty.
    lambda_element : float, default=0.5
        Weight of the element penalty; relative: the threshold it causes, in units of 1/sqrt(d).
    beta_row, beta_element : float, default=10.0 and 1.0
        Ties between W and its copies; relative to ||S||_2.
    tau : float, default=1e-3
        Proximal weight; relative to ||S||_2.
    relative : bool, default=True
        Whether the weights are measured against the data.
    """

    p: float = 0.5
    q: float = 0.5
    lambda_element: float = 0.5
    beta_row: float = 10.0
    beta_element: float = 1.0
    tau: float = 1e-3
    relative: bool = True

    def scaled_to(
        self, scatter: Scatter, eigenvalue: float, n_components: int, groups: Indices | None = None
    ) -> ScaledModel:
        """Translate the weights for data with a given leading eigenvalue, and rows in groups."""
        shrink = 1.0
        if self.relative:
            scatter = scatter.scaled(1.0 / eigenvalue)
        else:
            # The weights are meant for the data as they came; the operator may hold them in units
            # of a power of two. Beyond the bounds the data dwarf the weights, or the weights the
            # data, and only the ratios among the weights still matter.
            shrink = min(max(_power_of_four(-scatter.unit_exponent), 1e-250), 1e250)
        tau, beta_element = self.tau * shrink, self.beta_element * shrink
        element = None
        if self.lambda_element > 0:
            weight = self.lambda_element * shrink
            if self.relative:
                threshold = self.lambda_element / math.sqrt(scatter.shape[0])
                weight = strength_for_threshold(threshold, self.q) * (beta_element + tau)
            element = Coupling(ElementPenalty(_finite(weight), self.q), beta_element, tau)
        return ScaledModel(
            scatter, self, n_components, self.beta_row * shrink, tau, element, shrink, groups
        )


@dataclass(frozen=True)
class ScaledModel:
    """The operator and the weights in the units in which the problem is solved.

    With relative weights S is divided by its norm, so that every weight is a plain number and the
    objective does not depend on the units of X.
    """

    scatter: Scatter
    weights: Weights
    n_components: int
    beta_row: float
    tau: float
    element: Coupling | None
    shrink: float
    groups: Indices | None = None

    def in_given_units(self, objectives: Array) -> Array:
        """Return values of the objective for the data and the weights as they came."""
        if self.weights.relative:
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

    def row(self, lambda_row: float, row_weights: NDArray[np.float64] | None) -> Coupling | None:
        """Return the row penalty of a fixed weight; None where it is switched off."""
        if lambda_row == 0:
            return None
        weight, p = lambda_row * self.shrink, self.weights.p
        if self.weights.relative:
            strength = strength_for_threshold(lambda_row * self.average_norm, p)
            weight = strength * (self.beta_row + self.tau)
        penalty = RowPenalty(_finite(weight), p, row_weights, self.groups)
        return Coupling(penalty, self.beta_row, self.tau)

    def lambda_row_that_keeps(self, norm: float) -> float:
        """Return the weight whose threshold a row of W of this norm just passes at first."""
        threshold = 0.999 * norm * self.beta_row / (self.beta_row + self.tau)
        if self.weights.relative:
            return threshold / self.average_norm
        strength = float(strength_for_threshold(threshold, self.weights.p))
        return strength * (self.beta_row + self.tau) / self.shrink


def rank_by_path(
    model: ScaledModel, W: Array, *, forced: Mask, duplicates: Mask, **settings: Any
) -> tuple[Array, PathResult]:
    """Score all features by how long they survive on the sparsity path.

    Parameters
    ----------
    model : ScaledModel
        The operator S and the weights.
    W : array of shape (d, m)
        Orthonormal start, usually the leading eigenvectors.
    forced, duplicates : arrays of bool of shape (d,)
        Features that are never eliminated, and those for which another one stands.
    **settings
        Of `sparsity_path`: how fast, how long, and whom to tell.

    Returns
    -------
    scores : array of shape (d,)
        In [0, 1]: larger for features that were eliminated later, at least 1/2 for all that are no
        duplicates, 0 for constant columns.
    path : PathResult
        The path itself.
    """
    path = sparsity_path(
        model.scatter,
        W,
        p=model.weights.p,
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


def _power_of_four(exponent: int) -> float:
    """Return 4**exponent, or the nearest double where that is out of range."""
    return math.ldexp(1.0, max(-1000, min(2 * exponent, 1000)))
