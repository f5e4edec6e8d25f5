"""The report: one page that needs nothing else, and the numbers and figures as files."""

from __future__ import annotations

import base64
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from bsufs._atomic import atomic_write
from bsufs_paper.reporting.results import Results
from bsufs_paper.reporting.sections import CELL_COLUMNS, Item, Section, Verdict, list_items
from bsufs_paper.reporting.style import encode
from bsufs_paper.reporting.targets import Target, measure_targets
from bsufs_paper.reporting.views import make_section

_MARKS = {
    Verdict.WITHIN: ("●", "within"),
    Verdict.ABOVE: ("▲", "above"),
    Verdict.BELOW: ("▼", "below"),
    Verdict.NOT_PRINTED: ("○", "unprinted"),
    Verdict.NOT_RUN: ("✕", "missing"),
}
_CSV_COLUMNS = ["item", *CELL_COLUMNS]
_MIME = {"svg": "image/svg+xml", "png": "image/png"}


@dataclass(frozen=True)
class _Picture:
    file_name: str
    content: bytes
    alternative: str

    @property
    def uri(self) -> str:
        kind = _MIME[self.file_name.rsplit(".", 1)[1]]
        return f"data:{kind};base64,{base64.b64encode(self.content).decode('ascii')}"


@dataclass(frozen=True)
class _Block:
    """A section as the template shows it."""

    section: Section
    pictures: list[_Picture]
    grids: list[dict[str, Any]]


def write_report(
    results: Mapping[str, pd.DataFrame],
    info: Mapping[str, Any],
    out_dir: str | os.PathLike[str],
    items: Sequence[str | Item] | None = None,
) -> Path:
    """Write `report.html`, `summary.md`, `cells.csv` and `figures` to a folder; return the page.

    `results` are the frames of a run (see `Results`), any of which may be absent or empty; `info`
    says what is known of it: version, command, created, quick, protocol, machine, seconds. `items`
    are the tables and figures to show, None for all. One that cannot be made shows its error in its
    place. Every file is written beside its place and then moved, so a reader never sees half of
    one; those of an earlier report are replaced.
    """
    chosen = _chosen(items)
    measured = Results(results, info)
    folder = Path(out_dir)
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    blocks = []
    for item in chosen:
        block = _block(make_section(item, measured))
        for picture in block.pictures:
            _write(folder / "figures" / picture.file_name, picture.content)
        # The bytes are kept, the drawing is not: many large figures would fill the memory.
        blocks.append(replace(block, section=replace(block.section, figures=[])))
    _forget_figures(folder / "figures", {p.file_name for block in blocks for p in block.pictures})
    targets = measure_targets(measured)
    sections = [block.section for block in blocks]
    _write(folder / "cells.csv", _cells_csv(sections).encode("utf-8"))
    _write(folder / "summary.md", _summary(sections, targets, measured.info).encode("utf-8"))
    page = (
        _environment()
        .get_template("report.html.j2")
        .render(
            blocks=blocks,
            targets=targets,
            quick=bool(measured.info.get("quick")),
            version=str(measured.info.get("version") or ""),
            facts=list(_facts(measured.info)),
            marks=[(verdict.value, *_MARKS[verdict]) for verdict in Verdict],
            n_errors=sum(bool(section.error) for section in sections),
        )
    )
    path = folder / "report.html"
    _write(path, page.encode("utf-8"))
    return path


def _chosen(items: Sequence[str | Item] | None) -> list[Item]:
    known = {item.id: item for item in list_items()}
    if items is None:
        return list(known.values())
    unknown = [item for item in items if not isinstance(item, Item) and item not in known]
    if unknown:
        raise ValueError(
            f"items must be ids of the report, got {', '.join(map(repr, unknown))}; choose from "
            f"{', '.join(known)}."
        )
    return [item if isinstance(item, Item) else known[item] for item in items]


def _block(section: Section) -> _Block:
    """Draw a section; what cannot be saved is an error of the section."""
    pictures = []
    try:
        for figure in section.figures:
            ending, content = encode(figure.figure)
            name = f"{section.item.id}-{figure.name}.{ending}"
            pictures.append(_Picture(name, content, figure.alternative))
        return _Block(section, pictures, _grids(section.cells))
    # As in `make_section`: the other parts of the report are still worth having.
    except Exception as error:
        return _Block(Section(section.item, error=f"{type(error).__name__}: {error}"), [], [])


def _grids(cells: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the cells as one grid per metric, for the template."""
    grids = []
    for metric, rows in cells.groupby("metric", sort=False):
        columns = list(dict.fromkeys(rows["column"]))
        lines: dict[str, dict[str, dict[str, Any]]] = {}
        for cell in rows.to_dict("records"):
            lines.setdefault(cell["row"], {})[cell["column"]] = _shown(cell)
        grids.append({"metric": metric, "columns": columns, "lines": lines})
    return grids


def _shown(cell: dict[str, Any]) -> dict[str, Any]:
    verdict = Verdict(cell["verdict"])
    mark, style = _MARKS[verdict]
    # Without any spread there is no unit: counts are equal or they are not.
    has_unit = not (math.isnan(cell["paper_sd"]) and math.isnan(cell["here_sd"]))
    difference = cell["difference_in_sd"] if has_unit else math.nan
    words = verdict.value
    if verdict is Verdict.NOT_RUN and cell["reason"]:
        words = f"{verdict.value}: {cell['reason']}"
    return {
        "here": _with_spread(cell["here"], cell["here_sd"]),
        "paper": _with_spread(cell["paper"], cell["paper_sd"]),
        "difference": ""
        if math.isnan(difference)
        else f"{difference:+.1f} sd".replace("-0.0", "+0.0"),
        "counts": _feature_counts(cell["n_features_here"], cell["n_features_paper"]),
        "mark": mark,
        "style": style,
        "words": words,
    }


def _with_spread(value: float, spread: float) -> str:
    if math.isnan(value):
        return ""
    if math.isnan(spread):
        return f"{value:.0f}" if float(value).is_integer() else f"{value:.2f}"
    return f"{value:.2f} ±{spread:.2f}"


def _feature_counts(here: float, paper: float) -> str:
    """Return the numbers of features, ours first; empty where there is none of ours."""
    if math.isnan(here):
        return ""
    return f"k {here:.0f}" if math.isnan(paper) else f"k {here:.0f}|{paper:.0f}"


def _cells_csv(sections: Iterable[Section]) -> str:
    parts = [section.cells.assign(item=section.item.id) for section in sections]
    filled = [part for part in parts if len(part)]
    frame = pd.concat(filled) if filled else pd.DataFrame(columns=_CSV_COLUMNS)
    text = frame[_CSV_COLUMNS].to_csv(index=False, lineterminator="\n", float_format="%.6g")
    return str(text)


def _facts(info: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Return what is known of the run as lines."""
    for name in ("created", "version", "command"):
        if info.get(name):
            yield name, str(info[name])
    if info.get("seconds") is not None:
        yield "seconds", f"{float(info['seconds']):.0f}"
    for name in ("protocol", "machine"):
        for key, value in dict(info.get(name) or {}).items():
            yield f"{name}: {str(key).replace('_', ' ')}", str(value)


def _summary(sections: list[Section], targets: list[Target], info: Mapping[str, Any]) -> str:
    """Return the text version: targets, then verdict counts and notes of every section."""
    lines = ["# Reproduction report", ""]
    if info.get("quick"):
        lines += ["**Quick run: these are samples, not the reproduction.**", ""]
    lines += [f"- {name}: {value}" for name, value in _facts(info)]
    lines += ["", "## Targets", ""]
    lines += [f"- **{target.outcome}**: {target.title}. {target.measured}" for target in targets]
    n_errors = sum(bool(section.error) for section in sections)
    if n_errors:
        lines += ["", f"{n_errors} of {len(sections)} parts could not be made; see below."]
    for section in sections:
        lines += ["", f"## {section.item.title} ({section.item.id})", "", section.item.caption, ""]
        if section.error:
            lines.append(f"Could not be made: {section.error}")
            continue
        counts = section.verdict_counts()
        if counts:
            lines.append("; ".join(f"{verdict.value}: {n}" for verdict, n in counts.items()) + ".")
        lines += [f"- {note}" for note in section.notes]
    return "\n".join(lines) + "\n"


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("bsufs_paper.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _write(path: Path, content: bytes) -> None:
    with atomic_write(path) as stream:
        stream.write(content)


def _forget_figures(folder: Path, kept: set[str]) -> None:
    """Remove the figures of an earlier report, so that none is taken for one of this."""
    known = tuple(f"{item.id}-" for item in list_items())
    for path in folder.iterdir():
        is_ours = path.suffix in (".svg", ".png") and path.name.startswith(known)
        if is_ours and path.name not in kept:
            path.unlink()
