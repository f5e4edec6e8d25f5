"""What several views share: columns in a fixed order, and sentences about two methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import pandas as pd

from bsufs_paper.reporting.results import Results
from bsufs_paper.reporting.sections import Item, NamedFigure, Section, cells_frame, make_cell

RIVALS = ("BSUFS", "BSUFS (paper's grid)")
RANDOM = "Random"
# Methods with another number of settings than BSUFS have a column of chance of their own.
_OWN_CHANCE = {
    "BSUFS (paper's grid)": "Random (as the paper's grid)",
    "Case II": "Random (as Cases II, III)",
    "Case III": "Random (as Cases II, III)",
}


def chance_for(method: str, known: Iterable[str]) -> str:
    """Return the column of random rankings that had as many settings, if there is one."""
    own = _OWN_CHANCE.get(method, RANDOM)
    return own if own in set(known) else RANDOM


def in_order(known: Sequence[str], found: Iterable[str]) -> list[str]:
    """Return the known names in their order, then those found that nobody expected, sorted."""
    return [*known, *sorted(set(found) - set(known))]


def value(table: pd.DataFrame, key: tuple[str | float, ...], column: str) -> float:
    """Return a number of a summary, NaN where it is absent."""
    if key not in table.index:
        return math.nan
    return float(table.loc[key, column])


def measured(table: pd.DataFrame, key: tuple[str | float, ...]) -> dict[str, float]:
    """Return what a cell holds of a summary."""
    columns = {"here": "mean", "here_sd": "sd", "n_features_here": "n_features"}
    return {name: value(table, key, column) for name, column in columns.items()}


def cell_grid(
    results: Results,
    run: str,
    metric: str,
    datasets: Iterable[str],
    methods: Iterable[str],
    fill: Callable[[str, str], Mapping[str, float]],
) -> list[dict[str, Any]]:
    """Return a cell for each dataset and method, with what `fill` says of the two."""
    return [
        make_cell(
            dataset,
            method,
            metric,
            **fill(dataset, method),
            reason=results.why_missing(run, dataset, method),
        )
        for dataset, method in product(datasets, methods)
    ]


def listed(names: Iterable[str]) -> str:
    """Return names as a phrase."""
    return ", ".join(names) or "none"


def standard_errors_apart(first: pd.Series, second: pd.Series) -> float:
    """Return the difference of two means in standard errors of it; NaN without repetitions."""
    error = math.sqrt(first["sd"] ** 2 / first["n"] + second["sd"] ** 2 / second["n"])
    return float((first["mean"] - second["mean"]) / error) if error > 0 else math.nan


def above_random_notes(
    table: pd.DataFrame, metric: str, methods: Sequence[str] = RIVALS
) -> list[str]:
    """Say on how many datasets methods are above Random, and how surely."""
    notes = []
    for method in methods:
        chance = chance_for(method, table.index.get_level_values("method"))
        both = _both(table, method, chance)
        if not both:
            continue
        apart = {
            dataset: standard_errors_apart(
                table.loc[(dataset, method)], table.loc[(dataset, chance)]
            )
            for dataset in both
        }
        above = [
            name
            for name in both
            if table.loc[(name, method), "mean"] > table.loc[(name, chance), "mean"]
        ]
        surely = [name for name in above if apart[name] > 2]
        notes.append(
            f"{method} is above {chance} in {metric} on {len(above)} of {len(both)} datasets "
            f"({listed(above)}), by more than two standard errors on {len(surely)}."
        )
    return notes


def _both(table: pd.DataFrame, method: str, chance: str) -> list[str]:
    index = set(table.index)
    datasets = dict.fromkeys(table.index.get_level_values("dataset"))
    return [name for name in datasets if {(name, method), (name, chance)} <= index]


def budget_notes(results: Results, run: str) -> list[str]:
    """Say how many settings each method was given, and whether Random had as many as BSUFS."""
    winners = results.select("winners", run=run)
    if winners.empty:
        return []
    spans = winners.groupby("method", sort=False)["n_settings"].agg(["min", "max"])
    parts = [
        f"{method} {low:.0f}" if low == high else f"{method} {low:.0f} to {high:.0f}"
        for method, low, high in spans.itertuples()
    ]
    notes = [f"Settings tried by method: {', '.join(parts)}."]
    sizes = winners.pivot_table(
        index="dataset", columns="method", values="n_settings", aggfunc="first", sort=False
    )
    for method in RIVALS:
        chance = chance_for(method, sizes.columns)
        if {method, chance} <= set(sizes.columns):
            pair = sizes[[method, chance]].dropna()
            other = pair.index[pair[method] != pair[chance]]
            if len(other):
                notes.append(
                    f"Random does not have the budget of {method} on {listed(other)}: read that "
                    "comparison with care."
                )
    return notes


def drawn(
    item: Item,
    results: Results,
    cells: Iterable[dict[str, Any]],
    figures: list[NamedFigure],
    notes: list[str],
) -> Section:
    """Return the section of a figure, which says why if there is nothing to draw."""
    if not figures:
        notes = [*notes, f"Nothing to draw: {results.why_missing(item.run)}."]
    return Section(item, cells_frame(cells), figures, notes)
