"""Pictures of matrices: the transformation, correlations, and pixels on faces."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap

from bsufs_paper.reporting.paper import CASES
from bsufs_paper.reporting.results import Printed, Results, confirmed
from bsufs_paper.reporting.sections import Item, NamedFigure, Section, cells_frame, make_cell
from bsufs_paper.reporting.style import panels
from bsufs_paper.reporting.views._common import RANDOM, cell_grid, drawn, in_order, measured


def sparsity_figure(item: Item, results: Results, printed: Printed) -> Section:
    """Draw the transformation matrix of every case, and count its zeros."""
    weights = results.select("weights", run=item.run)
    matrices = _matrices(weights, "feature", "component", "value")
    shares = {key: _zero_shares(matrix) for key, matrix in matrices.items()}
    datasets, nothing = item.options["datasets"], (math.nan, math.nan)
    cells = []
    for place, label in enumerate(("zero rows, %", "zero entries, %")):
        cells += cell_grid(
            results,
            item.run,
            label,
            datasets,
            CASES,
            lambda *key, place=place: {"here": shares.get(key, nothing)[place]},
        )
    figures = [
        _draw_matrices(dataset, {m: w for (d, m), w in matrices.items() if d == dataset})
        for dataset in datasets
        if any(key[0] == dataset for key in matrices)
    ]
    return drawn(item, results, cells, figures, _sparsity_notes(cells_frame(cells)))


def _matrices(
    frame: pd.DataFrame, index: str, columns: str, values: str
) -> dict[tuple[str, str], np.ndarray]:
    """Return the matrix of each dataset and method."""
    groups = frame.groupby(["dataset", "method"], sort=False)
    return {
        (str(dataset), str(method)): rows.pivot(
            index=index, columns=columns, values=values
        ).to_numpy(dtype=float)
        for (dataset, method), rows in groups
    }


def _zero_shares(matrix: np.ndarray) -> tuple[float, float]:
    zero = matrix == 0
    return 100 * float(zero.all(axis=1).mean()), 100 * float(zero.mean())


def _draw_matrices(dataset: str, matrices: dict[str, np.ndarray]) -> NamedFigure:
    methods = [name for name in in_order(CASES, matrices) if name in matrices]
    figure, axes = panels(len(methods), 4, width=2.6, height=4.2)
    for ax, method in zip(axes, methods, strict=True):
        size = np.abs(matrices[method])
        # Exact zeros are white; the scale of the others is each matrix's own.
        shown = np.ma.masked_equal(size, 0)
        image = ax.imshow(shown, aspect="auto", cmap="cividis_r", interpolation="nearest", vmin=0)
        rows, entries = _zero_shares(matrices[method])
        ax.set_title(
            f"{dataset} ({method})\nzero rows {rows:.0f} %, entries {entries:.0f} %", fontsize=9.5
        )
        ax.set_xlabel("component")
        ax.set_ylabel("feature")
        figure.colorbar(image, ax=ax, shrink=0.6)
    alternative = f"Absolute values of the transformation matrix on {dataset}; zeros are white."
    return NamedFigure(dataset, figure, alternative)


def _sparsity_notes(frame: pd.DataFrame) -> list[str]:
    notes = []
    for metric, rows in frame.dropna(subset=["here"]).groupby("metric", sort=False):
        for dataset, row in rows.groupby("row", sort=False):
            shares = ", ".join(
                f"{c} {v:.0f} %" for c, v in zip(row["column"], row["here"], strict=True)
            )
            what = metric.removesuffix(", %")
            notes.append(f"{dataset}, share of {what}: {shares}.")
    return notes


def correlation_figure(item: Item, results: Results, printed: Printed) -> Section:
    """Draw the correlations of the ten best features, and their mean size."""
    pairs = results.select("correlations", run=item.run)
    methods, datasets = item.options["methods"], item.options["datasets"]
    matrices = _matrices(pairs, "i", "j", "r")
    sizes = {
        key: float(np.abs(matrix[~np.eye(len(matrix), dtype=bool)]).mean())
        for key, matrix in matrices.items()
    }
    cells = cell_grid(
        results,
        item.run,
        "mean absolute correlation of different features",
        datasets,
        methods,
        lambda *key: {"here": sizes.get(key, math.nan)},
    )
    if not matrices:
        return drawn(item, results, cells, [], [])
    first, second = methods
    table = cells_frame(cells).pivot(index="row", columns="column", values="here").dropna()
    lower = [str(name) for name in table.index if table.loc[name, second] < table.loc[name, first]]
    notes = [
        f"The features of {second} are less correlated than those of {first} on {len(lower)} of "
        f"{len(table)} datasets."
    ]
    figure = _draw_correlations(matrices, methods, datasets)
    return drawn(item, results, cells, [figure], notes)


def _draw_correlations(
    matrices: dict[tuple[str, str], np.ndarray], methods: list[str], datasets: list[str]
) -> NamedFigure:
    shown = [name for name in datasets if any(key[0] == name for key in matrices)]
    figure, axes = panels(len(methods) * len(shown), len(shown), width=2.7, height=2.6)
    keys = [(dataset, method) for method in methods for dataset in shown]
    image: Any = None
    for ax, key in zip(axes, keys, strict=True):
        ax.set_title(f"{key[0]} ({key[1]})")
        if key not in matrices:
            ax.axis("off")
            continue
        matrix = matrices[key]
        image = ax.imshow(matrix, cmap="PuOr", vmin=-1, vmax=1)
        ticks = range(0, len(matrix), 3)
        ax.set_xticks(ticks, [f"F{tick + 1}" for tick in ticks])
        ax.set_yticks(ticks, [f"F{tick + 1}" for tick in ticks])
    figure.colorbar(image, ax=axes, shrink=0.7, label="correlation")
    return NamedFigure("heat", figure, "Heat maps of the correlations of the ten best features.")


def pixels_table(item: Item, results: Results, printed: Printed) -> Section:
    """Mark the selected pixels on faces, and compare the scores printed beside them."""
    paper = printed["pixels"].set_index(["method", "metric"])["mean"]
    dataset = item.options["dataset"]
    cells = []
    for metric in ("ACC", "NMI"):
        cases = confirmed(results, item.options["scores"], metric.lower())
        chance = confirmed(results, item.options["random"], metric.lower())
        for method in (*CASES, RANDOM):
            table, run = (chance, "random") if method == RANDOM else (cases, "scores")
            cells.append(
                make_cell(
                    method,
                    metric,
                    f"{dataset}, %",
                    paper=float(paper.get((method, metric), math.nan)),
                    **measured(table, (dataset, method)),
                    reason=results.why_missing(item.options[run], dataset, method),
                )
            )
    notes = [
        "The paper prints no spread here, so differences are in standard deviations measured here."
    ]
    images = results.select("images", run=item.run, dataset=dataset)
    if images.empty:
        return drawn(item, results, cells, [], notes)
    marked = images[images["sample"] == images["sample"].min()]
    counts = marked.groupby("method", sort=False)["selected"].sum()
    text = ", ".join(f"{method} {int(count)}" for method, count in counts.items())
    notes.append(f"Marked pixels: {text}.")
    notes += _overlap_notes(marked)
    return drawn(item, results, cells, [_draw_faces(images)], notes)


def _overlap_notes(marked: pd.DataFrame) -> list[str]:
    chosen = {
        str(method): set(
            rows.loc[rows["selected"].astype(bool), ["row", "column"]].itertuples(
                index=False, name=None
            )
        )
        for method, rows in marked.groupby("method", sort=False)
    }
    if "Case IV" not in chosen:
        return []
    last = chosen.pop("Case IV")
    parts = [f"{len(last & other)} with {method}" for method, other in chosen.items()]
    return [f"Of its {len(last)} pixels Case IV shares {', '.join(parts)}."] if parts else []


def _draw_faces(images: pd.DataFrame) -> NamedFigure:
    methods = [
        name for name in in_order(CASES, images["method"].unique()) if name in set(images["method"])
    ]
    samples = sorted(images["sample"].unique())
    figure, axes = panels(len(methods) * len(samples), len(samples), width=1.6, height=1.6)
    highlight = ListedColormap(["#00000000", "#ff7f0e"])
    for index, ax in enumerate(axes):
        method, sample = methods[index // len(samples)], samples[index % len(samples)]
        rows = images[(images["method"] == method) & (images["sample"] == sample)]
        face = rows.pivot(index="row", columns="column", values="value").to_numpy(dtype=float)
        mask = rows.pivot(index="row", columns="column", values="selected").to_numpy(dtype=float)
        ax.imshow(face, cmap="gray", interpolation="nearest")
        ax.imshow(mask, cmap=highlight, vmin=0, vmax=1, interpolation="nearest")
        ax.set_xticks([])
        ax.set_yticks([])
        for side in ax.spines.values():
            side.set_visible(False)
        if sample == samples[0]:
            ax.set_ylabel(method, fontsize=11)
    return NamedFigure("faces", figure, "Faces with the selected pixels marked in orange.")
