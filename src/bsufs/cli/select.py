"""``bsufs select``: keep the most informative columns of a table."""

from contextlib import nullcontext
from importlib import import_module
from typing import Any

import typer

from bsufs._atomic import STANDARD
from bsufs._memory import parse_size
from bsufs._names import one_line
from bsufs.cli import _options as options
from bsufs.cli._console import Console, dump
from bsufs.cli._options import flag, names_option, option

_EXAMPLES = """
bsufs select table.csv -k 50 -o reduced.csv            # keep 50 columns
bsufs select table.csv -k 50 --report page.html        # and say why
bsufs select table.csv -k 9 --must-keep age,sex        # seven beside these
bsufs select table.csv -k 0.1 --label type             # a tenth, judged
bsufs select big.parquet -k 50 -o small.parquet        # larger than memory
zcat genes.tsv.gz | bsufs select - -k 20 > names.txt   # from pipe to pipe
bsufs select table.csv -k 20 --compare BSUFS,MCFS --report page.html
bsufs select cells.h5ad -k 300 --never-keep-matching '^MT-' -o panel.h5ad
bsufs select sensors.csv --group-by . --costs prices.csv --budget 500
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    own = SelectOptions, ColumnOptions, MethodOptions, FileOptions, MemoryOptions
    options.add_command(app, select, own, _EXAMPLES)


class SelectOptions:
    """Options."""

    output: str | None = option("FILE", "Write the reduced table; - prints it.", "-o --output")
    purpose: str | None = option(
        "NAME",
        "What the columns are for: clusters (the default), reconstruction or neighbors.",
        autocompletion=lambda: list(import_module("bsufs.purposes").PURPOSES),
    )


class ColumnOptions:
    """Which columns may be selected."""

    must_keep: list[str] | None = names_option("Always select these.")
    never_keep: list[str] | None = names_option("Never select these.")
    must_keep_matching: str | None = option(
        "PATTERN", "And all names that match a regular expression."
    )
    never_keep_matching: str | None = option(
        "PATTERN", "And all names that match, such as '^(MT-|RP[SL])'."
    )
    groups: str | None = option(
        "FILE", "Keep columns in groups: lines of column,group; -k counts groups."
    )
    group_by: str | None = option(
        "MARK", "The same by name: with _, gene_1 and gene_2 are the group gene."
    )
    costs: str | None = option("FILE", "What columns cost: lines of column,cost or group,cost.")
    budget: float | None = option("NUMBER", "The most that the selected may cost; instead of -k.")


class MethodOptions:
    """Methods."""

    method: str | None = option(
        "NAME",
        "Any selector, such as BSUFS or MCFS; instead of --purpose.",
        autocompletion=lambda: list(import_module("bsufs.selectors").all_selectors()),
    )
    settings: list[str] | None = option(
        "NAME=VALUE",
        "A parameter of the method; may be repeated.",
        "--set",
        callback=options.parse_settings,
    )
    tune: bool = flag("Try settings, and each number of -k 10,20,50; keep the best by the data.")
    criterion: str | None = option(
        "NAME",
        "What decides in --tune, such as reconstruction; implies --tune.",
        autocompletion=lambda: list(import_module("bsufs.tuning.criteria").CRITERIA),
    )
    others: list[str] | None = names_option(
        "Show other methods beside it, and random columns.", "--compare"
    )
    alternatives: int = option(
        "NUMBER", "Show so many selections for other groups of the rows.", default=0, min=0
    )


class FileOptions:
    """Further files."""

    names: str | None = option("FILE", "Selected names, best first, one per line.")
    ranking: str | None = option("FILE", "All columns as CSV: rank, score, kept, and why.")
    order: options.Order = option(
        "HOW",
        "Selected columns in the output by table, the default, or by rank.",
        default=options.Order.table,
    )


def _parse_memory(text: str | None) -> int | None:
    try:
        return None if text is None else parse_size(text)
    except ValueError as error:
        raise ValueError(f"--memory: {error}") from error


class MemoryOptions:
    """How it runs."""

    memory: str | None = option(
        "SIZE",
        "Text or Parquet that takes more, such as 2GB, is read in batches; default a quarter of "
        "what is free.",
        callback=_parse_memory,
    )


def select(given: Any) -> None:
    """Select the most informative columns of a table.

    They are shown, or written where -o or another FILE says so (- prints it); into a pipe go their
    names. NAMES are separated by commas, or one per line in a file, as in @names.txt; options with
    NAMES may be repeated.
    """
    given.tune = given.tune or given.criterion is not None
    if len(given.numbers) > 1 and not given.tune:
        raise ValueError(
            "-k must be one number without --tune, which chooses among several; got "
            f"{', '.join(map(str, given.numbers))}."
        )
    if given.budget is not None and given.numbers != ["auto"]:
        raise ValueError(
            f"-k and --budget both say how much to keep: give one, not -k {given.numbers[0]}."
        )
    if given.purpose is not None:
        given.method = options.method_for(given.purpose, given.method)
    console = Console(given.quiet)
    with console.busy("starting"):
        options.check_targets(given, "output", "names", "ranking", "json", "report")

        from bsufs.cli import _selection as steps
        from bsufs.tables import write_table

    found = steps.read(given, console)
    selection = steps.fit(given, found)
    compared = steps.compare(given, selection)
    others = steps.show_alternatives(given, selection)
    page = None if given.report_file is None else steps.page(given, selection, compared, others)
    output = given.output
    if output is not None:
        # Where the table itself goes to the terminal, nothing is to move in it.
        with nullcontext() if output == STANDARD else console.busy(f"writing {output}"):
            write_table(
                found.table, output, selection.features, order=given.order, force=given.force
            )
    document = selection.document
    texts = {
        given.names: "".join(f"{one_line(row['name'])}\n" for row in document["selected"]),
        given.ranking: None if given.ranking is None else steps.ranking_as_csv(selection),
        given.json_file: dump(document),
        given.report_file: page,
    }
    if output is not None and output.lower().endswith(".npy"):
        console.say(f"{output} holds numbers alone: names and carried columns are not in it")
    console.write(texts, given.force, before=output)
    if output is None and not any(texts):
        steps.show(selection)
