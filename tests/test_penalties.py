"""The penalties against brute force, a high-precision oracle and their defining properties."""

import math
from dataclasses import FrozenInstanceError
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from bsufs.penalties import (
    ElementPenalty,
    RowPenalty,
    row_norms,
    shrink_factor,
    strength_for_threshold,
    threshold,
)

EPS = np.finfo(np.float64).eps
EXPONENTS = [0.0, 1e-3, 0.1, 1 / 3, 0.5, 0.6, 2 / 3, 0.9, 0.999, 1.0]
# Next to the exponents with closed forms, and so small or large that a formula may cancel.
DELICATE = [5e-324, 1e-300, 1e-17, 1e-12, 0.5 - 1e-9, 0.5 + 1e-9, 2 / 3 - 1e-9, 2 / 3 + 1e-9]
DELICATE += [1 - 1e-6, 1 - 1e-9, 1 - 1e-12, 1 - 2.0**-53]
STRENGTHS = [1e-12, 1e-6, 1.0, 3.7, 1e6, 1e12]
PENALTIES = [ElementPenalty, RowPenalty]

fixed = settings(derandomize=True, deadline=None, max_examples=150)
exponents = st.one_of(st.sampled_from(EXPONENTS + DELICATE), st.floats(0, 1))
logarithms = st.floats(-12, 12)


def exact_prox(a, t, s):
    """Return the minimizer of t x^s + (x - a)^2 / 2 over x >= 0 to 45 digits.

    Newton's method on the stationarity condition from x = a, where it descends to the larger root
    if there is one; zero otherwise, or where zero has the smaller objective. Uses no threshold.
    """
    with localcontext() as context:
        context.prec = 60
        context.Emin, context.Emax = -(10**9), 10**9
        a, t, s = Decimal(float(a)), Decimal(float(t)), Decimal(float(s))
        if a == 0:
            return Decimal(0)
        x = a
        if s > 0:
            for _ in range(200):
                pull = t * s * x ** (s - 1)
                slope = 1 + (s - 1) * pull / x
                if slope <= 0:
                    return Decimal(0)
                step = (x - a + pull) / slope
                x -= step
                if x <= 0:
                    return Decimal(0)
                if abs(step) <= a * Decimal(10) ** -50:
                    break
            else:
                raise AssertionError("the oracle has not converged")
        return x if t * x**s + (x - a) ** 2 / 2 < a**2 / 2 else Decimal(0)


def relative_objective(v, k, s):
    """Return (t |x|^s + (x - a)^2 / 2) / a^2 at x = a v, with k = t a^(s - 2)."""
    v = np.asarray(v, dtype=np.float64)
    return k * np.where(v > 0, np.power(np.maximum(v, 1e-300), s), 0.0) + 0.5 * (v - 1) ** 2


def relative_strength(a, t, s):
    """Return t a^(s - 2), capped far above the value at which zero is the minimizer."""
    return math.exp(min(math.log(t) + (s - 2) * math.log(float(a)), 300.0))


def arguments(t, s):
    """Return magnitudes of the whole range, and close to the threshold on both sides."""
    whole = np.logspace(-300, 300, 41)
    near = threshold(t, s) * np.concatenate(
        [1 + np.logspace(-14, 0, 15), 1 - np.logspace(-14, -1, 14), [3.0, 30.0, 1e4, 1e8]]
    )
    return np.concatenate([[0.0], whole, near])


# ---------------------------------------------------------------- thresholds


@pytest.mark.parametrize(
    ("s", "expected"), [(0, math.sqrt(2)), (0.5, 1.5), (2 / 3, (128 / 27) ** 0.25), (1, 1.0)]
)
def test_unit_threshold_at_known_exponents(s, expected):
    assert threshold(1.0, s) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("s", [s for s in EXPONENTS if s < 1])
def test_zero_and_the_jump_tie_at_the_threshold(s):
    t = 0.7
    a, x = threshold(t, s), (2 * t * (1 - s)) ** (1 / (2 - s))
    power = x**s if s > 0 else 1.0
    assert t * power + (x - a) ** 2 / 2 == pytest.approx(a**2 / 2, rel=1e-13)


@pytest.mark.parametrize("s", EXPONENTS + DELICATE)
def test_strength_for_threshold_is_the_inverse(s):
    t = np.array(STRENGTHS)
    assert strength_for_threshold(threshold(t, s), s) == pytest.approx(t, rel=1e-13)
    assert isinstance(threshold(2.0, s), float)
    assert threshold(2.0, s) == threshold(np.array([2.0]), s)[0]
    assert isinstance(strength_for_threshold(2.0, s), float)
    assert threshold(0.0, s) == 0.0
    assert strength_for_threshold(0.0, s) == 0.0


def test_strength_for_threshold_may_leave_the_range_of_doubles():
    with np.errstate(all="raise"):
        assert strength_for_threshold(1e300, 0) == math.inf
        assert strength_for_threshold(1e-300, 0) == 0.0


# ------------------------------------------------------------- shrink_factor


@pytest.mark.parametrize("s", EXPONENTS + DELICATE)
def test_factor_against_the_oracle(s):
    for t in (1e-12, 3.7, 1e12):
        ratios = [1e-3, 0.999, 1 + 1e-9, 1 + 1e-5, 1.03, 1.4, 4.0, 1e3, 1e9]
        a = np.concatenate([threshold(t, s) * np.array(ratios), [1e-300, 1e300]])
        x = a * shrink_factor(a, t, s)
        exact = [exact_prox(b, t, s) for b in a]
        error = [
            float(abs(Decimal(v) - y) / Decimal(b)) for v, y, b in zip(x, exact, a, strict=True)
        ]
        # A rounding of 1 / (2 - s) moves the scale t^(1 / (2 - s)) by log(t) roundings.
        assert max(error) <= (6 + 1.5 * abs(math.log(t))) * EPS
        assert [v > 0 for v in x] == [y > 0 for y in exact]


@pytest.mark.parametrize("s", EXPONENTS)
def test_factor_against_brute_force(s):
    everywhere = np.concatenate([[0.0], np.logspace(-25, 0, 2001)])
    local = np.concatenate([-np.logspace(-9, -1, 100), np.logspace(-9, -1, 100)])
    tolerance = 1e-12
    for t in STRENGTHS:
        a = arguments(t, s)
        for magnitude, u in zip(a[1:], shrink_factor(a, t, s)[1:], strict=True):
            k = relative_strength(magnitude, t, s)
            best = min(
                relative_objective(everywhere, k, s).min(),
                relative_objective(float(u) * (1 + local), k, s).min(),
            )
            assert relative_objective(u, k, s) <= best + tolerance


@fixed
@given(exponents, logarithms, st.floats(-300, 300), st.floats(0, 2))
def test_no_competitor_is_better(s, log_t, log_a, v):
    t, a = 10.0**log_t, 10.0**log_a
    u = shrink_factor(np.array([a]), t, s)[0]
    k = relative_strength(a, t, s)
    assert relative_objective(u, k, s) <= relative_objective(v, k, s) + 1e-12


@fixed
@given(exponents, logarithms, st.floats(0.5, 2))
def test_no_competitor_is_better_near_the_threshold(s, log_t, ratio):
    a = threshold(10.0**log_t, s) * ratio
    u = shrink_factor(np.array([a]), 10.0**log_t, s)[0]
    k = relative_strength(a, 10.0**log_t, s)
    competitors = relative_objective(np.linspace(0, 1.5, 301), k, s)
    assert relative_objective(u, k, s) <= competitors.min() + 1e-12


@pytest.mark.parametrize("s", EXPONENTS + DELICATE)
@pytest.mark.parametrize("t", STRENGTHS)
def test_zero_up_to_the_threshold_and_the_jump_right_above(t, s):
    cut = threshold(t, s)
    above = np.nextafter(cut, np.inf)
    below, at, jump = shrink_factor(np.array([np.nextafter(cut, 0), cut, above]), t, s)
    assert below == at == 0.0
    lowest = 2 * (1 - s) / (2 - s)
    if s < 1:
        assert jump == pytest.approx(lowest, rel=1e-7, abs=16 * EPS)
    assert jump > 0.0


@pytest.mark.parametrize("s", EXPONENTS + DELICATE)
def test_factor_lies_in_its_bracket_and_grows(s):
    a = threshold(2.0, s) * np.concatenate(
        [np.linspace(1.0, 1.1, 5001), np.logspace(0.05, 12, 999)]
    )
    u = shrink_factor(a, 2.0, s)[1:]
    lowest = 2 * (1 - s) / (2 - s)
    assert u.min() >= lowest - 4 * EPS
    assert u.max() <= 1.0
    assert np.diff(u).min() >= -4 * EPS
    x = a[1:] * u
    assert (np.diff(x) >= -4 * EPS * a[1:-1]).all()
    assert x[-1] > x[0]


@pytest.mark.parametrize(("s", "near"), [(0.5, 0.5 + 1e-9), (2 / 3, 2 / 3 - 1e-9), (1, 1 - 1e-9)])
def test_general_exponents_join_the_closed_forms(s, near):
    a = np.linspace(1.0, 50.0, 400) * 1.01 * threshold(3.0, s)
    assert shrink_factor(a, 3.0, near) == pytest.approx(shrink_factor(a, 3.0, s), abs=2e-7)
    assert (shrink_factor(a, 3.0, near) != shrink_factor(a, 3.0, s)).any()


@pytest.mark.parametrize("s", EXPONENTS + DELICATE)
def test_no_floating_point_error_over_the_whole_range(s):
    tiny, huge = np.finfo(np.float64).smallest_subnormal, np.finfo(np.float64).max
    with np.errstate(all="raise"):
        for t in [0.0, 5e-324, 1e-300, *STRENGTHS, 1e300, np.finfo(np.float64).max, np.inf]:
            with np.errstate(all="ignore"):
                near = arguments(t, s) if 0 < t < np.inf else np.array([0.0, 1e-30, 1.0])
                a = np.append(near[near <= huge], [tiny, huge])
            u = shrink_factor(a, t, s)
            assert ((u >= 0) & (u <= 1)).all()
            assert ((u > 0) == (a > threshold(t, s))).all()


@pytest.mark.parametrize("s", EXPONENTS)
def test_strength_broadcasts(s):
    rng = np.random.default_rng(0)
    a = rng.exponential(size=(5, 7)) * 3
    t = np.array([0.0, 0.1, 1.0, 4.0, np.inf])[:, np.newaxis]
    u = shrink_factor(a, t, s)
    assert (u[0] == 1).all()
    assert (u[-1] == 0).all()
    for row, strength, expected in zip(a, t[:, 0], u, strict=True):
        np.testing.assert_allclose(shrink_factor(row, strength, s), expected, rtol=0, atol=4 * EPS)
    # a magnitude against many strengths
    u = shrink_factor(np.array([2.0]), t, s)
    assert u.shape == (5, 1)
    assert (np.diff(u[:, 0]) <= 0).all()


@pytest.mark.parametrize("s", [0.0, 0.3, 0.5, 2 / 3, 1.0])
@pytest.mark.parametrize("cut", [0.0, 0.5])
def test_long_arrays_are_the_same_as_their_pieces(s, cut):
    a = np.random.default_rng(1).exponential(size=(100, 123)) + 1e-3
    t = strength_for_threshold(cut, s)
    whole = shrink_factor(a, t, s)
    pieces = np.array([shrink_factor(row, t, s) for row in a])
    assert whole == pytest.approx(pieces, rel=1e-15, abs=4 * EPS)
    assert ((whole > 0) == (a > cut)).mean() > 0.999
    assert shrink_factor(a.T, t, s) == pytest.approx(whole.T, rel=1e-15, abs=4 * EPS)


@pytest.mark.parametrize("s", EXPONENTS)
def test_infinite_magnitude_is_kept(s):
    with np.errstate(all="raise"):
        assert shrink_factor(np.array([np.inf]), 1.0, s) == [1.0]


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.array([1.0, -1.0])])
def test_strength_is_checked(bad):
    with pytest.raises(ValueError, match=r"strength must be >= 0 and not NaN, got"):
        shrink_factor(np.ones(2), bad, 0.5)
    with pytest.raises(ValueError, match=r"threshold must be >= 0 and not NaN, got"):
        strength_for_threshold(bad, 0.5)


@pytest.mark.parametrize("bad", [-0.1, 1.0001, np.nan, "half", None])
@pytest.mark.parametrize("function", [threshold, lambda t, s: shrink_factor(np.ones(2), t, s)])
def test_exponent_is_checked(function, bad):
    with pytest.raises(ValueError, match=r"exponent must be a number in \[0, 1\], got"):
        function(1.0, bad)


# ----------------------------------------------------------------- row norms


def test_row_norms_in_the_ordinary_range():
    A = np.random.default_rng(0).standard_normal((50, 6))
    assert row_norms(A) == pytest.approx(np.linalg.norm(A, axis=1), rel=1e-15)


@pytest.mark.parametrize("exponent", [-323, -310, -300, -170, -150, 0, 150, 160, 300, 307])
def test_row_norms_over_the_whole_range(exponent):
    unit = float(f"1e{exponent}")
    A = np.array([[3.0, -4.0], [0.0, 0.0], [1.0, 0.0]]) * unit
    with np.errstate(all="raise"):
        norms = row_norms(A)
    # Subnormal numbers are spaced by 5e-324.
    assert norms == pytest.approx([5 * unit, 0.0, unit], rel=1e-15, abs=1e-323)


def test_row_norms_pass_on_infinity_and_nan():
    with np.errstate(all="raise"):
        norms = row_norms([[np.inf, 1.0], [np.nan, 1.0], [1.7e308, 1.7e308], [3, 4]])
    np.testing.assert_array_equal(norms, [np.inf, np.nan, np.inf, 5.0])


# ----------------------------------------------------------------- penalties


@pytest.mark.parametrize("s", EXPONENTS)
def test_element_prox_is_odd_and_scalar(s):
    A = np.random.default_rng(2).standard_normal((40, 5)) * 3
    before = A.copy()
    penalty = ElementPenalty(0.8, s)
    X = penalty.prox(A, 0.5)
    assert np.array_equal(A, before)
    assert (penalty.prox(-A, 0.5) == -X).all()
    assert ((X != 0) == (np.abs(A) > threshold(0.4, s))).all()
    assert 0 < np.count_nonzero(X) < X.size
    expected = [float(exact_prox(abs(a), 0.4, s)) * np.sign(a) for a in A.ravel()]
    tolerance = 8 * EPS
    np.testing.assert_allclose(X.ravel(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("s", EXPONENTS)
def test_row_prox_shrinks_the_norm_along_the_row(s):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((30, 4)) * rng.uniform(0.05, 4, (30, 1))
    A[7] = 0
    before = A.copy()
    X = RowPenalty(1.1, s).prox(A, 0.9)
    assert np.array_equal(A, before)
    norms = np.linalg.norm(A, axis=1)
    scale = [float(exact_prox(a, 1.1 * 0.9, s)) / a if a > 0 else 0.0 for a in norms]
    tolerance = 8 * EPS
    expected = A * np.array(scale)[:, np.newaxis]
    np.testing.assert_allclose(X, expected, rtol=tolerance, atol=tolerance)
    assert 0 < np.count_nonzero(X.any(axis=1)) < 29


@pytest.mark.parametrize("magnitude", [1e300, 1e160, 1e-160, 1e-300])
@pytest.mark.parametrize("s", EXPONENTS)
def test_row_prox_of_extreme_rows(s, magnitude):
    A = np.array([[3.0, -4.0], [0.0, 0.0], [0.3, 0.4]]) * magnitude
    # A strength so that the first row survives and the last one does not.
    t = strength_for_threshold(magnitude, s)
    if not 0 < t < np.inf:
        t = 1.0
    with np.errstate(all="raise"):
        X = RowPenalty(t, s).prox(A, 1.0)
    norms = np.array([5.0, 0.0, 0.5]) * magnitude
    for row, norm, result in zip(A, norms, X, strict=True):
        factor = float(exact_prox(norm, t, s) / Decimal(norm)) if norm > 0 else 0.0
        # log(t) roundings, as in the test against the oracle
        np.testing.assert_allclose(result / magnitude, factor * row / magnitude, atol=3e-13)


@pytest.mark.parametrize("s", EXPONENTS)
def test_row_weights_scale_the_strength_of_their_row(s):
    A = np.random.default_rng(4).standard_normal((5, 3)) * 4
    omega = np.array([0.0, 0.3, 1.0, 2.5, np.inf])
    with np.errstate(all="raise"):
        X = RowPenalty(0.7, s, omega).prox(A, 0.6)
    for i in (1, 2, 3):
        single = RowPenalty(0.7 * omega[i], s).prox(A[i : i + 1], 0.6)[0]
        assert X[i] == pytest.approx(single, rel=1e-14)
    assert (X[0] == A[0]).all()
    assert (X[4] == 0).all()


def test_infinite_row_weight_survives_an_underflowing_strength():
    penalty = RowPenalty(1e-200, 0.5, np.array([np.inf, 1.0]))
    X = penalty.prox(np.ones((2, 2)), 1e-200)
    assert (X == [[0.0, 0.0], [1.0, 1.0]]).all()


@pytest.mark.parametrize(("weight", "step"), [(0.0, 1.0), (1.0, 0.0)])
@pytest.mark.parametrize("s", EXPONENTS)
def test_no_penalty_keeps_the_matrix(s, weight, step):
    A = np.array([[1.0, -2.0], [0.0, 1e-300]])
    assert (ElementPenalty(weight, s).prox(A, step) == A).all()
    X = RowPenalty(weight, s, np.array([np.inf, 1.0])).prox(A, step)
    assert (X == A).all()
    assert X is not A


@fixed
@given(exponents, st.floats(-3, 3), st.integers(0, 2**32 - 1), st.sampled_from(PENALTIES))
def test_prox_is_optimal_among_matrices(s, log_weight, seed, kind):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((4, 3)) * 2
    penalty = kind(10.0**log_weight, s)
    step = rng.uniform(0.1, 2)

    def objective(X):
        return step * penalty.value(X) + 0.5 * ((X - A) ** 2).sum()

    X = penalty.prox(A, step)
    best = objective(X)
    keep = rng.integers(0, 2, A.shape)
    row_keep = keep[:, :1]
    competitors = [np.zeros_like(A), A, A * keep, A * row_keep, X * keep, X * row_keep]
    competitors += [X + rng.standard_normal(A.shape) * scale for scale in (1e-6, 1e-3, 1)]
    competitors += [X * (1 + scale) for scale in (-0.1, -1e-4, 1e-4, 0.1)]
    competitors += [X + (A - X) * rng.uniform(size=A.shape)]
    for Y in competitors:
        assert best <= objective(Y) * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize("s", EXPONENTS)
def test_value_is_the_formula(s):
    A = np.random.default_rng(5).standard_normal((6, 4))
    A[2] = 0
    A[3, 1] = 0
    omega = np.array([0.0, 1.0, np.inf, 0.5, 2.0, 3.0])
    elements = sum(abs(float(a)) ** s for a in A.ravel() if a != 0)
    norms = [math.sqrt(sum(float(a) ** 2 for a in row)) for row in A]
    rows = sum(norm**s for norm in norms if norm > 0)
    weighted = sum(o * norm**s for o, norm in zip(omega, norms, strict=True) if norm > 0)
    with np.errstate(all="raise"):
        assert ElementPenalty(1.7, s).value(A) == pytest.approx(1.7 * elements, rel=1e-13)
        assert RowPenalty(1.7, s).value(A) == pytest.approx(1.7 * rows, rel=1e-13)
        assert RowPenalty(1.7, s, omega).value(A) == pytest.approx(1.7 * weighted, rel=1e-13)
        omega[2], omega[0] = 1.0, np.inf
        assert RowPenalty(1.7, s, omega).value(A) == math.inf
        assert RowPenalty(0.0, s, omega).value(A) == 0.0
        assert isinstance(ElementPenalty(1.7, s).value(A), float)


def test_no_penalty_costs_nothing_however_large_the_matrix():
    huge = np.full((4, 4), 1.7e308)
    with np.errstate(all="raise"):
        for kind in PENALTIES:
            assert kind(0.0, 1.0).value(huge) == 0.0
            assert kind(1.0, 1.0).value(huge) == math.inf
            assert kind(1e300, 0.0).value(huge[:1, :1]) == 1e300
        free = RowPenalty(1.0, 0.5, np.array([0.0, 0.0, 0.0, 1.0]))
        huge[3] = 0.0
        assert free.value(huge) == 0.0


@pytest.mark.parametrize("s", EXPONENTS)
def test_extreme_matrices_raise_no_floating_point_error(s):
    A = np.logspace(-300, 300, 60).reshape(-1, 3)
    A[::2] *= -1
    A[4] = 0
    with np.errstate(all="raise"):
        for weight in (1e-12, 1.0, 1e12):
            for penalty in (
                ElementPenalty(weight, s),
                RowPenalty(weight, s),
                RowPenalty(weight, s, np.resize([0.0, 1e-12, 1.0, 1e12, np.inf], 20)),
            ):
                for step in (1e-12, 1.0, 1e12):
                    X = penalty.prox(A, step)
                    assert np.isfinite(X).all()
                    assert (np.abs(X) <= np.abs(A)).all()
                    assert (X * np.sign(A) >= 0).all()
                    assert not np.isnan(penalty.value(A))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("s", [0.0, 0.3, 0.5, 2 / 3, 1.0])
def test_empty_matrices(s, shape):
    omega = np.full(shape[0], np.inf)
    for penalty in (ElementPenalty(2.0, s), RowPenalty(2.0, s), RowPenalty(2.0, s, omega)):
        assert penalty.prox(np.empty(shape), 1.0).shape == shape
        assert penalty.value(np.empty(shape)) == 0.0


@pytest.mark.parametrize("kind", PENALTIES)
def test_integers_are_converted_and_zeros_have_no_sign(kind):
    X = kind(1.0, 1.0).prox([[3, 0], [0, -1]], 1.0)
    assert X.dtype == np.float64
    assert X.tolist() == [[2.0, 0.0], [0.0, 0.0]]
    assert not np.signbit(X).any()


def test_undefined_elements_stay_undefined():
    A = np.array([[np.nan, 5.0], [5.0, 5.0]])
    assert np.isnan(ElementPenalty(1.0, 0.3).prox(A, 1.0)).tolist() == [[True, False], [False] * 2]
    assert np.isnan(RowPenalty(1.0, 0.3).prox(A, 1.0)).tolist() == [[True, False], [False] * 2]
    assert math.isnan(ElementPenalty(1.0, 0.3).value(A))
    assert math.isnan(RowPenalty(1.0, 0.3).value(A))


@pytest.mark.parametrize("kind", PENALTIES)
def test_penalties_are_frozen_values(kind):
    penalty = kind(np.float32(0.5), 1)
    assert isinstance(penalty.weight, float)
    with pytest.raises(FrozenInstanceError):
        penalty.weight = 1.0
    with pytest.raises(ValueError, match="weight must be"):
        kind(-1.0, 1)


def test_row_weights_cannot_change():
    omega = np.array([1.0, 2.0])
    penalty = RowPenalty(1.0, 0.5, omega)
    omega[0] = 7.0
    assert penalty.row_weights.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        penalty.row_weights[0] = 7.0


@pytest.mark.parametrize("kind", PENALTIES)
@pytest.mark.parametrize("bad", [-1.0, math.inf, math.nan, "1", None])
def test_weight_and_step_are_checked(kind, bad):
    with pytest.raises(ValueError, match=r"^weight must be a finite number >= 0, got "):
        kind(bad, 0.5)
    with pytest.raises(ValueError, match=r"^step must be a finite number >= 0, got "):
        kind(1.0, 0.5).prox(np.ones((2, 2)), bad)


@pytest.mark.parametrize("kind", PENALTIES)
def test_exponent_of_a_penalty_is_checked(kind):
    with pytest.raises(ValueError, match=r"^exponent must be a number in \[0, 1\], got 1.5"):
        kind(1.0, 1.5)


@pytest.mark.parametrize("kind", PENALTIES)
def test_step_times_weight_must_be_representable(kind):
    with pytest.raises(
        ValueError, match=r"step times weight .* got step=1e\+200 and weight=1e\+200"
    ):
        kind(1e200, 0.5).prox(np.ones((2, 2)), 1e200)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.ones((2, 2)), "row_weights must be a 1-d array, one entry per row, got 2 dimensions"),
        (np.array([1.0, -2.0]), r"row_weights must be >= 0 \(inf is allowed\), got -2.0 at row 1"),
        (np.array([np.nan]), r"row_weights must be >= 0 \(inf is allowed\), got nan at row 0"),
    ],
)
def test_row_weights_are_checked(bad, message):
    with pytest.raises(ValueError, match=message):
        RowPenalty(1.0, 0.5, bad)


def test_shapes_are_checked():
    penalty = RowPenalty(1.0, 0.5, np.ones(3))
    message = "row_weights must have one entry for each of the 2 rows of A, got 3"
    with pytest.raises(ValueError, match=message):
        penalty.prox(np.ones((2, 2)), 1.0)
    with pytest.raises(ValueError, match=message):
        penalty.value(np.ones((2, 2)))
    for call in (penalty.value, row_norms):
        with pytest.raises(ValueError, match="A must have 2 dimensions, got 1"):
            call(np.ones(3))


@pytest.mark.parametrize("s", [0.0, 0.5, 0.7, 1.0])
def test_a_group_is_a_row_of_all_its_entries(s):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((7, 3))
    groups = np.array([0, 2, 1, 0, 2, 2, 3])
    omega = np.array([1.0, 0.0, 0.5, np.inf])
    penalty = RowPenalty(0.4, s, omega, groups)
    plain = RowPenalty(0.4, s, groups=groups)
    expected, value = np.empty_like(A), 0.0
    for group, weight in enumerate(omega):
        flat = A[groups == group].reshape(1, -1)
        alone = RowPenalty(0.4, s, np.array([weight]))
        expected[groups == group] = alone.prox(flat, 2.0).reshape(-1, 3)
        value += RowPenalty(0.4, s).value(flat)
    np.testing.assert_allclose(penalty.prox(A, 2.0), expected, rtol=1e-14)
    assert plain.value(A) == pytest.approx(value, rel=1e-14)
    assert penalty.value(A) == np.inf
    np.testing.assert_array_equal(
        RowPenalty(0.4, s, groups=np.arange(7)).prox(A, 2.0), RowPenalty(0.4, s).prox(A, 2.0)
    )


@pytest.mark.parametrize("s", [0.5, 1.0])
def test_no_other_matrix_beats_the_prox_of_groups(s):
    rng = np.random.default_rng(1)
    A, groups = rng.standard_normal((6, 2)), np.array([0, 0, 1, 1, 1, 2])
    penalty = RowPenalty(0.6, s, groups=groups)
    found = penalty.prox(A, 1.0)

    def objective(X):
        return penalty.value(X) + 0.5 * np.sum((X - A) ** 2)

    starts = [found, A, *(A * rng.integers(2, size=3)[groups][:, None] for _ in range(3))]
    for X in starts:
        result = optimize.minimize(lambda x: objective(x.reshape(6, 2)), X.ravel(), tol=1e-8)
        assert objective(found) <= result.fun + 1e-9
        assert objective(found) <= objective(X)


def test_group_norms_over_the_whole_range():
    A = np.array(
        [[3e200, 0.0], [0.0, 4e200], [3e-200, 0.0], [4e-200, 0.0], [0.0, 0.0], [np.inf, 1.0]]
    )
    found = row_norms(A, np.array([0, 0, 1, 1, 2, 3]))[[0, 2, 4, 5]]
    np.testing.assert_allclose(found, [5e200, 5e-200, 0.0, np.inf], rtol=1e-14)
    with pytest.raises(ValueError, match="each of the 1 groups of rows"):
        RowPenalty(1.0, 0.5, np.ones(2), np.zeros(2, dtype=int)).value(np.ones((2, 2)))
