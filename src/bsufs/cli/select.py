"""``bsufs select``: keep the most informative columns of a table."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from importlib import import_module
from typing import Annotated, Any

import typer

from bsufs._atomic import STANDARD
from bsufs._names import one_line
from bsufs.cli import _options as options
from bsufs.cli._console import Console, dump, print_table, write_text
from bsufs.cli._limit import parse_limit

_EPILOG = """
[bold]Examples[/bold]

[cyan]bsufs select genes.csv -k 50 --ignore patient --label type -o reduced.csv[/cyan]

[cyan]zcat genes.tsv.gz | bsufs select - -k 20 > names.txt[/cyan]

[cyan]bsufs select table.csv -k 30 --purpose neighbors -o reduced.csv[/cyan]

[cyan]bsufs select table.parquet --method ColumnSubset --scale standard --json result.json[/cyan]

[cyan]bsufs select table.csv -k 20 --report page.html --compare ColumnSubset,MCFS[/cyan]

[cyan]bsufs select cells.h5ad -k 300 --never-keep-matching '^(MT-|RP[SL])' -o panel.h5ad[/cyan]

[cyan]bsufs select table.csv -k 10,20,50 --tune[/cyan]

[cyan]bsufs select table.csv -k 20 --alternatives 3 --report page.html[/cyan]

[cyan]bsufs select larger-than-memory.parquet -k 50 -o small.parquet[/cyan]

[cyan]bsufs select table.csv -k 9 --must-keep age,sex --set n_components=5[/cyan]

[cyan]bsufs select sensors.csv --group-by . --costs prices.csv --budget 500[/cyan]
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("select", epilog=_EPILOG)(select)


def select(
    context: typer.Context,
    table: options.TableArgument,
    n_features: options.NumberOption = "auto",
    output: Annotated[
        str | None, options.option("-o --output", "FILE", "The reduced table; - for CSV.")
    ] = None,
    names: Annotated[
        str | None, options.option("--names", "FILE", "Selected names, best first, one per line.")
    ] = None,
    ranking: Annotated[
        str | None,
        options.option("--ranking", "FILE", "All columns as CSV: rank, score, kept, and why."),
    ] = None,
    json_file: options.JsonOption = None,
    report_file: options.ReportOption = None,
    subsamples: options.SubsamplesOption = 20,
    method: Annotated[
        str | None,
        options.option(
            "--method",
            "NAME",
            "Any selector, such as MCFS or ColumnSubset; ClusterAlignment by default.",
            autocompletion=lambda: list(import_module("bsufs.selectors").all_selectors()),
        ),
    ] = None,
    purpose: Annotated[
        str | None,
        options.option(
            "--purpose",
            "NAME",
            "What the columns are for: clusters, reconstruction or neighbors; instead of --method.",
            autocompletion=lambda: list(import_module("bsufs.purposes").PURPOSES),
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        options.option("--set", "NAME=VALUE", "A parameter of the method; repeatable."),
    ] = None,
    tune: Annotated[
        bool,
        options.option(
            "--tune",
            "",
            "Try settings, and every number of -k 10,20,50, and keep the best without labels.",
        ),
    ] = False,
    criterion: Annotated[
        str | None,
        options.option(
            "--criterion",
            "NAME",
            "What decides in --tune, such as reconstruction; implies --tune.",
            autocompletion=lambda: list(import_module("bsufs.tuning.criteria").CRITERIA),
        ),
    ] = None,
    others: Annotated[
        list[str] | None,
        options.option(
            "--compare",
            "NAMES",
            "Other methods to show beside it; random columns are added as a baseline.",
        ),
    ] = None,
    limit: options.LimitOption = None,
    all_rows: options.AllRowsOption = False,
    alternatives: Annotated[
        int,
        options.option(
            "--alternatives",
            "NUMBER",
            "As many other selections, each for other groups of the rows, shown beside it.",
            min=0,
        ),
    ] = 0,
    must_keep: Annotated[
        list[str] | None,
        options.option("--must-keep", "NAMES", "Always select these: a,b or @file; repeatable."),
    ] = None,
    never_keep: Annotated[
        list[str] | None,
        options.option("--never-keep", "NAMES", "Never select these: a,b or @file; repeatable."),
    ] = None,
    groups: Annotated[
        str | None,
        options.option(
            "--groups", "FILE", "Keep columns in groups: lines of column,group; -k counts groups."
        ),
    ] = None,
    group_by: Annotated[
        str | None,
        options.option(
            "--group-by", "MARK", "The same by name: with _, gene_1 and gene_2 are the group gene."
        ),
    ] = None,
    costs: Annotated[
        str | None,
        options.option(
            "--costs", "FILE", "What columns cost: lines of column,cost, or group,cost."
        ),
    ] = None,
    budget: Annotated[
        float | None,
        options.option("--budget", "NUMBER", "The most that the selected may cost; instead of -k."),
    ] = None,
    must_keep_matching: Annotated[
        str | None,
        options.option(
            "--must-keep-matching", "PATTERN", "And all names that match a regular expression."
        ),
    ] = None,
    never_keep_matching: Annotated[
        str | None,
        options.option(
            "--never-keep-matching", "PATTERN", "And all names that match, such as '^(MT-|RP[SL])'."
        ),
    ] = None,
    adjust_for: options.AdjustForOption = None,
    center_rows: options.CenterRowsOption = False,
    ignore: options.IgnoreOption = None,
    label: options.LabelOption = None,
    as_categories: options.CategoriesOption = None,
    as_numbers: options.NumbersOption = None,
    as_dates: options.DatesOption = None,
    strict: options.StrictOption = False,
    missing: options.MissingOption = None,
    scale: options.ScaleOption = options.Scale.auto,
    order: Annotated[
        options.Order, typer.Option(help="Order of the selected columns in the output.")
    ] = options.Order.table,
    seed: options.SeedOption = 0,
    jobs: options.JobsOption = None,
    transpose: options.TransposeOption = False,
    file_format: options.FormatOption = None,
    delimiter: options.DelimiterOption = None,
    no_header: options.NoHeaderOption = False,
    array: options.ArrayOption = None,
    names_from: options.NamesFromOption = None,
    memory: options.MemoryOption = None,
    force: options.ForceOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Select the most informative columns, and write the reduced table.

    Without -o, --names, --json or --report the selected features are shown; into a pipe go their
    names, one per line.
    """
    given = options.given_options(context)
    given.numbers = options.parse_numbers(n_features)
    given.settings = options.parse_settings(settings)
    given.must_keep = options.parse_names(must_keep)
    given.never_keep = options.parse_names(never_keep)
    given.others = None if others is None else options.parse_names(others)
    given.limit = parse_limit(limit)
    given.tune = tune or criterion is not None
    if len(given.numbers) > 1 and not given.tune:
        raise ValueError(
            f"-k must be one number without --tune, which chooses among several; got {n_features}."
        )
    if budget is not None and given.numbers != ["auto"]:
        raise ValueError(
            f"-k and --budget both say how much to keep: give one, not -k {n_features}."
        )
    if purpose is not None:
        given.method = options.method_for(purpose, method)
    console = Console(quiet)
    with console.busy("starting"):
        if output is not None:
            from bsufs.tables._write import needs_whole_table

            # Also says where the extension is none that can be written.
            given.output_needs_all = needs_whole_table(output)
        options.check_targets(
            table,
            force,
            output=output,
            names=names,
            ranking=ranking,
            json=json_file,
            report=report_file,
        )

        from bsufs.cli import _selection as steps
        from bsufs.tables import write_table

        steps.validate_request(given)
    found = steps.read(given, console)
    selection = steps.fit(given, found, console)
    compared = steps.compare(given, selection)
    others_shown = steps.show_alternatives(given, selection)
    document = selection.document
    page = None if report_file is None else steps.page(given, selection, compared, others_shown)
    if output is not None:
        # Where the table itself goes to the terminal, nothing is to move in it.
        writing = nullcontext() if output == STANDARD else console.busy(f"writing {output}")
        with writing:
            write_table(found.table, output, selection.features, order=given.order, force=force)
    lines = [f"{one_line(row['name'])}\n" for row in document["selected"]]
    texts = {
        names: "".join(lines),
        ranking: None if ranking is None else steps.ranking_as_csv(selection),
        json_file: dump(document),
        report_file: page,
    }
    for path, text in texts.items():
        write_text(text, path, force)
    written = [path for path in (output, *texts) if path not in (None, STANDARD)]
    if output is not None and output.lower().endswith(".npy") and found.table.carried_names:
        console.say(f"{output} holds numbers alone: names and carried columns are not in it")
    if written:
        console.say(f"wrote {', '.join(written)}")
    if output is None and not any(texts):
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
