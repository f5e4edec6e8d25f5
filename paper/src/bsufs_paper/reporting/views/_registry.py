"""Where views put their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd

from bsufs_paper.reporting.catalog import Item
from bsufs_paper.reporting.results import Results
from bsufs_paper.reporting.sections import Section

Printed = Mapping[str, pd.DataFrame]
View = Callable[[Item, Results, Printed], Section]

_views: dict[str, View] = {}


def view(name: str) -> Callable[[View], View]:
    """Register a function as the view of this name."""

    def register(function: View) -> View:
        if name in _views:
            raise ValueError(f"a view must have a name of its own; {name!r} is there already.")
        _views[name] = function
        return function

    return register


def registered() -> dict[str, View]:
    """Return the views registered so far."""
    return dict(_views)
