"""Names of features as people see them: on one line, and not too long."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

ELLIPSIS = "…"
# They join letters of Persian or Hindi, and the parts of an emoji.
_JOINERS = "\u200c\u200d"


def shortened(name: str, width: int = 40) -> str:
    r"""Return a name that can be shown anywhere."""
    # What is far too long is cut before every character of it is looked at.
    if len(name) > 2 * width:
        name = name[:width] + ELLIPSIS + name[-width:]
    name = one_line(name)
    if len(name) <= width:
        return name
    tail = (width - 1) * 2 // 5
    return name[: width - 1 - tail] + ELLIPSIS + name[-tail:]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question that names what is nearest, after a blank; nothing where all is far."""
    by_lower = {str(one).lower(): str(one) for one in known}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f" Did you mean {by_lower[near[0]]!r}?" if near else ""


def one_line(text: str) -> str:
    r"""Return text without what would break a line or steer a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _JOINERS else ascii(c)[1:-1] for c in text)
