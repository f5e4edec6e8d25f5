"""Ranks against Demšar's tables and worked example, and against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from bsufs_paper.reporting.ranks import compare_ranks, critical_difference

# J. Demšar, "Statistical comparisons of classifiers over multiple data sets", 2006, Table 5.
_QUANTILES = {
    0.05: (1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164),
    0.10: (1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920),
}
# The same, Table 6: ranks of four methods on fourteen datasets.
_RANKS = np.array(
    [
        *([4, 3, 2, 1], [1, 2, 3, 4], [4, 1, 2, 3], [4, 1, 3, 2], [4, 2, 3, 1]),
        *([1, 2.5, 4, 2.5], [3, 2, 4, 1], [2.5, 2.5, 4, 1], [4, 3, 2, 1], [2.5] * 4),
        *([4, 2.5, 1, 2.5], [3, 2, 4, 1], [4, 1, 2, 3], [3, 1, 4, 2]),
    ]
)
_METHODS = ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"]


@pytest.mark.parametrize("alpha", [0.05, 0.10])
@pytest.mark.parametrize("n_methods", range(2, 11))
def test_quantiles_are_those_tabulated(alpha, n_methods):
    n_datasets = 14
    unit = math.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets))
    quantile = critical_difference(n_methods, n_datasets, alpha) / unit
    assert quantile == pytest.approx(_QUANTILES[alpha][n_methods - 2], abs=1.1e-3)


def test_worked_example():
    found = compare_ranks(pd.DataFrame(-_RANKS, columns=_METHODS))
    expected = {"C4.5+m+cf": 1.964, "C4.5+m": 2.000, "C4.5+cf": 2.893, "C4.5": 3.143}
    assert found.ranks.to_dict() == pytest.approx(expected, abs=1e-3)
    assert list(found.ranks.index) == list(expected)
    assert found.critical_difference == pytest.approx(1.25, abs=0.01)
    assert found.groups == (tuple(expected),)
    at_tenth = compare_ranks(pd.DataFrame(-_RANKS, columns=_METHODS), alpha=0.10)
    assert at_tenth.critical_difference == pytest.approx(1.12, abs=0.01)
    assert at_tenth.groups == (("C4.5+m+cf", "C4.5+m", "C4.5+cf"), ("C4.5+cf", "C4.5"))


def test_friedman_is_the_closed_form_without_ties():
    random = np.random.default_rng(0)
    scores = pd.DataFrame(random.normal(size=(9, 5)), columns=list("abcde"))
    found = compare_ranks(scores)
    n, k = scores.shape
    closed = 12 * n / (k * (k + 1)) * ((found.ranks**2).sum() - k * (k + 1) ** 2 / 4)
    assert found.statistic == pytest.approx(closed)
    assert 0 < found.p_value < 1
    assert found.ranks.sum() == pytest.approx(k * (k + 1) / 2)


def test_only_datasets_where_all_methods_have_a_score_count():
    scores = pd.DataFrame(
        {"a": [3.0, 3.0, 3.0], "b": [2.0, np.nan, 2.0], "c": [1.0, 9.0, 1.0]}, index=["x", "y", "z"]
    )
    found = compare_ranks(scores)
    assert found.datasets == ("x", "z")
    assert found.ranks.to_dict() == {"a": 1.0, "b": 2.0, "c": 3.0}


def test_too_little_to_rank_is_none():
    assert compare_ranks(pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, 1.0]})) is None
    assert compare_ranks(pd.DataFrame({"a": [1.0], "b": [2.0], "c": [3.0]})) is None
    assert compare_ranks(pd.DataFrame()) is None


def test_ties_everywhere_have_no_statistic_and_one_group():
    found = compare_ranks(pd.DataFrame(np.ones((3, 3)), columns=list("abc")))
    assert math.isnan(found.statistic)
    assert found.groups == (("a", "b", "c"),)
