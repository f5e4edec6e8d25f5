"""What fills in the templates: numbers and names as text, and nothing from anywhere else."""

from __future__ import annotations

import base64
import hashlib
import math
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bsufs import _colors
from bsufs._names import shortened


@cache
def environment() -> Environment:
    """Return what fills in the templates: everything is escaped that is not markup already."""
    templates = Environment(
        loader=PackageLoader("bsufs.inspection.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals["colors"] = _colors
    templates.tests |= {"known": _is_known, "numeric": _is_numeric}
    templates.filters |= {
        "shortened": lambda name, width: shortened(str(name), width),
        "coordinate": lambda value: f"{value:.2f}".rstrip("0").rstrip("."),
        "percent": lambda share, digits=0: f"{share:.{digits}%}",
        "in_few_digits": _in_few_digits,
        # The sign that print uses instead of a hyphen.
        "minus": lambda number: number.replace("-", "\N{MINUS SIGN}"),
    }
    return templates


def rendered(**parts: Any) -> str:
    """Return the page, with its own style and script."""
    style, script = (
        (files(__package__) / "templates" / name).read_text(encoding="utf-8")
        for name in ("selection.css", "selection.js")
    )
    # Style and script are files of this package, not data.
    return (
        environment()
        .get_template("selection.html.j2")
        .render(policy=_policy(style, script), style=Markup(style), script=Markup(script), **parts)
    )


def _policy(style: str, script: str) -> str:
    """Return the content security policy: this style, this script, and nothing from anywhere."""
    hashes = [
        base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
        for text in (style, script)
    ]
    return (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _is_known(value: Any) -> bool:
    is_nan = isinstance(value, float) and math.isnan(value)
    return not (value is None or value is pd.NA or is_nan)


def _is_numeric(value: Any) -> bool:
    """Return whether a cell belongs to a column of numbers, be it a number or nothing."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return is_number or not _is_known(value)


def _in_few_digits(value: Any) -> str:
    if not _is_known(value):
        return "\N{EN DASH}"
    return str(value) if isinstance(value, int | np.integer) else f"{value:.4g}"
