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

import numpy as np
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from scipy import sparse

from bsufs._atomic import whole_file
from bsufs._names import shortened
from bsufs._typing import Mask
from bsufs.explanation import (
    SubsampleError,
    around_the_cut,
    best_selected,
    check_image_shape,
    explain,
    explained_variance,
    fitted_method,
    has_path,
    selected_correlations,
)
from bsufs.selection_report import _charts as charts
from bsufs.selection_report import _contents as contents
from bsufs.selection_report._comparison import Comparison, overlaps, selection_masks

_NAME_WIDTH = 60
# A name longer than this is not shown in full anywhere: the page must stay small.
_LONGEST_NAME = 300
_LONGEST_COMMAND = 4000
_MOST_BARS = 36
# A longer table would fill dozens of sheets with features that were left out.
_MOST_PRINTED = 150
_MOST_CELLS = 80
_MOST_PIXELS = 40_000


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
        How stability is measured, see `bsufs.explanation.explain`; 0 subsamples to skip it.
    image_shape : tuple of int, optional
        Rows and columns, where the features are the pixels of an image row by row.
    comparison : pandas.DataFrame or Comparison, optional
        Other methods beside this one, a row each; shown as it is. A `Comparison` also holds what
        they select, and the page shows how far they agree.
    about : mapping, optional
        More lines on the data, such as where they came from.
    command : str, optional
        The command that repeats it; lines of Python by default.
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
    >>> from bsufs.selection_report import make_report
    >>> X = load_iris(as_frame=True).data
    >>> page = make_report(BSUFS(2).fit(X), X, n_subsamples=4)
    >>> page.startswith("<!DOCTYPE html>")
    True
    """
    if max_rows < 1:
        raise ValueError(f"max_rows must be 1 or more, got {max_rows}.")
    search, selector = selector, fitted_method(selector)
    sampling: dict[str, Any] = {
        "subsample": subsample,
        "random_state": random_state,
        "n_jobs": n_jobs,
        "feature_names": feature_names,
    }
    not_measured = "It was not asked for." if n_subsamples == 0 else ""
    try:
        explanation = explain(selector, X, n_subsamples=n_subsamples, **sampling)
    except SubsampleError as error:
        # The rest of the page is still worth having.
        explanation = explain(selector, X, n_subsamples=0, **sampling)
        not_measured = str(error)
    if isinstance(comparison, pd.DataFrame):
        comparison = Comparison(comparison)
    own = type(selector).__name__
    masks = {} if comparison is None else selection_masks(comparison, own, selector.support_)
    curve = explained_variance(selector, X)
    correlations = selected_correlations(selector, X)
    style, script = _asset("selection.css"), _asset("selection.js")
    rows = explanation.head(max_rows)
    page = _environment().get_template("selection.html.j2").render(
        title=shortened(
            title or f"{own} kept {len(curve)} of {len(explanation)} features",
            _LONGEST_NAME,
        ),
        policy=_policy(style, script),
        # Files of this package, not data.
        style=Markup(style),
        script=Markup(script),
        tiles=contents.tiles(explanation, curve, correlations),
        notes=contents.notes(explanation),
        asked=contents.asked(selector, search, explanation["name"].sort_index().tolist()),
        tuning=_tuning(contents.tuning(search)),
        data=contents.data_in_numbers(X, explanation) | contents.in_words(about),
        figures=_figures(selector, X, explanation, curve, correlations, image_shape),
        not_measured=not_measured,
        n_subsamples=n_subsamples,
        n_part=f"{subsample:.0%}",
        rows=_rows(rows, {name: mask for name, mask in masks.items() if name != own}),
        many=len(rows) > _MOST_PRINTED,
        has_others=bool(masks),
        has_path=bool(explanation["died_at"].notna().any()),
        has_frequency=not not_measured,
        n_features=len(explanation),
        n_selected=len(curve),
        comparison=None if comparison is None else _compared(comparison, masks),
        command=shortened(command or "", _LONGEST_COMMAND),
        python=contents.python_lines(selector),
        versions=contents.versions(),
        seed=random_state,
    )  # fmt: skip
    if path is None:
        return str(page)
    with whole_file(path) as stream:
        stream.write(page.encode("utf-8"))
    return Path(path)


def _figures(
    selector: Any,
    X: Any,
    explanation: pd.DataFrame,
    curve: pd.DataFrame,
    correlations: Any,
    image_shape: tuple[int, int] | None,
) -> list[dict[str, Any]]:
    """Return the pictures with their headings and captions."""
    kept = explanation[explanation["selected"]]
    k = len(kept)
    knows_clusters = bool(explanation["cluster_share"].notna().all())
    figures = []
    if curve["explained"].notna().any():
        figures.append(
            _figure(
                "Explained variance",
                "explained",
                charts.explained_chart(curve),
                "Share of the variance of all columns that linear regression on the best features "
                "explains. No set of as many columns can exceed the principal components.",
            )
        )
    if has_path(selector):
        figures.append(
            _figure(
                "The path",
                "path",
                charts.path_chart(selector.path_, k),
                "The row penalty grows from step to step and features leave; the dotted line is "
                f"at the {k} kept. "
                + (
                    "How long a feature lives counts a little in its rank."
                    if knows_clusters
                    else "They are ranked by how long they live."
                ),
            )
        )
    if knows_clusters:
        figures.append(
            _figure(
                "Clusters",
                "scores",
                charts.score_chart(explanation, "cluster_share", "share between clusters"),
                "How much of the variance of each feature lies between the clusters that all show "
                "together, beyond chance. Features that tell of them are left out where others "
                "say the same.",
            )
        )
    else:
        figures.append(
            _figure(
                "Scores",
                "scores",
                charts.score_chart(explanation),
                f"Larger is better. A step between the kept and the others speaks for {k} "
                "features; a smooth slope means that the number is a matter of taste.",
            )
        )
    if image_shape is not None:
        shape = check_image_shape(image_shape, len(explanation))
        figures.append(_pixels(selector, X, explanation, shape))
    if k > 1:
        which = "all kept features" if k <= _MOST_CELLS else f"the best {_MOST_CELLS} of {k} kept"
        figures.append(
            _figure(
                "Redundancy",
                "redundancy",
                charts.correlation_map(
                    correlations[:_MOST_CELLS, :_MOST_CELLS], kept["name"].tolist()[:_MOST_CELLS]
                ),
                f"Correlations among {which}, best first. Point at a cell to read it. Blocks of "
                "strong colour are features that say the same.",
            )
        )
    if explanation["frequency"].notna().all():
        shown = around_the_cut(explanation, _MOST_BARS)
        which = "all features" if len(shown) == len(explanation) else "features around the cut"
        figures.append(
            _figure(
                "Stability",
                "stability",
                charts.bar_chart(shown),
                f"How often {which} are chosen when the selection is repeated on random parts of "
                "the rows, with 95 % intervals.",
            )
        )
    return figures


def _pixels(
    selector: Any, X: Any, explanation: pd.DataFrame, shape: tuple[int, int]
) -> dict[str, Any]:
    chosen = best_selected(selector)
    background = np.zeros(len(explanation))
    if background.size <= _MOST_PIXELS:
        mean = (
            X.mean(axis=0) if sparse.issparse(X) else np.asarray(X, dtype=np.float64).mean(axis=0)
        )
        background = np.ravel(mean)
    names = explanation.loc[chosen, "name"].tolist()
    return _figure(
        "Pixels",
        "pixels",
        charts.pixel_map(chosen, names, background, shape),
        "The kept features where they lie in the image, over the mean image.",
    )


def _figure(heading: str, name: str, picture: Markup, caption: str) -> dict[str, Any]:
    return {"heading": heading, "name": name, "picture": picture, "caption": caption}


def _tuning(found: contents.Tuning | None) -> dict[str, Any] | None:
    if found is None:
        return None
    table = _cells(found.table)
    table["rows"][0]["kind"] = "best"
    return {"words": found.words, "table": table, "meanings": found.meanings}


def _compared(comparison: Comparison, masks: Mapping[str, Mask]) -> dict[str, Any]:
    """Return what the page shows of other methods."""
    table = _cells(comparison.table)
    for row, name in zip(table["rows"], comparison.table.iloc[:, 0], strict=True):
        if name in comparison.baselines:
            row["kind"] = "baseline"
    figure = None
    if masks:
        figure = _figure(
            "Overlap",
            "overlap",
            charts.overlap_map(overlaps(masks), list(masks)),
            "Features that two methods have in common, as a share of all features of the two "
            "(Jaccard index).",
        )
    return {"table": table, "notes": comparison.notes, "figure": figure}


def _rows(explanation: pd.DataFrame, others: Mapping[str, Mask]) -> list[dict[str, Any]]:
    """Return the rows of the table of features as the template shows them."""
    shown = []
    for column, row in zip(explanation.index.tolist(), explanation.to_dict("records"), strict=True):
        name, closest = row["name"], row["closest"]
        short = shortened(name, _NAME_WIDTH)
        shown.append(
            {
                "column": column,
                "rank": row["rank"],
                "name": short,
                "full_name": "" if short == name else shortened(name, _LONGEST_NAME),
                "kept": row["selected"],
                "reason": row["reason"].removeprefix("kept: ").removeprefix("left out: "),
                "score": f"{row['score']:.4g}",
                "died_at": "" if pd.isna(row["died_at"]) else row["died_at"],
                "frequency": "" if np.isnan(row["frequency"]) else f"{row['frequency']:.0%}",
                "interval": "\N{EN DASH}".join(
                    f"{100 * row[end]:.0f}" for end in ("frequency_low", "frequency_high")
                ),
                "share": f"{row['variance_share']:.3%}",
                "share_value": f"{row['variance_share']:.4g}",
                "closest": shortened(closest, _NAME_WIDTH) if isinstance(closest, str) else "",
                "correlation": ""
                if np.isnan(row["correlation"])
                else f"{row['correlation']:.2f}".replace("-", "\N{MINUS SIGN}"),
                "correlation_value": ""
                if np.isnan(row["correlation"])
                else f"{row['correlation']:.4f}",
                "others": [name for name, mask in others.items() if mask[column]],
                "n_others": len(others),
            }
        )
    return shown


def _cells(comparison: pd.DataFrame) -> dict[str, Any]:
    """Return a frame as text, with numbers in few digits."""
    return {
        "columns": [shortened(str(column), _NAME_WIDTH) for column in comparison.columns],
        "rows": [
            {"kind": "", "cells": [_cell(value) for value in row]}
            for row in comparison.itertuples(index=False, name=None)
        ],
    }


def _cell(value: Any) -> dict[str, Any]:
    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return {"text": "\N{EN DASH}", "number": True, "value": ""}
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return {"text": str(value), "number": True, "value": str(value)}
    if isinstance(value, float | np.floating):
        return {"text": f"{value:.4g}", "number": True, "value": repr(float(value))}
    return {"text": shortened(str(value), _NAME_WIDTH * 2), "number": False, "value": ""}


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("bsufs.selection_report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _asset(name: str) -> str:
    return (files("bsufs.selection_report") / "templates" / name).read_text(encoding="utf-8")


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
