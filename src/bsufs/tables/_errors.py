"""What can be wrong with a table, in words its owner can act on."""

from __future__ import annotations

from collections.abc import Iterable

_SHOWN = 5


class TableError(ValueError):
    """A table cannot be read or written; the message is one line and names the cure."""


def listed(names: Iterable[str]) -> str:
    """Return the first few names in quotes, and how many more there are."""
    every = [repr(name) for name in names]
    more = len(every) - _SHOWN
    return ", ".join(every[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
