"""Tables of clustering scores: the paper's two, its ablation, and ours."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pandas as pd

from bsufs_paper.reporting.paper import (
    CASES,
    DATASETS,
    METHODS,
    agreement_notes,
    all_features_note,
    average_notes,
    feature_count_note,
    mark_notes,
)
from bsufs_paper.reporting.results import KMEANS_INIT, Printed, Results, confirmed, summarize
from bsufs_paper.reporting.sections import Item, Section, Verdict, cells_frame, make_cell
from bsufs_paper.reporting.views._common import (
    RANDOM,
    above_random_notes,
    budget_notes,
    cell_grid,
    in_order,
    listed,
    measured,
    value,
)

_KEY = ["dataset", "method"]


def clustering_table(item: Item, results: Results, printed: Printed) -> Section:
    """Compare the label-tuned scores of all methods with the paper's table."""
    metric = item.options["metric"]
    paper_table = printed[item.printed[0]]
    paper = paper_table.set_index(_KEY)
    here = confirmed(results, item.run, metric)
    found = here.index.get_level_values("method")
    methods = in_order((*METHODS, "BSUFS (paper's grid)", RANDOM), found)
    cells = _compared(results, item.run, metric, paper, here, methods)
    all_features = [cell for cell in cells if cell["column"] == "ALLfea"]
    cells += [_average(metric, paper, here, method) for method in methods]
    notes = [
        *_all_features_notes(all_features, metric),
        *above_random_notes(here, metric.upper()),
        *_best_notes(here, metric),
        *budget_notes(results, item.run),
        *_average_row_notes(here, methods),
        *average_notes(paper_table),
        *mark_notes(paper_table, ignore=("ALLfea",)),
    ]
    notes += [all_features_note()] if metric == "acc" else [feature_count_note()]
    return Section(item, cells_frame(cells), notes=notes)


def _compared(
    results: Results,
    run: str,
    metric: str,
    paper: pd.DataFrame,
    here: pd.DataFrame,
    methods: Iterable[str],
) -> list[dict[str, Any]]:
    """Return the cells of all datasets, each beside the printed one."""

    def fill(dataset: str, method: str) -> dict[str, float]:
        key = (dataset, method)
        # The printed count of ALLfea is no count of features; ours is the number of columns.
        paper_count = math.nan if method == "ALLfea" else _printed(paper, key, "n_features")
        return measured(here, key) | {
            "paper": _printed(paper, key, "mean"),
            "paper_sd": _printed(paper, key, "sd"),
            "n_features_paper": paper_count,
        }

    return cell_grid(results, run, metric.upper(), DATASETS, methods, fill)


def _printed(paper: pd.DataFrame, key: tuple[str, str], column: str) -> float:
    return value(paper, key, column) if column in paper.columns else math.nan


def _average(metric: str, paper: pd.DataFrame, here: pd.DataFrame, method: str) -> dict[str, Any]:
    """Return the average of a column over the datasets that were run, on both sides."""
    run_on = [name for name in DATASETS if (name, method) in here.index]
    ours = here.loc[[(name, method) for name in run_on]]
    if len(run_on) == len(DATASETS):
        theirs = [_printed(paper, ("Average", method), column) for column in ("mean", "sd")]
    else:
        keys = [(name, method) for name in run_on if (name, method) in paper.index]
        theirs = [float(paper.loc[keys, column].mean()) for column in ("mean", "sd")]
    return make_cell(
        "Average",
        method,
        metric.upper(),
        paper=theirs[0],
        paper_sd=theirs[1],
        here=float(ours["mean"].mean()),
        here_sd=float(ours["sd"].mean()),
        reason="no dataset was run",
    )


def _average_row_notes(here: pd.DataFrame, methods: list[str]) -> list[str]:
    run_on = {
        method: tuple(name for name in DATASETS if (name, method) in here.index)
        for method in methods
    }
    if not any(run_on.values()) or all(names == DATASETS for names in run_on.values()):
        return []
    different = {names for names in run_on.values() if names}
    text = (
        "The row Average is over the datasets that were run, and the paper's numbers in it "
        "are averages of its cells over the same datasets"
    )
    if len(different) > 1:
        counts = ", ".join(f"{method} {len(names)}" for method, names in run_on.items())
        text += f"; their number differs between the columns ({counts}), so compare within columns"
    return [f"{text}."]


def _all_features_notes(
    cells: list[dict[str, Any]], metric: str, how: str = "where nothing is selected or tuned"
) -> list[str]:
    """Say how the scores of all features stand to the paper's; `cells` are theirs."""
    judged = [cell for cell in cells if cell["verdict"] != Verdict.NOT_RUN]
    if not judged:
        return []
    within = [cell for cell in judged if cell["verdict"] == Verdict.WITHIN]
    points = sum(cell["here"] - cell["paper"] for cell in judged) / len(judged)
    return [
        f"All features, {how}: {metric.upper()} within one standard deviation of the paper's on "
        f"{len(within)} of {len(judged)} datasets, {points:+.1f} points on average."
    ]


def _best_notes(here: pd.DataFrame, metric: str) -> list[str]:
    """Say who is best, method by method, leaving out all features as the paper does."""
    selected = here[here.index.get_level_values("method") != "ALLfea"]
    if selected.empty:
        return []
    best = selected["mean"].groupby(level="dataset", sort=False).idxmax()
    wins: dict[str, list[str]] = {}
    for dataset, method in best:
        wins.setdefault(method, []).append(dataset)
    ordered = sorted(wins.items(), key=lambda entry: -len(entry[1]))
    text = "; ".join(f"{method} on {listed(names)}" for method, names in ordered)
    return [f"Largest {metric.upper()} of the selections: {text}."]


def ablation_table(item: Item, results: Results, printed: Printed) -> Section:
    """Compare the four cases of the ablation with the paper's table, and with Random."""
    metric = item.options["metric"]
    paper_table = printed[item.printed[0]]
    paper = paper_table.set_index(_KEY)
    here = confirmed(results, item.run, metric)
    methods = (*CASES, *item.options["random"])
    cells = _compared(results, item.run, metric, paper, here, methods)
    notes = [
        "The paper prints no spread here, so differences are in standard deviations measured here.",
        *_order_notes(here, metric),
        *above_random_notes(here, metric.upper(), CASES),
        *budget_notes(results, item.run),
        *_printed_order_notes(paper, metric),
        *agreement_notes(metric),
        *mark_notes(paper_table),
    ]
    return Section(item, cells_frame(cells), notes=notes)


def _order_notes(here: pd.DataFrame, metric: str) -> list[str]:
    notes = []
    for lower, higher in (("Case I", "Case III"), ("Case III", "Case IV"), ("Case II", "Case IV")):
        both = [d for d in DATASETS if {(d, lower), (d, higher)} <= set(here.index)]
        if not both:
            continue
        risen = [d for d in both if here.loc[(d, lower), "mean"] < here.loc[(d, higher), "mean"]]
        notes.append(
            f"{lower} is below {higher} in {metric.upper()} on {len(risen)} of {len(both)} "
            f"datasets ({listed(risen)})."
        )
    return notes


def _printed_order_notes(paper: pd.DataFrame, metric: str) -> list[str]:
    means = paper["mean"].unstack("method")
    other = [name for name in DATASETS if means.loc[name].idxmax() != "Case IV"]
    if not other:
        return ["In the paper's numbers Case IV is the largest on every dataset, as its text says."]
    return [
        f"The paper's text says that Case IV is consistently on top; in its numbers another case "
        f"has the largest {metric.upper()} on {listed(other)}."
    ]


def label_free_table(item: Item, results: Results, printed: Printed) -> Section:
    """Show what every method reaches with its defaults, where no label chose anything."""
    scores = results.select("scores", run=item.run, kmeans_init=KMEANS_INIT)
    methods = in_order((*METHODS, *item.options["also"], RANDOM), scores["method"].unique())
    cells, notes = [], []
    for n_features in item.options["n_features"]:
        at_count = scores[(scores["n_features"] == n_features) | (scores["method"] == "ALLfea")]
        for metric in ("acc", "nmi"):
            here = summarize(at_count, metric, ("dataset", "method"))
            label = f"{metric.upper()}, {n_features} features, no labels used"
            cells += cell_grid(
                results, item.run, label, DATASETS, methods, lambda *key, t=here: measured(t, key)
            )
            cells += [_free_average(here, method, label) for method in methods]
            notes += above_random_notes(
                here, f"{metric.upper()} at {n_features} features", ("BSUFS",)
            )
    chance = scores[scores["method"] == RANDOM]
    if len(chance):
        notes.append(
            f"Random is the mean over {chance['setting'].nunique()} rankings: chance, not the best "
            "of many draws."
        )
    return Section(item, cells_frame(cells), notes=notes)


def _free_average(here: pd.DataFrame, method: str, label: str) -> dict[str, Any]:
    # An average is shown only where it is over the same datasets as everyone's.
    complete = [name for name in DATASETS if name in here.index.get_level_values("dataset")]
    keys = [(name, method) for name in complete]
    whole = bool(keys) and set(keys) <= set(here.index)
    return make_cell(
        "Average",
        method,
        label,
        here=float(here.loc[keys, "mean"].mean()) if whole else math.nan,
        here_sd=float(here.loc[keys, "sd"].mean()) if whole else math.nan,
        reason="not on every dataset that was run",
    )


def initialization_table(item: Item, results: Results, printed: Printed) -> Section:
    """Show how the initialization of k-means moves the numbers, everything else held."""
    cells: list[dict[str, Any]] = []
    notes = []
    for metric in ("acc", "nmi"):
        paper = printed[f"clustering-{metric}"].set_index(_KEY)
        for kmeans_init in item.options["kmeans_init"]:
            here = confirmed(results, item.run, metric, kmeans_init=kmeans_init)
            for method in item.options["methods"]:
                compared = [
                    cell | {"row": f"{cell['row']}, {method}", "column": kmeans_init}
                    for cell in _compared(results, item.run, metric, paper, here, [method])
                ]
                cells += compared
                if method == "ALLfea":
                    notes += _all_features_notes(compared, metric, kmeans_init)
    return Section(item, cells_frame(cells), notes=notes)


def stopping_table(item: Item, results: Results, printed: Printed) -> Section:
    """Show what the number of iterations and the breaking of ties do to BSUFS."""
    scores = results.select("scores", run=item.run, kmeans_init=KMEANS_INIT)
    scores = scores[scores["n_features"].isin(item.options["n_features"])]
    labels = [label for label in dict.fromkeys(scores["method"]) if label != RANDOM]
    rows = list(
        scores[["dataset", "n_features"]].drop_duplicates().itertuples(index=False, name=None)
    )
    rows.sort(key=lambda row: (in_order(DATASETS, [row[0]]).index(row[0]), row[1]))
    cells, notes = [], []
    by = ("dataset", "n_features", "method")
    for metric in ("acc", "nmi"):
        here = summarize(scores, metric, by)
        for dataset, n_features in rows:
            for label in (*labels, RANDOM):
                key = (dataset, n_features, label)
                cells.append(
                    make_cell(
                        f"{dataset}, {n_features} features",
                        label,
                        metric.upper(),
                        **measured(here, key) | {"n_features_here": n_features},
                        reason=results.why_missing(item.run, dataset, label),
                    )
                )
        notes += _stopping_notes(here, rows, labels, metric)
    notes = notes or [f"Nothing to show: {results.why_missing(item.run)}."]
    return Section(item, cells_frame(cells), notes=notes)


def _stopping_notes(
    here: pd.DataFrame, rows: list[tuple[str, int]], labels: list[str], metric: str
) -> list[str]:
    """Rank the labels by their mean over the rows that all of them have."""
    complete = [row for row in rows if all((*row, label) in here.index for label in labels)]
    if not complete:
        return []
    means = {
        label: sum(here.loc[(*row, label), "mean"] for row in complete) / len(complete)
        for label in labels
    }
    ordered = sorted(means.items(), key=lambda entry: -entry[1])
    text = "; ".join(f"{label} {mean:.1f}" for label, mean in ordered)
    return [f"Mean {metric.upper()} over {len(complete)} rows: {text}."]
