"""Critical-difference diagrams: which average ranks differ, here and in the paper's numbers."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.figure import Figure

from bsufs_paper.reporting.paper import METHODS
from bsufs_paper.reporting.ranks import RankComparison, compare_ranks
from bsufs_paper.reporting.results import Printed, Results, confirmed
from bsufs_paper.reporting.sections import Item, NamedFigure, Section, cells_frame, make_cell
from bsufs_paper.reporting.style import color
from bsufs_paper.reporting.views._common import RANDOM, listed

_COMPARED = METHODS[1:]


def nemenyi_figure(item: Item, results: Results, printed: Printed) -> Section:
    """Rank the methods over datasets and join those that do not differ."""
    metric = item.options["metric"]
    paper_scores = _wide(printed[f"clustering-{metric}"].query("dataset != 'Average'"))
    here_scores = _wide(confirmed(results, item.run, metric).reset_index())
    paper = compare_ranks(paper_scores[list(_COMPARED)])
    here = _compare(here_scores, _COMPARED)
    with_random = _compare(here_scores, (*_COMPARED, "BSUFS (paper's grid)", RANDOM))
    figures = []
    notes = [
        "ALLfea is left out of every ranking, since it selects nothing. Random and the paper's "
        "grid "
        "are left out of the first two diagrams, so that they compare the same methods, and stand "
        "in the third."
    ]
    for comparison, name, title in (
        (paper, "paper", "The paper's numbers"),
        (here, "here", "Numbers measured here"),
        (with_random, "here-with-random", "Numbers measured here, with Random"),
    ):
        if comparison is None:
            notes.append(f"{title}: too few methods or datasets with all results to rank.")
            continue
        notes += _comparison_notes(comparison, title, metric)
        figures.append(_diagram(comparison, name, f"{title}: {metric.upper()}"))
    if paper is not None:
        notes += _statement_notes(paper, printed["nemenyi"])
    cells = [
        make_cell(
            "average rank",
            method,
            metric.upper(),
            paper=_rank(paper, method),
            here=_rank(here, method),
            here_sd=math.nan if here is None else here.critical_difference,
            reason="too few datasets on which every method has a result",
        )
        for method in _COMPARED
    ]
    notes.append("For ranks the unit of a difference is the critical difference measured here.")
    return Section(item, cells_frame(cells), figures, notes)


def _wide(scores: pd.DataFrame) -> pd.DataFrame:
    return scores.pivot_table(index="dataset", columns="method", values="mean", sort=False)


def _compare(scores: pd.DataFrame, methods: tuple[str, ...]) -> RankComparison | None:
    """Compare those of the methods that have any result."""
    return compare_ranks(scores[[name for name in methods if name in scores.columns]])


def _rank(comparison: RankComparison | None, method: str) -> float:
    if comparison is None or method not in comparison.ranks.index:
        return math.nan
    return float(comparison.ranks[method])


def _comparison_notes(comparison: RankComparison, title: str, metric: str) -> list[str]:
    ranks = ", ".join(f"{method} {rank:.2f}" for method, rank in comparison.ranks.items())
    notes = [
        f"{title}: Friedman's chi-squared is {comparison.statistic:.1f} (p = "
        f"{comparison.p_value:.2g}) "
        f"over {len(comparison.datasets)} datasets ({listed(comparison.datasets)}); average ranks "
        f"in {metric.upper()}: {ranks}; critical difference {comparison.critical_difference:.2f}."
    ]
    if "BSUFS" in comparison.ranks.index:
        differing = _differing(comparison)
        notes.append(f"{title}: BSUFS differs from {listed(differing)} at the level 0.05.")
    return notes


def _differing(comparison: RankComparison) -> list[str]:
    ranks = comparison.ranks
    apart = (ranks - ranks["BSUFS"]).abs() > comparison.critical_difference
    return [str(name) for name in ranks.index[apart]]


def _statement_notes(paper: RankComparison, said: pd.DataFrame) -> list[str]:
    """Hold what the paper's text says against the paper's numbers."""
    claimed = set(said.loc[said["differs_from_bsufs"] == 1, "method"])
    found = set(_differing(paper))
    if claimed == found:
        return ["The paper's text names the same differences as its numbers."]
    return [
        "The paper's text says that BSUFS differs from "
        f"{listed(sorted(claimed))}; by its printed numbers it differs from "
        f"{listed(sorted(found))}."
    ]


def _diagram(comparison: RankComparison, name: str, title: str) -> NamedFigure:
    """Draw ranks on an axis with labels at both sides, and bars over those that do not differ."""
    ranks = comparison.ranks
    n_methods = len(ranks)
    n_left = (n_methods + 1) // 2
    bars = len(comparison.groups)
    depth = 0.3 + 0.16 * bars
    height = depth + 0.3 * n_left
    figure = Figure(figsize=(8.4, 1.0 + 0.95 * height), layout="constrained")
    ax = figure.subplots()
    ax.set_xlim(1 - 0.32 * n_methods, n_methods + 0.32 * n_methods)
    ax.set_ylim(-height - 0.1, 0.75)
    ax.axis("off")
    ax.plot([1, n_methods], [0, 0], color="black", linewidth=1)
    for tick in range(1, n_methods + 1):
        ax.plot([tick, tick], [0, 0.07], color="black", linewidth=1)
        ax.text(tick, 0.1, str(tick), ha="center", va="bottom", fontsize=9.5)
    critical = comparison.critical_difference
    ax.plot([1, 1 + critical], [0.5, 0.5], color="black", linewidth=2, marker="|")
    ax.text(1 + critical / 2, 0.54, f"CD = {critical:.2f}", ha="center", va="bottom", fontsize=9.5)
    for index, (method, rank) in enumerate(ranks.items()):
        is_left = index < n_left
        level = -depth - 0.3 * (index if is_left else n_methods - 1 - index)
        side = 1 - 0.03 * n_methods if is_left else n_methods + 0.03 * n_methods
        weight = "bold" if str(method).startswith("BSUFS") else "normal"
        ax.plot([rank, rank, side], [0, level, level], color=color(str(method)), linewidth=1.3)
        ax.text(
            side + (-0.08 if is_left else 0.08),
            level,
            f"{method} ({rank:.2f})",
            ha="right" if is_left else "left",
            va="center",
            fontsize=10,
            fontweight=weight,
        )
    for index, group in enumerate(comparison.groups):
        level = -0.14 - 0.16 * index
        ends = [ranks[group[0]] - 0.06, ranks[group[-1]] + 0.06]
        ax.plot(ends, [level, level], color="black", linewidth=4, solid_capstyle="round")
    ax.set_title(
        f"{title} ({len(comparison.datasets)} datasets; best rank at the left)", fontsize=11
    )
    order = ", ".join(str(method) for method in ranks.index)
    alternative = f"{title}: methods from best to worst average rank: {order}."
    return NamedFigure(name, figure, alternative)
