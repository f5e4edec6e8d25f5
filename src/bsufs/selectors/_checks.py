"""What every selector promises, as one call: a new method is one file and one line of test."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from bsufs._typing import Array


def check_selector(estimator: Any) -> None:
    """Check that an estimator keeps the promises of a selector.

    Runs scikit-learn's own checks, which among others require that missing values are refused,
    then: exactly k features come out for several k; scores, ranking and support agree, larger is
    better; the order of the columns does not matter, and fitted matrices with a column for each
    feature follow it; constant columns come last; X is not changed; the same seed gives the same
    answer; all scores are finite.

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

    def fitted(X: Array, k: float) -> Any:
        return clone(seeded).set_params(n_features_to_select=k).fit(X)

    def promise(kept: Any, text: str) -> None:
        if not kept:
            raise AssertionError(f"{name}: {text}")

    for X in (_data(40, 12), _data(8, 20)):
        _check_numbers(fitted, promise, X)
        _check_scores_and_ranking(fitted, promise, X)
        _check_column_order(fitted, promise, X)
    for X in (_data(40, 12), np.asfortranarray(_data(40, 12))):
        before = X.copy()
        fitted(X, 3)
        promise(np.array_equal(X, before), "fit must not change X.")
    X = _data(40, 12)
    same = np.array_equal(fitted(X, 3).scores_, fitted(X, 3).scores_)
    promise(same, "the same data and seed must give the same scores.")
    constant = [0, 5, 11]
    X[:, constant] = [0.0, 1e3, -0.1]
    places = sorted(np.asarray(fitted(X, 3).ranking_)[constant].tolist())
    promise(places == [10, 11, 12], f"constant columns must come last, got the places {places}.")


Fit = Callable[[Array, float], Any]
Promise = Callable[[Any, str], None]


def _data(n: int, d: int) -> Array:
    """Return columns of different variance around three centers, all told apart."""
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((3, d)) * np.linspace(3.0, 0.3, d)
    noise = rng.standard_normal((n, d)) * np.linspace(1.0, 0.2, d)
    return centers[np.arange(n) % 3] + noise


def _check_numbers(fitted: Fit, promise: Promise, X: Array) -> None:
    d = X.shape[1]
    for k, expected in ((1, 1), (2, 2), (d // 2, d // 2), (d, d), (0.25, round(0.25 * d))):
        selector = fitted(X, k)
        found = int(np.count_nonzero(selector.get_support()))
        promise(
            found == expected == selector.transform(X).shape[1],
            f"n_features_to_select={k} of {d} must select {expected} features, got {found}.",
        )


def _check_scores_and_ranking(fitted: Fit, promise: Promise, X: Array) -> None:
    d = X.shape[1]
    selector = fitted(X, 4)
    scores, ranking = np.asarray(selector.scores_), np.asarray(selector.ranking_)
    promise(scores.shape == (d,), f"scores_ must have shape ({d},).")
    promise(np.isfinite(scores).all(), "scores_ must be finite for all features.")
    once = np.array_equal(np.sort(ranking), np.arange(1, d + 1))
    promise(once, "ranking_ must hold every place from 1 to n_features once.")
    better = "a better place in ranking_ must never have a smaller score: larger is better."
    promise((np.diff(scores[np.argsort(ranking)]) <= 0).all(), better)
    first = np.array_equal(selector.get_support(), ranking <= 4)
    promise(first, "the selected features must be the first in ranking_.")


def _check_column_order(fitted: Fit, promise: Promise, X: Array) -> None:
    shuffle = np.random.default_rng(1).permutation(X.shape[1])
    selector, shuffled = fitted(X, 5), fitted(X[:, shuffle], 5)
    same = np.array_equal(selector.get_support()[shuffle], shuffled.get_support())
    promise(same, "the same columns in another order must give the same selected features.")
    for name, matrix in vars(selector).items():
        if isinstance(matrix, np.ndarray) and matrix.shape[1:] == X.shape[1:]:
            # Signs are free, and so is the basis of a subspace; the norms of columns are not.
            before = np.linalg.norm(matrix, axis=0)[shuffle]
            after = np.linalg.norm(getattr(shuffled, name), axis=0)
            same = np.allclose(before, after, rtol=0.0, atol=1e-6 * (before.max() or 1.0))
            promise(same, f"the columns of {name} must be in the order of the columns of X.")
