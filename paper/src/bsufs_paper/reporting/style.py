"""How figures look: one color per method everywhere, safe for the color-blind; files stay small."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

# Okabe and Ito's vermilion for the paper's method, black for chance, Paul Tol's muted set for the
# others; markers differ too, so that nothing hangs on color alone.
_METHODS: dict[str, tuple[str, str, str]] = {
    "ALLfea": ("#555555", "", ":"),
    "LapScore": ("#332288", "v", "-"),
    "SOGFS": ("#88ccee", "^", "-"),
    "RNE": ("#44aa99", "<", "-"),
    "UDFS": ("#117733", ">", "-"),
    "SPCAFS": ("#999933", "s", "-"),
    "FSPCA": ("#ddaa33", "D", "-"),
    "SPCA-PSD": ("#882255", "p", "-"),
    "FEN-PCAFS": ("#aa4499", "h", "-"),
    "BSUFS": ("#d55e00", "o", "-"),
    "BSUFS (paper's grid)": ("#d55e00", "o", "--"),
    "Random": ("#000000", "x", "--"),
    "MaxVariance": ("#cc6677", "P", "-"),
    "ColumnSubset": ("#0072b2", "X", "-"),
    "MCFS": ("#999999", "*", "-"),
    "PCARowNorms": ("#56b4e9", "d", "-"),
    "Case I": ("#777777", "s", "-"),
    "Case II": ("#0072b2", "^", "-"),
    "Case III": ("#009e73", "D", "-"),
    "Case IV": ("#d55e00", "o", "-"),
}
_OTHER = ("#777777", "+", "-.")
# Light to dark, told apart in gray as well: the values of an ordered quantity.
SEQUENCE = ("#c9d9ea", "#6c9bc7", "#1f4e79", "#0a2038")
HEAT = "cividis"
CLASSES = (
    *("#332288", "#88ccee", "#44aa99", "#117733", "#999933", "#ddaa33", "#cc6677", "#882255"),
    *("#aa4499", "#0072b2"),
)

_PARAMETERS: dict[Any, Any] = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.labelsize": 10,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9.5,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",
    "svg.hashsalt": "bsufs",
    "svg.fonttype": "path",
}

_MOST_BYTES = 200_000
_PNG_RESOLUTIONS = (144, 110, 80)


def color(method: str) -> str:
    """Return the color of a method."""
    return _METHODS.get(method, _OTHER)[0]


def line_style(method: str) -> dict[str, Any]:
    """Return how the line of a method is drawn."""
    hue, marker, line = _METHODS.get(method, _OTHER)
    in_front = method in ("BSUFS", "BSUFS (paper's grid)", "Random")
    return {
        "color": hue,
        "marker": marker,
        "linestyle": line,
        "linewidth": 2.2 if in_front else 1.2,
        "markerfacecolor": "white" if line == "--" else hue,
        "zorder": 3 if in_front else 2,
    }


@contextmanager
def styled() -> Iterator[None]:
    """Draw and save in the style of the report, and leave that of the caller alone."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_PARAMETERS)
        yield


def panels(
    n_panels: int, n_columns: int, *, width: float = 2.9, height: float = 2.5, **options: Any
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a grid of axes, without those that are too many."""
    columns = max(1, min(n_panels, n_columns))
    rows = max(1, math.ceil(n_panels / columns))
    figure = Figure(figsize=(columns * width, rows * height + 0.3), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, **options)
    axes = list(np.ravel(grid))
    for unused in axes[n_panels:]:
        unused.remove()
    return figure, axes[:n_panels]


def legend_below(figure: Figure, axes: Axes, n_columns: int = 6) -> None:
    """Put one legend below all panels."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(n_columns, len(labels)))


def encode(figure: Figure) -> tuple[str, bytes]:
    """Return a figure as a small file, the same bytes for the same figure."""
    with styled():
        drawn = _saved(figure, format="svg", dpi=110, metadata={"Date": None, "Creator": None})
        if len(drawn) < _MOST_BYTES:
            return "svg", drawn
        for resolution in _PNG_RESOLUTIONS:
            drawn = _with_few_colors(_saved(figure, format="png", dpi=resolution))
            if len(drawn) < _MOST_BYTES:
                break
    return "png", drawn


def _saved(figure: Figure, **options: Any) -> bytes:
    with io.BytesIO() as buffer:
        figure.savefig(buffer, **options)
        return buffer.getvalue()


def _with_few_colors(png: bytes) -> bytes:
    """Return the picture with a palette: a third of the bytes, and nobody sees the difference."""
    with Image.open(io.BytesIO(png)) as image, io.BytesIO() as buffer:
        image.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(
            buffer, format="png", optimize=True
        )
        return buffer.getvalue()
