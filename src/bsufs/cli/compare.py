"""``bsufs compare``: several methods on one table, side by side."""

from typing import Any

import typer

from bsufs.cli import _options as options
from bsufs.cli._console import Console, as_csv, dump, print_table
from bsufs.cli._options import option

# What `bsufs select` does comes first: the others are compared with it.
DEFAULT_METHODS = (
    "ClusterAlignment, BSUFS, ColumnSubset, NeighborAlignment, LaplacianScore, MaxVariance, "
    "PCARowNorms, RandomSelector"
)
FAILED_STATUS = 2
_EXAMPLES = """
bsufs compare table.csv -k 50                      # eight methods
bsufs compare table.csv -k 50 --label type         # judged by known classes, too
bsufs compare table.csv -k 50 --report page.html   # and a page on the first of them
bsufs compare table.csv -k 50 --methods BSUFS,MCFS --csv comparison.csv
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    options.add_command(app, compare, (CompareOptions,), _EXAMPLES)


class CompareOptions:
    """Options."""

    methods: list[str] | None = option(
        "NAMES",
        f"Methods, the others compared with the first; by default {DEFAULT_METHODS}.",
        callback=lambda words: options.parse_names(words) or DEFAULT_METHODS.split(", "),
    )
    csv_file: str | None = option("FILE", "Write the comparison as CSV.", "--csv")


def compare(given: Any) -> None:
    """Compare several methods on one table, with random columns as a baseline.

    It shows the seconds each takes (without the scatter matrix, which all share), the share of the
    variance that regression on the selected columns explains, their redundancy (mean absolute
    correlation), how many of the nearest rows stay neighbors, and the overlap with the first method
    (Jaccard index). JSON, CSV and the report also have the share explained of rows held out, and
    how far k-means finds the clusters that it finds on all columns.

    With -k auto the first method decides how many columns all of them select. A method that fails,
    or takes longer than --limit, is reported, and the others go on.
    """
    if len(given.numbers) > 1:
        raise ValueError(
            f"-k must be one number, got {', '.join(map(str, given.numbers))}. Compare one by one."
        )
    console = Console(given.quiet)
    with console.busy("starting"):
        options.check_targets(given, "json", "csv", "report")

        from bsufs._threads import at_most_threads
        from bsufs.cli import _comparison as comparison
        from bsufs.cli import _methods as methods
        from bsufs.cli._input import open_input
        from bsufs.cli._page import findings_of, make_page

    names = comparison.method_names(given.methods, "--methods")
    found = open_input(given, console, whole_for="bsufs compare")
    methods.check_number(given.numbers[0], found.table)
    classes = None if given.label is None else found.classes(given.label)
    with at_most_threads(given.jobs):
        compared = comparison.MethodComparison(given, found, classes)
        compared.run(names, given.numbers[0])
    page = None
    if given.report_file is not None and compared.first is not None:
        shown = comparison.page_comparison(compared)
        page = make_page(given, found, findings_of(given, found, compared.first.selector), shown)
    rows, table = compared.rows, found.table
    document = {
        "table": given.table,
        "n_rows": table.n_rows,
        "n_features": table.n_features,
        "n_rows_judged_by": compared.n_rows,
        "methods": rows,
    }
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
