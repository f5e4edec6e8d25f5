"""Curves over numbers of features and over iterations, and how scores scatter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from bsufs_paper.reporting.paper import DATASETS, METHODS
from bsufs_paper.reporting.results import KMEANS_INIT, Printed, Results, confirmed_rows, summarize
from bsufs_paper.reporting.sections import Item, NamedFigure, Section, make_cell
from bsufs_paper.reporting.style import color, legend_below, line_style, panels
from bsufs_paper.reporting.views._common import RANDOM, cell_grid, drawn, in_order, value

_SHOWN = (*METHODS, "BSUFS (paper's grid)", RANDOM)
# Rises of this share of the largest objective are rounding, not ascent.
_ROUNDING = 1e-9


def feature_count_figure(item: Item, results: Results, printed: Printed) -> Section:
    """Draw the score of every method at its winning setting against the number of features."""
    metric = item.options["metric"]
    curves, n_from_search = _curves(results, item.run, metric)
    means = curves.groupby(["dataset", "method"])[["score"]].mean()
    cells = cell_grid(
        results,
        item.run,
        f"{metric.upper()}, mean over the numbers of features",
        DATASETS,
        in_order(_SHOWN, means.index.get_level_values("method")),
        lambda *key: {"here": value(means, key, "score")},
    )
    if curves.empty:
        return drawn(item, results, cells, [], [])
    notes = _highest_notes(curves, metric)
    if n_from_search:
        notes.append(
            f"{n_from_search} of {len(means)} curves are means of the few repetitions of the "
            "search, which the choice of the setting flatters; the others are repetitions with "
            "fresh seeds."
        )
    return drawn(item, results, cells, [_draw(curves, metric)], notes)


def _curves(results: Results, run: str, metric: str) -> tuple[pd.DataFrame, int]:
    """Return the points of all curves: from fresh repetitions where they cover all counts."""
    scores = results.select("scores", run=run, kmeans_init=KMEANS_INIT)
    search = results.select("search", run=run)
    winners = results.select("winners", run=run).set_index(["dataset", "method"])["setting"]
    points: dict[str, list[Any]] = {"dataset": [], "method": [], "n_features": [], "score": []}
    n_from_search = 0
    both = pd.concat([frame[["dataset", "method"]] for frame in (scores, search)])
    for dataset, method in both.drop_duplicates().itertuples(index=False, name=None):
        fresh = scores[(scores["dataset"] == dataset) & (scores["method"] == method)]
        tried = search[(search["dataset"] == dataset) & (search["method"] == method)]
        if (dataset, method) in winners.index:
            setting = winners[dataset, method]
            fresh, tried = fresh[fresh["setting"] == setting], tried[tried["setting"] == setting]
        curve = fresh
        if fresh["n_features"].nunique() < tried["n_features"].nunique():
            curve, n_from_search = tried, n_from_search + 1
        means = curve.groupby("n_features")[metric].mean()
        points["dataset"] += [dataset] * len(means)
        points["method"] += [method] * len(means)
        points["n_features"] += means.index.tolist()
        points["score"] += (100 * means).tolist()
    return pd.DataFrame(points).astype({"n_features": float, "score": float}), n_from_search


def _draw(curves: pd.DataFrame, metric: str) -> NamedFigure:
    datasets = [name for name in DATASETS if name in set(curves["dataset"])]
    figure, axes = panels(len(datasets), 4, width=3.2, height=2.7)
    for ax, dataset in zip(axes, datasets, strict=True):
        here = curves[curves["dataset"] == dataset]
        for method in in_order(_SHOWN, curves["method"].unique()):
            rows = here[here["method"] == method].sort_values("n_features")
            if method == "ALLfea":
                # All features are no point on this axis: a level to compare with.
                level = rows["score"].iloc[0] if len(rows) else math.nan
                ax.axhline(level, label=method, color=color(method), linestyle=":", linewidth=1.4)
            else:
                ax.plot(rows["n_features"], rows["score"], label=method, **line_style(method))
        ax.set_title(dataset)
        ax.grid(visible=True, axis="y")
        ax.set_xlabel("number of features")
        ax.set_ylabel(f"{metric.upper()} (%)")
    legend_below(figure, axes[0])
    alternative = (
        f"{metric.upper()} against the number of selected features, one panel per dataset."
    )
    return NamedFigure("curves", figure, alternative)


def _highest_notes(curves: pd.DataFrame, metric: str) -> list[str]:
    """Say at how many points of each panel BSUFS is the highest, and above Random."""
    selected = curves[curves["method"] != "ALLfea"]
    table = selected.pivot_table(
        index=["dataset", "n_features"], columns="method", values="score", sort=False
    )
    notes = []
    for method in ("BSUFS", "BSUFS (paper's grid)"):
        if method not in table.columns:
            continue
        own = table[table[method].notna()]
        rivals = own.drop(columns=["BSUFS", "BSUFS (paper's grid)"], errors="ignore")
        highest = int((own[method] >= rivals.max(axis=1)).sum())
        text = (
            f"{method} has the largest {metric.upper()} at {highest} of {len(own)} points (dataset "
            "and number of features)"
        )
        if RANDOM in table.columns:
            both = own[own[RANDOM].notna()]
            above = int((both[method] > both[RANDOM]).sum())
            text += f", and is above Random at {above} of {len(both)}"
        notes.append(f"{text}.")
    return notes


def box_figure(item: Item, results: Results, printed: Printed) -> Section:
    """Draw the repetitions of every method as boxes."""
    datasets = list(item.options["datasets"])
    cells, parts = [], []
    for metric in ("acc", "nmi"):
        rows = confirmed_rows(results, item.run, metric)
        spread = summarize(rows, metric, ("dataset", "method"))["sd"].to_dict()
        cells += cell_grid(
            results,
            item.run,
            f"{metric.upper()}, spread over repetitions",
            datasets,
            _SHOWN,
            lambda *key, sd=spread: {"here": sd.get(key, math.nan)},
        )
        parts.append(rows.assign(metric=metric, score=100 * rows[metric].astype(float)))
    repetitions = pd.concat([part for part in parts if len(part)] or parts)
    shown = [name for name in datasets if name in set(repetitions["dataset"])]
    if not shown:
        return drawn(item, results, cells, [], [])
    figure, notes = _draw_boxes(repetitions, shown), _box_notes(repetitions, shown)
    return drawn(item, results, cells, [figure], notes)


def _draw_boxes(repetitions: pd.DataFrame, datasets: list[str]) -> NamedFigure:
    methods = [name for name in _SHOWN if name in set(repetitions["method"])]
    figure, axes = panels(2 * len(datasets), len(datasets), width=3.3, height=2.9, sharex=False)
    for index, ax in enumerate(axes):
        metric = ("acc", "nmi")[index // len(datasets)]
        dataset = datasets[index % len(datasets)]
        here = repetitions[(repetitions["metric"] == metric) & (repetitions["dataset"] == dataset)]
        for position, method in enumerate(methods):
            scores = here.loc[here["method"] == method, "score"].to_numpy()
            if not len(scores):
                continue
            hue = color(method)
            ax.boxplot(
                scores,
                positions=[position],
                widths=0.65,
                patch_artist=True,
                manage_ticks=False,
                boxprops={"facecolor": hue + "55", "edgecolor": hue},
                medianprops={"color": "black", "linewidth": 1.4},
                whiskerprops={"color": hue},
                capprops={"color": hue},
                flierprops={"marker": ".", "markersize": 3, "markeredgecolor": hue},
            )
        ax.set_xticks(range(len(methods)), methods, rotation=60, ha="right", rotation_mode="anchor")
        ax.set_title(f"{dataset} ({metric.upper()})")
        ax.set_ylabel(f"{metric.upper()} (%)")
        ax.grid(visible=True, axis="y")
    return NamedFigure("boxes", figure, "Box plots of the repetitions by method and dataset.")


def _box_notes(repetitions: pd.DataFrame, datasets: list[str]) -> list[str]:
    counts = repetitions.groupby(["metric", "dataset", "method"]).size()
    low, high = int(counts.min()), int(counts.max())
    number = f"{low}" if low == high else f"{low} to {high}"
    notes = [f"Each box holds {number} repetitions with fresh seeds at the winning setting."]
    for metric in ("acc", "nmi"):
        rows = repetitions[repetitions["metric"] == metric]
        medians = rows.pivot_table(
            index="dataset", columns="method", values="score", aggfunc="median"
        )
        medians = medians.drop(columns=["ALLfea"], errors="ignore").reindex(datasets)
        if "BSUFS" in medians.columns:
            top = [
                name for name in datasets if medians.loc[name, "BSUFS"] >= medians.loc[name].max()
            ]
            notes.append(
                f"BSUFS has the largest median {metric.upper()} of the selections on {len(top)} of "
                f"{int(medians['BSUFS'].notna().sum())} datasets."
            )
    return notes


def convergence_figure(item: Item, results: Results, printed: Printed) -> Section:
    """Draw the objective of BSUFS over the iterations."""
    history = results.select("objective", run=item.run)
    cells, curves, falling = [], {}, []
    for dataset in in_order(item.options["datasets"], history["dataset"].unique()):
        rows = history[history["dataset"] == dataset].sort_values("iteration")
        rise = iterations = math.nan
        if len(rows):
            curves[dataset] = rows
            values = rows["value"].to_numpy(dtype=float)
            scale = float(np.abs(values).max()) or 1.0
            rise = 100 * max(0.0, float(np.diff(values, prepend=values[0]).max())) / scale
            iterations = float(rows["iteration"].max())
            if rise <= 100 * _ROUNDING:
                falling.append(dataset)
        cells += [
            make_cell(
                dataset,
                column,
                "objective",
                here=here,
                reason=results.why_missing(item.run, dataset),
            )
            for column, here in (("iterations", iterations), ("largest rise, % of the scale", rise))
        ]
    if not curves:
        return drawn(item, results, cells, [], [])
    notes = [f"The objective never rises on {len(falling)} of {len(curves)} datasets."]
    notes += [
        f"{dataset}: {int(rows['n_alive'].iloc[0])} remaining rows at first, "
        f"{int(rows['n_alive'].iloc[-1])} after {int(rows['iteration'].iloc[-1])} iterations."
        for dataset, rows in curves.items()
        if rows["n_alive"].notna().all()
    ]
    return drawn(item, results, cells, [_draw_objective(curves)], notes)


def _draw_objective(curves: dict[str, pd.DataFrame]) -> NamedFigure:
    figure, axes = panels(2 * len(curves), len(curves), width=3.0, height=2.2)
    for index, (dataset, rows) in enumerate(curves.items()):
        top, bottom = axes[index], axes[index + len(curves)]
        top.plot(rows["iteration"], rows["value"].astype(float), color=color("BSUFS"))
        top.set_title(dataset)
        bottom.plot(rows["iteration"], rows["n_alive"].astype(float), color="#332288")
        bottom.set_ylim(bottom=0)
        bottom.set_xlabel("iteration")
        for ax in (top, bottom):
            ax.grid(visible=True, axis="y")
    axes[0].set_ylabel("objective")
    axes[len(curves)].set_ylabel("remaining rows")
    return NamedFigure("curves", figure, "Objective and remaining rows over the iterations.")
