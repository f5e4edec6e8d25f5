"""The pictures of a page: which there are, and where each number lies. The template draws them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unicodedata import east_asian_width

import numpy as np
from markupsafe import Markup
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from bsufs._names import shortened
from bsufs._typing import Array, Indices, Mask
from bsufs.graphs import in_safe_units
from bsufs.inspection._features import FeatureFindings
from bsufs.inspection.findings import MOST_PORTRAITS, around_the_cut
from bsufs.inspection.page._templates import environment
from bsufs.selectors._html import are_ranks

MOST_BARS = 24
MOST_CELLS = 80
_STRIP_POINTS = 160
_FEW_VALUES = 24
_MAP_POINTS = 600
_SHADES = 20
_MOST_PIXELS = 40_000
_MOST_NAMED = 22
_LABEL_WIDTH, _LABEL_LETTERS = 176, 30
# More points than this cannot be told apart in a line chart, whose edges are these.
_MOST_POINTS = 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 466, 34, 254


def pictures(found: FeatureFindings, image_shape: tuple[int, int] | None) -> dict[str, Any]:
    """Return the pictures that a selection has something to show in."""
    drawn: dict[str, Any] = {"numbers": _by_number(found), "strips": _strips(found)}
    if not np.isnan(found.cluster_share).any():
        drawn["clusters"] = _by_rank(found, found.cluster_share, "share between clusters")
    elif not are_ranks(found.found.scores):
        drawn["scores"] = _by_rank(found, found.scores, "score")
    if not np.isnan(found.stability.frequency).any():
        ranks = around_the_cut(found.n_selected, found.n_features, MOST_BARS)
        labels, left = _labels(found.names[ranks].tolist())
        bars = {"features": found.best_first[ranks], "labels": labels, "left": left}
        drawn["stability"] = _drawn("bar_chart", found=found, **bars)
    if found.chance is not None:
        drawn["chance"] = _drawn("dot_chart", chance=found.chance)
    if found.n_selected > 1:
        drawn["redundancy"] = _correlations(found)
        drawn["samples"] = _samples(found)
    if image_shape is not None:
        drawn["pixels"] = _pixels(found, image_shape)
    if found.path is not None:
        drawn["path"] = _path(found)
    return drawn


def overlap_map(masks: Mapping[str, Mask]) -> Markup:
    """Draw how far methods select the same, by the Jaccard index."""
    selected = np.array(list(masks.values()), dtype=np.float64)
    common = selected @ selected.T
    sizes = np.diag(common)
    # Of two methods that select nothing, nothing is in common.
    overlaps = common / np.maximum(sizes[:, None] + sizes[None, :] - common, 1.0)
    title = f"Overlap of the selections of {len(masks)} methods"
    return _heat_map(overlaps, list(masks), title, "overlap", 0)


def _by_number(found: FeatureFindings) -> Markup:
    """Draw what the best 1, 2, ... features reach; the script moves the mark."""
    agreement = np.full(found.n_foremost, np.nan)
    for number, value in found.agreement.items():
        agreement[number - 1] = 100 * max(value, 0.0)
    lines = [
        _Series("variance explained", 100 * found.curve, "kept"),
        _Series("by principal components", 100 * found.ceiling, "bound", dashes="7 4"),
    ]
    if found.agreement:
        lines.append(_Series("cluster agreement", agreement, "agree"))
    lines.append(_Series("redundancy", 100 * found.redundancy, "muted", dashes="2 3"))
    return _line_chart(
        lines,
        describe=lambda label, k, share: f"{k} columns: {label} {share:.1f}%",
        title="Variance explained, cluster agreement and redundancy by the number of columns",
        x_label="number of columns",
        y_label="%",
        y_range=(0, 100),
        cut=found.n_selected,
    )


def _strips(found: FeatureFindings) -> list[Markup]:
    """Draw the values of each of the best selected features, cluster by cluster."""
    if found.clusters is None:
        return []
    labels, n_clusters = found.clusters.labels, found.clusters.sizes.size
    some = _some_of(labels.size, _STRIP_POINTS)
    # The same row lies at the same height in every strip.
    lane = 10 if n_clusters > 4 else 16
    jitter, spread = np.random.default_rng(0).uniform(-1, 1, (2, labels.size))
    heights = (lane * (labels + 0.5) + (lane / 2 - 2) * jitter).round()[some]
    strips = []
    for feature in range(min(found.n_selected, MOST_PORTRAITS)):
        values, levels = found.values_of(feature)
        means = None
        if levels:
            # Each level has room of its own, in which its rows lie side by side.
            places = 300 / len(levels) * (values + 0.5 + 0.4 * spread)
        else:
            # Halves, since the range of very large numbers would overflow.
            low, high = values.min() / 2, values.max() / 2
            places = 8 + 284 * (values / 2 - low) / ((high - low) or 1.0)
            means = (np.bincount(labels, places) / found.clusters.sizes).tolist()
            steps = np.diff(np.unique(places))
            if steps.size < _FEW_VALUES:
                # Rows that have the same value lie side by side.
                places = places + 0.35 * min(steps.min(initial=20.0), 20.0) * spread
        points = _dots(places[some].round(), heights, labels[some])
        words = {"points": points, "means": means, "levels": levels}
        strips.append(_drawn("strip", lane=lane, n_clusters=n_clusters, **words))
    return strips


def _samples(found: FeatureFindings) -> Markup:
    """Draw the rows along the two leading components of the selected features."""
    rows = in_safe_units(found.rows_of_foremost[:, : found.ends[found.n_selected - 1]])
    left, values, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    labels, sizes = np.zeros(len(rows), dtype=int), []
    if found.clusters is not None:
        labels, sizes = found.clusters.labels, found.clusters.sizes.tolist()
    scores = (left * values)[:, :2]
    scores *= np.where(np.abs(scores.min(axis=0)) > scores.max(axis=0), -1.0, 1.0)
    low, spread = scores.min(axis=0), np.ptp(scores, axis=0)
    some = _some_of(len(rows), _MAP_POINTS)
    share = ((scores - low) / np.where(spread > 0, spread, 1.0))[some]
    places = np.array([40.0, 300.0]) + np.array([424.0, -284.0]) * share
    if len(np.unique(places.round(), axis=0)) < some.size / 2:
        # Rows that have the same values lie side by side.
        places += np.random.default_rng(0).normal(0.0, 5.0, places.shape).clip(-15.0, 15.0)
    across, up = places.round(1).T
    points = _dots(across, up, labels[some])
    shares = values[:2] ** 2 / (np.sum(values**2) or 1.0)
    return _drawn("sample_map", points=points, shares=shares.tolist(), sizes=sizes)


def _some_of(number: int, most: int, spaced: Any = np.linspace) -> Indices:
    """Return at most so many of some places, the first and the last among them."""
    return np.unique(spaced(1, number, most).round().astype(int)) - 1


def _dots(across: Any, up: Any, labels: Indices) -> list[tuple[int, str]]:
    """Return each cluster with one path of its points, round when drawn with round ends."""
    paths = []
    for label in np.unique(labels).tolist():
        pairs = zip(across[labels == label].tolist(), up[labels == label].tolist(), strict=True)
        paths.append((label, "".join(f"M{x:g} {y:g}h0" for x, y in pairs)))
    return paths


def _correlations(found: FeatureFindings) -> Markup:
    """Draw correlations among the best selected features, those alike side by side."""
    shown = found.correlations[:MOST_CELLS, :MOST_CELLS]
    apart = np.maximum(1.0 - np.abs(shown), 0.0)
    tree = hierarchy.linkage(squareform(apart, checks=False), "average", optimal_ordering=True)
    order = hierarchy.leaves_list(tree)
    names = found.names[order].tolist()
    title = f"Correlations among {len(names)} kept columns"
    return _heat_map(shown[np.ix_(order, order)], names, title, "correlation", -1)


def _path(found: FeatureFindings) -> Markup:
    k, remaining = found.n_selected_groups, found.path["n_alive"]
    weight, carried = found.path["lambda_row"], found.path["component_variance_ratio"]
    return _line_chart(
        [_Series("remaining columns", remaining, "ink")],
        describe=lambda _, step, left: (
            f"step {step}: {left} columns remain; weight {weight[step - 1]:.3g}; "
            # The first share is that of the start, before any step.
            f"components carry {carried[step]:.1%} of the variance"
        ),
        title="Remaining columns at each step of the path",
        x_label="step of the path",
        y_label="remaining columns",
        y_range=(max(1, min(remaining.min(), k)), max(remaining.max(), k)),
        log="y",
        mark=k,
    )


def _by_rank(found: FeatureFindings, values: Array, label: str) -> Markup:
    """Draw a number for each feature, best first."""
    k, d = found.n_selected, found.n_features
    low, high = float(values.min()), float(values.max())
    lines = [_Series("kept", values[:k], "kept", dots=True)]
    if k < d:
        lines.append(_Series("left out", values[k:], "out", first=k + 1, dots=True))
    return _line_chart(
        lines,
        describe=lambda which, rank, value: (
            f"{shortened(found.names[rank - 1], 80)}: rank {rank}, {label} {value:.4g}, {which}"
        ),
        title=f"{label.capitalize()} of the columns, best first",
        x_label="rank",
        y_label=label,
        y_range=(0.0 if 0 <= low < 0.5 * high else low, high + 0.04 * ((high - low) or 1.0)),
        log="x" if d > 50 * k else "",
    )


def _pixels(found: FeatureFindings, shape: tuple[int, int]) -> Markup:
    # Here each column is a feature.
    background = np.zeros(found.n_features)
    if background.size <= _MOST_PIXELS:
        background = np.ravel(found.data.X.mean(axis=0))
    level = (background - background.min()) / (np.ptp(background) or 1.0)
    return _drawn(
        "pixel_map",
        shape=shape,
        background=_cells(0.5 * level.reshape(shape)),
        pixels=[
            (found.names[rank], *divmod(pixel, shape[1]))
            for rank, pixel in enumerate(found.found.chosen.tolist())
        ],
    )


def _heat_map(values: Array, names: Sequence[str], title: str, what: str, low: int) -> Markup:
    """Draw numbers from `low` to 1; the script of the page says what a reader points at."""
    percents = np.round(100 * values).astype(int).ravel().tolist()
    # More rows would leave no room for their names.
    labels, left = _labels(names if len(names) <= _MOST_NAMED else [])
    return _drawn(
        "heat_map",
        title=title,
        what=what,
        shades=[round(shade, 2) for shade in np.linspace(low, 1, 21).tolist()],
        cells=_cells(values),
        data={
            "data-names": json.dumps([shortened(name, 60) for name in names]),
            "data-values": json.dumps(percents, separators=(",", ":")),
        },
        labels=labels,
        left=left,
        values=values.tolist(),
    )


def _labels(names: Sequence[str]) -> tuple[list[str], int]:
    """Return names, cut such that they fit beside a picture, and where they end."""
    labels = []
    for name in names:
        letters = _LABEL_LETTERS
        while _length(shortened(name, letters)) > _LABEL_WIDTH:
            letters -= 1
        labels.append(shortened(name, letters))
    return labels, 8 + (8 + max(map(_length, labels)) if labels else 0)


def _length(text: str) -> int:
    """Return about how many units of the pictures some words take: there are wide letters."""
    n_wide = sum(east_asian_width(letter) in "WF" for letter in text)
    return 8 * len(text) + 6 * n_wide + 3 * sum(map(str.isupper, text))


def _cells(values: Array) -> list[tuple[float, str]]:
    """Return each number, in steps, with one path around its cells: many would take many bytes."""
    level = np.round(_SHADES * values).astype(int)
    paths = []
    for shade in np.unique(level[level != 0]).tolist():
        places = np.argwhere(level == shade).tolist()
        paths.append((shade / _SHADES, "".join(f"M{x} {y}h1v1h-1z" for y, x in places)))
    return paths


@dataclass(frozen=True)
class _Series:
    """A line of a chart: numbers of the first, second and further features or steps."""

    label: str
    values: Array | Indices
    kind: str
    first: int = 1
    dashes: str = ""
    dots: bool = False


@dataclass(frozen=True)
class _Scale:
    """From numbers to places on an axis."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        numbers = (value, self.low, self.high)
        value, low, high = map(math.log10, numbers) if self.log else numbers
        return self.start + (value - low) / ((high - low) or 1.0) * (self.end - self.start)

    def ticks(self, whole: bool = False) -> list[tuple[float, str]]:
        """Return where round numbers lie, about five."""
        if self.log:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            steps = (1,) if len(decades) > 4 else (1, 2, 5)
            every = [step * 10.0**decade for decade in decades for step in steps]
        else:
            rough = (self.high - self.low) / 5 or 1.0
            unit = 10.0 ** math.floor(math.log10(rough))
            step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
            step = max(step, 1.0) if whole else step
            first = math.ceil(self.low / step)
            every = [step * number for number in range(first, math.floor(self.high / step) + 1)]
        slack = 1e-9 * (self.high - self.low)
        return [
            (self(tick), f"{tick:g}" if tick < 1e5 else f"{tick:.0e}")
            for tick in every
            if self.low - slack <= tick <= self.high + slack
        ]


def _line_chart(
    series: Sequence[_Series],
    *,
    describe: Callable[[str, int, float], str],
    y_range: tuple[float, float],
    log: str = "",
    mark: float | None = None,
    cut: int | None = None,
    **words: str,
) -> Markup:
    """Draw lines over each other; `words` are a title, an x_label and a y_label."""
    last = max(line.first + line.values.size - 1 for line in series)
    across = _Scale(1, last, _LEFT, _RIGHT, "x" in log)
    up = _Scale(*y_range, _BOTTOM, _TOP, "y" in log)

    def points(line: _Series) -> list[tuple[float, float, str]]:
        known = np.flatnonzero(~np.isnan(line.values))
        if known.size > _MOST_POINTS:
            spaced = np.geomspace if across.log else np.linspace
            known = known[_some_of(known.size, _MOST_POINTS, spaced)]
        pairs = zip((line.first + known).tolist(), line.values[known].tolist(), strict=True)
        return [(across(x), up(y), describe(line.label, x, y)) for x, y in pairs]

    return _drawn(
        "line_chart",
        across=across,
        up=up,
        mark=None if mark is None else up(mark),
        cut=cut,
        lines=[(line, points(line)) for line in series],
        **words,
    )


def _drawn(macro: str, **parts: Any) -> Markup:
    charts = environment().get_template("charts.svg.j2").module
    return Markup(getattr(charts, macro)(**parts))
