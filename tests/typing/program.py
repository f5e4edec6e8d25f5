"""A program of a user, for the type checker alone: what the library promises about its types."""

from pathlib import Path
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

from bsufs import (
    BSUFS,
    ClusterAlignment,
    ConsensusSelector,
    LabelFreeSearch,
    SparsityPath,
    bsufs_path,
    explain,
    make_report,
)
from bsufs.metrics import clustering_accuracy, nogueira_stability, redundancy
from bsufs.selectors import MCFS, all_selectors

Numbers = NDArray[np.floating[Any]]


def select(X: Numbers) -> Numbers:
    selector = BSUFS(n_features_to_select=16, must_keep=[0], never_keep=[5], random_state=0)
    assert_type(selector.fit(X), BSUFS)
    assert_type(selector.scores_, Numbers)
    assert_type(selector.ranking_, NDArray[np.intp])
    assert_type(selector.selected_features_, NDArray[Any])
    assert_type(selector.support_, NDArray[np.bool_])
    assert_type(selector.n_features_in_, int)
    assert_type(ClusterAlignment(0.5).fit(X), ClusterAlignment)
    assert_type(MCFS("auto").fit(X), MCFS)
    return selector.scores_[selector.support_]


def tune(X: Numbers) -> LabelFreeSearch:
    consensus = ConsensusSelector(BSUFS(), n_features_to_select=5).fit(X)
    assert_type(consensus, ConsensusSelector)
    return LabelFreeSearch(BSUFS(), n_features_to_select=[5, 10]).fit(X)


def look(X: Numbers, page: Path) -> None:
    assert_type(bsufs_path(X), SparsityPath)
    selector = all_selectors()["BSUFS"](3).fit(X)
    make_report(selector, X, page)
    print(explain(selector, X, n_subsamples=0)["reason"])


def judge(X: Numbers, clusters: list[int], classes: list[str]) -> float:
    assert_type(redundancy(X), float)
    assert_type(nogueira_stability([[0], [1]], n_features=2).value, float)
    return clustering_accuracy(classes, clusters)


def wrong() -> None:
    # What is wrong is found: strict checking complains of an exemption that is not needed.
    BSUFS(n_features_to_select=[3])  # type: ignore[arg-type]  # a list is no number
    redundancy()  # type: ignore[call-arg]  # of nothing
