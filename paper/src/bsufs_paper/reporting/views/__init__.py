"""Every module here is imported and its views are registered: a new one needs no list."""

from __future__ import annotations

import importlib
import pkgutil
import traceback
from functools import cache

from bsufs_paper.reporting.catalog import Item
from bsufs_paper.reporting.paper import load_printed
from bsufs_paper.reporting.results import Results
from bsufs_paper.reporting.sections import Section
from bsufs_paper.reporting.style import styled
from bsufs_paper.reporting.views._registry import View, registered


@cache
def list_views() -> dict[str, View]:
    """Return every view by its name."""
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"{__name__}.{module.name}")
    return registered()


def make_section(item: Item, results: Results) -> Section:
    """Make one table or figure; an error becomes part of the section, not of the caller."""
    views = list_views()
    try:
        if item.view not in views:
            raise ValueError(
                f"view of {item.id} must be one of {', '.join(sorted(views))}; got {item.view!r}."
            )
        printed = {name: load_printed(name) for name in item.printed}
        with styled():
            return views[item.view](item, results, printed)
    # A report of which one part is missing is worth more than none.
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{last.name}, line {last.lineno}"
        return Section(item, error=f"{type(error).__name__}: {error} (in {where})")
