"""What every selector promises, as one call: a new method is one file and one line of test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone


def check_selector(estimator: Any) -> None:
    """Check that an estimator keeps the promises of a selector.

    Runs scikit-learn's own checks, then: exactly k features come out for several k; scores,
    ranking and support agree, larger is better; the order of the columns does not matter, and
    fitted matrices with a column for each feature follow it; constant columns come last; X is not
    changed; the same seed gives the same answer; all scores are finite; missing values are refused
    with a message that says so.

    Parameters
    ----------
    estimator : selector
        An instance; it is cloned, not fitted.

    Raises
    ------
    AssertionError
        If a promise is broken, with what was promised and what was found.

    Examples
    --------
    >>> from bsufs.selectors import MaxVariance, check_selector
    >>> check_selector(MaxVariance())
    """
    # Only those who check need it, and it takes as long to import as a small fit.
    from sklearn.utils.estimator_checks import check_estimator

    name = type(estimator).__name__
    for result in check_estimator(estimator, on_skip=None, on_fail=None):
        if result["status"] == "failed":
            raise AssertionError(
                f"{name}: {result['check_name']} of scikit-learn fails: {result['exception']!r}"
            ) from result["exception"]
    # With a seed it draws the same random numbers every time.
    seeded = clone(estimator)
    if "random_state" in seeded.get_params():
        seeded.set_params(random_state=0)

    def fitted(X: NDArray[Any], k: float) -> Any:
        return clone(seeded).set_params(n_features_to_select=k).fit(X)

    for check in _CHECKS:
        for broken in check(fitted):
            raise AssertionError(f"{name}: {broken}")


Fit = Callable[[NDArray[Any], float], Any]


def _data(n: int = 40, d: int = 12) -> NDArray[np.float64]:
    """Return columns of different variance around three centers, all told apart."""
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((3, d)) * np.linspace(3.0, 0.3, d)
    noise = rng.standard_normal((n, d)) * np.linspace(1.0, 0.2, d)
    return np.asarray(centers[np.arange(n) % 3] + noise)


def _tall_and_wide() -> tuple[NDArray[np.float64], ...]:
    return _data(), _data(8, 20)


def _exact_number(fitted: Fit) -> Iterator[str]:
    for X in _tall_and_wide():
        d = X.shape[1]
        for k, expected in ((1, 1), (2, 2), (d // 2, d // 2), (d, d), (0.25, round(0.25 * d))):
            selector = fitted(X, k)
            found = int(np.count_nonzero(selector.get_support()))
            if not found == expected == selector.transform(X).shape[1]:
                yield (
                    f"n_features_to_select={k} of {d} must select {expected} features, got {found}."
                )


def _scores_and_ranking(fitted: Fit) -> Iterator[str]:
    for X in _tall_and_wide():
        d = X.shape[1]
        selector = fitted(X, 4)
        scores, ranking = np.asarray(selector.scores_), np.asarray(selector.ranking_)
        if scores.shape != (d,):
            yield f"scores_ must have shape ({d},)."
        if not np.isfinite(scores).all():
            yield "scores_ must be finite for all features."
        if not np.array_equal(np.sort(ranking), np.arange(1, d + 1)):
            yield "ranking_ must hold every place from 1 to n_features once."
        if (np.diff(scores[np.argsort(ranking)]) > 0).any():
            yield "a better place in ranking_ must never have a smaller score: larger is better."
        if not np.array_equal(selector.get_support(), ranking <= 4):
            yield "the selected features must be the first in ranking_."


def _column_order(fitted: Fit) -> Iterator[str]:
    for X in _tall_and_wide():
        shuffle = np.random.default_rng(1).permutation(X.shape[1])
        selector, shuffled = fitted(X, 5), fitted(X[:, shuffle], 5)
        if not np.array_equal(selector.get_support()[shuffle], shuffled.get_support()):
            yield "the same columns in another order must give the same selected features."
        for name, matrix in vars(selector).items():
            if not isinstance(matrix, np.ndarray) or matrix.shape[1:] != X.shape[1:]:
                continue
            # Signs are free, and so is the basis of a subspace; the norms of columns are not.
            before = np.linalg.norm(matrix, axis=0)[shuffle]
            after = np.linalg.norm(getattr(shuffled, name), axis=0)
            if not np.allclose(before, after, rtol=0.0, atol=1e-6 * (before.max() or 1.0)):
                yield f"the columns of {name} must be in the order of the columns of X."


def _constant_columns(fitted: Fit) -> Iterator[str]:
    X = _data()
    constant = [0, 5, 11]
    X[:, constant] = [0.0, 1e3, -0.1]
    places = sorted(np.asarray(fitted(X, 3).ranking_)[constant].tolist())
    if places != [10, 11, 12]:
        yield f"constant columns must come last, got the places {places}."


def _data_unchanged(fitted: Fit) -> Iterator[str]:
    for X in (_data(), np.asfortranarray(_data())):
        before = X.copy()
        fitted(X, 3)
        if not np.array_equal(X, before):
            yield "fit must not change X."


def _reproducible(fitted: Fit) -> Iterator[str]:
    if not np.array_equal(fitted(_data(), 3).scores_, fitted(_data(), 3).scores_):
        yield "the same data and seed must give the same scores."


def _missing_values(fitted: Fit) -> Iterator[str]:
    for bad, word in ((np.nan, "NaN"), (np.inf, "inf")):
        X = _data()
        X[3, 4] = bad
        try:
            fitted(X, 3)
        except ValueError as error:
            if word.lower() not in str(error).lower():
                yield f"the error for {word} in X must say {word}, got: {error}"
        else:
            yield f"X with {word} must be refused with a ValueError."


_CHECKS: tuple[Callable[[Fit], Iterator[str]], ...] = (
    _exact_number,
    _scores_and_ranking,
    _column_order,
    _constant_columns,
    _data_unchanged,
    _reproducible,
    _missing_values,
)
