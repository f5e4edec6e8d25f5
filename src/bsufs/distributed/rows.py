"""Mean and scatter of data in row blocks, in one pass, by a tree of partial sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bsufs.distributed._tasks import compute, merged


def merged_here(parts: Sequence[Any]) -> Any:
    """Merge what the row blocks have to say by a tree of tasks, and bring the outcome here."""
    return compute(merged(parts, _taken_in))[0]


def _taken_in(parts: list[Any]) -> Any:
    # Tasks may run twice when a worker dies: what they get must stay as it is.
    first, *others = parts
    total = first.copy()
    for other in others:
        total.merge(other)
    return total
