"""The objective over the iterations, and the rows that are still alive."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from bsufs_paper.reporting.catalog import Item
from bsufs_paper.reporting.results import Printed, Results
from bsufs_paper.reporting.sections import NamedFigure, Section, make_cell
from bsufs_paper.reporting.style import color, panels
from bsufs_paper.reporting.views._common import drawn, in_order

# Rises of this share of the largest objective are rounding, not ascent.
_ROUNDING = 1e-9


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
        f"{dataset}: {int(rows['n_alive'].iloc[0])} living rows at first, "
        f"{int(rows['n_alive'].iloc[-1])} after {int(rows['iteration'].iloc[-1])} iterations."
        for dataset, rows in curves.items()
        if rows["n_alive"].notna().all()
    ]
    return drawn(item, results, cells, [_draw(curves)], notes)


def _draw(curves: dict[str, pd.DataFrame]) -> NamedFigure:
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
    axes[len(curves)].set_ylabel("living rows")
    return NamedFigure("curves", figure, "Objective and number of living rows over the iterations.")
