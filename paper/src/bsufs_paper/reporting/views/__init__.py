"""The views: from results to a table or figure of the report."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from bsufs_paper.reporting.paper import load_printed
from bsufs_paper.reporting.results import Printed, Results
from bsufs_paper.reporting.sections import Item, Section
from bsufs_paper.reporting.style import styled
from bsufs_paper.reporting.views import (
    curves,
    matrices,
    parameters,
    records,
    significance,
    synthetic,
    tables,
)

VIEWS: dict[str, Callable[[Item, Results, Printed], Section]] = {
    "convergence-figure": curves.convergence_figure,
    "feature-count-figure": curves.feature_count_figure,
    "box-figure": curves.box_figure,
    "sparsity-figure": matrices.sparsity_figure,
    "correlation-figure": matrices.correlation_figure,
    "pixels-table": matrices.pixels_table,
    "exponents-figure": parameters.exponents_figure,
    "weights-figure": parameters.weights_figure,
    "datasets-table": records.datasets_table,
    "tasks-table": records.tasks_table,
    "recovery-table": records.recovery_table,
    "nemenyi-figure": significance.nemenyi_figure,
    "synthetic-figure": synthetic.synthetic_figure,
    "clustering-table": tables.clustering_table,
    "ablation-table": tables.ablation_table,
    "label-free-table": tables.label_free_table,
    "initialization-table": tables.initialization_table,
    "stopping-table": tables.stopping_table,
}


def make_section(item: Item, results: Results) -> Section:
    """Make one table or figure; an error becomes part of the section, not of the caller."""
    try:
        if item.view not in VIEWS:
            raise ValueError(
                f"view of {item.id} must be one of {', '.join(sorted(VIEWS))}; got {item.view!r}."
            )
        printed = {name: load_printed(name) for name in item.printed}
        with styled():
            return VIEWS[item.view](item, results, printed)
    # A report of which one part is missing is worth more than none.
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{last.name}, line {last.lineno}"
        return Section(item, error=f"{type(error).__name__}: {error} (in {where})")
