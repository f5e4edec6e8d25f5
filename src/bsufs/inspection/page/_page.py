"""From a fitted selector to the page."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bsufs.selectors
from bsufs._atomic import atomic_write
from bsufs._names import shortened
from bsufs._typing import Mask
from bsufs.inspection._docs import fill_docstring
from bsufs.inspection.explanation import why
from bsufs.inspection.findings import Findings, check_image_shape
from bsufs.inspection.page import _contents as contents
from bsufs.inspection.page._pictures import MOST_BARS, MOST_CELLS, overlap_map, pictures
from bsufs.inspection.page._templates import rendered
from bsufs.metrics.label_free import column_numbers

_LONGEST_TITLE, _LONGEST_COMMAND = 300, 4000


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
    >>> from sklearn.datasets import load_iris
    >>> from bsufs import BSUFS
    >>> from bsufs.inspection import Comparison, make_report
    >>> from bsufs.selectors import MaxVariance
    >>> X = load_iris(as_frame=True).data
    >>> other = MaxVariance(2).fit(X)
    >>> table = pd.DataFrame({"method": ["MaxVariance"], "seconds": [0.001]})
    >>> beside = Comparison(table, {"MaxVariance": other.get_support()})
    >>> "Other methods" in make_report(BSUFS(2).fit(X), X, n_subsamples=2, comparison=beside)
    True
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
        File to write, whole or not at all; one that is there is replaced. None returns the page.
    title : str, optional
        Heading of the page.
    %(feature_names)s
    %(subsamples)s
    image_shape : tuple of int, optional
        Rows and columns, where the features are the pixels of an image row by row.
    comparison : pandas.DataFrame or Comparison, optional
        Other methods beside this one, one row each; shown as it is. A `Comparison` also holds what
        they select, and the page shows how far they agree.
    about : mapping, optional
        More lines on the data, such as where they came from.
    command : str, optional
        The command that repeats it; lines of Python by default.
    preparation : str, optional
        Lines of Python that make X of the numbers of the table, where these are not X itself.
    max_rows : int, default=1000
        Rows of the table of features at most. Where there are more features, the table shows the
        selected and those next in rank, and says so.

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
    heading = f"{found.method} kept {found.n_selected} of {found.n_features} features"
    columns = found.best_first[:max_rows].tolist()
    if isinstance(comparison, pd.DataFrame):
        comparison = Comparison(comparison)
    others = _masks({} if comparison is None else comparison.selections, found)
    spread = np.sqrt(found.variance_share[found.variance_share > 0])
    is_public = hasattr(bsufs.selectors, found.method)
    failure = str(found.stability.failure or "")
    page = rendered(
        found=found,
        title=shortened(title or heading, _LONGEST_TITLE),
        redundancy=np.abs(found.correlations[np.triu_indices(found.n_selected, 1)]),
        spread=spread.max() / np.median(spread) if spread.size else 1.0,
        n_wavering=np.sum(found.stability.frequency[found.chosen] < 0.5),
        settings=contents.changed_parameters(found.selector),
        data={**contents.data_in_numbers(found), **(about or {})},
        tuning=contents.tuning(found.search),
        pictures=pictures(found, image_shape),
        n_bars=MOST_BARS,
        n_cells=MOST_CELLS,
        not_measured=failure if n_subsamples else "It was not asked for.",
        why=why,
        columns=columns,
        n_others=len(others),
        others={c: [name for name, mask in others.items() if mask[c]] for c in columns},
        comparison=comparison,
        overlap=overlap_map({found.method: found.selector.support_, **others}) if others else None,
        command=shortened(command or "", _LONGEST_COMMAND),
        preparation=preparation or "",
        module="bsufs.selectors" if is_public else type(found.selector).__module__,
        versions=contents.versions(),
    )
    if path is None:
        return page
    with atomic_write(path) as stream:
        stream.write(page.encode("utf-8"))
    return Path(path)


def _masks(selections: Mapping[str, Any], found: Findings) -> dict[str, Mask]:
    """Return what each method but that of the page selects."""
    masks = {}
    for name, selection in selections.items():
        if name != found.method:
            masks[name] = np.zeros(found.n_features, dtype=bool)
            parameter = f"comparison.selections[{name!r}]"
            masks[name][column_numbers(selection, found.n_features, parameter)] = True
    return masks
