"""Texts that repeat in docstrings, said once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from textwrap import indent
from typing import TypeVar

Documented = TypeVar("Documented")

_PLACEHOLDER = re.compile(r"^( *)%\((\w+)\)s$", re.MULTILINE)


def fill_docstring(documented: Documented, texts: Mapping[str, str]) -> Documented:
    """Put a text in the place of each line `%(name)s` of the docstring of a class or function.

    Other percent signs and braces mean nothing, so formulas stay as they are.
    """
    # Under `python -OO` there is no docstring.
    if documented.__doc__:
        documented.__doc__ = _PLACEHOLDER.sub(
            lambda match: indent(texts[match[2]], match[1]), documented.__doc__
        )
    return documented
