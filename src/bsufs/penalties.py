r"""What sparsity costs: the :math:`\ell_q` and :math:`\ell_{2,p}` penalties.

Both penalties sum a power :math:`s \in [0, 1]` of magnitudes: of the elements of a matrix
(:class:`ElementPenalty`) or of the Euclidean norms of its rows (:class:`RowPenalty`). Their
proximal operators therefore rest on one scalar problem,

.. math:: \min_{x} \; t\,|x|^s + \tfrac12 (x - a)^2, \qquad a, t \ge 0,

which :func:`shrink_factor` solves. All of it is done in dimensionless numbers, so that neither huge
nor tiny arguments overflow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
FloatArray = NDArray[np.floating[Any]]

# Newton's method doubles the number of right digits: after a step of this relative size the error
# is below the rounding of a double.
_LAST_STEP = 1e-9
_MAX_STEPS = 40

# Below this sum of squares, what underflowed in a square may be more than a rounding error.
_SAFE_SQUARE = 1e-280


def unit_threshold(exponent: float) -> float:
    r"""Return the threshold of the proximal operator at strength 1, for a power s in [0, 1].

    It is :math:`\kappa(1, s) = (2 - s)\,(2(1 - s))^{(s - 1)/(2 - s)}`, and 1 at s = 1.

    Lemma 1 of the paper prints another exponent of :math:`2(1 - s)`, which is right at s = 0 and
    1/2 only. At the threshold zero and :math:`(2t(1 - s))^{1/(2 - s)}` have the same objective
    value, which gives the expression used here.

    Examples
    --------
    >>> from bsufs.penalties import unit_threshold
    >>> unit_threshold(0.5), unit_threshold(1)
    (1.5, 1.0)
    """
    s = _checked_exponent(exponent)
    if s == 1.0:
        return 1.0
    return float((2.0 - s) * (2.0 * (1.0 - s)) ** ((s - 1.0) / (2.0 - s)))


def threshold(strength: Any, exponent: float) -> Any:
    r"""Return the magnitude up to which the proximal operator gives zero.

    For one strength t or an array of them, at least 0, and a power s in [0, 1] it is
    :math:`\kappa(t, s) = \kappa(1, s)\,t^{1/(2 - s)}`.

    Examples
    --------
    >>> from bsufs.penalties import threshold
    >>> round(threshold(8.0, 0.5), 12)
    6.0
    """
    unit = unit_threshold(exponent)
    power = 1.0 / (2.0 - float(exponent))
    with np.errstate(over="ignore", under="ignore"):
        cut = unit * np.power(_checked_strength(strength), power)
    return float(cut) if np.ndim(cut) == 0 else np.asarray(cut)


def strength_for_threshold(threshold: Any, exponent: float) -> Any:
    """Return the strength at which the proximal operator has a given threshold, or several.

    It is infinite or zero where no double can hold it.

    Examples
    --------
    >>> from bsufs.penalties import strength_for_threshold
    >>> round(strength_for_threshold(6.0, 0.5), 12)
    8.0
    """
    unit = unit_threshold(exponent)
    level = _checked_strength(threshold, name="threshold")
    with np.errstate(over="ignore", under="ignore"):
        strength = np.power(level / unit, 2.0 - float(exponent))
    return float(strength) if np.ndim(strength) == 0 else np.asarray(strength)


def shrink_factor(
    magnitude: NDArray[Any], strength: float | NDArray[Any], exponent: float
) -> FloatArray:
    r"""Return the factor by which the proximal operator shrinks a magnitude.

    The factor u is the one in [0, 1] for which

    .. math:: a u = \arg\min_x \; t\,|x|^s + \tfrac12 (x - a)^2 .

    It is zero unless a is strictly above the threshold, where zero and a positive x tie. An
    undefined magnitude gets the factor 0, so that the product stays undefined. The strength t in
    [0, inf] is one number or an array that broadcasts against the magnitudes: where it is 0 a
    positive magnitude is kept, where it is infinite nothing is. The factors have the dtype of the
    magnitudes, float64 unless that is float32.

    Notes
    -----
    With :math:`\rho = \kappa(t, s)/a < 1` the factor is the larger root of
    :math:`F(u) = u - 1 + w u^{s-1}`, :math:`w = \bar w \rho^{2-s}`, which lies in
    :math:`[2(1-s)/(2-s), 1]`; there F is convex and :math:`F' \ge 1 - s/2`. The exponents 0, 1/2,
    2/3 and 1 have closed forms; elsewhere Newton's method descends to it from 1. The result is the
    exact factor of a problem whose data differ by a few rounding errors.

    Examples
    --------
    >>> import numpy as np
    >>> from bsufs.penalties import shrink_factor
    >>> a = np.array([0.0, 1.0, 2.0, 4.0])
    >>> shrink_factor(a, 1.0, 1)
    array([0.  , 0.  , 0.5 , 0.75])
    >>> (a * shrink_factor(a, 1.0, 0.3)).round(4)
    array([0.    , 0.    , 1.8013, 3.884 ])
    """
    a = _as_float_array(magnitude)
    cut = np.asarray(threshold(strength, exponent))
    # The comparison decides between zero and a jump, so it is never made in single precision.
    a64 = a.astype(np.float64, copy=False)
    survives = a64 > cut
    factor = np.zeros(survives.shape, dtype=a.dtype)
    with np.errstate(under="ignore"):
        factor[survives] = _survivor_factor(
            np.broadcast_to(a64, factor.shape)[survives],
            np.broadcast_to(cut, factor.shape)[survives],
            float(exponent),
        )
    return factor


def _survivor_factor(a: Floats, cut: Floats, s: float) -> Floats:
    """Return the factor of magnitudes `a` that all lie above their thresholds `cut`."""
    if s < 2.0**-53:
        # 1 - u <= s / (2 - s), less than half a rounding
        return np.ones_like(a)
    if s == 1.0:
        # The difference first: it is exact near the threshold, where 1 - cut / a cancels. A norm
        # that overflowed is taken as the largest double.
        a = np.minimum(a, np.finfo(np.float64).max)
        return np.asarray((a - cut) / a)
    ratio = cut / a
    if s == 0.5:
        # A cosine, the trigonometric root of a cubic.
        angle = np.arccos(-math.sqrt(0.5) * np.sqrt(ratio) * ratio) * (2.0 / 3.0)
        return np.minimum((np.cos(angle) + 1.0) * (2.0 / 3.0), 1.0)
    if s == 2.0 / 3.0:
        return _two_thirds_factor(ratio)
    return _general_factor(ratio, s)


def _two_thirds_factor(ratio: Floats) -> Floats:
    """Return the factor at s = 2/3, by radicals (Ferrari's root of a quartic)."""
    # phi^3 = 3 b phi + 1 with b^3 = 4/27 ratio^4, at most 4/27 < 1/4 above the threshold, so that
    # neither square root below meets a negative number.
    root = np.cbrt(np.sqrt(0.25 - (4.0 / 27.0) * ratio**4) + 0.5)
    phi = root + (4.0 / 27.0) ** (1.0 / 3.0) * np.cbrt(ratio) * ratio / root
    half: Floats = 0.5 * (np.sqrt(2.0 / np.sqrt(phi) - phi) + np.sqrt(phi))
    return np.minimum(half**3, 1.0)


def _general_factor(ratio: Floats, s: float) -> Floats:
    """Return the factor at any 0 < s < 1, the larger root of the convex F(u), from above."""
    lowest = 2.0 * (1.0 - s) / (2.0 - s)
    # F(lowest) = 0 at the threshold fixes the largest w.
    w = s / (2.0 - s) * lowest ** (1.0 - s) * np.power(ratio, 2.0 - s)
    u = np.ones_like(ratio)
    for _ in range(_MAX_STEPS):
        pull = w * np.power(u, s - 1.0)
        before = u
        u = np.clip(u - (u - 1.0 + pull) / (1.0 - (1.0 - s) * pull / u), lowest, 1.0)
        if (before - u <= _LAST_STEP * u).all():
            break
    return u


def row_norms(A: ArrayLike, groups: NDArray[np.intp] | None = None) -> Floats:
    """Return the Euclidean norm of every row, safe from overflow and underflow.

    Where `groups` has the number of the group of each row, from 0, every row has the norm of its
    group. Norms are in double precision, also for a float32 matrix, whose norms float32 may not
    hold.

    Examples
    --------
    >>> import numpy as np
    >>> from bsufs.penalties import row_norms
    >>> row_norms(np.array([[3e200, 4e200], [0.0, 0.0]]))
    array([5.e+200, 0.e+000])
    """
    A = _as_matrix(A)
    if groups is not None:
        return _group_norms(A, groups)[groups]
    with np.errstate(over="ignore", under="ignore"):
        squares = np.einsum("ij,ij->i", A, A, dtype=np.float64)
        norms: Floats = np.sqrt(squares)
        unsafe = np.flatnonzero(~((squares >= _SAFE_SQUARE) & (squares < np.inf)))
        unsafe = unsafe[A[unsafe].any(axis=1)]
        if unsafe.size:
            norms[unsafe] = _scaled_norms(A[unsafe])
    return norms


def _group_norms(A: FloatArray, groups: NDArray[np.intp]) -> Floats:
    """Return the Frobenius norm of every group of rows; of a single row, exactly its norm."""
    norms = row_norms(A)
    scale = np.zeros(int(groups.max(initial=-1)) + 1)
    np.maximum.at(scale, groups, norms)
    with np.errstate(invalid="ignore", under="ignore"):
        relative = np.where(scale[groups] > 0, norms / scale[groups], 0.0)
        total = scale * np.sqrt(np.bincount(groups, relative**2, minlength=scale.size))
    return np.where(np.isinf(scale), scale, total)


def _scaled_norms(A: FloatArray) -> Floats:
    """Return the norms of rows that are not zero, by way of their largest magnitudes."""
    rows = A.astype(np.float64, copy=False)
    scale: Floats = np.abs(rows).max(axis=1)
    unit = np.ones_like(scale)
    # Rows with an infinite or undefined element have their norm in the scale.
    ordinary = scale < np.inf
    relative = rows[ordinary] / scale[ordinary, np.newaxis]
    unit[ordinary] = np.sqrt(np.einsum("ij,ij->i", relative, relative))
    return scale * unit


class _Penalty:
    """A weight times powers of magnitudes, of elements or of rows, which may have weights."""

    weight: float
    exponent: float
    row_weights: Floats | None = None
    groups: NDArray[np.intp] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", _finite("weight", self.weight))
        object.__setattr__(self, "exponent", _checked_exponent(self.exponent))

    def _magnitudes(self, A: FloatArray) -> FloatArray:
        raise NotImplementedError

    def threshold(self, step: float) -> float:
        """Return up to which magnitude, or norm of a row of unit row weight, it becomes zero."""
        return float(threshold(self._strength(step), self.exponent))

    def value(self, A: ArrayLike) -> float:
        """Return the penalty of a matrix, summed in double precision; 0 if the weight is 0."""
        magnitude = self._magnitudes(_as_float_array(A)).astype(np.float64, copy=False)
        if self.weight == 0.0:
            return 0.0
        # A zero row costs nothing, not even at an infinite row weight.
        costly = magnitude != 0
        magnitude = magnitude[costly]
        with np.errstate(over="ignore", under="ignore"):
            square_root = self.exponent == 0.5
            powers = np.sqrt(magnitude) if square_root else np.power(magnitude, self.exponent)
            if self.row_weights is not None:
                omega = self.row_weights[costly]
                # 0 * inf: a free row whose norm has overflowed.
                powers = omega * np.where(omega > 0, powers, 0.0)
            return self.weight * float(powers.sum())

    def prox(self, A: ArrayLike, step: float) -> FloatArray:
        r"""Return the proximal point of a matrix, in its dtype.

        That is :math:`\arg\min_X \tau h(X) + \frac12 \|X - A\|_F^2` with the step :math:`\tau`.
        Where rows are penalized every row is a multiple of the row of `A`, in a group by the same
        factor.
        """
        A = _as_float_array(A)
        strength: float | Floats = self._strength(step)
        if self.row_weights is not None and (step == 0 or self.weight == 0.0):
            # No penalty, infinite row weights included: the rule 0 * inf = 0 of `value`.
            strength = 0.0
        elif self.row_weights is not None:
            # Not by the product alone: a step times weight that underflowed is 0.
            forbidden = np.isinf(self.row_weights)
            with np.errstate(over="ignore", under="ignore"):
                strength = strength * np.where(forbidden, 1.0, self.row_weights)
            strength[forbidden] = np.inf
        factor = shrink_factor(self._magnitudes(A), strength, self.exponent)
        factor = factor if self.groups is None else factor[self.groups]
        if factor.ndim < A.ndim:
            factor = factor.astype(A.dtype, copy=False)[:, np.newaxis]
        with np.errstate(under="ignore"):
            X = A * factor
        X += 0.0  # turns the -0.0 of a negative element times zero into 0.0
        return X

    def _strength(self, step: float) -> float:
        strength = _finite("step", step) * self.weight
        if strength == math.inf:
            raise ValueError(
                f"step times weight must be a finite number, got step={step!r} and "
                f"weight={self.weight!r}: scale the problem down"
            )
        return strength


@dataclass(frozen=True)
class ElementPenalty(_Penalty):
    r"""The :math:`\ell_q` penalty on elements.

    .. math:: h(A) = \lambda \sum_{ij} |a_{ij}|^q,

    for q = 0 the number of non-zero elements times :math:`\lambda`.

    Parameters
    ----------
    weight : float
        The weight :math:`\lambda`, finite and at least 0.
    exponent : float
        The power q in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from bsufs.penalties import ElementPenalty
    >>> penalty = ElementPenalty(weight=2.0, exponent=1)
    >>> penalty.value([[3.0, 0.0], [-1.0, 5.0]])
    18.0
    >>> penalty.prox([[3.0, 0.0], [-1.0, 5.0]], step=0.5)
    array([[2., 0.],
           [0., 4.]])
    """

    weight: float
    exponent: float

    def _magnitudes(self, A: FloatArray) -> FloatArray:
        return np.abs(A)


@dataclass(frozen=True, eq=False)
class RowPenalty(_Penalty):
    r"""The :math:`\ell_{2,p}` penalty on rows.

    .. math:: h(A) = \lambda \sum_i \omega_i \|a^i\|^p,

    for p = 0 the sum of the row weights of the non-zero rows times :math:`\lambda`.

    Parameters
    ----------
    weight : float
        The weight :math:`\lambda`, finite and at least 0. A weight of 0 is no penalty at all,
        whatever the row weights.
    exponent : float
        The power p in [0, 1].
    row_weights : array of shape (n_rows,), optional
        The row weights :math:`\omega_i` in [0, inf], all 1 if not given. A row of weight 0 is free,
        a row of infinite weight must be zero.
    groups : array of int of shape (n_rows,), optional
        The number of the group of each row, from 0. A group then takes the place of a row:
        :math:`\|a^i\|` is the Frobenius norm of its rows, and there is a row weight for each group.

    Examples
    --------
    >>> import numpy as np
    >>> from bsufs.penalties import RowPenalty
    >>> A = np.array([[3.0, 4.0], [0.6, 0.8]])
    >>> penalty = RowPenalty(weight=2.0, exponent=1)
    >>> penalty.value(A)
    12.0
    >>> penalty.prox(A, step=0.5)
    array([[2.4, 3.2],
           [0. , 0. ]])
    >>> RowPenalty(2.0, 1, row_weights=np.array([np.inf, 0.0])).prox(A, step=0.5)
    array([[0. , 0. ],
           [0.6, 0.8]])
    """

    weight: float
    exponent: float
    row_weights: Floats | None = None
    groups: NDArray[np.intp] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.row_weights is not None:
            object.__setattr__(self, "row_weights", _checked_row_weights(self.row_weights))
        if self.groups is not None:
            object.__setattr__(self, "groups", np.asarray(self.groups, dtype=np.intp))

    def _magnitudes(self, A: FloatArray) -> FloatArray:
        """Return the norms of rows or groups, as many as there are row weights."""
        norms = row_norms(A) if self.groups is None else _group_norms(_as_matrix(A), self.groups)
        if self.row_weights is not None and self.row_weights.size != norms.size:
            units = "rows" if self.groups is None else "groups of rows"
            raise ValueError(
                f"row_weights must have one entry for each of the {norms.size} {units} of A, "
                f"got {self.row_weights.size}"
            )
        return norms


def _checked_exponent(exponent: float) -> float:
    if not (isinstance(exponent, Real) and 0.0 <= exponent <= 1.0):
        raise ValueError(f"exponent must be a number in [0, 1], got {exponent!r}")
    return float(exponent)


def _finite(name: str, value: float) -> float:
    if not (isinstance(value, Real) and 0.0 <= value < math.inf):
        raise ValueError(f"{name} must be a finite number >= 0, got {value!r}")
    return float(value)


def _checked_strength(strength: ArrayLike, name: str = "strength") -> Floats:
    t = np.asarray(strength, dtype=np.float64)
    if not np.all(t >= 0.0):
        raise ValueError(f"{name} must be >= 0 and not NaN, got {strength!r}")
    return t


def _checked_row_weights(row_weights: ArrayLike) -> Floats:
    # A copy, so that the caller cannot change a frozen penalty.
    weights = np.array(row_weights, dtype=np.float64)
    if weights.ndim != 1:
        raise ValueError(
            f"row_weights must be a 1-d array, one entry per row, got {weights.ndim} dimensions"
        )
    wrong = np.flatnonzero(~(weights >= 0.0))
    if wrong.size:
        raise ValueError(
            f"row_weights must be >= 0 (inf is allowed), got {weights[wrong[0]]} at row {wrong[0]}"
        )
    weights.flags.writeable = False
    return weights


def _as_float_array(A: ArrayLike) -> FloatArray:
    A = np.asarray(A)
    if A.dtype in (np.float32, np.float64):
        return A
    return A.astype(np.float64)


def _as_matrix(A: ArrayLike) -> FloatArray:
    A = _as_float_array(A)
    if A.ndim != 2:
        raise ValueError(f"A must have 2 dimensions, got {A.ndim}")
    return A
