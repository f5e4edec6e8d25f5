"""Scatter plots of the synthetic datasets against the two features that a method selects."""

from __future__ import annotations

import math
from string import ascii_lowercase

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from bsufs_paper.reporting.paper import METHODS
from bsufs_paper.reporting.results import Printed, Results
from bsufs_paper.reporting.sections import Item, NamedFigure, Section, make_cell
from bsufs_paper.reporting.style import CLASSES, panels
from bsufs_paper.reporting.views._common import drawn, in_order, value
from bsufs_paper.reporting.views.records import recovery_rates

_TRUE = {0, 1}


def synthetic_figure(item: Item, results: Results, printed: Printed) -> Section:
    """Draw the selected features as small multiples, and compare who finds the true ones."""
    dataset = item.options["dataset"]
    paper = printed["synthetic"].set_index(["dataset", "method"])["found"]
    rates = recovery_rates(results, item.run)
    cells = []
    for scale in item.options["noise_scales"]:
        for method in METHODS[1:]:
            key = (dataset, scale, method)
            cells.append(
                make_cell(
                    f"noise {scale:g}",
                    method,
                    "both true features found, %",
                    paper=100 * float(paper[dataset, method]),
                    here=value(rates, key, "rate"),
                    here_sd=value(rates, key, "spread"),
                    reason=results.why_missing(item.run, dataset, method),
                )
            )
    points = results.select("points", run=item.run, dataset=dataset)
    figures = [
        _small_multiples(rows, dataset, float(scale))
        for scale, rows in points.groupby("noise_scale")
        if any(math.isclose(float(scale), drawn) for drawn in item.options["drawn_scales"])
    ]
    notes = [
        "The paper shows one draw (found: 100, not found: 0) and does not say how large the noise "
        "features are. Noise here is in multiples of the spread of the true features; the unit of "
        "a difference is the spread of a single draw, so the paper's outcome is within it where "
        "at least half of the draws agree."
    ]
    for scale in item.options["noise_scales"]:
        rate = {name: value(rates, (dataset, scale, name), "rate") for name in METHODS[1:]}
        if not all(map(math.isnan, rate.values())):
            names = ", ".join(name for name in rate if rate[name] == 100) or "no method"
            notes.append(f"Noise {scale:g}: found in every draw by {names}.")
    generated = results.select("datasets", run=item.run, drawn=True)["dataset"]
    if dataset in [name.removesuffix("-noise") for name in generated]:
        notes.append(f"The file of {dataset} is absent; a generator drew points of the same shape.")
    return drawn(item, results, cells, figures, notes)


def _small_multiples(points: pd.DataFrame, dataset: str, scale: float) -> NamedFigure:
    methods = [
        name
        for name in in_order(("data", *METHODS[1:]), points["method"].unique())
        if name in set(points["method"])
    ]
    figure, axes = panels(len(methods), 5, width=2.1, height=2.2)
    classes = sorted(points["label"].unique())
    verdicts = []
    for letter, method, ax in zip(ascii_lowercase, methods, axes, strict=False):
        rows = points[points["method"] == method]
        _scatter(ax, rows, classes)
        chosen = {int(rows["x_feature"].iloc[0]), int(rows["y_feature"].iloc[0])}
        if method == "data":
            ax.set_title(f"({letter}) {dataset}\ntrue features", fontsize=9.5)
            continue
        is_found = chosen == _TRUE
        ax.set_title(
            f"({letter}) {method}\n{'✓ found' if is_found else '✗ not found'}",
            fontsize=9.5,
            fontweight="bold" if is_found else "normal",
            color="#000000" if is_found else "#555555",
        )
        verdicts.append(f"{method} {'found' if is_found else 'not found'}")
    figure.suptitle(f"{dataset}, noise {scale:g}, first draw", fontsize=11)
    alternative = (
        f"Samples against the two selected features, noise {scale:g}: {', '.join(verdicts)}."
    )
    return NamedFigure(f"noise-{scale:g}", figure, alternative)


def _scatter(ax: Axes, rows: pd.DataFrame, classes: list[int]) -> None:
    hues = np.array([CLASSES[classes.index(label) % len(CLASSES)] for label in rows["label"]])
    ax.scatter(rows["x"], rows["y"], s=2.5, c=hues, linewidths=0, rasterized=True)
    ax.set_xlabel(f"feature {int(rows['x_feature'].iloc[0]) + 1}", fontsize=8.5)
    ax.set_ylabel(f"feature {int(rows['y_feature'].iloc[0]) + 1}", fontsize=8.5)
    ax.set_xticks([])
    ax.set_yticks([])
