"""``bsufs select``: keep the columns of a table that say most."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from bsufs.cli._console import Reporter, dump, one_line, print_table, write_text
from bsufs.cli._options import (
    ArrayOption,
    DelimiterOption,
    ForceOption,
    IgnoreOption,
    JobsOption,
    JsonOption,
    LabelOption,
    MemoryOption,
    Missing,
    MissingOption,
    NoHeaderOption,
    NumberOption,
    Order,
    QuietOption,
    ReportOption,
    Scale,
    ScaleOption,
    SeedOption,
    SubsamplesOption,
    TableArgument,
    check_targets,
    command_of,
    parse_names,
    parse_numbers,
    parse_settings,
)

if TYPE_CHECKING:
    from bsufs.cli._methods import Clustering

_EPILOG = """
[bold]Examples[/bold]

[cyan]bsufs select genes.csv -k 50 --ignore patient --label type -o reduced.csv[/cyan]

[cyan]zcat genes.tsv.gz | bsufs select - -k 20 > names.txt[/cyan]

[cyan]bsufs select table.parquet --method ColumnSubset --scale standard --json result.json[/cyan]

[cyan]bsufs select table.csv -k 20 --report page.html --compare ColumnSubset,MCFS[/cyan]

[cyan]bsufs select table.csv -k 10,20,50 --tune[/cyan]

[cyan]bsufs select larger-than-memory.parquet -k 50 -o small.parquet[/cyan]

[cyan]bsufs select table.csv -k 9 --must-keep age,sex --set n_components=5[/cyan]
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


def _criteria() -> list[str]:
    from bsufs.metrics.criteria import CRITERIA

    return list(CRITERIA)


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
    json_file: JsonOption = None,
    report_file: ReportOption = None,
    subsamples: SubsamplesOption = 20,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Any selector, such as MCFS or ColumnSubset. Default: AlignedBSUFS, or BSUFS for "
            "a table that is read in batches.",
            autocompletion=_methods,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the method; repeatable."),
    ] = None,
    tune: Annotated[
        bool,
        typer.Option(
            "--tune",
            metavar="",
            help="Try settings, and every number of -k 10,20,50, and keep the best without labels.",
        ),
    ] = False,
    criterion: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What decides in --tune, such as reconstruction; implies --tune.",
            autocompletion=_criteria,
        ),
    ] = None,
    others: Annotated[
        list[str] | None,
        typer.Option(
            "--compare",
            metavar="NAMES",
            help="Other methods to show beside it; random columns are added as a baseline.",
        ),
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
    numbers, chosen_settings = parse_numbers(n_features), parse_settings(settings)
    forced, barred = parse_names(must_keep), parse_names(never_keep)
    tune = tune or criterion is not None
    if len(numbers) > 1 and not tune:
        raise ValueError(
            f"-k must be one number without --tune, which chooses among several; got {n_features}."
        )
    if output is not None:
        from bsufs.tables import check_output

        check_output(output, force=force)
    check_targets(force, output=output, names=names, json=json_file, report=report_file)

    from bsufs.cli import _methods as methods
    from bsufs.cli._input import open_input

    # A wrong method, parameter or criterion is told before a large table is read.
    untried = methods.make_selector(
        method or methods.Input.default_method,
        numbers[0],
        seed=seed,
        settings=chosen_settings,
        keep={"must_keep": range(len(forced)), "never_keep": range(len(barred))},
    )
    if tune:
        from bsufs.cli import _tuning as tuning

        criterion = tuning.criterion_name(criterion)
    if others:
        from bsufs.cli import _comparison as comparison

        other_names = comparison.others_than(type(untried).__name__, parse_names(others))
    report = Reporter(quiet)
    needs_all = {
        "--report": report_file is not None,
        f"--method {method}": method is not None and not hasattr(untried, "partial_fit"),
        "--tune": tune,
        "--compare": others is not None,
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
    if method is None and found.default_method != methods.Input.default_method:
        report.say(
            f"{found.default_method} selects, since {methods.Input.default_method} needs the whole "
            "table in memory"
        )
    # What uses it is named above, so that it was read at once.
    whole = cast("methods.Input", found)
    for number in numbers:
        methods.check_number(number, found.table)
    classes = None if label is None else found.classes(label)
    selector = methods.make_selector(
        method or found.default_method,
        numbers[0],
        seed=seed,
        jobs=jobs,
        settings=chosen_settings,
        keep={
            "must_keep": methods.column_numbers(forced, found.table, "--must-keep"),
            "never_keep": methods.column_numbers(barred, found.table, "--never-keep"),
        },
    )
    name = type(selector).__name__
    fitted = selector
    start = time.perf_counter()
    with (
        report.busy(f"selecting from {found.table.n_features} features with {name}"),
        # The threads of a search are those that try settings.
        methods.at_most_threads(1 if tune and jobs is not None else jobs),
    ):
        if tune:
            fitted = tuning.make_search(
                selector,
                whole.X,
                numbers,
                criterion=criterion,
                fixed=chosen_settings,
                seed=seed,
                jobs=jobs,
            )
        best_first = found.fit(fitted)
        selector = fitted.best_estimator_ if tune else fitted
        seconds = time.perf_counter() - start
        result = _result(found, selector, best_first)
        clustering: dict[str, Clustering] = {}
        if classes is not None:
            clustering = found.clustering(best_first, classes, seed)
    tuned = tuning.tuning_document(fitted) if tune else None
    if tuned is not None:
        tuning.say_tuning(tuned, report)
    report.say(
        f"{name} selected {len(best_first)} of {found.table.n_features} features from "
        f"{found.table.n_rows} rows in {seconds:.2f} s; they explain "
        f"{result[-1]['explained_variance']:.1%} of the variance"
    )
    _say_clustering(clustering, report)
    document: dict[str, Any] = {
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
        "tuning": tuned,
        "comparison": None,
    }
    outcomes = []
    if others:
        with methods.at_most_threads(jobs):
            judge = comparison.Judge(whole, classes, seed)
            row = judge.row(name, [best_first], seconds, None)
            outcomes = [
                comparison.Outcome(row, selector, best_first),
                *comparison.compare_methods(
                    other_names, len(best_first), judge, jobs, report, best_first
                ),
            ]
        document["comparison"] = [outcome.row for outcome in outcomes]
        comparison.say_comparison(document["comparison"], report)
    page = None
    if report_file is not None:
        from bsufs.cli._page import make_page

        with report.busy("writing the report"), methods.at_most_threads(jobs):
            page = make_page(
                fitted,
                whole,
                about=_about(document),
                comparison=comparison.page_comparison(outcomes, tune) if others else None,
                n_subsamples=subsamples,
                seed=seed,
                command=command_of(context),
            )
    _write(found, best_first, document, output, names, json_file, order.value, force)
    if page is not None and report_file is not None:
        write_text(page, report_file, force)
    if output is None and names is None and json_file is None and report_file is None:
        _show(document)


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


def _about(document: dict[str, Any]) -> dict[str, str]:
    """Return what the page says of the data."""
    about = {"Table": document["table"], "Scale": document["scale"]}
    for which, scores in document["clustering"].items():
        about[f"k-means on {which} columns"] = (
            f"ACC {100 * scores['accuracy']:.1f}, NMI {100 * scores['information']:.1f} (labels "
            "were not used to select)"
        )
    return about


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
