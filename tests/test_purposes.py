import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris

import bsufs
from bsufs.purposes import PURPOSES


@pytest.mark.parametrize("purpose", PURPOSES)
def test_a_purpose_has_its_selector(purpose):
    X = load_iris(as_frame=True).data
    found = bsufs.select(X, 2, purpose=purpose, scale_columns="none")
    assert type(found) is PURPOSES[purpose]
    expected = PURPOSES[purpose](n_features_to_select=2).fit(X)
    assert found.selected_features_.tolist() == expected.selected_features_.tolist()
    assert found.transform(X).shape == (150, 2)


def test_columns_are_scaled_where_they_share_no_unit():
    X = np.random.default_rng(0).standard_normal((40, 5)) * [1.0, 1, 1, 1, 100] + 50
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = bsufs.ClusterAlignment(3).fit(standard).ranking_
    found = bsufs.select(X, 3)
    assert found.scale_columns_.startswith("standard: 'column 4' varies")
    np.testing.assert_array_equal(found.ranking_, expected)
    np.testing.assert_array_equal(found.transform(X), X[:, found.support_])
    np.testing.assert_array_equal(bsufs.select(X, 3, scale_columns="standard").ranking_, expected)
    assert bsufs.select(X[:, :4], 3).scale_columns_ == "none: the columns vary alike"
    counts = sparse.csr_array(np.maximum(X.round() - 50, 0))
    assert bsufs.select(counts, 3).scale_columns_ == "none"
    with pytest.raises(ValueError, match="scale_columns='standard' needs a dense table"):
        bsufs.select(counts, 3, scale_columns="standard")
    with pytest.raises(ValueError, match="scale_columns must be 'auto'"):
        bsufs.select(X, 3, scale_columns="both")
    with pytest.raises(ValueError, match=r"NaN|missing"):
        bsufs.select(np.where(X > 51, np.nan, X), 3)


def test_telling_groups_apart_is_the_default():
    X = np.random.default_rng(0).standard_normal((30, 4))
    assert isinstance(bsufs.select(X), bsufs.ClusterAlignment)
    assert bsufs.select(X, 2, must_keep=[3]).support_[3]


def test_a_wrong_word_is_said_with_what_would_be_right():
    X = np.random.default_rng(0).standard_normal((30, 4))
    with pytest.raises(ValueError, match="'clusters', 'reconstruction', 'neighbors', got 'groups'"):
        bsufs.select(X, 2, purpose="groups")
    with pytest.raises(TypeError, match=r"ClusterAlignment, .*Did you mean 'clusters'"):
        bsufs.select(X, 2, cluster=3)
    with pytest.raises(TypeError, match=r"selects with NeighborAlignment.* n_neighbors"):
        bsufs.select(X, 2, purpose="neighbors", clusters=3)
    with pytest.raises(TypeError, match="n_features_to_select"):
        bsufs.select(X, 2, n_features_to_select=3)
