import numpy as np
import pytest
from scipy import sparse

from bsufs.selectors import MaxVariance

X = np.random.default_rng(0).standard_normal((40, 7)) * [3, 1, 2, 7, 5, 4, 6]


def test_variances_are_the_scores():
    selector = MaxVariance(3).fit(X)
    np.testing.assert_allclose(selector.scores_, X.var(axis=0))
    assert selector.selected_features_.tolist() == np.argsort(-X.var(axis=0))[:3].tolist()


def test_columns_whose_variances_overflow_tie_at_the_top():
    mixed = X * [1e200, 1, 1, 1, 1, 1, 1e180]
    selector = MaxVariance(3).fit(mixed)
    largest = np.finfo(np.float64).max
    np.testing.assert_array_equal(selector.scores_[[0, 6]], largest)
    np.testing.assert_allclose(selector.scores_[1:6], X.var(axis=0)[1:6])
    assert set(selector.selected_features_) == {0, 3, 6}


def test_sparse_data_and_frames():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    thin = sparse.random_array(
        (30, 6), density=0.5, random_state=np.random.default_rng(0), format="csr"
    )
    dense = MaxVariance(2).fit(thin.toarray())
    np.testing.assert_allclose(MaxVariance(2).fit(thin).scores_, dense.scores_)
    frame = pd.DataFrame(thin.toarray(), columns=list("abcdef"))
    names = MaxVariance(2).fit(frame).selected_features_
    assert names.tolist() == ["abcdef"[i] for i in dense.selected_features_]
