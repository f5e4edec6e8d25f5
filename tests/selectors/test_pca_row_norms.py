import numpy as np
import pytest
from scipy import linalg, sparse

from bsufs.selectors import PCARowNorms

X = np.random.default_rng(0).standard_normal((40, 7)) * [3, 1, 2, 7, 5, 4, 6]


@pytest.mark.parametrize("rows", [40, 6])
def test_scores_are_the_row_norms_of_the_leading_eigenvectors(rows):
    Xc = X[:rows] - X[:rows].mean(axis=0)
    _, E = linalg.eigh(Xc.T @ Xc)
    selector = PCARowNorms(3, n_components=2).fit(X[:rows])
    np.testing.assert_allclose(selector.scores_, np.linalg.norm(E[:, -2:], axis=1), atol=1e-10)
    assert selector.components_.shape == (2, 7)
    assert selector.n_components_ == 2


def test_more_components_than_rank_are_refused():
    with pytest.raises(ValueError, match="n_components must be at most 3"):
        PCARowNorms(2, n_components=4).fit(X[:4])


def test_sparse_data_give_the_result_of_dense_data():
    thin = sparse.random_array(
        (30, 6), density=0.5, random_state=np.random.default_rng(0), format="csr"
    )
    selector = PCARowNorms(2, n_components=2)
    dense = selector.fit(thin.toarray()).scores_
    np.testing.assert_allclose(selector.fit(thin).scores_, dense, atol=1e-10)
