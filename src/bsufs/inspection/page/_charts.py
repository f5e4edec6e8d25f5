"""Charts as SVG in the page itself: small, sharp on paper, and each point says what it is.

Whatever has a title is shown by the page's script when a reader points at it; without the script
the browser does the same, a little later.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from bsufs._colors import BOUND, DIVERGING, GRID, INK, KEPT, LEFT_OUT, MUTED
from bsufs._names import shortened
from bsufs._typing import Array, Indices

# Narrow, so that letters stay legible when a telephone shrinks the picture.
_WIDTH, _HEIGHT = 480, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 14, 34, 46
# A bar chart leaves more room for names, and has a row for each.
_BARS_LEFT, _BARS_TOP, _BAR_STEP = 170, 30, 21
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
    x: Any
    y: Any
    color: str
    dashes: str = ""
    dots: bool = False


def element(name: str, *children: object, **attributes: object) -> Markup:
    """Return an element, with everything in it escaped that is not markup already."""
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
    )
    inside = "".join(escape(child) for child in children)
    return Markup(f"<{name}{words}>{inside}</{name}>")


def with_minus_sign(number: str) -> str:
    """Return a number with the sign that print uses instead of a hyphen."""
    return number.replace("-", "\N{MINUS SIGN}")


@dataclass(frozen=True)
class _Scale:
    """From numbers to places on an axis."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: Any) -> Any:
        low, high = self.low, self.high
        if self.log:
            value, low, high = np.log10(value), math.log10(low), math.log10(high)
        span = (high - low) or 1.0
        return self.start + (np.asarray(value) - low) / span * (self.end - self.start)

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
    title: str,
    x_label: str,
    y_label: str,
    y_range: tuple[float, float],
    log: str = "",
    mark: float | None = None,
) -> Markup:
    """Draw lines over each other."""
    every = np.concatenate([np.asarray(line.x, dtype=np.float64) for line in series])
    across = _Scale(every.min(), every.max(), _LEFT, _WIDTH - _RIGHT, "x" in log)
    up = _Scale(*y_range, _HEIGHT - _BOTTOM, _TOP, "y" in log)
    parts = _axes(across, up, x_label, y_label)
    if mark is not None:
        path = f"M{_LEFT} {_number(up(mark))}H{_WIDTH - _RIGHT}"
        parts.append(element("path", d=path, stroke=MUTED, stroke_dasharray="2 4"))
    # The first is the one that matters, so it lies on top.
    parts += [_line(line, across, up, describe) for line in reversed(series)]
    parts += _legend(series)
    return _picture(title, _WIDTH, _HEIGHT, parts)


def _axes(across: _Scale, up: _Scale, x_label: str, y_label: str) -> list[Markup]:
    parts: list[Markup] = []
    for tick in up.ticks():
        y = _number(up(tick))
        parts.append(element("path", d=f"M{_LEFT} {y}H{_WIDTH - _RIGHT}", stroke=GRID))
        parts.append(_text(_tick(tick), _LEFT - 7, float(y) + 5, anchor="end"))
    parts += [
        _text(_tick(tick), float(across(tick)), _HEIGHT - _BOTTOM + 19)
        for tick in across.ticks(whole=True)
    ]
    x, y_middle = (_LEFT + _WIDTH - _RIGHT) / 2, (_TOP + _HEIGHT - _BOTTOM) / 2
    parts.append(_text(x_label, x, _HEIGHT - 7, fill=INK, weight="600"))
    parts.append(_text(y_label, 13, y_middle, fill=INK, weight="600", turned=True))
    return parts


def _line(
    line: Series, across: _Scale, up: _Scale, describe: Callable[[str, float, float], str]
) -> Markup:
    points = pd.DataFrame({"x": np.asarray(line.x), "y": np.asarray(line.y)}).dropna()
    if across.log:
        wanted = np.geomspace(1, max(len(points), 1), _MOST_POINTS).round().astype(int) - 1
    else:
        wanted = np.linspace(0, max(len(points) - 1, 0), _MOST_POINTS).round().astype(int)
    points = points.iloc[np.unique(wanted)] if len(points) > _MOST_POINTS else points
    places = list(
        zip(
            map(_number, across(points["x"].to_numpy())),
            map(_number, up(points["y"].to_numpy())),
            strict=True,
        )
    )
    parts = []
    if not line.dots and len(places) > 1:
        parts.append(
            element(
                "path",
                d="M" + "L".join(f"{x} {y}" for x, y in places),
                fill="none",
                stroke=line.color,
                stroke_width=2.5,
                stroke_dasharray=line.dashes or "none",
            )
        )
    radius = 3.5 if line.dots or len(places) <= 40 else 2
    for (x, y), (x_value, y_value) in zip(
        places, points.itertuples(index=False, name=None), strict=True
    ):
        words = describe(line.label, x_value, y_value)
        parts.append(element("circle", element("title", words), cx=x, cy=y, r=radius))
    return element("g", *parts, fill=line.color)


def _legend(series: Sequence[Series]) -> list[Markup]:
    parts, x = [], float(_LEFT)
    for line in series:
        if line.dots:
            parts.append(element("circle", cx=_number(x + 12), cy=14, r=4, fill=line.color))
        else:
            parts.append(
                element(
                    "path",
                    d=f"M{_number(x)} 14h24",
                    stroke=line.color,
                    stroke_width=3,
                    stroke_dasharray=line.dashes or "none",
                )
            )
        parts.append(_text(line.label, x + 30, 19, anchor="start", fill=INK))
        x += 48 + 7.4 * len(line.label)
    return parts


def bar_chart(shown: pd.DataFrame) -> Markup:
    """Draw how often features are chosen again, with intervals."""
    left, step = _BARS_LEFT, _BAR_STEP
    height = _BARS_TOP + step * len(shown) + 44
    across = _Scale(0, 100, left, _WIDTH - 16)
    parts = []
    for tick in (0, 25, 50, 75, 100):
        x = _number(across(tick))
        parts.append(element("path", d=f"M{x} 28V{height - 42}", stroke=GRID))
        parts.append(_text(str(tick), float(x), height - 24))
    parts.append(
        _text(
            "chosen again, % of subsamples", (left + _WIDTH) / 2, height - 6, fill=INK, weight="600"
        )
    )
    for place, (label, color) in enumerate((("kept", KEPT), ("left out", LEFT_OUT))):
        start = left + 80 * place
        parts.append(element("rect", x=start, y=6, width=14, height=12, fill=color))
        parts.append(_text(label, start + 20, 17, anchor="start", fill=INK))
    for place, row in enumerate(shown.itertuples(index=False)):
        parts.append(_bar(row, _BARS_TOP + step * place, across))
    return _picture("How often features are chosen again on subsamples", _WIDTH, height, parts)


def _bar(row: Any, y: int, across: _Scale) -> Markup:
    """Draw how often one feature is chosen again, with its name and its interval."""
    left, step = _BARS_LEFT, _BAR_STEP
    low, center, high = (
        100 * share for share in (row.frequency_low, row.frequency, row.frequency_high)
    )
    words = (
        f"{shortened(row.name, 80)}, rank {row.rank}: {center:.0f} % ({low:.0f} to {high:.0f} %)"
    )
    middle, (start, end) = y + step / 2, (_number(across(share)) for share in (low, high))
    return element(
        "g",
        element("title", words),
        element("rect", x=0, y=y, width=_WIDTH, height=step, fill="transparent"),
        _text(shortened(row.name, 18), left - 8, middle + 5, anchor="end", fill=INK),
        element(
            "rect",
            x=left,
            y=y + 3,
            width=_number(across(center) - left),
            height=step - 6,
            fill=KEPT if row.selected else LEFT_OUT,
        ),
        element(
            "path",
            d=f"M{start} {middle}H{end}M{start} {middle - 4}v8M{end} {middle - 4}v8",
            stroke=INK,
            stroke_width=1.5,
        ),
    )


def correlation_map(correlations: Array, names: Sequence[str]) -> Markup:
    """Draw correlations as colored cells."""
    title = f"Correlations among {len(names)} selected features"
    return _heat_map(correlations, names, title, "correlation", -1, DIVERGING)


def overlap_map(overlaps: Array, names: Sequence[str]) -> Markup:
    """Draw how far methods select the same."""
    title = f"Overlap of the selections of {len(names)} methods"
    return _heat_map(overlaps, names, title, "overlap", 0, DIVERGING[1:])


def _heat_map(
    values: Array, names: Sequence[str], title: str, what: str, low: int, colors: Sequence[str]
) -> Markup:
    """Draw numbers from `low` to 1; the script of the page says what a reader points at."""
    k = len(names)
    labeled = k <= _MOST_LABELS
    left, top = (150, 8) if labeled else (8, 8)
    # Two cells need not fill the page.
    size = min((_WIDTH - left - 8) / k, _LARGEST_CELL)
    level = np.round((values - low) / (1 - low) * _LEVELS).astype(int)
    grid = element(
        "g",
        *(
            element("path", d=cells, fill=_between(colors, shade / _LEVELS))
            for shade, cells in _cells_by_level(level)
        ),
        transform=f"translate({left} {top}) scale({_number(size)})",
        class_="cells",
        data_names=json.dumps([shortened(name, 60) for name in names]),
        data_values=json.dumps(
            np.round(100 * values).astype(int).ravel().tolist(), separators=(",", ":")
        ),
    )
    labels = [
        _text(shortened(name, 16), left - 6, top + size * (place + 0.5) + 5, anchor="end", fill=INK)
        for place, name in enumerate(names if labeled else ())
    ]
    if size >= _CELL_WITH_NUMBER:
        labels += _numbers_in_cells(values, left, top, size)
    bottom = top + size * k
    ramp = _color_ramp(left, bottom, what, low, colors)
    return _picture(title, _WIDTH, math.ceil(bottom + 32), [grid, *labels, *ramp])


def _cells_by_level(level: Array) -> Iterator[tuple[int, str]]:
    """Go through the levels of a matrix, each with one path around all its cells.

    A path for each cell would take ten times the bytes.
    """
    for shade in np.unique(level).tolist():
        places = np.argwhere(level == shade).tolist()
        yield shade, "".join(f"M{column} {row}h1v1h-1z" for row, column in places)


def _numbers_in_cells(values: Array, left: float, top: float, size: float) -> list[Markup]:
    return [
        _text(
            with_minus_sign(f"{value:.2f}"),
            left + size * (column + 0.5),
            top + size * (row + 0.5) + 5,
            fill=INK,
            # The cell below is what a reader points at.
            pointer_events="none",
        )
        for (row, column), value in np.ndenumerate(values)
    ]


def _color_ramp(
    left: float, bottom: float, what: str, low: int, colors: Sequence[str]
) -> list[Markup]:
    """Draw which color means which number, below a heat map."""
    ramp = [
        element(
            "rect",
            x=_number(left + 20 + shade * 8),
            y=_number(bottom + 12),
            width=8.3,
            height=12,
            fill=_between(colors, shade / _LEVELS),
        )
        for shade in range(_LEVELS + 1)
    ]
    return [
        *ramp,
        _text(with_minus_sign(f"{low}"), left + 14, bottom + 23, anchor="end"),
        _text("1", left + 20 + 8.4 * (_LEVELS + 1), bottom + 23, anchor="start"),
        _text(what, left + 215, bottom + 23, anchor="start"),
    ]


def pixel_map(
    chosen: Indices, names: Sequence[str], background: Array, shape: tuple[int, int]
) -> Markup:
    """Draw the selected pixels over an image."""
    height, width = shape
    span = np.ptp(background) or 1.0
    level = np.round((background - background.min()) / span * _GREYS).astype(int)
    parts = []
    for shade, pixels in _cells_by_level(level.reshape(shape)):
        grey = _between(("#ffffff", "#7d7d7d"), shade / _GREYS)
        parts.append(element("path", d=pixels, fill=grey, shape_rendering="crispEdges"))
    for rank, (pixel, name) in enumerate(zip(chosen.tolist(), names, strict=True), start=1):
        row, column = divmod(pixel, width)
        words = f"{shortened(name, 80)}: row {row}, column {column}, rank {rank}"
        parts.append(
            element(
                "rect",
                element("title", words),
                x=column + 0.08,
                y=row + 0.08,
                width=0.84,
                height=0.84,
                fill=KEPT,
                fill_opacity=0.5,
                stroke=KEPT,
                stroke_width=0.1,
            )
        )
    frame = element("rect", width=width, height=height, fill="none", stroke=GRID, stroke_width=0.05)
    return _picture(f"{len(names)} of {height * width} pixels", width, height, [*parts, frame])


def explained_chart(curve: pd.DataFrame) -> Markup:
    """Draw what the best features explain, below the bound."""
    lines = [
        Series("selected features", curve.index, 100 * curve["explained"], KEPT),
        Series("principal components", curve.index, 100 * curve["bound"], BOUND, dashes="7 4"),
    ]
    return line_chart(
        lines,
        describe=lambda label, k, share: f"{k:.0f} {label} explain {share:.1f} %",
        title="Variance explained against the number of features",
        x_label="number of features",
        y_label="variance explained, %",
        y_range=(0, 100),
    )


def path_chart(path: dict[str, Any], n_selected: int) -> Markup:
    """Draw how many features live at each step."""
    alive = path["n_alive"]
    # The first share is that of the start, before any step.
    share, weight = path["component_variance_ratio"][1:], path["lambda_row"]

    def describe(_: str, step: float, living: float) -> str:
        place = int(step) - 1
        return (
            f"step {step:.0f}: {living:.0f} features live; weight {weight[place]:.3g}; components "
            f"carry {share[place]:.1%} of the variance"
        )

    return line_chart(
        [Series("living features", np.arange(1, alive.size + 1), alive, INK)],
        describe=describe,
        title="Living features at each step of the path",
        x_label="step of the path",
        y_label="living features",
        y_range=(max(1, min(alive.min(), n_selected)), max(alive.max(), n_selected)),
        log="y",
        mark=n_selected,
    )


def score_chart(explanation: pd.DataFrame, column: str = "score", label: str = "score") -> Markup:
    """Draw the scores of all features, best first."""
    kept = explanation["selected"].to_numpy()
    names = dict(zip(explanation["rank"], explanation["name"], strict=True))
    values = explanation[column]
    lines = [
        Series(which, explanation["rank"][mask], values[mask], color, dots=True)
        for which, mask, color in (("kept", kept, KEPT), ("left out", ~kept, LEFT_OUT))
        if mask.any()
    ]
    low, high = float(values.min()), float(values.max())
    return line_chart(
        lines,
        describe=lambda which, rank, value: (
            f"{shortened(names[int(rank)], 80)}: rank {rank:.0f}, {label} {value:.4g}, {which}"
        ),
        title=f"{label.capitalize()} of the features, best first",
        x_label="rank",
        y_label=label,
        y_range=(0.0 if 0 <= low < 0.5 * high else low, high + 0.04 * ((high - low) or 1.0)),
        log="x" if len(kept) > 50 * int(kept.sum()) else "",
    )


def _picture(title: str, width: float, height: float, parts: Iterable[Markup]) -> Markup:
    return element(
        "svg",
        *parts,
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_label=title,
        xmlns="http://www.w3.org/2000/svg",
    )


def _text(
    words: str,
    x: float,
    y: float,
    *,
    anchor: str = "middle",
    fill: str = MUTED,
    weight: str = "400",
    turned: bool = False,
    **others: str,
) -> Markup:
    place = (
        {"transform": f"translate({_number(x)} {_number(y)}) rotate(-90)"}
        if turned
        else {"x": _number(x), "y": _number(y)}
    )
    return element(
        "text", words, text_anchor=anchor, fill=fill, font_weight=weight, **place, **others
    )


def _number(value: Any) -> str:
    """Return a coordinate in few letters."""
    return f"{float(value):.2f}".rstrip("0").rstrip(".")


def _tick(value: float) -> str:
    return f"{value:g}" if value < 1e5 else f"{value:.0e}"


def _between(colors: Sequence[str], share: float) -> str:
    """Return the color at a share of the way along others."""
    place = share * (len(colors) - 1)
    first = min(int(place), len(colors) - 2)
    ends = [
        np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)])
        for color in colors[first : first + 2]
    ]
    mixed = np.round(ends[0] + (place - first) * (ends[1] - ends[0])).astype(int)
    return "#" + "".join(f"{part:02x}" for part in mixed)
