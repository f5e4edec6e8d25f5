"""The pictures of a page: which there are, and what they show."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from markupsafe import Markup

from bsufs._colors import BOUND, DIVERGING, INK, KEPT, LEFT_OUT
from bsufs._names import shortened
from bsufs._typing import Mask
from bsufs.inspection.findings import Findings, Path, around_the_cut
from bsufs.inspection.page._charts import Series, bar_chart, heat_map, line_chart, pixel_map

MOST_BARS = 36
MOST_CELLS = 80
_MOST_PIXELS = 40_000


def pictures(found: Findings, image_shape: tuple[int, int] | None) -> dict[str, Markup]:
    """Return the pictures that a selection has something to show in."""
    drawn = {"explained": _explained(found)}
    if found.path is not None:
        drawn["path"] = _path(found.path, found.n_selected)
    if np.isnan(found.cluster_share).any():
        drawn["scores"] = _by_rank(found, found.selector.scores_, "score")
    else:
        drawn["clusters"] = _by_rank(found, found.cluster_share, "share between clusters")
    if image_shape is not None:
        drawn["pixels"] = _pixels(found, image_shape)
    if found.n_selected > 1:
        drawn["redundancy"] = _redundancy(found)
    if not np.isnan(found.stability.frequency).any():
        ranks = around_the_cut(found.n_selected, found.n_features, MOST_BARS)
        drawn["stability"] = bar_chart(found, found.best_first[ranks].tolist())
    return drawn


def overlap_map(masks: Mapping[str, Mask]) -> Markup:
    """Draw how far methods select the same, by the Jaccard index."""
    selected = np.array(list(masks.values()), dtype=np.float64)
    common = selected @ selected.T
    sizes = np.diag(common)
    overlaps = common / (sizes[:, None] + sizes[None, :] - common)
    title = f"Overlap of the selections of {len(masks)} methods"
    return heat_map(overlaps, list(masks), title, "overlap", 0, DIVERGING[1:])


def _explained(found: Findings) -> Markup:
    numbers = np.arange(1, found.n_selected + 1)
    return line_chart(
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


def _path(path: Path, k: int) -> Markup:
    remaining = path.n_remaining
    return line_chart(
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


def _pixels(found: Findings, shape: tuple[int, int]) -> Markup:
    background = np.zeros(found.n_features)
    if background.size <= _MOST_PIXELS:
        background = np.ravel(found.data.X.mean(axis=0))
    return pixel_map(found.chosen, found.names[found.chosen].tolist(), background, shape)


def _redundancy(found: Findings) -> Markup:
    names = found.names[found.chosen[:MOST_CELLS]].tolist()
    shown = found.correlations[:MOST_CELLS, :MOST_CELLS]
    title = f"Correlations among {len(names)} selected features"
    return heat_map(shown, names, title, "correlation", -1, DIVERGING)
