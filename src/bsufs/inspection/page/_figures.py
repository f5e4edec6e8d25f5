"""The pictures of a page, each with its heading and its caption."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from bsufs._colors import BOUND, DIVERGING, INK, KEPT, LEFT_OUT
from bsufs._names import shortened
from bsufs._typing import Mask
from bsufs.inspection.findings import Findings, Path, around_the_cut, check_image_shape
from bsufs.inspection.page._charts import (
    Bar,
    Series,
    bar_chart,
    heat_map,
    line_chart,
    pixel_map,
)

_MOST_BARS = 36
_MOST_CELLS = 80
_MOST_PIXELS = 40_000


class Figure(NamedTuple):
    """A picture and what is said of it."""

    heading: str
    name: str
    picture: Markup
    caption: str


def figures(found: Findings, image_shape: tuple[int, int] | None) -> list[Figure]:
    """Return the pictures that a selection has something to show in."""
    drawn = [_explained(found)]
    if found.path is not None:
        drawn.append(_path(found, found.path))
    drawn.append(_clusters(found) if _knows_clusters(found) else _scores(found))
    if image_shape is not None:
        drawn.append(_pixels(found, check_image_shape(image_shape, found.n_features)))
    if found.n_selected > 1:
        drawn.append(_redundancy(found))
    if not np.isnan(found.stability.frequency).any():
        drawn.append(_stability(found))
    return drawn


def overlap_figure(masks: Mapping[str, Mask]) -> Figure:
    """Return the picture of how far methods agree."""
    selected = np.array(list(masks.values()), dtype=np.float64)
    common = selected @ selected.T
    sizes = np.diag(common)
    overlaps = common / (sizes[:, None] + sizes[None, :] - common)
    title = f"Overlap of the selections of {len(masks)} methods"
    return Figure(
        "Overlap",
        "overlap",
        heat_map(overlaps, list(masks), title, "overlap", 0, DIVERGING[1:]),
        "Features that two methods have in common, as a share of all features of the two "
        "(Jaccard index).",
    )


def _explained(found: Findings) -> Figure:
    numbers = np.arange(1, found.n_selected + 1)
    picture = line_chart(
        [
            Series("selected features", numbers, 100 * found.explained, KEPT),
            Series("principal components", numbers, 100 * found.bound, BOUND, dashes="7 4"),
        ],
        describe=lambda label, k, share: f"{k} {label} explain {share:.1f} %",
        title="Variance explained against the number of features",
        x_label="number of features",
        y_label="variance explained, %",
        y_range=(0, 100),
    )
    return Figure(
        "Explained variance",
        "explained",
        picture,
        "Share of the variance of all columns that linear regression on the best features "
        "explains. No set of as many columns can exceed the principal components.",
    )


def _path(found: Findings, path: Path) -> Figure:
    k, remaining = found.n_selected, path.n_remaining
    picture = line_chart(
        [Series("remaining features", np.arange(1, remaining.size + 1), remaining, INK)],
        describe=lambda _, step, left: (
            f"step {step}: {left} features remain; weight {path.weight[int(step) - 1]:.3g}; "
            f"components carry {path.component_variance[int(step) - 1]:.1%} of the variance"
        ),
        title="Remaining features at each step of the path",
        x_label="step of the path",
        y_label="remaining features",
        y_range=(max(1, min(remaining.min(), k)), max(remaining.max(), k)),
        log="y",
        mark=k,
    )
    ranked = (
        "How long a feature remains counts a little in its rank."
        if _knows_clusters(found)
        else "They are ranked by how long they remain."
    )
    return Figure(
        "The path",
        "path",
        picture,
        "The row penalty grows from step to step and features are eliminated; the dotted line is "
        f"at the {k} kept. {ranked}",
    )


def _clusters(found: Findings) -> Figure:
    return Figure(
        "Clusters",
        "scores",
        _by_rank(found, found.cluster_share, "share between clusters"),
        "How much of the variance of each feature lies between the clusters that all show "
        "together, beyond chance. Features that tell of them are left out where others "
        "say the same.",
    )


def _scores(found: Findings) -> Figure:
    return Figure(
        "Scores",
        "scores",
        _by_rank(found, found.scores, "score"),
        "Larger is better. A step between the kept and the others speaks for "
        f"{found.n_selected} features; a smooth slope means that the number is a matter of "
        "taste.",
    )


def _by_rank(found: Findings, values: np.ndarray, label: str) -> Markup:
    """Draw a number for each feature, best first."""
    k, d = found.n_selected, found.n_features
    ranks, values = np.arange(1, d + 1), values[found.best_first]
    low, high = float(values.min()), float(values.max())
    lines = [
        Series(which, ranks[part], values[part], color, dots=True)
        for which, part, color in (
            ("kept", slice(k), KEPT),
            ("left out", slice(k, None), LEFT_OUT),
        )
        if ranks[part].size
    ]

    def describe(which: str, rank: float, value: float) -> str:
        name = shortened(found.names[found.best_first[int(rank) - 1]], 80)
        return f"{name}: rank {rank}, {label} {value:.4g}, {which}"

    return line_chart(
        lines,
        describe=describe,
        title=f"{label.capitalize()} of the features, best first",
        x_label="rank",
        y_label=label,
        y_range=(0.0 if 0 <= low < 0.5 * high else low, high + 0.04 * ((high - low) or 1.0)),
        log="x" if d > 50 * k else "",
    )


def _knows_clusters(found: Findings) -> bool:
    return not np.isnan(found.cluster_share).any()


def _pixels(found: Findings, shape: tuple[int, int]) -> Figure:
    background = np.zeros(found.n_features)
    if background.size <= _MOST_PIXELS:
        background = np.ravel(found.data.X.mean(axis=0))
    return Figure(
        "Pixels",
        "pixels",
        pixel_map(found.chosen, found.names[found.chosen].tolist(), background, shape),
        "The kept features where they lie in the image, over the mean image.",
    )


def _redundancy(found: Findings) -> Figure:
    k = found.n_selected
    shown = found.correlations[:_MOST_CELLS, :_MOST_CELLS]
    names = found.names[found.chosen[:_MOST_CELLS]].tolist()
    which = "all kept features" if k <= _MOST_CELLS else f"the best {_MOST_CELLS} of {k} kept"
    title = f"Correlations among {len(names)} selected features"
    return Figure(
        "Redundancy",
        "redundancy",
        heat_map(shown, names, title, "correlation", -1, DIVERGING),
        f"Correlations among {which}, best first. Point at a cell to read it. Blocks of "
        "strong color are features that say the same.",
    )


def _stability(found: Findings) -> Figure:
    shown = found.best_first[around_the_cut(found.n_selected, found.n_features, _MOST_BARS)]
    frequency, low, high, _ = found.stability
    bars = zip(
        *(
            values[shown].tolist()
            for values in (found.names, found.ranking, found.selected, low, frequency, high)
        ),
        strict=True,
    )
    which = "all features" if shown.size == found.n_features else "features around the cut"
    return Figure(
        "Stability",
        "stability",
        bar_chart([Bar(*bar) for bar in bars]),
        f"How often {which} are chosen when the selection is repeated on random parts of "
        "the rows, with 95 % intervals.",
    )
