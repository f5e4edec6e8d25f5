"""``bsufs select``: keep the columns of a table that say most."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bsufs.cli._console import (
    STDOUT,
    Reporter,
    dump,
    one_line,
    print_table,
    write_text,
)
from bsufs.cli._options import (
    ArrayOption,
    DelimiterOption,
    ForceOption,
    IgnoreOption,
    JobsOption,
    LabelOption,
    MemoryOption,
    Missing,
    MissingOption,
    NoHeaderOption,
    NumberOption,
    Order,
    QuietOption,
    Scale,
    ScaleOption,
    SeedOption,
    TableArgument,
    parse_names,
    parse_number,
    parse_settings,
)

if TYPE_CHECKING:
    from bsufs.cli._methods import Clustering

_EPILOG = """
[bold]Examples[/bold]

[cyan]bsufs select genes.csv -k 50 --ignore patient --label type -o reduced.csv[/cyan]

[cyan]zcat genes.tsv.gz | bsufs select - -k 20 > names.txt[/cyan]

[cyan]bsufs select table.parquet --method ColumnSubset --scale standard --json result.json[/cyan]

[cyan]bsufs select table.csv -k 20 --report report.html[/cyan]

[cyan]bsufs select larger-than-memory.parquet -k 50 -o small.parquet[/cyan]

[cyan]bsufs select table.csv -k 9 --must-keep age,sex --set lambda_element=0[/cyan]
"""


def register(app: typer.Typer) -> None:
    """Add the command.

    Parameters
    ----------
    app : typer.Typer
        The program.
    """
    app.command("select", epilog=_EPILOG)(select)


def _methods() -> list[str]:
    from bsufs.selectors import all_selectors

    return list(all_selectors())


def select(
    context: typer.Context,
    table: TableArgument,
    n_features: NumberOption = "auto",
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="The reduced table; - for CSV."),
    ] = None,
    names: Annotated[
        str | None, typer.Option(metavar="FILE", help="Selected names, best first, one per line.")
    ] = None,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="All results; - to print.")
    ] = None,
    report_file: Annotated[
        str | None,
        typer.Option(
            "--report", metavar="FILE", help="A page with reasons and pictures; - to print."
        ),
    ] = None,
    subsamples: Annotated[
        int,
        typer.Option(
            "--subsamples", help="Refits that tell how stable it is, for --report.", min=0
        ),
    ] = 20,
    method: Annotated[
        str, typer.Option(metavar="NAME", help="Any selector.", autocompletion=_methods)
    ] = "BSUFS",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the method; repeatable."),
    ] = None,
    must_keep: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Always select these: a,b or @file; repeatable."),
    ] = None,
    never_keep: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Never select these: a,b or @file; repeatable."),
    ] = None,
    ignore: IgnoreOption = None,
    label: LabelOption = None,
    missing: MissingOption = Missing.error,
    scale: ScaleOption = Scale.none,
    order: Annotated[
        Order, typer.Option(help="Order of the selected columns in the output.")
    ] = Order.table,
    seed: SeedOption = 0,
    jobs: JobsOption = None,
    delimiter: DelimiterOption = None,
    no_header: NoHeaderOption = False,
    array: ArrayOption = None,
    memory: MemoryOption = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Select the columns that say most, and write the reduced table.

    Without -o, --names, --json or --report the selected features are shown; into a pipe go their
    names, one per line.
    """
    number, chosen_settings = parse_number(n_features), parse_settings(settings)
    forced, barred = parse_names(must_keep), parse_names(never_keep)
    _check_targets(output, names, json_file, report_file, force)

    from bsufs.cli import _methods as methods
    from bsufs.cli._input import open_input

    # A wrong method or parameter is told before a large table is read.
    untried = methods.make_selector(
        method,
        number,
        seed=seed,
        settings=chosen_settings,
        keep={"must_keep": range(len(forced)), "never_keep": range(len(barred))},
    )
    report = Reporter(quiet)
    needs_all = {
        "--report": report_file is not None,
        f"--method {type(untried).__name__}": not hasattr(untried, "partial_fit"),
        f"-o {output}": output is not None and output.endswith((".npy", ".npz")),
    }
    found = open_input(
        table,
        memory=memory,
        needs_all=[option for option, does in needs_all.items() if does],
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
    classes = None if label is None else found.classes(label)
    selector = methods.make_selector(
        method,
        number,
        seed=seed,
        jobs=jobs,
        settings=chosen_settings,
        keep={
            "must_keep": methods.column_numbers(forced, found.table, "--must-keep"),
            "never_keep": methods.column_numbers(barred, found.table, "--never-keep"),
        },
    )
    name = type(selector).__name__
    start = time.perf_counter()
    with (
        report.busy(f"selecting from {found.table.n_features} features with {name}"),
        methods.at_most_threads(jobs),
    ):
        best_first = found.fit(selector)
        seconds = time.perf_counter() - start
        result = _result(found, selector, best_first)
        clustering: dict[str, Clustering] = {}
        if classes is not None:
            clustering = found.clustering(best_first, classes, seed)
    report.say(
        f"{name} selected {len(best_first)} of {found.table.n_features} features from "
        f"{found.table.n_rows} rows in {seconds:.2f} s; they explain "
        f"{result[-1]['explained_variance']:.1%} of the variance"
    )
    _say_clustering(clustering, report)
    document = {
        "method": name,
        "parameters": selector.get_params(),
        "table": table,
        "n_rows": found.table.n_rows,
        "n_features": found.table.n_features,
        "missing": vars(found.missing),
        "scale": scale.value,
        "seed": seed,
        "seconds": seconds,
        "selected": result,
        "clustering": {which: vars(scores) for which, scores in clustering.items()},
    }
    page = None
    if report_file is not None:
        with report.busy("writing the report"), methods.at_most_threads(jobs):
            page = _page(selector, found, document, subsamples, _command(context))
    _write(found, best_first, document, output, names, json_file, order.value, force)
    if page is not None and report_file is not None:
        write_text(page, report_file, force)
    if output is None and names is None and json_file is None and report_file is None:
        _show(document)


def _check_targets(
    output: str | None,
    names: str | None,
    json_file: str | None,
    report_file: str | None,
    force: bool,
) -> None:
    from bsufs.tables import check_output, check_target

    if report_file is not None:
        # Without what it needs, this is said before the work and not after.
        import bsufs.selection_report  # noqa: F401 - only to see whether it can be imported
    given = [target for target in (output, names, json_file, report_file) if target is not None]
    places = [target if target == STDOUT else str(Path(target).resolve()) for target in given]
    if len(set(places)) < len(places):
        raise ValueError("-o, --names, --json and --report must name different files.")
    if output is not None:
        check_output(output, force=force)
    for target in (names, json_file, report_file):
        if target not in (None, STDOUT):
            check_target(target, force=force)


def _result(found: Any, selector: Any, best_first: Any) -> list[dict[str, Any]]:
    """Return what is known of the selected features, best first."""
    scatter = found.scatter(selector)
    variances = scatter.diagonal()
    total = float(variances.sum())
    # Of data that do not vary nothing is left to explain.
    curve = scatter.explained_curve(best_first) if total > 0 else [1.0] * len(best_first)
    return [
        {
            "rank": rank,
            "name": found.table.names[column],
            "column": int(column),
            "score": float(selector.scores_[column]),
            "variance_share": float(variances[column]) / total if total > 0 else 0.0,
            "explained_variance": float(explained),
        }
        for rank, (column, explained) in enumerate(zip(best_first, curve, strict=True), start=1)
    ]


def _page(
    selector: Any, found: Any, document: dict[str, Any], n_subsamples: int, command: str
) -> str:
    """Return the report as one HTML page."""
    from bsufs.selection_report import make_report

    about = {"Table": document["table"], "Scale": document["scale"]}
    if found.missing.n_missing or found.missing.n_infinite:
        about["Missing values"] = (
            f"{found.missing.n_missing} missing, {found.missing.n_infinite} infinite"
        )
    for which, scores in document["clustering"].items():
        about[f"k-means on {which} columns"] = (
            f"ACC {100 * scores['accuracy']:.1f}, NMI {100 * scores['information']:.1f} (labels "
            "were not used to select)"
        )
    return str(
        make_report(
            selector,
            found.X,
            feature_names=found.table.names,
            n_subsamples=n_subsamples,
            random_state=document["seed"],
            about=about,
            command=command,
        )
    )


def _command(context: typer.Context) -> str:
    """Return the command that was given, as a shell takes it."""
    words = []
    for parameter in context.command.params:
        value = context.params[str(parameter.name)]
        if value == parameter.default or value in (None, [], ()):
            continue
        for entry in value if isinstance(value, list | tuple) else [value]:
            option = [] if parameter.param_type_name == "argument" else [parameter.opts[0]]
            words += option if entry is True else [*option, str(entry)]
    return shlex.join(["bsufs", "select", *words])


def _say_clustering(clustering: dict[str, Clustering], report: Reporter) -> None:
    for which, scores in clustering.items():
        report.say(
            f"k-means on {which} columns: ACC {100 * scores.accuracy:.1f}, NMI "
            f"{100 * scores.information:.1f}"
        )


def _write(
    found: Any,
    best_first: Any,
    document: dict[str, Any],
    output: str | None,
    names: str | None,
    json_file: str | None,
    order: Any,
    force: bool,
) -> None:
    if output is not None:
        found.write(best_first, output, order, force)
    if names is not None:
        lines = "".join(f"{one_line(row['name'])}\n" for row in document["selected"])
        write_text(lines, names, force)
    if json_file is not None:
        write_text(dump(document), json_file, force)


def _show(document: dict[str, Any]) -> None:
    rows = document["selected"]
    if not sys.stdout.isatty():
        for row in rows:
            print(one_line(row["name"]))
        return
    print_table(
        f"{document['method']}: {len(rows)} of {document['n_features']} features",
        ("rank", "feature", "score", "share of variance", "explained so far"),
        [
            (
                str(row["rank"]),
                row["name"],
                f"{row['score']:.4g}",
                f"{row['variance_share']:.2%}",
                f"{row['explained_variance']:.2%}",
            )
            for row in rows
        ],
    )
