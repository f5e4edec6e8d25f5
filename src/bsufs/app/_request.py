"""What the page asks for, as the words of a shell."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from bsufs.tables._arrays import ANNDATA
from bsufs.tables._files import EXCEL, FEATHER, PACKED, PARQUET, TEXT, kind_of

# What a column can be to a selection, and the option that says so.
ROLES = {
    "number": "--numbers",
    "category": "--categories",
    "date": "--dates",
    "ignore": "--ignore",
    "label": "--label",
    "must-keep": "--must-keep",
    "never-keep": "--never-keep",
    "adjust-for": "--adjust-for",
    "batch-key": "--batch-key",
}
CHOICES = {
    "k": re.compile(r"auto|[1-9]\d{0,8}|0?\.\d{1,9}"),
    "purpose": re.compile("clusters|reconstruction|neighbors"),
    "scale": re.compile("auto|none|standard"),
    "missing": re.compile("median|drop-rows|drop-columns"),
}
# Longer lists of names go to a file, as do names that the words of a shell cannot hold.
_LONGEST_LIST = 1000
_LONGEST_STEM = 80
_WRITTEN_ALIKE = (*TEXT, *PARQUET, *FEATHER, ".h5ad")
GROUPS_FILE = "groups.csv"


def safe_name(name: str) -> str:
    """Return a name that can be no path: letters, digits and an extension that is known."""
    name = unicodedata.normalize("NFC", name)
    kind = kind_of(name, (".npy", ".npz", ".mat", *ANNDATA, *EXCEL), "the file is", "", PACKED)
    packing = Path(name.lower()).suffix
    extension = kind if packing == kind else kind + packing
    stem = re.sub(r"[^\w-]+", "_", name[: -len(extension)])[-_LONGEST_STEM:].strip("_-")
    return (stem or "table") + extension


class Parsed:
    """A request that came as JSON: every field of the type of its default, and no others."""

    @classmethod
    def parsed(cls, document: Any) -> Self:
        """Check and return what was asked for."""
        known = {one.name: type(getattr(cls(), one.name)) for one in fields(cls)}  # type: ignore[arg-type]
        if not isinstance(document, dict) or not document.keys() <= known.keys():
            raise ValueError(f"a request must be an object with {', '.join(known)}.")
        for name, value in document.items():
            if type(value) is not known[name]:
                raise ValueError(f"{name} must be of type {known[name].__name__}, got {value!r}.")
            if name in CHOICES and not CHOICES[name].fullmatch(value):
                raise ValueError(f"{name} cannot be {value[:80]!r}.")
        return cls(**document)


@dataclass(frozen=True)
class Reading(Parsed):
    """How a file is read, where that cannot be seen in it."""

    transpose: bool = False
    header: bool = True
    delimiter: str = ""
    array: str = ""

    @property
    def options(self) -> dict[str, Any]:
        """What `open_table` is given besides the file."""
        mark = "\t" if self.delimiter == "\\t" else self.delimiter or None
        given = {"transpose": self.transpose, "header": self.header}
        return given | {"delimiter": mark, "array": self.array or None}

    def words(self) -> list[str]:
        """Return the options of the command."""
        words = ["--transpose"] * self.transpose + ["--no-header"] * (not self.header)
        words += _option("--delimiter", self.delimiter) if self.delimiter else []
        return words + (_option("--array", self.array) if self.array else [])


@dataclass(frozen=True)
class Settings(Parsed):
    """What is to be selected."""

    k: str = "auto"
    purpose: str = "clusters"
    roles: dict[str, str] = field(default_factory=dict)
    group_by: str = ""
    group_file: bool = False
    scale: str = "auto"
    missing: str = "median"
    center_rows: bool = False
    seed: int = 0
    report: bool = True

    def names(self, role: str) -> list[str]:
        """Return the columns that were given a role."""
        return [name for name, given in self.roles.items() if given == role]

    def check(self) -> None:
        """Raise an error where the roles make no sense."""
        for name, role in self.roles.items():
            if role not in ROLES:
                raise ValueError(f"{name!r} cannot be {role!r}: choose {', '.join(ROLES)}.")
            if name.splitlines() != [name] or not name.strip() or "\0" in name:
                raise ValueError(
                    f"{name!r} cannot be named in a command, which has one line. Rename the column."
                )
        if len(self.names("label")) > 1:
            raise ValueError("Only one column can be the label.")
        if self.seed < 0:
            raise ValueError(f"The seed must be 0 or more, got {self.seed}.")


def output_names(table: str, report: bool) -> dict[str, str]:
    """Return what a run writes beside a table, by the option that names it."""
    safe = safe_name(Path(table).name)
    stem = safe.partition(".")[0]
    extension = next((one for one in _WRITTEN_ALIKE if safe.endswith(one)), ".csv")
    names = {
        "output": f"{stem}-selected{extension}",
        "ranking": f"{stem}-ranking.csv",
        "names": f"{stem}-names.txt",
        "json": f"{stem}-results.json",
    }
    return names | ({"report": f"{stem}-report.html"} if report else {})


def shell_words(
    table: str, settings: Settings, reading: Reading
) -> tuple[list[str], dict[str, str]]:
    """Return the words of the command, without its program, and the files of names it reads."""
    settings.check()
    words, files = ["select", table, "-k", settings.k], {}
    if settings.purpose != "clusters":
        words += ["--purpose", settings.purpose]
    for role, option in ROLES.items():
        names = settings.names(role)
        if not names:
            continue
        plain = ",".join(names)
        if role == "label":
            words += _option(option, plain)
        elif plain.count(",") >= len(names) or "@" in plain or len(plain) > _LONGEST_LIST:
            file = f"{role}.txt"
            files[file] = "".join(f"{name}\n" for name in names)
            words += [option, f"@{file}"]
        else:
            words += _option(option, plain)
    if settings.group_file:
        words += ["--groups", GROUPS_FILE]
    elif settings.group_by:
        words += _option("--group-by", settings.group_by)
    words += ["--scale", settings.scale] * (settings.scale != "auto")
    words += ["--missing", settings.missing] * (settings.missing != "median")
    words += ["--center-rows"] * settings.center_rows
    words += ["--seed", str(settings.seed)] * (settings.seed != 0)
    words += reading.words()
    for name, file in output_names(table, settings.report).items():
        words += [f"--{name}", file]
    return words, files


def _option(option: str, value: str) -> list[str]:
    """Return an option and its value, which is a value whatever it begins with."""
    return [f"{option}={value}"] if value.startswith("-") else [option, value]
