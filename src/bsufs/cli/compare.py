"""``bsufs compare``: several methods on one table, side by side."""

from __future__ import annotations

import csv
import io
import time
from typing import Annotated, Any

import typer

from bsufs.cli._console import STDOUT, Reporter, complain, dump, print_table, write_text
from bsufs.cli._options import (
    ArrayOption,
    DelimiterOption,
    ForceOption,
    IgnoreOption,
    JobsOption,
    LabelOption,
    Missing,
    MissingOption,
    NoHeaderOption,
    NumberOption,
    QuietOption,
    Scale,
    ScaleOption,
    SeedOption,
    TableArgument,
    parse_names,
    parse_number,
)

DEFAULT_METHODS = "BSUFS,ColumnSubset,LaplacianScore,MaxVariance,PCARowNorms,RandomSelector"
FAILED_STATUS = 2
_EPILOG = """
[bold]Examples[/bold]

[cyan]bsufs compare genes.csv -k 50 --ignore patient --label type[/cyan]

[cyan]bsufs compare table.parquet -k 20 --methods BSUFS,MCFS --csv comparison.csv[/cyan]
"""


def register(app: typer.Typer) -> None:
    """Add the command.

    Parameters
    ----------
    app : typer.Typer
        The program.
    """
    app.command("compare", epilog=_EPILOG)(compare)


def compare(
    table: TableArgument,
    n_features: NumberOption = "auto",
    method_names: Annotated[
        list[str] | None,
        typer.Option(
            "--methods",
            metavar="NAMES",
            help="Methods, the first being what others are compared with.",
            show_default=DEFAULT_METHODS,
        ),
    ] = None,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Results; - to print.")
    ] = None,
    csv_file: Annotated[
        str | None, typer.Option("--csv", metavar="FILE", help="The table; - to print.")
    ] = None,
    ignore: IgnoreOption = None,
    label: LabelOption = None,
    missing: MissingOption = Missing.error,
    scale: ScaleOption = Scale.none,
    seed: SeedOption = 0,
    jobs: JobsOption = None,
    delimiter: DelimiterOption = None,
    no_header: NoHeaderOption = False,
    array: ArrayOption = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run several methods and show speed, explained variance, redundancy and overlap.

    Explained is the share of the variance that regression on the selected columns explains,
    redundancy their mean absolute correlation, overlap the Jaccard index with the first method.
    With -k auto the first method decides how many features all of them select. A method that
    fails is reported, and the others go on.
    """
    number = parse_number(n_features)
    _check_targets(json_file, csv_file, force)

    from bsufs.cli import _methods as methods

    asked = parse_names(method_names or [DEFAULT_METHODS])
    names = [type(methods.make_selector(name, number, seed=seed)).__name__ for name in asked]
    if len(set(names)) < len(names):
        raise ValueError(f"--methods must differ, got {', '.join(names)}.")
    report = Reporter(quiet)
    found = methods.read_input(
        table,
        ignore=ignore,
        label=label,
        missing=missing.value,
        scale=scale.value,
        delimiter=delimiter,
        no_header=no_header,
        array=array,
        report=report,
    )
    methods.check_number(number, found.table)
    classes = None if label is None else methods.labels_of(found.table, label)
    rows: list[dict[str, Any]] = []
    first: set[int] | None = None
    with methods.at_most_threads(jobs):
        for name in names:
            with report.busy(f"{name} ({len(rows) + 1} of {len(names)})"):
                row, chosen = _run(name, number, found, classes, first, seed, jobs)
            rows.append(row)
            if first is None and chosen is not None:
                first, number = chosen, len(chosen)
    _write_or_show(rows, table, found, json_file, csv_file, force)
    failed = [row for row in rows if row["error"] is not None]
    for row in failed:
        complain(f"{row['method']}: {row['error']}")
    if failed:
        raise typer.Exit(FAILED_STATUS)


def _check_targets(json_file: str | None, csv_file: str | None, force: bool) -> None:
    from bsufs.tables import check_target

    if json_file is not None and json_file == csv_file:
        raise ValueError("--json and --csv must name different files.")
    for target in (json_file, csv_file):
        if target not in (None, STDOUT):
            check_target(target, force=force)


def _run(
    name: str,
    number: int | float | str,
    found: Any,
    classes: Any,
    first: set[int] | None,
    seed: int,
    jobs: int | None,
) -> tuple[dict[str, Any], set[int] | None]:
    """Run one method; return its row of the comparison and the columns it selected."""
    from bsufs.cli import _methods as methods
    from bsufs.metrics import reconstruction, redundancy

    row: dict[str, Any] = dict.fromkeys(
        ("method", "n_features", "seconds", "explained_variance", "redundancy", "overlap")
    )
    if classes is not None:
        row |= {"accuracy": None, "information": None}
    row |= {"method": name, "error": None}
    start = time.perf_counter()
    try:
        selector = methods.make_selector(name, number, seed=seed, jobs=jobs)
        best_first = methods.fit(selector, found.X)
        seconds = time.perf_counter() - start
    except ValueError as error:
        return row | {"error": str(error)}, None
    chosen = {int(column) for column in best_first}
    selected = methods.dense_columns(found.X, best_first)
    row |= {
        "n_features": len(chosen),
        "seconds": seconds,
        "explained_variance": reconstruction(found.X, best_first),
        "redundancy": redundancy(selected),
        "overlap": 1.0 if first is None else len(chosen & first) / len(chosen | first),
    }
    if classes is not None:
        scores = methods.cluster(selected, classes, seed)
        row |= {"accuracy": scores.accuracy, "information": scores.information}
    return row, chosen


def _write_or_show(
    rows: list[dict[str, Any]],
    table: str,
    found: Any,
    json_file: str | None,
    csv_file: str | None,
    force: bool,
) -> None:
    if json_file is not None:
        shape = {"n_rows": found.table.n_rows, "n_features": found.table.n_features}
        write_text(dump({"table": table, **shape, "methods": rows}), json_file, force)
    if csv_file is not None:
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_text(text.getvalue(), csv_file, force)
    if json_file is None and csv_file is None:
        headings = {
            "method": "method",
            "n_features": "k",
            "seconds": "seconds",
            "explained_variance": "explained",
            "redundancy": "redundancy",
            "overlap": "overlap",
            "accuracy": "ACC",
            "information": "NMI",
        }
        shown = [key for key in headings if key in rows[0]]
        print_table(
            f"{table}: {found.table.n_rows} rows, {found.table.n_features} features",
            [headings[key] for key in shown],
            [[_cell(key, row[key]) for key in shown] for row in rows],
        )


def _cell(key: str, value: Any) -> str:
    if value is None:
        return "failed"
    if key in ("method", "n_features"):
        return str(value)
    if key in ("accuracy", "information"):
        return f"{100 * value:.1f}"
    return f"{value:.3f}"
