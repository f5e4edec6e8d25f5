import numpy as np
import pytest
from scipy import sparse

from bsufs.selectors import MaxVariance

X = np.random.default_rng(0).standard_normal((40, 7)) * [3, 1, 2, 7, 5, 4, 6]


def test_variances_are_the_scores():
    selector = MaxVariance(3).fit(X)
    np.testing.assert_allclose(selector.scores_, X.var(axis=0))
    assert selector.selected_features_.tolist() == np.argsort(-X.var(axis=0))[:3].tolist()


def test_very_large_entries_have_finite_scores():
    assert np.isfinite(MaxVariance(3).fit(1e200 * X).scores_).all()


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
