import numpy as np
import pytest
from sklearn.base import clone

from bsufs import BSUFS, ClusterAlignment, NeighborAlignment
from bsufs.selectors import ScoringSelector, all_selectors, check_selector
from bsufs.selectors._docs import fill_docstring

# These need a direction in which the data vary.
REFUSING = ("BSUFS", "ClusterAlignment", "FENPCAFS", "FSPCA", "NLGMS")
REFUSING += ("NeighborAlignment", "PCARowNorms", "SPCAFS")


@pytest.mark.parametrize("name", all_selectors())
def test_every_selector_keeps_its_promises(name):
    check_selector(all_selectors()[name]())


@pytest.mark.parametrize("name", all_selectors())
def test_every_docstring_has_its_shared_texts(name):
    text = all_selectors()[name].__doc__
    assert "%(" not in text
    assert "    n_features_to_select : int, float or" in text
    assert "    selected_features_ : array of shape (n_features_to_select,)" in text


def test_shared_texts_leave_formulas_and_percent_signs_alone():
    class Documented:
        r"""Of 5 % and :math:`x_{ij} %(n)s`.

        %(random_state)s
        """

    fill_docstring(Documented)
    first, _, name, meaning, _ = Documented.__doc__.splitlines()
    assert first == r"Of 5 % and :math:`x_{ij} %(n)s`."
    assert name.strip().startswith("random_state : int")
    assert meaning.startswith(name[: -len(name.lstrip())] + "    Seed")
    Documented.__doc__ = None
    assert fill_docstring(Documented).__doc__ is None


@pytest.mark.parametrize("shape", [(6, 3), (200, 150), (20, 300)])
@pytest.mark.parametrize("name", all_selectors())
def test_a_constant_table_is_ranked_or_refused_in_words(name, shape):
    X = np.ones(shape)
    if name in REFUSING:
        with pytest.raises(ValueError, match="X must have at least one column that varies"):
            all_selectors()[name](2).fit(X)
    else:
        assert np.isfinite(all_selectors()[name](2).fit(X).scores_).all()


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


@pytest.mark.parametrize("name", ["BSUFS", "ClusterAlignment", "ColumnSubset", "NeighborAlignment"])
def test_scores_fall_with_the_rank_also_of_duplicates_and_constants(name):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3)) @ rng.standard_normal((3, 8)) + rng.standard_normal((80, 8))
    X = np.column_stack([X, X[:, 0], np.full(80, 7.0), -2 * X[:, 1], np.zeros(80)])
    selector = all_selectors()[name](4).fit(X)
    assert np.all(np.diff(selector.scores_[np.argsort(selector.ranking_)]) <= 0)


@pytest.mark.parametrize("selector", [BSUFS(3), ClusterAlignment(3), NeighborAlignment(3)])
@pytest.mark.parametrize("n_rows", [7, 31, 200])
def test_the_same_copy_of_a_column_is_kept_in_batches(selector, n_rows):
    X = np.random.default_rng(0).standard_normal((1500, 14))
    X[:, [9, 13]] = X[:, [0]]
    X[:, 11] = X[:, 3]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = selector.fit(X).selected_features_
    batches = (X[start : start + n_rows] for start in range(0, len(X), n_rows))
    np.testing.assert_array_equal(clone(selector).fit_batches(batches).selected_features_, expected)
