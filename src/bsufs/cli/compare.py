"""``bsufs compare``: several methods on one table, side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from bsufs.cli import _options as options
from bsufs.cli._console import Console, as_csv, dump, examples, print_table
from bsufs.cli._options import option

if TYPE_CHECKING:
    from bsufs.cli._comparison import Compared
    from bsufs.cli._input import Input

# What `bsufs select` does comes first: the others are compared with it.
DEFAULT_METHODS = (
    "ClusterAlignment,BSUFS,ColumnSubset,NeighborAlignment,LaplacianScore,MaxVariance,"
    "PCARowNorms,RandomSelector"
)
FAILED_STATUS = 2
_EPILOG = examples(
    "bsufs compare genes.csv -k 50 --ignore patient --label type",
    "bsufs compare table.parquet -k 20 --methods BSUFS,MCFS --csv comparison.csv",
    "bsufs compare table.csv -k 20 --report page.html",
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    options.add_command(app, compare, CompareOptions, _EPILOG)


class CompareOptions:
    """What this command alone knows."""

    methods: list[str] | None = option(
        "NAMES",
        "Methods, the first being what others are compared with. By default "
        f"{DEFAULT_METHODS.replace(',', ', ')}.",
        show_default=False,
        callback=lambda words: options.parse_names(words or [DEFAULT_METHODS]),
    )
    csv_file: str | None = option("FILE", "The table; - to print.", "--csv")


def compare(given: Any) -> None:
    """Run several methods and show speed, explained variance, redundancy and overlap.

    Explained is the share of the variance that regression on the selected columns explains,
    redundancy their mean absolute correlation, overlap the Jaccard index with the first method.
    The seconds leave out the scatter matrix, which is computed once for all methods.
    JSON, CSV and the report hold two more: what the columns explain of rows held out, and how far
    k-means on them finds the clusters that it finds on all columns. Random columns are the mean of
    ten draws.

    On more than 4096 rows, methods that look for neighbors are compared on a random sample, and so
    is what needs more than the scatter; the output says where, and --all-rows takes all rows.

    With --adjust-for and --center-rows all methods and measures see the data without what these
    take off.

    With -k auto the first method decides how many features all of them select. A method that
    fails, or takes longer than --limit, is reported, and the others go on. The report is that of
    the first method, with the comparison.
    """
    if len(given.numbers) > 1:
        raise ValueError(
            f"-k must be one number, got {', '.join(map(str, given.numbers))}. Compare one by one."
        )
    # The whole table is held, however much that takes.
    given.memory = None
    given.never_keep = []
    console = Console(given.quiet)
    with console.busy("starting"):
        options.check_targets(given, "json", "csv", "report")

        from bsufs._threads import at_most_threads
        from bsufs.cli import _comparison as comparison
        from bsufs.cli import _methods as methods
        from bsufs.cli._input import open_input

    names = comparison.method_names(given.methods, "--methods")
    found = open_input(given, console, whole_for="bsufs compare")
    methods.check_number(given.numbers[0], found.table)
    classes = None if given.label is None else found.classes(given.label)
    with at_most_threads(given.jobs):
        judge = comparison.Judge(given, found, classes)
        compared = comparison.compare_methods(names, given.numbers[0], judge)
    page = None if given.report_file is None else _page(given, found, compared)
    rows, table = compared.rows, found.table
    shape = {"n_rows": table.n_rows, "n_features": table.n_features}
    shape["n_rows_judged_by"] = judge.n_rows
    document = {"table": given.table, **shape, "methods": rows}
    texts = {
        given.json_file: dump(document),
        given.csv_file: as_csv(rows, list(rows[0])),
        given.report_file: page,
    }
    if not any(texts):
        title = f"{given.table}: {table.n_rows} rows, {table.n_features} features"
        print_table(title, *comparison.short_table(rows))
    for said in compared.sampled:
        console.say(said)
    console.write(texts, given.force)
    if comparison.complain_of_failures(rows, "error: "):
        raise typer.Exit(FAILED_STATUS)


def _page(given: Any, found: Input, compared: Compared) -> str | None:
    """Return the page on the first method that succeeded, None where none did."""
    from bsufs.cli._comparison import page_comparison
    from bsufs.cli._page import make_page

    shown = next((outcome for outcome in compared.outcomes if outcome.selector is not None), None)
    if shown is None:
        return None
    # What the page is about comes first, and the others follow.
    ordered = sorted(compared.outcomes, key=lambda outcome: outcome is not shown)
    table = page_comparison(replace(compared, outcomes=ordered))
    return make_page(given, found, shown.selector, table)
