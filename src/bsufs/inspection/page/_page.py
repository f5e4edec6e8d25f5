"""From a fitted selector to the page."""

from __future__ import annotations

import inspect
import os
import platform
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

import bsufs.selectors
from bsufs._atomic import atomic_write
from bsufs._names import shortened
from bsufs.inspection._docs import fill_docstring
from bsufs.inspection.alternative import Alternative
from bsufs.inspection.explanation import why
from bsufs.inspection.findings import Findings, Reason, check_image_shape
from bsufs.inspection.page._pictures import MOST_BARS, MOST_CELLS, overlap_map, pictures
from bsufs.inspection.page._templates import rendered
from bsufs.metrics.label_free import column_numbers
from bsufs.tuning.criteria import CRITERIA

# Variances that differ by this share are those of columns that were standardized.
_ALIKE = 1e-6
_MOST_CANDIDATES = 100
_MEANINGS = {
    "reconstruction": "how much of rows not seen the features explain",
    "permutation_gap": "how much more they explain than where nothing is related",
    "clustering_agreement": "how far k-means finds the clusters that it finds on all features",
    "restart_agreement": "how far restarts of k-means find the same clusters",
    "redundancy": "how far the features repeat one another",
    "stability": "how far the method selects the same on other rows",
    "rank_mean": "the mean of the ranks by the others, from 0 to 1",
}


@dataclass(frozen=True)
class Comparison:
    """Other methods: their numbers, what they select, and what a reader should know.

    Parameters
    ----------
    table : pandas.DataFrame
        One row per method, its name first; shown as it is.
    selections : mapping of str to array of int or bool, default={}
        The columns that each method selects, as numbers or as a mask. From these the page draws
        how far the methods agree, and says of each feature how many others choose it.
    notes : sequence of str, default=()
        Paragraphs below the table, such as what its columns mean.
    baselines : collection of str, default=()
        Methods of the table that are there to be beaten, such as random columns; they are marked.

    Examples
    --------
    >>> import pandas as pd
    >>> from bsufs.inspection import Comparison
    >>> table = pd.DataFrame({"method": ["MaxVariance"], "seconds": [0.001]})
    >>> Comparison(table, {"MaxVariance": [0, 2]}).selections
    {'MaxVariance': [0, 2]}
    """

    table: pd.DataFrame
    selections: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    baselines: Collection[str] = ()


@fill_docstring
def make_report(
    selector: Any,
    X: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
    feature_names: Sequence[str] | None = None,
    n_subsamples: int = 20,
    subsample: float = 0.5,
    random_state: int = 0,
    n_jobs: int | None = None,
    image_shape: tuple[int, int] | None = None,
    comparison: pd.DataFrame | Comparison | None = None,
    alternatives: Sequence[Alternative] = (),
    about: Mapping[str, Any] | None = None,
    command: str | None = None,
    preparation: str | None = None,
    max_rows: int = 1000,
) -> str | Path:
    """Make one HTML page on a selection that needs no other file and no network.

    It says what was asked, shows the data in numbers, the chosen features with reasons (a table to
    sort and to search), the path, redundancy, stability and explained variance, and how to repeat
    it all; of a search, how the settings were chosen; and other methods, where they were run.

    Parameters
    ----------
    %(selector)s
    %(X)s
    path : path-like, optional
        File to write, whole or not at all; an existing one is replaced. None returns the page.
    title : str, optional
        Heading of the page.
    %(feature_names)s
    %(subsamples)s
    image_shape : tuple of int, optional
        Rows and columns, where the features are the pixels of an image row by row.
    comparison : pandas.DataFrame or Comparison, optional
        Other methods beside this one, one row each; shown as it is. A `Comparison` also holds what
        they select, and the page shows how far they agree.
    alternatives : sequence of Alternative, default=()
        Other selections from the same data, as `alternatives` returns them, to be put side by side.
    about : mapping, optional
        More lines on the data, such as where they came from.
    command : str, optional
        The command that repeats it; lines of Python by default.
    preparation : str, optional
        Lines of Python that turn the numbers of the table into X, where they are not X itself.
    max_rows : int, default=1000
        Most rows in the table of features. Where there are more features, the table shows the
        selected ones and those next in rank, and says so.

    Returns
    -------
    str or pathlib.Path
        The page, or the path it was written to.

    Notes
    -----
    Names are data: they are shown and never run, and a content security policy forbids every
    script but the page's own and every request. The same selection gives the same bytes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bsufs import BSUFS, make_report
    >>> X = load_iris(as_frame=True).data
    >>> page = make_report(BSUFS(2).fit(X), X, n_subsamples=4)
    >>> page.startswith("<!DOCTYPE html>")
    True
    """
    if max_rows < 1:
        raise ValueError(f"max_rows must be 1 or more, got {max_rows}.")
    found = Findings(selector, X, feature_names, n_subsamples, subsample, random_state, n_jobs)
    if image_shape is not None:
        image_shape = check_image_shape(image_shape, found.n_features)
    columns = found.best_first[:max_rows].tolist()
    if isinstance(comparison, pd.DataFrame):
        comparison = Comparison(comparison)
    others, d = {}, found.n_features
    selections = {} if comparison is None else comparison.selections
    for name, chosen in selections.items():
        if name != found.method:
            numbers = column_numbers(chosen, d, f"comparison.selections[{name!r}]")
            others[name] = np.isin(range(d), numbers)
    spread = np.sqrt(found.variance_share[found.variance_share > 0])
    is_public = hasattr(bsufs.selectors, found.method)
    page = rendered(
        found=found,
        title=title or f"{found.method} kept {found.n_selected} of {found.n_features} features",
        redundancy=np.abs(found.correlations[np.triu_indices(found.n_selected, 1)]),
        spread=spread.max() / np.median(spread) if spread.size else 1.0,
        n_wavering=np.sum(found.stability.frequency[found.chosen] < 0.5),
        settings=_changed_parameters(found.selector),
        data={**_data_in_numbers(found), **(about or {})},
        tuning=_tuning(found.search),
        pictures=pictures(found, image_shape),
        n_bars=MOST_BARS,
        n_cells=MOST_CELLS,
        why=why,
        columns=columns,
        n_others=len(others),
        others={c: [name for name, mask in others.items() if mask[c]] for c in columns},
        comparison=comparison,
        alternatives=[one.document(found.names.tolist()) for one in alternatives],
        overlap=overlap_map({found.method: found.selector.support_, **others}) if others else None,
        command=command,
        preparation=preparation,
        module="bsufs.selectors" if is_public else type(found.selector).__module__,
        versions={
            "bsufs": bsufs.__version__,
            "Python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
        },
    )
    if path is None:
        return page
    with atomic_write(path) as stream:
        stream.write(page.encode("utf-8"))
    return Path(path)


def _changed_parameters(selector: Any) -> dict[str, str]:
    """Return the parameters that differ from their defaults, as Python writes them."""
    signature = inspect.signature(type(selector).__init__).parameters
    defaults = {name: repr(parameter.default) for name, parameter in signature.items()}
    words = {name: repr(value) for name, value in selector.get_params(deep=False).items()}
    return {name: value for name, value in words.items() if value != defaults.get(name)}


def _data_in_numbers(found: Findings) -> dict[str, str]:
    """Return what is known of the data."""
    X, share = found.data.X, found.variance_share
    lines = {
        "Rows": f"{X.shape[0]}",
        "Features": f"{found.n_features}",
        "Constant columns": f"{np.sum(share <= 0)}",
        "Duplicates of a kept feature": f"{np.sum(found.reasons == Reason.DUPLICATE)}",
    }
    if sparse.issparse(X):
        lines["Stored as"] = f"sparse, {X.nnz / (X.shape[0] * X.shape[1]):.2%} of the entries"
    varying = share[share > 0]
    if varying.size > 1 and np.ptp(varying) <= _ALIKE * varying.max():
        lines["Variance"] = "the same in all columns that vary"
    elif varying.size:
        # Of equal ones the better ranked.
        largest = found.best_first[share[found.best_first].argmax()]
        name = shortened(found.names[largest], 60)
        lines["Largest variance"] = f"{name}, {share.max():.2%} of the total"
    return lines


def _tuning(search: Any) -> dict[str, Any] | None:
    """Return how a search came to its settings."""
    if getattr(search, "criteria_", None) is None:
        return None
    candidates = pd.DataFrame(search.criteria_).sort_values("rank", kind="stable")
    candidates.insert(0, "rank", candidates.pop("rank"))
    decisive = getattr(search.criterion, "name", search.criterion)
    headings = {name: _candidate_heading(name, decisive) for name in candidates}
    return {
        "n_tried": len(candidates),
        "decisive": decisive.replace("_", " ").capitalize(),
        "chosen": ", ".join(f"{name}={value!r}" for name, value in search.best_params_.items()),
        "table": candidates.head(_MOST_CANDIDATES).rename(columns=headings),
        "meanings": {name: _MEANINGS[name] for name in candidates if name in _MEANINGS},
    }


def _candidate_heading(name: str, decisive: str) -> str:
    if name == "n_features":
        return "features"
    if name not in CRITERIA:
        return name.removeprefix("param_")
    larger = getattr(CRITERIA[name], "larger_is_better", True)
    role = "decides, " if name == decisive else ""
    return f"{name.replace('_', ' ')} ({role}{'larger' if larger else 'smaller'} is better)"
