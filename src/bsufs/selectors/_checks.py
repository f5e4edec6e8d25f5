"""What every selector promises, as one call: a new method is one file and one line of test."""

from __future__ import annotations

from collections.abc import Callable
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

    for result in check_estimator(estimator, on_skip=None, on_fail=None):
        if result["status"] == "failed":
            raise AssertionError(
                f"{type(estimator).__name__}: {result['check_name']} of scikit-learn fails: "
                f"{result['exception']!r}"
            ) from result["exception"]
    for check in _CHECKS:
        check(_seeded(estimator))


def _seeded(estimator: Any) -> Any:
    """Return a clone that draws the same random numbers every time."""
    fresh = clone(estimator)
    if "random_state" in fresh.get_params():
        fresh.set_params(random_state=0)
    return fresh


def _wants(estimator: Any, k: Any) -> Any:
    return clone(estimator).set_params(n_features_to_select=k)


def _data(n: int = 40, d: int = 12) -> NDArray[np.float64]:
    """Return columns of different variance around three centers, all told apart."""
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((3, d)) * np.linspace(3.0, 0.3, d)
    noise = rng.standard_normal((n, d)) * np.linspace(1.0, 0.2, d)
    return np.asarray(centers[np.arange(n) % 3] + noise)


def _promise(kept: object, estimator: Any, text: str) -> None:
    if not kept:
        raise AssertionError(f"{type(estimator).__name__}: {text}")


def _check_exact_number(estimator: Any) -> None:
    for X in (_data(), _data(8, 20)):
        d = X.shape[1]
        for k, expected in ((1, 1), (2, 2), (d // 2, d // 2), (d, d), (0.25, round(0.25 * d))):
            fitted = _wants(estimator, k).fit(X)
            found = int(np.count_nonzero(fitted.get_support()))
            _promise(
                found == expected == fitted.transform(X).shape[1],
                estimator,
                f"n_features_to_select={k} of {d} must select {expected} features, got {found}.",
            )


def _check_scores_and_ranking(estimator: Any) -> None:
    for X in (_data(), _data(8, 20)):
        d = X.shape[1]
        fitted = _wants(estimator, 4).fit(X)
        scores, ranking = np.asarray(fitted.scores_), np.asarray(fitted.ranking_)
        _promise(scores.shape == (d,), estimator, f"scores_ must have shape ({d},).")
        _promise(np.isfinite(scores).all(), estimator, "scores_ must be finite for all features.")
        _promise(
            np.array_equal(np.sort(ranking), np.arange(1, d + 1)),
            estimator,
            "ranking_ must hold every place from 1 to n_features once.",
        )
        _promise(
            (np.diff(scores[np.argsort(ranking)]) <= 0).all(),
            estimator,
            "a better place in ranking_ must never have a smaller score: larger is better.",
        )
        _promise(
            np.array_equal(fitted.get_support(), ranking <= 4),
            estimator,
            "the selected features must be the first in ranking_.",
        )


def _check_column_order(estimator: Any) -> None:
    for X in (_data(), _data(8, 20)):
        shuffle = np.random.default_rng(1).permutation(X.shape[1])
        support = _wants(estimator, 5).fit(X).get_support()
        shuffled = _wants(estimator, 5).fit(X[:, shuffle]).get_support()
        _promise(
            np.array_equal(support[shuffle], shuffled),
            estimator,
            "the same columns in another order must give the same selected features.",
        )


def _check_matrices_follow_the_columns(estimator: Any) -> None:
    for X in (_data(), _data(8, 20)):
        shuffle = np.random.default_rng(2).permutation(X.shape[1])
        fitted = _wants(estimator, 5).fit(X)
        shuffled = _wants(estimator, 5).fit(X[:, shuffle])
        for name, matrix in _matrices_of_features(fitted).items():
            # Signs are free, and so is the basis of a subspace; the norms of columns are not.
            before = np.linalg.norm(matrix, axis=0)[shuffle]
            after = np.linalg.norm(getattr(shuffled, name), axis=0)
            _promise(
                np.allclose(before, after, rtol=0.0, atol=1e-6 * (before.max() or 1.0)),
                estimator,
                f"the columns of {name} must be in the order of the columns of X.",
            )


def _matrices_of_features(fitted: Any) -> dict[str, NDArray[Any]]:
    """Return the fitted matrices with one column for each feature."""
    return {
        name: value
        for name, value in vars(fitted).items()
        if name.endswith("_")
        and isinstance(value, np.ndarray)
        and value.ndim == 2
        and value.shape[1] == fitted.n_features_in_
    }


def _check_constant_columns(estimator: Any) -> None:
    X = _data()
    constant = [0, 5, 11]
    X[:, constant] = [0.0, 1e3, -0.1]
    ranking = np.asarray(_wants(estimator, 3).fit(X).ranking_)
    _promise(
        ranking[constant].min() > X.shape[1] - len(constant),
        estimator,
        f"constant columns must come last, got the places {sorted(ranking[constant].tolist())}.",
    )


def _check_data_unchanged(estimator: Any) -> None:
    for X in (_data(), np.asfortranarray(_data())):
        before = X.copy()
        _wants(estimator, 3).fit(X)
        _promise(np.array_equal(X, before), estimator, "fit must not change X.")


def _check_reproducible(estimator: Any) -> None:
    X = _data()
    first, second = (_wants(estimator, 3).fit(X).scores_ for _ in range(2))
    _promise(
        np.array_equal(first, second),
        estimator,
        "the same data and seed must give the same scores.",
    )


def _check_missing_values(estimator: Any) -> None:
    for bad, word in ((np.nan, "NaN"), (np.inf, "inf")):
        X = _data()
        X[3, 4] = bad
        try:
            _wants(estimator, 3).fit(X)
        except ValueError as error:
            _promise(
                word.lower() in str(error).lower(),
                estimator,
                f"the error for {word} in X must say {word}, got: {error}",
            )
        else:
            _promise(False, estimator, f"X with {word} must be refused with a ValueError.")


_CHECKS: tuple[Callable[[Any], None], ...] = (
    _check_exact_number,
    _check_scores_and_ranking,
    _check_column_order,
    _check_matrices_follow_the_columns,
    _check_constant_columns,
    _check_data_unchanged,
    _check_reproducible,
    _check_missing_values,
)
