"""The pictures of a page: which there are, and where each number lies. The template draws them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from bsufs._colors import BOUND, DIVERGING, INK, KEPT, LEFT_OUT
from bsufs._names import shortened
from bsufs._typing import Array, Indices, Mask
from bsufs.inspection.findings import Findings, around_the_cut
from bsufs.inspection.page._templates import environment

MOST_BARS = 36
MOST_CELLS = 80
_MOST_PIXELS = 40_000
# More points than this cannot be told apart in a line chart, whose edges are these.
_MOST_POINTS = 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 466, 34, 254


def pictures(found: Findings, image_shape: tuple[int, int] | None) -> dict[str, Markup]:
    """Return the pictures that a selection has something to show in."""
    drawn = {"explained": _explained(found)}
    if found.path is not None:
        drawn["path"] = _path(found)
    if np.isnan(found.cluster_share).any():
        drawn["scores"] = _by_rank(found, found.selector.scores_, "score")
    else:
        drawn["clusters"] = _by_rank(found, found.cluster_share, "share between clusters")
    if image_shape is not None:
        drawn["pixels"] = _pixels(found, image_shape)
    if found.n_selected > 1:
        names = found.names[found.chosen[:MOST_CELLS]].tolist()
        shown = found.correlations[:MOST_CELLS, :MOST_CELLS]
        title = f"Correlations among {len(names)} selected features"
        drawn["redundancy"] = _heat_map(shown, names, title, "correlation", -1, DIVERGING)
    if not np.isnan(found.stability.frequency).any():
        ranks = around_the_cut(found.n_selected, found.n_features, MOST_BARS)
        drawn["stability"] = _drawn("bar_chart", found=found, columns=found.best_first[ranks])
    return drawn


def overlap_map(masks: Mapping[str, Mask]) -> Markup:
    """Draw how far methods select the same, by the Jaccard index."""
    selected = np.array(list(masks.values()), dtype=np.float64)
    common = selected @ selected.T
    sizes = np.diag(common)
    # Of two methods that select nothing, nothing is in common.
    overlaps = common / np.maximum(sizes[:, None] + sizes[None, :] - common, 1.0)
    title = f"Overlap of the selections of {len(masks)} methods"
    return _heat_map(overlaps, list(masks), title, "overlap", 0, DIVERGING[1:])


def _explained(found: Findings) -> Markup:
    return _line_chart(
        [
            _Series("selected features", 100 * found.explained, KEPT),
            _Series("principal components", 100 * found.bound, BOUND, dashes="7 4"),
        ],
        describe=lambda label, k, share: f"{k} {label} explain {share:.1f} %",
        title="Variance explained against the number of features",
        x_label="number of features",
        y_label="variance explained, %",
        y_range=(0, 100),
    )


def _path(found: Findings) -> Markup:
    k, remaining = found.n_selected_groups, found.path["n_alive"]
    weight, carried = found.path["lambda_row"], found.path["component_variance_ratio"]
    return _line_chart(
        [_Series("remaining features", remaining, INK)],
        describe=lambda _, step, left: (
            f"step {step}: {left} features remain; weight {weight[step - 1]:.3g}; "
            # The first share is that of the start, before any step.
            f"components carry {carried[step]:.1%} of the variance"
        ),
        title="Remaining features at each step of the path",
        x_label="step of the path",
        y_label="remaining features",
        y_range=(max(1, min(remaining.min(), k)), max(remaining.max(), k)),
        log="y",
        mark=k,
    )


def _by_rank(found: Findings, values: Array, label: str) -> Markup:
    """Draw a number for each feature, best first."""
    k, d = found.n_selected, found.n_features
    values = values[found.best_first]
    low, high = float(values.min()), float(values.max())
    lines = [_Series("kept", values[:k], KEPT, dots=True)]
    if k < d:
        lines.append(_Series("left out", values[k:], LEFT_OUT, first=k + 1, dots=True))

    def describe(which: str, rank: int, value: float) -> str:
        name = shortened(found.names[found.best_first[rank - 1]], 80)
        return f"{name}: rank {rank}, {label} {value:.4g}, {which}"

    return _line_chart(
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
    level = (background - background.min()) / (np.ptp(background) or 1.0)
    return _drawn(
        "pixel_map",
        shape=shape,
        background=_cells(level.reshape(shape), _shades(("#ffffff", "#7d7d7d"), n_steps=12)),
        pixels=[(found.names[pixel], *divmod(pixel, shape[1])) for pixel in found.chosen.tolist()],
    )


def _heat_map(
    values: Array, names: Sequence[str], title: str, what: str, low: int, ramp: Sequence[str]
) -> Markup:
    """Draw numbers from `low` to 1; the script of the page says what a reader points at."""
    shades = _shades(ramp, n_steps=20)
    percents = np.round(100 * values).astype(int).ravel().tolist()
    return _drawn(
        "heat_map",
        title=title,
        what=what,
        low=low,
        shades=shades,
        cells=_cells((values - low) / (1 - low), shades),
        data={
            "data-names": json.dumps([shortened(name, 60) for name in names]),
            "data-values": json.dumps(percents, separators=(",", ":")),
        },
        names=names,
        values=values.tolist(),
    )


def _shades(ramp: Sequence[str], n_steps: int) -> list[str]:
    """Return colors from one end of a ramp to the other."""
    channels = np.array([list(bytes.fromhex(color[1:])) for color in ramp]).T
    places = np.linspace(0, len(ramp) - 1, n_steps + 1)
    mixed = [np.interp(places, range(len(ramp)), channel) for channel in channels]
    return [f"#{bytes(color).hex()}" for color in np.round(mixed).astype(np.uint8).T]


def _cells(share: Array, shades: Sequence[str]) -> list[tuple[str, str]]:
    """Return each shade with one path around its cells: many paths would take many bytes."""
    level = np.round(share * (len(shades) - 1)).astype(int)
    paths = []
    for shade in np.unique(level).tolist():
        places = np.argwhere(level == shade).tolist()
        paths.append((shades[shade], "".join(f"M{x} {y}h1v1h-1z" for y, x in places)))
    return paths


@dataclass(frozen=True)
class _Series:
    """A line of a chart: numbers of the first, second and further features or steps."""

    label: str
    values: Array | Indices
    color: str
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
        low, high = self.low, self.high
        if self.log:
            value, low, high = math.log10(value), math.log10(low), math.log10(high)
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
            places = spaced(1, known.size, _MOST_POINTS).round().astype(int)
            known = known[np.unique(places) - 1]
        pairs = zip((line.first + known).tolist(), line.values[known].tolist(), strict=True)
        return [(across(x), up(y), describe(line.label, x, y)) for x, y in pairs]

    return _drawn(
        "line_chart",
        across=across,
        up=up,
        mark=None if mark is None else up(mark),
        lines=[(line, points(line)) for line in series],
        **words,
    )


def _drawn(macro: str, **parts: Any) -> Markup:
    charts = environment().get_template("charts.svg.j2").module
    return Markup(getattr(charts, macro)(**parts))
