import numpy as np
import pytest
from sklearn.datasets import load_iris

import bsufs
from bsufs.purposes import PURPOSES


@pytest.mark.parametrize("purpose", PURPOSES)
def test_a_purpose_has_its_selector(purpose):
    X = load_iris(as_frame=True).data
    found = bsufs.select(X, 2, purpose=purpose)
    assert type(found) is PURPOSES[purpose]
    expected = PURPOSES[purpose](n_features_to_select=2).fit(X)
    assert found.selected_features_.tolist() == expected.selected_features_.tolist()
    assert found.transform(X).shape == (150, 2)


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
