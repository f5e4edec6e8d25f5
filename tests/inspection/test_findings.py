"""What is found out about a selection: against closed forms, and each thing once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from bsufs import BSUFS
from bsufs.inspection import Findings, explain, make_report, plot_explained_variance
from bsufs.inspection import findings as module
from bsufs.inspection.findings import around_the_cut, check_image_shape
from bsufs.scatter import make_scatter
from bsufs.selectors import ColumnSubset, MaxVariance
from bsufs.selectors._data import FitData


def _factors(n=60, d=12, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) @ rng.normal(size=(3, d)) + 0.3 * rng.normal(size=(n, d))


def test_names_come_from_the_caller_the_frame_or_the_number():
    X = _factors(d=3)
    selector = MaxVariance(1).fit(X)
    assert Findings(selector).names.tolist() == ["x0", "x1", "x2"]
    assert Findings(selector, feature_names=[1, "b", "c"]).names.tolist() == ["1", "b", "c"]
    framed = MaxVariance(1).fit(pd.DataFrame(X, columns=["p", "q", "r"]))
    assert Findings(framed).names.tolist() == ["p", "q", "r"]


def test_correlations_among_the_selected():
    X = np.column_stack([_factors(d=5), np.ones(60)])
    selector = MaxVariance(6).fit(X)
    found = Findings(selector, X).correlations
    best_first = np.argsort(selector.ranking_)[:5]
    assert found[:5, :5] == pytest.approx(np.corrcoef(X[:, best_first].T))
    assert found[5].tolist() == [0, 0, 0, 0, 0, 1]


def test_no_set_of_columns_exceeds_the_principal_components():
    X = _factors()
    selector = ColumnSubset(12).fit(X)
    found = Findings(selector, X)
    Xc = X - X.mean(0)
    values = np.linalg.svd(Xc, compute_uv=False) ** 2
    assert found.bound == pytest.approx(np.cumsum(values) / values.sum())
    assert (found.explained <= found.bound + 1e-9).all()
    first = Xc[:, np.argmin(selector.ranking_)]
    alone = np.sum((Xc.T @ first) ** 2) / (first @ first) / values.sum()
    assert found.explained[0] == pytest.approx(alone)
    assert found.explained[-1] == pytest.approx(1.0)


def test_the_bound_where_the_rank_or_the_price_ends_it(monkeypatch):
    X = _factors(n=5)
    assert Findings(MaxVariance(8).fit(X), X).bound[-1] == 1.0
    constant = np.ones((4, 3))
    found = Findings(MaxVariance(2).fit(constant), constant)
    assert found.explained.tolist() == found.bound.tolist() == [1.0, 1.0]
    monkeypatch.setattr(module, "_SHORT_SIDE", 3)
    monkeypatch.setattr(module, "_CHEAP_COMPONENTS", 2)
    X = _factors()
    bound = Findings(MaxVariance(4).fit(X), X).bound
    assert np.isnan(bound).tolist() == [False, False, True, True]


@pytest.mark.parametrize(
    ("most", "first", "last"), [(6, 3, 8), (30, 1, 16), (99, 1, 20), (1, 7, 7)]
)
def test_ranks_around_the_cut(most, first, last):
    shown = range(1, 21)[around_the_cut(6, 20, most)]
    assert (shown[0], shown[-1]) == (first, last)
    assert len(shown) <= most


def test_an_image_must_hold_every_feature():
    assert check_image_shape((3, 4), 12) == (3, 4)
    with pytest.raises(ValueError, match=r"rows \* columns = 12.*got \(3, 5\)"):
        check_image_shape((3, 5), 12)


@pytest.mark.parametrize("method", [BSUFS, MaxVariance])
def test_the_scatter_is_built_at_most_once_and_never_where_it_exists(method, monkeypatch):
    calls = []

    def counted(*arguments):
        calls.append(arguments)
        return make_scatter(*arguments)

    monkeypatch.setattr("bsufs.selectors._data.make_scatter", counted)
    X = _factors()
    selector = method(4).fit(X)
    for show, most in ((explain, 0), (make_report, 1)):
        calls.clear()
        show(selector, X, n_subsamples=0)
        assert len(calls) == most
    data = FitData(X)
    selector = method(4).fit(data)
    assert data.scatter is not None
    calls.clear()
    pd.testing.assert_frame_equal(
        explain(selector, data, n_subsamples=0), explain(selector, X, n_subsamples=0)
    )
    make_report(selector, data, n_subsamples=0)
    plot_explained_variance(selector, data)
    assert not calls
    with pytest.raises(ValueError, match="12 features that the selector was fitted to, got 3"):
        explain(selector, FitData(X[:, :3]))


def test_a_report_refits_once_for_each_part_and_asks_for_one_curve(monkeypatch):
    calls = {"fit": 0, "explained_curve": 0}

    def count(kind, name):
        counted = getattr(kind, name)

        def wrapped(*arguments):
            calls[name] += 1
            return counted(*arguments)

        monkeypatch.setattr(kind, name, wrapped)

    X = _factors()
    selector = MaxVariance(4).fit(X)
    count(MaxVariance, "fit")
    count(type(FitData(X).scatter), "explained_curve")
    make_report(selector, X, n_subsamples=3)
    assert calls == {"fit": 3, "explained_curve": 1}


def test_shares_of_sparse_columns_are_exact_far_from_zero():
    X = _factors() + 1e9
    expected = X.var(axis=0) / X.var(axis=0).sum()
    found = Findings(MaxVariance(4).fit(X), sparse.csr_array(X))
    assert found.variance_share == pytest.approx(expected, rel=1e-6)
