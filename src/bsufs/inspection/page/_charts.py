"""Where each number lies in a picture. The template draws it as SVG in the page itself."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from bsufs._names import shortened
from bsufs._typing import Array, Indices
from bsufs.inspection.findings import Findings
from bsufs.inspection.page._templates import environment

# Narrow, so that letters stay legible when a telephone shrinks the picture.
_WIDTH, _HEIGHT = 480, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 466, 34, 254
# A bar chart leaves more room for names.
_BARS = 170, 464
# More points than this cannot be told apart at that width.
_MOST_POINTS = 240
_LEVELS = 20
# A heat map of more rows has no room for their names; larger cells have room for a number.
_MOST_LABELS = 24
_CELL_WITH_NUMBER = 34
_LARGEST_CELL = 64
_GREYS = 12


@dataclass(frozen=True)
class Series:
    """A line of a chart."""

    label: str
    x: Array | Indices
    y: Array | Indices
    color: str
    dashes: str = ""
    dots: bool = False


@dataclass(frozen=True)
class Scale:
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

    def ticks(self, whole: bool = False) -> list[float]:
        """Return round numbers, about five."""
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
        return [tick for tick in every if self.low - slack <= tick <= self.high + slack]


def line_chart(
    series: Sequence[Series],
    *,
    describe: Callable[[str, float, float], str],
    y_range: tuple[float, float],
    log: str = "",
    mark: float | None = None,
    **words: str,
) -> Markup:
    """Draw lines over each other; `words` are a title, an x_label and a y_label."""
    every = np.concatenate([line.x for line in series])
    across = Scale(float(every.min()), float(every.max()), _LEFT, _RIGHT, "x" in log)
    up = Scale(*y_range, _BOTTOM, _TOP, "y" in log)
    widths = [48 + 7.4 * len(line.label) for line in series]
    return _drawn(
        "line_chart",
        width=_WIDTH,
        height=_HEIGHT,
        across=across,
        up=up,
        x_ticks=[(across(tick), _tick(tick)) for tick in across.ticks(whole=True)],
        y_ticks=[(up(tick), _tick(tick)) for tick in up.ticks()],
        mark=None if mark is None else up(mark),
        # The first is the one that matters, so it lies on top.
        lines=[(line, _points(line, across, up, describe)) for line in reversed(series)],
        legend=[(line, _LEFT + sum(widths[:place])) for place, line in enumerate(series)],
        **words,
    )


def _points(
    line: Series, across: Scale, up: Scale, describe: Callable[[str, float, float], str]
) -> list[tuple[float, float, str]]:
    known = np.flatnonzero(~np.isnan(line.y))
    if known.size > _MOST_POINTS:
        spaced = np.geomspace if across.log else np.linspace
        places = spaced(1, known.size, _MOST_POINTS).round().astype(int)
        known = known[np.unique(places) - 1]
    pairs = zip(line.x[known].tolist(), line.y[known].tolist(), strict=True)
    return [(across(x), up(y), describe(line.label, x, y)) for x, y in pairs]


def bar_chart(found: Findings, columns: Sequence[int]) -> Markup:
    """Draw how often features are chosen again, with intervals."""
    across = Scale(0, 1, *_BARS)
    return _drawn("bar_chart", width=_WIDTH, across=across, found=found, columns=columns)


def heat_map(
    values: Array, names: Sequence[str], title: str, what: str, low: int, ramp: Sequence[str]
) -> Markup:
    """Draw numbers from `low` to 1; the script of the page says what a reader points at."""
    k = len(names)
    left = 150 if k <= _MOST_LABELS else 8
    # Two cells need not fill the page.
    size = min((_WIDTH - left - 8) / k, _LARGEST_CELL)
    shades = [_between(ramp, shade / _LEVELS) for shade in range(_LEVELS + 1)]
    level = np.round((values - low) / (1 - low) * _LEVELS).astype(int)
    return _drawn(
        "heat_map",
        width=_WIDTH,
        title=title,
        what=what,
        low=low,
        left=left,
        size=size,
        bottom=8 + size * k,
        shades=shades,
        cells=[(shades[shade], cells) for shade, cells in _cells_by_level(level)],
        data={
            "data-names": json.dumps([shortened(name, 60) for name in names]),
            "data-values": json.dumps(
                np.round(100 * values).astype(int).ravel().tolist(), separators=(",", ":")
            ),
        },
        labels=names if k <= _MOST_LABELS else (),
        numbers=values.tolist() if size >= _CELL_WITH_NUMBER else (),
    )


def pixel_map(
    chosen: Indices, names: Sequence[str], background: Array, shape: tuple[int, int]
) -> Markup:
    """Draw the selected pixels over an image."""
    span = np.ptp(background) or 1.0
    level = np.round((background - background.min()) / span * _GREYS).astype(int)
    return _drawn(
        "pixel_map",
        shape=shape,
        background=[
            (_between(("#ffffff", "#7d7d7d"), shade / _GREYS), pixels)
            for shade, pixels in _cells_by_level(level.reshape(shape))
        ],
        pixels=[
            (name, *divmod(pixel, shape[1]))
            for name, pixel in zip(names, chosen.tolist(), strict=True)
        ],
    )


def _drawn(macro: str, **parts: Any) -> Markup:
    charts = environment().get_template("charts.svg.j2").module
    return Markup(getattr(charts, macro)(**parts))


def _cells_by_level(level: Array) -> Iterator[tuple[int, str]]:
    """Go through the levels of a matrix, each with one path around all its cells.

    A path for each cell would take ten times the bytes.
    """
    for shade in np.unique(level).tolist():
        places = np.argwhere(level == shade).tolist()
        yield shade, "".join(f"M{column} {row}h1v1h-1z" for row, column in places)


def _tick(value: float) -> str:
    return f"{value:g}" if value < 1e5 else f"{value:.0e}"


def _between(ramp: Sequence[str], share: float) -> str:
    """Return the color at a share of the way along others."""
    place = share * (len(ramp) - 1)
    first = min(int(place), len(ramp) - 2)
    ends = [
        np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)])
        for color in ramp[first : first + 2]
    ]
    mixed = np.round(ends[0] + (place - first) * (ends[1] - ends[0])).astype(int)
    return "#" + "".join(f"{part:02x}" for part in mixed)
