"""What fills in the templates: numbers and names as text, and nothing from anywhere else."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from pandas import isna
from pandas.api.types import is_float, is_integer, is_scalar

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
    templates.tests |= {
        "known": _is_known,
        # A cell of a column of numbers, be it a number or nothing.
        "numeric": lambda value: is_integer(value) or is_float(value) or not _is_known(value),
    }
    templates.filters |= {
        "shortened": lambda name, width: shortened(str(name), width),
        "coordinate": lambda value: f"{value:.2f}".rstrip("0").rstrip("."),
        "percent": lambda share, digits=0: f"{share:.{digits}%}",
        "grouped": lambda number: f"{number:,}",
        "in_few_digits": lambda value: str(value) if is_integer(value) else f"{value:.4g}",
        # The sign that print uses instead of a hyphen.
        "minus": lambda number: number.replace("-", "\N{MINUS SIGN}"),
    }
    return templates


def rendered(**parts: Any) -> str:
    """Return the page, with its own style and script, and a policy that allows nothing else."""
    own, policy = {}, "default-src 'none'; "
    templates = files(__package__) / "templates"
    for kind, names in (("style", ["selection.css"]), ("script", ["shared.js", "selection.js"])):
        content = "".join((templates / name).read_text(encoding="utf-8") for name in names)
        digest = base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest())
        policy += f"{kind}-src 'sha256-{digest.decode('ascii')}'; "
        # A file of this package, not data.
        own[kind] = Markup(content)
    policy += "img-src data:; base-uri 'none'; form-action 'none'"
    return environment().get_template("selection.html.j2").render(policy=policy, **own, **parts)


def _is_known(value: Any) -> bool:
    return not (is_scalar(value) and isna(value))
