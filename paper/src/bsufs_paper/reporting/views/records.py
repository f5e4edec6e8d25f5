"""Tables of what was run: datasets, tasks, and how often the true features were found."""

from __future__ import annotations

import math

import pandas as pd

from bsufs_paper.datasets import list_datasets
from bsufs_paper.reporting.paper import METHODS
from bsufs_paper.reporting.results import Printed, Results
from bsufs_paper.reporting.sections import (
    Item,
    NamedTable,
    Section,
    Verdict,
    cells_frame,
    make_cell,
)
from bsufs_paper.reporting.views._common import RANDOM, in_order, value

_STATUSES = ("done", "failed", "timeout", "interrupted", "skipped")


def datasets_table(item: Item, results: Results, printed: Printed) -> Section:
    """Compare the sizes of the datasets with the paper's."""
    known = {info.name: info for info in list_datasets()}
    cells = []
    for row in printed["datasets"].itertuples(index=False):
        info = known.get(item.options["registered"].get(row.dataset, row.dataset))
        sizes = (math.nan,) * 3 if info is None else (info.shape[1], info.shape[0], info.n_classes)
        cells += [
            make_cell(
                row.dataset,
                column,
                "count",
                paper=getattr(row, column),
                here=size,
                reason="not a registered dataset",
            )
            for column, size in zip(("features", "samples", "classes"), sizes, strict=True)
        ]
    frame = cells_frame(cells)
    other = frame[~frame["verdict"].isin([Verdict.WITHIN])]
    notes = [
        f"{len(frame) - len(other)} of {len(frame)} sizes are the paper's. Counts have no spread: "
        "only equal ones agree."
    ]
    notes += [
        f"{name} was not run: {results.why_missing('clustering', name)}."
        for name in printed["datasets"].query("type == 'Real-world'")["dataset"]
        if results.select("scores", run="clustering", dataset=name).empty
    ]
    return Section(item, frame, notes=notes)


def tasks_table(item: Item, results: Results, printed: Printed) -> Section:
    """Count the tasks of every run, and list those that have no result with the reason."""
    tasks = results.select("tasks")
    cells = []
    for run, rows in tasks.groupby("run", sort=False):
        counts = rows["status"].value_counts()
        cells += [
            make_cell(str(run), status, "tasks", here=int(counts.get(status, 0)))
            for status in in_order(_STATUSES, counts.index)
        ]
    notes = [f"{len(tasks)} tasks took {_duration(tasks['seconds'].astype(float).sum())} in sum."]
    undone = tasks[tasks["status"] != "done"]
    columns = ["run", "kind", "dataset", "method", "status", "reason"]
    text = undone[columns].fillna("").astype(str)
    listed = text.groupby(columns, sort=False).size().reset_index(name="tasks")
    tables = [NamedTable("Tasks without a result, and why", listed)] if len(listed) else []
    if len(tasks) and not tables:
        notes.append("Every task has a result.")
    return Section(item, cells_frame(cells), notes=notes, tables=tables)


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def recovery_rates(results: Results, run: str) -> pd.DataFrame:
    """Return how often each method found both true features."""
    found = results.select("recovery", run=run)
    found = found.assign(found=found["found"].astype(float))
    groups = found.groupby(["dataset", "noise_scale", "method"], sort=False)["found"]
    rates = groups.agg(["mean", "count"]).rename(columns={"mean": "rate", "count": "n"})
    spread = (rates["rate"] * (1 - rates["rate"])) ** 0.5
    return rates.assign(rate=100 * rates["rate"], spread=100 * spread)


def recovery_table(item: Item, results: Results, printed: Printed) -> Section:
    """Show how often each method finds the two true features, by dataset and noise."""
    rates = recovery_rates(results, item.run)
    methods = in_order(METHODS[1:], rates.index.get_level_values("method"))
    cells = [
        make_cell(
            f"{dataset}, noise {scale:g}",
            method,
            "both true features found, % of draws",
            here=value(rates, (dataset, scale, method), "rate"),
            reason=results.why_missing(item.run, dataset, method),
        )
        for dataset in item.options["datasets"]
        for scale in item.options["noise_scales"]
        for method in methods
    ]
    notes = [
        f"Two of nine features picked at random are the true ones in {100 / 36:.1f} % of draws."
    ]
    if len(rates):
        low, high = rates["n"].min(), rates["n"].max()
        draws = f"{low}" if low == high else f"{low} to {high}"
        notes.append(f"Each rate is over {draws} draws of the noise.")
        everywhere = [
            method for method in methods if (rates.xs(method, level="method")["rate"] == 100).all()
        ]
        names = ", ".join(everywhere) or "no method"
        notes.append(f"Found in every draw of every row that was run: {names}.")
        if RANDOM not in rates.index.get_level_values("method"):
            notes.append("Random is not drawn here: the share above is its expectation.")
    return Section(item, cells_frame(cells), notes=notes)
