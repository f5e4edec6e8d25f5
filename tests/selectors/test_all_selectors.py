import numpy as np
import pytest

from bsufs.selectors import ScoringSelector, all_selectors, check_selector


@pytest.mark.parametrize("name", all_selectors())
def test_every_selector_keeps_its_promises(name):
    check_selector(all_selectors()[name]())


class Smallest(ScoringSelector):
    """A selector of one's own, with nothing but what the base class asks for."""

    def __init__(self, n_features_to_select="auto"):
        self.n_features_to_select = n_features_to_select

    def _score(self, data):
        return -np.abs(data.ordered).max(axis=0)


def test_a_selector_of_ones_own_keeps_them_too():
    check_selector(Smallest())
    assert Smallest(1).fit([[1.0, 5.0], [2.0, 6.0]]).selected_features_.tolist() == [0]
    with pytest.raises(ValueError, match="n_features_to_select"):
        Smallest("many").fit([[1.0, 5.0], [2.0, 6.0]])
