"""``bsufs select``: keep the most informative columns of a table."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from bsufs._names import one_line
from bsufs.cli._console import Console, dump, print_table, write_text
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
    Reading,
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


@dataclass(frozen=True)
class Request:
    """What to select from, and how."""

    table: str
    reading: Reading
    memory: str | None
    numbers: Sequence[int | float | str]
    method: str | None
    settings: Mapping[str, Any]
    must_keep: Sequence[str]
    never_keep: Sequence[str]
    tune: bool
    criterion: str | None
    others: Sequence[str] | None
    seed: int
    jobs: int | None


@dataclass(frozen=True)
class Targets:
    """Where results go: files, "-" for standard output, None for what is not wanted."""

    output: str | None
    names: str | None
    json: str | None
    report: str | None


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("select", epilog=_EPILOG)(select)


def _known_methods() -> list[str]:
    from bsufs.selectors import all_selectors

    return list(all_selectors())


def _known_criteria() -> list[str]:
    from bsufs.tuning.criteria import CRITERIA

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
            help="Any selector, such as MCFS or ColumnSubset; AlignedBSUFS by default.",
            autocompletion=_known_methods,
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
            autocompletion=_known_criteria,
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
    request = Request(
        table=table,
        reading=Reading(ignore, label, missing.value, scale.value, delimiter, no_header, array),
        memory=memory,
        numbers=parse_numbers(n_features),
        method=method,
        settings=parse_settings(settings),
        must_keep=parse_names(must_keep),
        never_keep=parse_names(never_keep),
        tune=tune or criterion is not None,
        criterion=criterion,
        others=None if others is None else parse_names(others),
        seed=seed,
        jobs=jobs,
    )
    if len(request.numbers) > 1 and not request.tune:
        raise ValueError(
            f"-k must be one number without --tune, which chooses among several; got {n_features}."
        )
    targets = Targets(output=output, names=names, json=json_file, report=report_file)
    if output is not None:
        from bsufs.tables._write import check_output

        check_output(output, force=force)
    check_targets(table, force, **vars(targets))
    console = Console(quiet)

    from bsufs.cli import _selection as steps

    request = steps.validate_request(request)
    found = steps.read(request, targets, console)
    selection = steps.fit(request, found, console)
    steps.tell(selection, console)
    outcomes = steps.compare(request, selection, console)
    document = steps.document(request, selection, outcomes)
    page = None
    if targets.report is not None:
        command = command_of(context)
        page = steps.page(
            request, selection, outcomes, console, n_subsamples=subsamples, command=command
        )
    if targets.output is not None:
        steps.write(selection, targets.output, order.value, force)
    if targets.names is not None:
        lines = "".join(f"{one_line(row['name'])}\n" for row in document["selected"])
        write_text(lines, targets.names, force)
    if targets.json is not None:
        write_text(dump(document), targets.json, force)
    if targets.report is not None and page is not None:
        write_text(page, targets.report, force)
    if targets == Targets(None, None, None, None):
        _show(document)


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
