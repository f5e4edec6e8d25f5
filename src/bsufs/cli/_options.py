"""Options that several commands share, and how their words are read."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


class Missing(StrEnum):
    """What to do about missing values."""

    error = "error"
    median = "median"
    drop_rows = "drop-rows"
    drop_columns = "drop-columns"


class Scale(StrEnum):
    """What to do with the columns before selecting."""

    none = "none"
    standard = "standard"


class Order(StrEnum):
    """The order of the selected columns in what is written."""

    rank = "rank"
    table = "table"


TableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="The table: .csv .tsv .txt (also .gz) .parquet .feather .npy .npz .mat .h5ad, or - "
        "for text from standard input.",
        show_default=False,
    ),
]
NumberOption = Annotated[
    str, typer.Option("-k", "--n-features", help="How many to keep: a number, or auto.")
]
IgnoreOption = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        metavar="NAMES",
        help="Columns not to use, carried to the output: a,b or @file; may be repeated.",
    ),
]
LabelOption = Annotated[
    str | None,
    typer.Option(
        "--label",
        metavar="COLUMN",
        help="Classes; never used to select, only to score k-means afterwards.",
    ),
]
MissingOption = Annotated[
    Missing,
    typer.Option(
        "--missing",
        help="Missing or infinite values: stop, use the median while selecting (the output keeps "
        "its gaps), or leave out rows or columns.",
    ),
]
ScaleOption = Annotated[
    Scale, typer.Option("--scale", help="standard: all columns to variance 1 while selecting.")
]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of all that is random.", min=0)]
JobsOption = Annotated[
    int | None, typer.Option("--jobs", help="Threads at most; default all.", min=1)
]
DelimiterOption = Annotated[
    str | None,
    typer.Option("--delimiter", metavar="MARK", help=r"Mark between cells of text, \t for a tab."),
]
NoHeaderOption = Annotated[
    bool, typer.Option("--no-header", help="The first line holds values, no names.")
]
ArrayOption = Annotated[
    str | None, typer.Option("--array", metavar="NAME", help="Which matrix of a .npz or .mat.")
]
MemoryOption = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="A text or Parquet table that takes more than this, such as 2GB, is read in batches "
        "of rows. Default: a quarter of the memory that is free.",
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
QuietOption = Annotated[bool, typer.Option("-q", "--quiet", help="No words on standard error.")]


def parse_number(text: str) -> int | float | str:
    """Read how many features to keep.

    Parameters
    ----------
    text : str
        A whole number, a share such as 0.1, or auto.

    Returns
    -------
    int, float or str
        The number.
    """
    if text.strip().lower() == "auto":
        return "auto"
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if number >= 1 and number.is_integer():
        return int(number)
    if 0 < number < 1:
        return number
    raise ValueError(
        f"-k must be a whole number from 1, a share between 0 and 1, or auto, got {text!r}."
    )


def parse_names(options: Iterable[str] | None) -> list[str]:
    """Read names: separated by commas, or one per line in a file after an @.

    Parameters
    ----------
    options : iterable of str or None
        What was given.

    Returns
    -------
    list of str
        All names.
    """
    names: list[str] = []
    for option in options or ():
        if option.startswith("@"):
            lines = Path(option[1:]).read_text(encoding="utf-8-sig").splitlines()
            names.extend(line for line in lines if line.strip())
        else:
            names.extend(name for name in option.split(",") if name)
    return names


def parse_delimiter(text: str | None) -> str | None:
    r"""Read a delimiter, with ``\t`` for a tab.

    Parameters
    ----------
    text : str or None
        What was given.

    Returns
    -------
    str or None
        The mark.
    """
    return "\t" if text == "\\t" else text


def parse_settings(options: Sequence[str] | None) -> dict[str, Any]:
    """Read ``name=value`` pairs; a value that is no Python literal is text.

    Parameters
    ----------
    options : sequence of str or None
        What was given.

    Returns
    -------
    dict
        Values by name.
    """
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


def one_of(name: str, choices: Sequence[str], what: str) -> str:
    """Return the choice that a name means, whatever its case.

    Parameters
    ----------
    name : str
        What was given.
    choices : sequence of str
        What there is.
    what : str
        What is chosen, for the message.

    Returns
    -------
    str
        The choice.
    """
    by_lower = {choice.lower(): choice for choice in choices}
    if name.lower() in by_lower:
        return by_lower[name.lower()]
    near = difflib.get_close_matches(name.lower(), by_lower, n=1)
    hint = f"Did you mean {by_lower[near[0]]}? " if near else ""
    raise ValueError(f"{what} {name!r} is not known. {hint}There are {', '.join(choices)}.")
