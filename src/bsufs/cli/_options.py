"""Options that several commands share, and how their words are read."""

import ast
import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, get_type_hints

import typer
from typer.models import OptionInfo

from bsufs._atomic import STANDARD, check_target
from bsufs._names import did_you_mean
from bsufs.cli._limit import parse_limit

Missing = StrEnum(
    "Missing",
    {"error": "error", "median": "median", "rows": "drop-rows", "columns": "drop-columns"},
)
Scale = StrEnum("Scale", ["auto", "none", "standard", "noise"])
Order = StrEnum("Order", ["rank", "table"])
QuietOption = Annotated[bool, typer.Option("-q", "--quiet", help="Print results and errors alone.")]


def option(
    metavar: str | None, text: str, names: str = "", default: Any = None, **more: Any
) -> Any:
    """Declare an option; names are separated by blanks, and that of the variable by default."""
    more["show_default"] = False
    return typer.Option(default, *names.split(), metavar=metavar, help=text, **more)


def flag(text: str) -> Any:
    """Declare an option without a value."""
    return option(None, text, default=False)


def names_option(text: str, names: str = "") -> Any:
    """Declare an option that takes names of columns."""
    return option("NAMES", text, names, callback=parse_names)


def add_command(
    app: typer.Typer, work: Callable[[Any], None], own: Sequence[type], examples: str
) -> None:
    """Add a command with options of its own, declared in classes, and those of all commands.

    Each class is a group of the help. `work` gets all options by name, and the command itself as a
    shell takes it.
    """
    shared = CommonOptions, NuisanceOptions, RunningOptions, ReadingOptions
    named = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("context", named, annotation=typer.Context)]
    for group in (TableOptions, *own, *shared):
        for name, hint in get_type_hints(group, include_extras=True).items():
            default = getattr(group, name)
            if isinstance(default, OptionInfo):
                default.rich_help_panel = str(group.__doc__).rstrip(".")
                # Named here, a flag gets no second name that begins with --no.
                default.param_decls = default.param_decls or (f"--{name.replace('_', '-')}",)
            parameters.append(inspect.Parameter(name, named, default=default, annotation=hint))

    def command(context: typer.Context, **_: Any) -> None:
        work(SimpleNamespace(**context.params, command=context.obj))

    command.__doc__ = work.__doc__
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    vars(command)["__signature__"] = inspect.Signature(parameters)
    app.command(work.__name__, epilog=examples)(command)


def parse_number(text: str) -> int | float | str:
    """Read how many features to keep."""
    if text.strip().lower() == "auto":
        return "auto"
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    # 1.0 may be meant as all or as one, so it is neither.
    if number >= 1 and number.is_integer() and "." not in text:
        return int(number)
    if 0 < number < 1:
        return number
    raise ValueError(
        f"-k must be a whole number from 1, a share below 1 such as 0.1, or auto, got {text!r}."
    )


def parse_numbers(text: str) -> list[int | float | str]:
    """Read one or several numbers of features to keep."""
    return list(dict.fromkeys(parse_number(part) for part in text.split(",")))


def parse_names(options: Iterable[str] | None) -> list[str]:
    """Read names: separated by commas, or one per line in a file after an @."""
    names: list[str] = []
    for option in options or ():
        if option.startswith("@"):
            lines = Path(option[1:]).read_text(encoding="utf-8-sig").splitlines()
            names.extend(line for line in lines if line.strip())
        else:
            names.extend(name for name in option.split(",") if name)
    return names


def parse_kinds(given: Any) -> dict[str, Any]:
    """Read what columns are to be taken as."""
    asked = {"category": given.as_categories, "number": given.as_numbers, "date": given.as_dates}
    kinds: dict[str, Any] = {}
    for kind, names in asked.items():
        for name in names:
            if kinds.setdefault(name, kind) != kind:
                raise ValueError(
                    f"{name!r} must be one thing, but --categories, --numbers and --dates name it "
                    "twice."
                )
    return kinds


def parse_settings(options: Sequence[str] | None) -> dict[str, Any]:
    """Read ``name=value`` pairs; a value that is no Python literal is text."""
    settings: dict[str, Any] = {}
    for option in options or ():
        name, equals, value = option.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"--set must look like name=value, got {option!r}.")
        try:
            settings[name.strip()] = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError):
            settings[name.strip()] = value.strip()
    return settings


def method_for(purpose: str, method: str | None) -> str:
    """Return the name of the method that serves a purpose."""
    from bsufs.purposes import PURPOSES

    if method is not None:
        raise ValueError(
            f"--purpose and --method both say how to select, got {purpose} and {method}. Leave "
            "one of them out."
        )
    return PURPOSES[one_of(purpose, list(PURPOSES), "--purpose")].__name__


def check_targets(given: Any, *options: str) -> None:
    """Raise an error where a file could not be written, before work is done for it."""
    if given.report_file is not None:
        # Without what it needs, this is said before the work and not after.
        import bsufs.inspection.page  # noqa: F401 - only to see whether it can be imported
    named = {one: vars(given).get(one, vars(given).get(f"{one}_file")) for one in options}
    targets = {option: target for option, target in named.items() if target is not None}
    places = [t if t == STANDARD else os.path.realpath(t) for t in targets.values()]
    if len(set(places)) < len(places):
        *first, last = [f"--{option}" for option in targets]
        raise ValueError(f"{', '.join(first)} and {last} must name different files.")
    for option, target in targets.items():
        check_target(target, force=given.force)
        table = given.table
        if os.path.exists(table) and os.path.exists(target) and os.path.samefile(target, table):
            raise ValueError(
                f"--{option} must name another file than the table, got {target} for both."
            )


def one_of(name: str, choices: Sequence[str], what: str) -> str:
    """Return the choice that a name means, whatever its case."""
    by_lower = {choice.lower(): choice for choice in choices}
    if name.lower() in by_lower:
        return by_lower[name.lower()]
    hint = did_you_mean(name, choices)
    raise ValueError(f"{what} {name!r} is not known.{hint} There are {', '.join(choices)}.")


class TableOptions:
    """Options."""

    table: str = typer.Argument(
        metavar="TABLE",
        help="A file: .csv .tsv .txt (also .gz .bz2 .xz .zip) .parquet .feather .xlsx .npy .npz "
        ".mat .h5ad .zarr; - reads text from standard input.",
        show_default=False,
    )
    numbers: str = option(
        "NUMBER",
        "How many to keep: a number, a share such as 0.1, or auto (the default), the fewest that "
        "do as well as more would.",
        "-k --n-features",
        "auto",
        callback=parse_numbers,
    )


class CommonOptions:
    """Options."""

    report_file: str | None = option("FILE", "Write a page with reasons and pictures.", "--report")
    json_file: str | None = option("FILE", "Write all results as JSON.", "--json")
    ignore: list[str] | None = names_option(
        "Columns not to use, such as an id; the output keeps them."
    )
    label: str | None = option("COLUMN", "Known classes, to judge by; never used to select.")
    force: bool = flag("Replace files that exist.")
    quiet: QuietOption = False


class NuisanceOptions:
    """What must not decide."""

    adjust_for: list[str] | None = names_option(
        "Columns such as an age: what they explain is taken off all others while selecting. "
        "Text means groups."
    )
    batch_key: list[str] | None = names_option(
        "Columns such as a batch or a donor: the same by groups, also where groups are numbers."
    )
    center_rows: bool = flag("Take off each row its mean over the columns while selecting.")


class RunningOptions:
    """How it runs."""

    seed: int = option("NUMBER", "Seed of all that is random; default 0.", default=0, min=0)
    jobs: int | None = option("NUMBER", "Threads at most; default all.", min=1)
    subsamples: int = option(
        "NUMBER", "Refits that tell how stable it is, for --report; default 20.", default=20, min=0
    )
    limit: str | None = option(
        "TIME",
        "Stop a method that is compared after 60s, 2m or 1h; the others go on.",
        callback=parse_limit,
    )
    all_rows: bool = flag("Compare on all rows, also where 4096 drawn at random would do.")


class ReadingOptions:
    """How the table is read."""

    as_categories: list[str] | None = names_option("Columns that are categories.", "--categories")
    as_numbers: list[str] | None = names_option("Columns that are numbers.", "--numbers")
    as_dates: list[str] | None = names_option("Columns that are dates.", "--dates")
    missing: Missing | None = option(
        "HOW",
        "Gaps: median, the default, fills them while selecting, and the output keeps them; "
        "drop-rows; drop-columns; error.",
    )
    scale: Scale = option(
        "HOW",
        "Units: standard, variance 1 while selecting; none; noise, for gene expression; auto, the "
        "default, chooses and says why.",
        default=Scale.auto,
    )
    strict: bool = flag("Refuse text, dates and gaps in columns to select.")
    transpose: bool = flag("The rows of the file are the features, named in its first column.")
    no_header: bool = flag("The first line holds values, no names.")
    delimiter: str | None = option(
        "MARK",
        r"What stands between cells of text, \t for a tab.",
        callback=lambda mark: "\t" if mark == "\\t" else mark,
    )
    file_format: str | None = option(
        "KIND", "What the file is, such as csv, where its name does not say it.", "--format"
    )
    array: str | None = option(
        "NAME", "Matrix of a .npz or .mat, layer of a .h5ad, sheet of a .xlsx.", "--array --layer"
    )
    names_from: str | None = option("COLUMN", "Column of var in a .h5ad that names the features.")
