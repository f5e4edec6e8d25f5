"""The pictures of a page, each with its heading and its caption."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from scipy import sparse

from bsufs._typing import Mask
from bsufs.inspection.explanation import around_the_cut, best_selected, check_image_shape, has_path
from bsufs.inspection.page import _charts as charts
from bsufs.inspection.page._comparison import overlaps
from bsufs.inspection.page._findings import Findings

_MOST_BARS = 36
_MOST_CELLS = 80
_MOST_PIXELS = 40_000


@dataclass(frozen=True)
class Figure:
    """A picture and what is said of it."""

    heading: str
    name: str
    picture: Markup
    caption: str


def figures(findings: Findings, image_shape: tuple[int, int] | None) -> list[Figure]:
    """Return the pictures that a selection has something to show in."""
    drawn = (
        _explained(findings),
        _path(findings),
        _scores(findings),
        _pixels(findings, image_shape),
        _redundancy(findings),
        _stability(findings),
    )
    return [figure for figure in drawn if figure is not None]


def overlap_figure(masks: Mapping[str, Mask]) -> Figure | None:
    """Return the picture of how far methods agree."""
    if not masks:
        return None
    return Figure(
        "Overlap",
        "overlap",
        charts.overlap_map(overlaps(masks), list(masks)),
        "Features that two methods have in common, as a share of all features of the two "
        "(Jaccard index).",
    )


def _explained(findings: Findings) -> Figure:
    return Figure(
        "Explained variance",
        "explained",
        charts.explained_chart(findings.curve),
        "Share of the variance of all columns that linear regression on the best features "
        "explains. No set of as many columns can exceed the principal components.",
    )


def _path(findings: Findings) -> Figure | None:
    if not has_path(findings.selector):
        return None
    k = findings.n_selected
    ranked = (
        "How long a feature lives counts a little in its rank."
        if _knows_clusters(findings)
        else "They are ranked by how long they live."
    )
    return Figure(
        "The path",
        "path",
        charts.path_chart(findings.selector.path_, k),
        "The row penalty grows from step to step and features leave; the dotted line is at the "
        f"{k} kept. {ranked}",
    )


def _scores(findings: Findings) -> Figure:
    if _knows_clusters(findings):
        return Figure(
            "Clusters",
            "scores",
            charts.score_chart(findings.explanation, "cluster_share", "share between clusters"),
            "How much of the variance of each feature lies between the clusters that all show "
            "together, beyond chance. Features that tell of them are left out where others "
            "say the same.",
        )
    return Figure(
        "Scores",
        "scores",
        charts.score_chart(findings.explanation),
        "Larger is better. A step between the kept and the others speaks for "
        f"{findings.n_selected} features; a smooth slope means that the number is a matter of "
        "taste.",
    )


def _knows_clusters(findings: Findings) -> bool:
    return bool(findings.explanation["cluster_share"].notna().all())


def _pixels(findings: Findings, image_shape: tuple[int, int] | None) -> Figure | None:
    if image_shape is None:
        return None
    shape = check_image_shape(image_shape, findings.n_features)
    chosen = best_selected(findings.selector)
    background = np.zeros(findings.n_features)
    if background.size <= _MOST_PIXELS:
        X = findings.X if sparse.issparse(findings.X) else np.asarray(findings.X, dtype=np.float64)
        background = np.ravel(X.mean(axis=0))
    names = findings.explanation.loc[chosen, "name"].tolist()
    return Figure(
        "Pixels",
        "pixels",
        charts.pixel_map(chosen, names, background, shape),
        "The kept features where they lie in the image, over the mean image.",
    )


def _redundancy(findings: Findings) -> Figure | None:
    k = findings.n_selected
    if k < 2:
        return None
    names = findings.explanation["name"][findings.explanation["selected"]].tolist()
    which = "all kept features" if k <= _MOST_CELLS else f"the best {_MOST_CELLS} of {k} kept"
    return Figure(
        "Redundancy",
        "redundancy",
        charts.correlation_map(
            findings.correlations[:_MOST_CELLS, :_MOST_CELLS], names[:_MOST_CELLS]
        ),
        f"Correlations among {which}, best first. Point at a cell to read it. Blocks of "
        "strong color are features that say the same.",
    )


def _stability(findings: Findings) -> Figure | None:
    explanation = findings.explanation
    if explanation["frequency"].isna().any():
        return None
    shown = around_the_cut(explanation, _MOST_BARS)
    which = "all features" if len(shown) == len(explanation) else "features around the cut"
    return Figure(
        "Stability",
        "stability",
        charts.bar_chart(shown),
        f"How often {which} are chosen when the selection is repeated on random parts of "
        "the rows, with 95 % intervals.",
    )
