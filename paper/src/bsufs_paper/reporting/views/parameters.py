"""What the exponents p and q and the two weights do to the scores."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from bsufs_paper.reporting.paper import DATASETS
from bsufs_paper.reporting.results import Printed, Results, expand_parameters
from bsufs_paper.reporting.sections import (
    Item,
    NamedFigure,
    Section,
    Verdict,
    cells_frame,
    make_cell,
)
from bsufs_paper.reporting.style import HEAT, SEQUENCE, legend_below, panels
from bsufs_paper.reporting.views._common import drawn

_METRICS = ("acc", "nmi")


def _fraction(value: float) -> str:
    return str(Fraction(value).limit_denominator(12))


def _searched(results: Results, run: str, method: str) -> pd.DataFrame:
    """Return the search of a method with its parameters as numbers."""
    rows = results.select("search", run=run, method=method)
    names = ("p", "q", "lambda_row", "lambda_element")
    expanded = expand_parameters(rows, names)
    # Exponents that were written with different numbers of digits are one exponent.
    return expanded.assign(p=expanded["p"].round(4), q=expanded["q"].round(4))


def exponents_figure(item: Item, results: Results, printed: Printed) -> Section:
    """Draw the best score over the weights for every pair of exponents."""
    metric = item.options["metric"]
    methods = item.options["methods"]
    searched = results.select("search", run=item.run)["method"].unique()
    method = next((name for name in methods if name in searched), methods[0])
    rows = _searched(results, item.run, method).dropna(subset=["p", "q"])
    said = printed["exponents"].set_index("dataset")
    best = rows.groupby(["dataset", "p", "q"])[list(_METRICS)].max().astype(float) * 100
    cells, notes = [], []
    for dataset in DATASETS:
        table = best[best.index.get_level_values("dataset") == dataset]
        there = len(table) > 0
        winner = table[metric].idxmax() if there else (dataset, math.nan, math.nan)
        for name, found in zip("pq", winner[1:], strict=True):
            paper = math.nan
            if dataset in said.index:
                paper = round(float(Fraction(str(said.loc[dataset, name]))), 4)
            cells.append(
                make_cell(
                    dataset,
                    f"best {name}",
                    "exponent",
                    paper=paper,
                    here=found,
                    reason=results.why_missing(item.run, dataset, method),
                )
            )
        if there:
            spread = table[metric].max() - table[metric].min()
            notes.append(
                f"{dataset}: best at p = {_fraction(winner[1])}, q = {_fraction(winner[2])}; the "
                f"pairs span {spread:.1f} points of {metric.upper()}."
            )
    if best.empty:
        return drawn(item, results, cells, [], [])
    frame = cells_frame(cells)
    frame_said = frame[frame["row"].isin(said.index) & (frame["verdict"] != Verdict.NOT_RUN)]
    agreeing = [
        set(row["verdict"]) == {Verdict.WITHIN} for _, row in frame_said.groupby("row", sort=False)
    ]
    notes.insert(
        0,
        f"{method}: bars are the best mean of the few search repetitions over all weights and "
        "numbers of features. The pair that the paper names best is best here on "
        f"{sum(agreeing)} of "
        f"{len(agreeing)} datasets; exponents have no spread, so only equal ones agree.",
    )
    return drawn(item, results, cells, [_bars(best, metric)], notes)


def _bars(best: pd.DataFrame, metric: str) -> NamedFigure:
    datasets = [name for name in DATASETS if name in best.index.get_level_values("dataset")]
    ps = sorted(best.index.get_level_values("p").unique())
    qs = sorted(best.index.get_level_values("q").unique())
    figure, axes = panels(len(datasets), 4, width=2.9, height=2.4)
    width = 0.8 / len(qs)
    for ax, dataset in zip(axes, datasets, strict=True):
        table = best[metric].loc[dataset].unstack("q").reindex(index=ps, columns=qs)
        for index, q in enumerate(qs):
            ax.bar(
                np.arange(len(ps)) + (index - (len(qs) - 1) / 2) * width,
                table[q].to_numpy(),
                width,
                label=f"q = {_fraction(q)}",
                color=SEQUENCE[index % len(SEQUENCE)],
                edgecolor="black",
                linewidth=0.4,
            )
        low, high = np.nanmin(table.to_numpy()), np.nanmax(table.to_numpy())
        margin = max(0.25 * (high - low), 1.0)
        ax.set_ylim(max(0.0, low - 2 * margin), high + margin)
        ax.set_xticks(range(len(ps)), [_fraction(p) for p in ps])
        ax.set_title(dataset)
        ax.set_xlabel("p")
        ax.set_ylabel(f"{metric.upper()} (%)")
        ax.grid(visible=True, axis="y")
        ax.set_axisbelow(True)
    legend_below(figure, axes[0])
    alternative = (
        f"Bars of the best {metric.upper()} for each p and q, one panel per dataset; the axes do "
        "not begin at zero."
    )
    return NamedFigure("bars", figure, alternative)


def weights_figure(item: Item, results: Results, printed: Printed) -> Section:
    """Draw the scores over the two weights at the winner's exponents and number of features."""
    rows = _searched(results, item.run, item.options["method"])
    rows = rows.dropna(subset=["lambda_row", "lambda_element"])
    winners = expand_parameters(
        results.select("winners", run=item.run, method=item.options["method"]), ("p", "q")
    ).set_index("dataset")
    grids: dict[tuple[str, str], pd.DataFrame] = {}
    titles: dict[str, str] = {}
    cells, notes = [], []
    for dataset in item.options["datasets"]:
        at_winner = rows[rows["dataset"] == dataset]
        if dataset in winners.index and len(at_winner):
            won = winners.loc[dataset]
            titles[dataset] = f"p = {_fraction(won['p'])}, q = {_fraction(won['q'])}"
            same = np.isclose(at_winner["p"], won["p"], atol=1e-3)
            same &= np.isclose(at_winner["q"], won["q"], atol=1e-3)
            at_winner = at_winner[same & (at_winner["n_features"] == won["n_features"])]
        else:
            at_winner = at_winner.iloc[:0]
        for metric in _METRICS:
            spans = {"lambda_row": math.nan, "lambda_element": math.nan}
            if len(at_winner):
                grid = 100 * at_winner.pivot_table(
                    index="lambda_row", columns="lambda_element", values=metric, aggfunc="mean"
                ).astype(float)
                grids[dataset, metric] = grid
                # How far the score moves along one weight, on average over the other.
                spans["lambda_row"] = float((grid.max(axis=0) - grid.min(axis=0)).mean())
                spans["lambda_element"] = float((grid.max(axis=1) - grid.min(axis=1)).mean())
                notes.append(
                    f"{dataset}: {metric.upper()} moves by {spans['lambda_row']:.1f} points along "
                    f"lambda_row and by {spans['lambda_element']:.1f} along lambda_element."
                )
            cells += [
                make_cell(
                    dataset,
                    f"span along {name}",
                    f"{metric.upper()}, points",
                    here=span,
                    reason=results.why_missing(item.run, dataset, item.options["method"]),
                )
                for name, span in spans.items()
            ]
    return drawn(item, results, cells, [_heat_maps(grids, titles)] if grids else [], notes)


def _heat_maps(grids: dict[tuple[str, str], pd.DataFrame], titles: dict[str, str]) -> NamedFigure:
    figure, axes = panels(len(grids), len(titles), width=3.0, height=2.7)
    ordered = [(dataset, metric) for metric in _METRICS for dataset in titles]
    for ax, (dataset, metric) in zip(axes, ordered, strict=True):
        grid = grids[dataset, metric]
        image = ax.imshow(grid.to_numpy(), origin="lower", cmap=HEAT, aspect="auto")
        _log_ticks(ax, grid)
        ax.set_title(f"{dataset} ({metric.upper()}, %)\n{titles[dataset]}")
        figure.colorbar(image, ax=ax, shrink=0.85)
    return NamedFigure("heat", figure, "Heat maps of ACC and NMI over the two weights.")


def _log_ticks(ax: Axes, grid: pd.DataFrame) -> None:
    ax.set_yticks(range(len(grid.index)), [_power(value) for value in grid.index])
    ax.set_xticks(range(len(grid.columns)), [_power(value) for value in grid.columns])
    ax.set_ylabel("log10 lambda_row")
    ax.set_xlabel("log10 lambda_element")
    ax.tick_params(length=0)


def _power(value: float) -> str:
    return f"{math.log10(value):.3g}" if value > 0 else "-inf"
