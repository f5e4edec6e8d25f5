"""From a fitted selector to the page."""

from __future__ import annotations

import inspect
import os
import platform
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

import bsufs.selectors
from bsufs._atomic import atomic_write
from bsufs._names import shortened
from bsufs.inspection._features import FeatureFindings
from bsufs.inspection.alternative import Alternative
from bsufs.inspection.explanation import portrait, verdict
from bsufs.inspection.findings import MOST_PORTRAITS, Findings, Reason, check_image_shape
from bsufs.inspection.page._columns import alike, columns_of, packed
from bsufs.inspection.page._pictures import overlap_map, pictures
from bsufs.inspection.page._templates import rendered
from bsufs.metrics.label_free import column_numbers
from bsufs.selectors._docs import fill_docstring
from bsufs.table_selector import TableSelector
from bsufs.tuning.criteria import CRITERIA

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
    script: str | None = None,
    notes: Sequence[str] = (),
    display: bool = False,
    progress: Callable[[str], None] = lambda detail: None,
) -> str | Path | ReportView:
    """Make one HTML page on a selection that needs no other file and no network.

    It answers a reader's questions in their order: which columns were kept (to copy or save), why
    each (what it stands for, which clusters of the rows it tells apart, what is lost without it),
    how many (a slider over the number of features), how sure that is (refits on random parts of
    the rows, and random columns beside it), and what else there is; then a table of all columns,
    and how to repeat it.

    Parameters
    ----------
    %(selector)s
    %(X)s
    path : path-like, optional
        File to write, whole or not at all; an existing one is replaced. None returns the page.
    title : str, optional
        Heading of the page; the name of the table where `about` has it as "Table".
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
    script : str, optional
        Lines of Python that repeat it; by default they fit the selector to X.
    notes : sequence of str, default=()
        Sentences that a reader should see first.
    display : bool, default=False
        Return what a notebook shows as the page itself, in place of the page or its path.
    progress : callable, optional
        Called after each refit with how far they are, such as "refit 3 of 20".

    Returns
    -------
    str, pathlib.Path or ReportView
        The page, the path it was written to, or what a notebook shows.

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
    found = Findings(
        selector, X, feature_names, n_subsamples, subsample, random_state, n_jobs, notes, progress
    )
    if image_shape is not None:
        image_shape = check_image_shape(image_shape, found.n_features)
    if isinstance(comparison, pd.DataFrame):
        comparison = Comparison(comparison)
    page = page_of(
        FeatureFindings(found),
        script or _script(selector, found.selector),
        title,
        comparison=comparison,
        alternatives=alternatives,
        about=about,
        command=command,
        image_shape=image_shape,
    )
    if path is not None:
        with atomic_write(path) as stream:
            stream.write(page.encode("utf-8"))
    if display:
        return ReportView(page)
    return page if path is None else Path(path)


def page_of(
    shown: FeatureFindings,
    script: str,
    title: str | None = None,
    *,
    comparison: Comparison | None,
    alternatives: Sequence[Alternative],
    about: Mapping[str, Any] | None,
    command: str | None,
    image_shape: tuple[int, int] | None = None,
) -> str:
    """Return the page on a selection of which findings may be known already."""
    found = shown.found
    found.in_shell = command is not None
    others = {} if comparison is None else _other_selections(shown, comparison)
    table = (about or {}).get("Table")
    return rendered(
        found=shown,
        title=title or (Path(str(table)).name if table else "Selected columns"),
        verdict=verdict(shown),
        portraits=[portrait(shown, rank) for rank in range(min(shown.n_selected, MOST_PORTRAITS))],
        settings=_changed_parameters(found.selector),
        data={**_data_in_numbers(shown), **(about or {})},
        tuning=_tuning(found.search),
        pictures=pictures(shown, image_shape),
        comparison=comparison,
        alternatives=[one.document(found.names.tolist()) for one in alternatives],
        overlap=overlap_map({found.method: shown.support, **others}) if others else None,
        columns=packed(columns_of(shown, others)),
        command=command,
        lines=script,
        versions={
            "bsufs": bsufs.__version__,
            "Python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
        },
    )


class ReportView:
    """A page in a notebook: an inline frame that holds all of it, in Jupyter, VS Code and marimo.

    The frame is sandboxed: the page runs its own script, may copy and download, and sees nothing
    of the notebook.
    """

    def __init__(self, page: str) -> None:
        self.page = page

    def __str__(self) -> str:
        return self.page

    def __repr__(self) -> str:
        return f"ReportView(<page of {len(self.page)} characters>)"

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self.page)}" sandbox="allow-scripts allow-downloads '
            'allow-modals" allow="clipboard-write" title="Report of bsufs" width="100%" '
            'height="720" style="border: 1px solid #8884; border-radius: 6px"></iframe>'
        )


def _other_selections(found: FeatureFindings, comparison: Comparison) -> dict[str, Any]:
    """Return what other methods select, as masks."""
    d, numbers = found.found.n_features, {}
    for name, chosen in comparison.selections.items():
        if name != found.method:
            numbers[name] = column_numbers(chosen, d, f"comparison.selections[{name!r}]")
    return {name: found.folded(np.isin(range(d), some)) for name, some in numbers.items()}


def _changed_parameters(selector: Any) -> dict[str, str]:
    """Return the parameters that differ from their defaults, as Python writes them."""
    signature = inspect.signature(type(selector).__init__).parameters
    defaults = {name: repr(parameter.default) for name, parameter in signature.items()}
    words = {name: repr(value) for name, value in selector.get_params(deep=False).items()}
    return {name: value for name, value in words.items() if value != defaults.get(name)}


def _script(given: Any, selector: Any) -> str:
    """Return lines of Python that fit a selector again."""
    of_table = isinstance(given, TableSelector)
    selector = given.selector if of_table else selector
    name = type(selector).__name__
    is_public = hasattr(bsufs.selectors, name)
    lines = [f"from {'bsufs.selectors' if is_public else type(selector).__module__} import {name}"]
    settings = _changed_parameters(selector).items()
    call = f"{name}({', '.join(f'{key}={shortened(value, 200)}' for key, value in settings)})"
    if of_table:
        lines.insert(0, "from bsufs import TableSelector")
        call = f"TableSelector({call})"
    return "\n".join([*lines, "", f"selector = {call}.fit(X)", "selector.transform(X)"])


def _data_in_numbers(found: FeatureFindings) -> dict[str, str]:
    """Return what is known of the data."""
    X, share = found.data.X, found.variance_share
    lines = {
        "Rows": f"{X.shape[0]:,}",
        "Columns": f"{found.n_features:,}",
        "Constant columns": f"{np.sum(share <= 0):,}",
        "Duplicates of a kept column": f"{np.sum(found.reasons == Reason.DUPLICATE):,}",
    }
    if found.found.n_features > found.n_features:
        lines["Columns"] += f"; {found.found.n_features:,} with one for each value of a category"
    if sparse.issparse(X):
        lines["Stored as"] = f"sparse, {X.nnz / (X.shape[0] * X.shape[1]):.2%} of the entries"
    varying = share[share > 0]
    if varying.size > 1 and alike(varying):
        lines["Variance"] = "the same in all columns that vary"
    elif varying.size:
        # Of equal ones the better ranked.
        name = shortened(found.names[share.argmax()], 60)
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
    better = "larger" if CRITERIA[name].larger_is_better else "smaller"
    role = "decides, " if name == decisive else ""
    return f"{name.replace('_', ' ')} ({role}{better} is better)"
