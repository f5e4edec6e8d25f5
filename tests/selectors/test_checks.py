import numpy as np
import pytest

from bsufs.selectors import BSUFS, MaxVariance, check_selector


class FirstColumns(MaxVariance):
    """Breaks the promise that the order of the columns does not matter."""

    def _fit(self, data):
        scored = super()._fit(data)
        object.__setattr__(scored, "scores", -np.arange(data.X.shape[1], dtype=float))
        return scored


class Infinite(MaxVariance):
    """Breaks the promise of finite scores."""

    def _score(self, data):
        return np.full(data.X.shape[1], np.inf)


class Overwriting(MaxVariance):
    """Breaks the promise to leave X alone."""

    def fit(self, X, y=None):
        super().fit(X)
        if isinstance(X, np.ndarray) and X.shape == (40, 12):
            X[0, 0] += 1.0
        return self


class Misplaced(MaxVariance):
    """Breaks the promise that fitted matrices follow the columns."""

    def _score(self, data):
        scores = super()._score(data)
        self.coef_ = scores[None, :]
        return scores


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (FirstColumns, "FirstColumns: the same columns in another order"),
        (Misplaced, "Misplaced: the columns of coef_ must be in the order"),
        (Infinite, "Infinite: scores_ must be finite"),
        (Overwriting, "Overwriting: fit must not change X"),
    ],
)
def test_a_broken_promise_is_named(broken, message):
    with pytest.raises(AssertionError, match=message):
        check_selector(broken())


def test_a_failure_of_scikit_learn_is_named():
    class Forgetful(MaxVariance):
        def fit(self, X, y=None):
            return self

    with pytest.raises(AssertionError, match=r"Forgetful: check_.* of scikit-learn fails"):
        check_selector(Forgetful())


def test_a_share_is_below_one():
    X = np.random.default_rng(0).standard_normal((20, 4))
    # It could mean all columns or one, so it means neither.
    with pytest.raises(ValueError, match="n_features_to_select"):
        MaxVariance(n_features_to_select=1.0).fit(X)
    assert MaxVariance(n_features_to_select=0.75).fit(X).support_.sum() == 3
    # Of the variance, all is a share that means one thing.
    assert BSUFS(2, n_components=1.0).fit(X).n_components_ == 4
