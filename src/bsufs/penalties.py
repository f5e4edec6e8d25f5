r"""What sparsity costs: the :math:`\ell_q` and :math:`\ell_{2,p}` penalties.

Both penalties sum a power :math:`s \in [0, 1]` of magnitudes: of the elements of a matrix
(:class:`ElementPenalty`) or of the Euclidean norms of its rows (:class:`RowPenalty`). Their
proximal operators therefore rest on one scalar problem,

.. math:: \min_{x} \; t\,|x|^s + \tfrac12 (x - a)^2, \qquad a, t \ge 0,

which :func:`shrink_factor` solves. All of it is done in dimensionless numbers, so that neither huge
nor tiny arguments overflow.
"""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bsufs._typing import Array, Indices

# Newton's method doubles the number of right digits: after a step of this relative size the error
# is below the rounding of a double.
_LAST_STEP = 1e-9
_MAX_STEPS = 40

# Below this sum of squares, what underflowed in a square may be more than a rounding error.
_SAFE_SQUARE = 1e-280


def threshold(strength: Any, exponent: float) -> Any:
    r"""Return the magnitude up to which the proximal operator gives zero.

    For one strength t or an array of them, at least 0, and a power s in [0, 1] it is
    :math:`(2 - s)\,(2(1 - s))^{(s - 1)/(2 - s)}\,t^{1/(2 - s)}`, and t at s = 1.

    Lemma 1 of the paper prints another exponent of :math:`2(1 - s)`, which is right at s = 0 and
    1/2 only. At the threshold zero and :math:`(2t(1 - s))^{1/(2 - s)}` have the same objective
    value, which gives the expression used here.

    Examples
    --------
    >>> from bsufs.penalties import threshold
    >>> round(threshold(8.0, 0.5), 12)
    6.0
    """
    unit = _unit_threshold(exponent)
    with np.errstate(over="ignore", under="ignore"):
        cut = unit * np.power(_checked_strength(strength), 1.0 / (2.0 - exponent))
    return float(cut) if np.ndim(cut) == 0 else cut


def _unit_threshold(exponent: float) -> float:
    s = _checked_exponent(exponent)
    return 1.0 if s == 1.0 else float((2.0 - s) * (2.0 * (1.0 - s)) ** ((s - 1.0) / (2.0 - s)))


def strength_for_threshold(threshold: Any, exponent: float) -> Any:
    """Return the strength at which the proximal operator has a given threshold, or several.

    It is infinite or zero where no double can hold it.

    Examples
    --------
    >>> from bsufs.penalties import strength_for_threshold
    >>> round(strength_for_threshold(6.0, 0.5), 12)
    8.0
    """
    unit = _unit_threshold(exponent)
    level = _checked_strength(threshold, name="threshold")
    with np.errstate(over="ignore", under="ignore"):
        strength = np.power(level / unit, 2.0 - exponent)
    return float(strength) if np.ndim(strength) == 0 else strength


def shrink_factor(magnitude: ArrayLike, strength: float | Array, exponent: float) -> Array:
    r"""Return the factor by which the proximal operator shrinks a magnitude.

    The factor u is the one in [0, 1] for which

    .. math:: a u = \arg\min_x \; t\,|x|^s + \tfrac12 (x - a)^2 .

    It is zero unless a is strictly above the threshold, where zero and a positive x tie. An
    undefined magnitude gets the factor 0, so that the product stays undefined. The strength t in
    [0, inf] is one number or an array that broadcasts against the magnitudes: where it is 0 a
    positive magnitude is kept, where it is infinite nothing is.

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
    a = np.asarray(magnitude, dtype=np.float64)
    cut = np.asarray(threshold(strength, exponent))
    survives = a > cut
    with np.errstate(all="ignore"):
        if 2 * np.count_nonzero(survives) > survives.size:
            # To pick out most of them takes longer than what is computed for the others in vain.
            return np.where(survives, _survivor_factor(a, cut, exponent), 0.0)
        factor = np.zeros(survives.shape)
        a, cut = (np.broadcast_to(b, factor.shape)[survives] for b in (a, cut))
        factor[survives] = _survivor_factor(a, cut, exponent)
    return factor


def _survivor_factor(a: Array, cut: Array, s: float) -> Array:
    """Return the factor of magnitudes `a` above their thresholds `cut`; a number for all others."""
    if s < 2.0**-53:
        # 1 - u <= s / (2 - s), less than half a rounding
        return np.ones_like(a)
    if s == 1.0:
        # The difference first: it is exact near the threshold, where 1 - cut / a cancels. A norm
        # that overflowed is taken as the largest double.
        a = np.minimum(a, np.finfo(np.float64).max)
        return np.asarray((a - cut) / a)
    ratio = np.minimum(cut / a, 1.0)
    if s == 0.5:
        # The trigonometric root of a cubic.
        angle = np.arcsin(math.sqrt(0.5) * np.sqrt(ratio) * ratio) * (-2.0 / 3.0) + math.pi / 6.0
        return np.minimum((_sine(angle) + 1.0) * (2.0 / 3.0), 1.0)
    if s == 2.0 / 3.0:
        return _two_thirds_factor(ratio)
    return _general_factor(ratio, s)


def _sine(angle: Array) -> Array:
    """Return the sine of angles up to pi/6, to rounding; several times faster than `numpy.sin`."""
    square = angle * angle
    series = square / math.factorial(13)
    for n in (11, 9, 7, 5, 3):
        series += (-1.0) ** (n // 2) / math.factorial(n)
        series *= square
    series += 1.0
    series *= angle
    return series


def _two_thirds_factor(ratio: Array) -> Array:
    """Return the factor at s = 2/3, by radicals (Ferrari's root of a quartic)."""
    # phi^3 = 3 b phi + 1 with b^3 = 4/27 ratio^4, at most 4/27 < 1/4 above the threshold, so that
    # neither square root below meets a negative number.
    root = np.cbrt(np.sqrt(0.25 - (4.0 / 27.0) * ratio**4) + 0.5)
    phi = root + (4.0 / 27.0) ** (1.0 / 3.0) * np.cbrt(ratio) * ratio / root
    half: Array = 0.5 * (np.sqrt(2.0 / np.sqrt(phi) - phi) + np.sqrt(phi))
    return np.minimum(half**3, 1.0)


def _general_factor(ratio: Array, s: float) -> Array:
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


def row_norms(A: ArrayLike, groups: Indices | None = None) -> Array:
    """Return the Euclidean norm of every row, safe from overflow and underflow.

    Where `groups` has the number of the group of each row, from 0, every row has the norm of its
    group.

    Examples
    --------
    >>> import numpy as np
    >>> from bsufs.penalties import row_norms
    >>> row_norms(np.array([[3e200, 4e200], [0.0, 0.0]]))
    array([5.e+200, 0.e+000])
    """
    A = np.asarray(A, dtype=np.float64)
    if A.ndim != 2:
        raise ValueError(f"A must have 2 dimensions, got {A.ndim}")
    if groups is not None:
        return _group_norms(A, groups)[groups]
    with np.errstate(over="ignore", under="ignore"):
        squares = np.einsum("ij,ij->i", A, A)
        norms: Array = np.sqrt(squares)
        unsafe = np.flatnonzero(~((squares >= _SAFE_SQUARE) & (squares < np.inf)))
        unsafe = unsafe[A[unsafe].any(axis=1)]
        norms[unsafe] = np.hypot.reduce(A[unsafe], axis=1)
    return norms


def _group_norms(A: Array, groups: Indices) -> Array:
    """Return the Frobenius norm of every group of rows; of a single row, exactly its norm."""
    norms = np.zeros(int(groups.max(initial=-1)) + 1)
    with np.errstate(over="ignore", under="ignore"):
        np.hypot.at(norms, groups, row_norms(A))
    return norms


class _Penalty:
    """A weight times powers of magnitudes, of elements or of rows, which may have weights."""

    weight: float
    exponent: float
    row_weights: Array | None = None
    groups: Indices | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", _finite("weight", self.weight))
        object.__setattr__(self, "exponent", _checked_exponent(self.exponent))

    def _magnitudes(self, A: Array) -> Array:
        raise NotImplementedError

    def value(self, A: ArrayLike) -> float:
        """Return the penalty of a matrix; 0 if the weight is 0."""
        magnitude = self._magnitudes(np.asarray(A, dtype=np.float64))
        if self.weight == 0.0:
            return 0.0
        # A zero row costs nothing, not even at an infinite row weight.
        costly = magnitude != 0
        magnitude = magnitude[costly]
        with np.errstate(over="ignore", under="ignore"):
            powers = magnitude**self.exponent
            if self.row_weights is not None:
                omega = self.row_weights[costly]
                # 0 * inf: a free row whose norm has overflowed.
                powers = omega * np.where(omega > 0, powers, 0.0)
            return self.weight * float(powers.sum())

    def prox(self, A: ArrayLike, step: float) -> Array:
        r"""Return the proximal point of a matrix.

        That is :math:`\arg\min_X \tau h(X) + \frac12 \|X - A\|_F^2` with the step :math:`\tau`.
        Where rows are penalized every row is a multiple of the row of `A`, in a group by the same
        factor.
        """
        A = np.asarray(A, dtype=np.float64)
        strength: float | Array = _finite("step", step) * self.weight
        if strength == math.inf:
            raise ValueError(
                f"step times weight must be a finite number, got step={step!r} and "
                f"weight={self.weight!r}: scale the problem down"
            )
        # Where there is no penalty, 0 * inf is 0 as in `value`.
        if self.row_weights is not None and step > 0 and self.weight > 0:
            with np.errstate(all="ignore"):
                products = strength * self.row_weights
            # Also where step times weight underflowed to 0.
            strength = np.where(np.isinf(self.row_weights), np.inf, products)
        factor = shrink_factor(self._magnitudes(A), strength, self.exponent)
        factor = factor if self.groups is None else factor[self.groups]
        with np.errstate(under="ignore"):
            X = A * (factor if factor.ndim == A.ndim else factor[:, np.newaxis])
        X += 0.0  # turns the -0.0 of a negative element times zero into 0.0
        return X


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

    def _magnitudes(self, A: Array) -> Array:
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
    row_weights: Array | None = None
    groups: Indices | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.row_weights is not None:
            object.__setattr__(self, "row_weights", _checked_row_weights(self.row_weights))
        if self.groups is not None:
            object.__setattr__(self, "groups", np.asarray(self.groups, dtype=np.intp))

    def _magnitudes(self, A: Array) -> Array:
        """Return the norms of rows or groups, as many as there are row weights."""
        norms = row_norms(A) if self.groups is None else _group_norms(A, self.groups)
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


def _checked_strength(strength: ArrayLike, name: str = "strength") -> Array:
    t = np.asarray(strength, dtype=np.float64)
    if not np.all(t >= 0.0):
        raise ValueError(f"{name} must be >= 0 and not NaN, got {strength!r}")
    return t


def _checked_row_weights(row_weights: ArrayLike) -> Array:
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
