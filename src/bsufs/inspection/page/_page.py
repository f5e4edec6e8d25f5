"""From a fitted selector to the page."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bsufs._atomic import atomic_write
from bsufs._names import shortened
from bsufs.inspection.page import _contents as contents
from bsufs.inspection.page._comparison import Comparison, selection_masks
from bsufs.inspection.page._figures import figures
from bsufs.inspection.page._findings import Findings, find
from bsufs.inspection.page._tables import (
    LONGEST_NAME,
    comparison_table,
    feature_rows,
    tuning_table,
)

_LONGEST_COMMAND = 4000
# A longer table would fill dozens of sheets with features that were left out.
_MOST_PRINTED = 150


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
    selector : selector
        A fitted selector of the library; of a search, the selector that it found best is shown.
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
        The data it was fitted to.
    path : path-like, optional
        File to write, whole or not at all; one that is there is replaced. None returns the page.
    title : str, optional
        Heading of the page.
    feature_names : sequence of str, optional
        Names of the columns, where X has none.
    n_subsamples, subsample, random_state, n_jobs : int, float, int, int
        How stability is measured, see `explain`; 0 subsamples to skip it.
    image_shape : tuple of int, optional
        Rows and columns, where the features are the pixels of an image row by row.
    comparison : pandas.DataFrame or Comparison, optional
        Other methods beside this one, a row each; shown as it is. A `Comparison` also holds what
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
    >>> from bsufs import BSUFS
    >>> from bsufs.inspection.page import make_report
    >>> X = load_iris(as_frame=True).data
    >>> page = make_report(BSUFS(2).fit(X), X, n_subsamples=4)
    >>> page.startswith("<!DOCTYPE html>")
    True
    """
    if max_rows < 1:
        raise ValueError(f"max_rows must be 1 or more, got {max_rows}.")
    findings = find(
        selector,
        X,
        n_subsamples=n_subsamples,
        subsample=subsample,
        random_state=random_state,
        n_jobs=n_jobs,
        feature_names=feature_names,
    )
    if isinstance(comparison, pd.DataFrame):
        comparison = Comparison(comparison)
    heading = f"{findings.method} kept {findings.n_selected} of {findings.n_features} features"
    page = _rendered(
        title=shortened(title or heading, LONGEST_NAME),
        **_on_the_selection(findings, about),
        **_on_features(findings, comparison, max_rows),
        figures=figures(findings, image_shape),
        n_subsamples=n_subsamples,
        n_part=f"{subsample:.0%}",
        command=shortened(command or "", _LONGEST_COMMAND),
        preparation=preparation or "",
        seed=random_state,
    )
    if path is None:
        return page
    with atomic_write(path) as stream:
        stream.write(page.encode("utf-8"))
    return Path(path)


def _on_the_selection(findings: Findings, about: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what the page says of the selection as a whole, and how to repeat it."""
    explanation = findings.explanation
    in_column_order = explanation["name"].sort_index().tolist()
    return {
        "tiles": contents.tiles(explanation, findings.curve, findings.correlations),
        "notes": contents.notes(explanation),
        "asked": contents.asked(findings.selector, findings.search, in_column_order),
        "tuning": tuning_table(contents.tuning(findings.search)),
        "data": contents.data_in_numbers(findings.X, explanation) | contents.in_words(about),
        "not_measured": findings.not_measured,
        "n_features": findings.n_features,
        "n_selected": findings.n_selected,
        "python": contents.python_lines(findings.selector),
        "versions": contents.versions(),
    }


def _on_features(
    findings: Findings, comparison: Comparison | None, max_rows: int
) -> dict[str, Any]:
    """Return the table of features, and what other methods make of them."""
    explanation, own = findings.explanation, findings.method
    masks = {}
    if comparison is not None:
        masks = selection_masks(comparison, own, findings.selector.support_)
    rows = explanation.head(max_rows)
    return {
        "rows": feature_rows(rows, {name: mask for name, mask in masks.items() if name != own}),
        "many": len(rows) > _MOST_PRINTED,
        "has_others": bool(masks),
        "has_path": bool(explanation["died_at"].notna().any()),
        "has_frequency": not findings.not_measured,
        "comparison": None if comparison is None else comparison_table(comparison, masks),
    }


def _rendered(**parts: Any) -> str:
    """Return the page, with its own style and script and nothing from anywhere else."""
    style, script = _asset("selection.css"), _asset("selection.js")
    template = _environment().get_template("selection.html.j2")
    # Style and script are files of this package, not data.
    page = template.render(
        policy=_policy(style, script), style=Markup(style), script=Markup(script), **parts
    )
    return str(page)


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("bsufs.inspection.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _asset(name: str) -> str:
    return (files("bsufs.inspection.page") / "templates" / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Return the content security policy: this style, this script, and nothing from anywhere."""
    hashes = [
        base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
        for text in (style, script)
    ]
    return (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
