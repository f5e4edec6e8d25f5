"""Alternatives: each shows the grouping of its own components, and says how sure that is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from bsufs import ClusterAlignment, alternatives
from bsufs.selectors import MaxVariance
from bsufs.tuning import LabelFreeSearch


def two_groupings(n=128, seed=0):
    """Return four groups in columns 0 to 9, four others in 10 to 19 with less variance, noise."""
    rng = np.random.default_rng(seed)
    quarters = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    strong, weak = quarters[np.arange(n) % 4], quarters[np.arange(n) // 4 % 4]
    X = rng.standard_normal((n, 40))
    X[:, :10] += 5.0 * strong @ rng.standard_normal((2, 10))
    X[:, 10:20] += 3.0 * weak @ rng.standard_normal((2, 10))
    return X


@pytest.fixture(scope="module")
def found():
    X = two_groupings()
    selector = ClusterAlignment(8, clusters=4).fit(X)
    return X, selector, alternatives(selector, X)


def test_each_shows_another_grouping(found):
    _, _, (strong, weak, noise) = found
    assert set(strong.selected_features_) <= set(range(10))
    assert set(weak.selected_features_) <= set(range(10, 20))
    assert strong.overlap_with_others[0] == weak.overlap_with_others[0] == 0.0
    assert strong.cluster_sizes == weak.cluster_sizes == (32, 32, 32, 32)
    assert min(strong.stability, weak.stability) > 0.95 > 0.5 > noise.stability


def test_numbers_are_those_of_their_definitions(found):
    X, selector, several = found
    values = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2
    for i, one in enumerate(several):
        assert one.components == (2 * i + 1, 2 * i + 2)
        share = values[2 * i : 2 * i + 2].sum() / values.sum()
        assert one.variance_share == pytest.approx(share)
        assert sum(one.cluster_sizes) == len(X)
        alone = clone(selector).set_params(components=one.components).fit(X)
        np.testing.assert_array_equal(one.ranking_, alone.ranking_)
        mine, main = set(one.selected_features_), set(selector.selected_features_)
        assert one.overlap == pytest.approx(len(mine & main) / len(mine | main))
        others = [other for other in several if other is not one]
        for overlap, other in zip(one.overlap_with_others, others, strict=True):
            theirs = set(other.selected_features_)
            assert overlap == pytest.approx(len(mine & theirs) / len(mine | theirs))


def test_document_is_what_pages_and_files_show(found):
    _, _, several = found
    names = [f"column {i}" for i in range(40)]
    document = several[1].document(names)
    assert document["title"] == "components 3 and 4"
    assert document["features"] == [names[i] for i in several[1].selected_features_]
    assert document["overlap"] == {
        "selection": several[1].overlap,
        "others": list(several[1].overlap_with_others),
    }


@settings(max_examples=3, deadline=None)
@given(st.integers(0, 2**31 - 1), st.sampled_from([2.0**-20, 2.0**30]))
def test_order_and_unit_of_the_columns_do_not_matter(seed, unit):
    X = two_groupings(60)
    order = np.random.default_rng(seed).permutation(40)
    for one, other in zip(alternatives(X, n=2), alternatives(unit * X[:, order], n=2), strict=True):
        np.testing.assert_array_equal(one.ranking_[order], other.ranking_)
        assert one.cluster_sizes == other.cluster_sizes
        assert one.stability == pytest.approx(other.stability)


def test_data_alone_are_compared_with_the_default():
    X = two_groupings(60)
    default = ClusterAlignment().fit(X)
    for one, other in zip(alternatives(X), alternatives(default, X), strict=True):
        np.testing.assert_array_equal(one.ranking_, other.ranking_)
        assert one.overlap == other.overlap


def test_any_selector_and_sparse_data_and_names():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X = two_groupings(60)
    several = alternatives(MaxVariance(5).fit(X), sparse.csr_array(X), n=2)
    assert [len(one.selected_features_) for one in several] == [5, 5]
    table = pd.DataFrame(X, columns=[f"c{i}" for i in range(40)])
    selector = ClusterAlignment(6, must_keep=["c39"], never_keep=["c0"], random_state=None)
    for one in alternatives(selector.fit(table), table):
        assert "c39" in one.selected_features_
        assert "c0" not in one.selected_features_
    search = LabelFreeSearch(ClusterAlignment(6), param_grid={"n_neighbors": [2, 4]}).fit(X)
    assert len(alternatives(search, X, n=1)) == 1


def test_few_components_make_few_alternatives():
    X = np.random.default_rng(0).standard_normal((60, 3))
    assert [one.title for one in alternatives(X, n=5)] == ["components 1 and 2", "component 3"]
    assert [one.components for one in alternatives(X[:5])] == [(1,)]
    # Only one row differs: parts without it do not vary at all.
    lonely = np.zeros((30, 2))
    lonely[0] = 1.0
    (one,) = alternatives(lonely)
    assert 0.0 <= one.stability <= 1.0


@pytest.mark.parametrize("n", [0, -1, 1.5, "three"])
def test_a_number_that_makes_no_sense_is_refused(n):
    with pytest.raises(ValueError, match="n must be a whole number from 1"):
        alternatives(two_groupings(), n=n)


def test_other_data_are_refused():
    X = two_groupings(60)
    selector = ClusterAlignment(3).fit(X)
    with pytest.raises(ValueError, match=r"Call alternatives\(selector, X\)"):
        alternatives(selector)
    with pytest.raises(ValueError, match="X must have the 40 features"):
        alternatives(selector, X[:, :30])
    array = pytest.importorskip("dask.array", reason="needs the extra dask")
    with pytest.raises(ValueError, match="random sample of its rows"):
        alternatives(array.from_array(X))
