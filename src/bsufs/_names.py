"""Names of features as people see them: on one line, and not too long."""

from __future__ import annotations

ELLIPSIS = "…"


def shortened(name: str, width: int = 40) -> str:
    r"""Return a name that can be shown anywhere.

    Parameters
    ----------
    name : str
        Any text.
    width : int, default=40
        Characters at most.

    Returns
    -------
    str
        The name with control characters as in ``\n``, and with its middle left out if it is long:
        names that begin alike often differ at their end.

    Examples
    --------
    >>> from bsufs._names import shortened
    >>> shortened("temperature_of_the_north_wall_17", width=16)
    'temperatu…all_17'
    """
    # What is far too long is cut before every character of it is looked at.
    if len(name) > 2 * width:
        name = name[:width] + ELLIPSIS + name[-width:]
    name = one_line(name)
    if len(name) <= width:
        return name
    tail = (width - 1) * 2 // 5
    return name[: width - 1 - tail] + ELLIPSIS + name[-tail:]


def one_line(text: str) -> str:
    r"""Return text without what would break a line or steer a terminal.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    str
        The text with control characters as in ``\n``.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
