"""Result tables in; tables, figures and one HTML report out. Imports no selector and no solver."""

from bsufs_paper.reporting.html import write_report
from bsufs_paper.reporting.results import Results
from bsufs_paper.reporting.sections import (
    Item,
    NamedFigure,
    NamedTable,
    Section,
    Verdict,
    list_items,
)
from bsufs_paper.reporting.targets import Target, measure_targets
from bsufs_paper.reporting.views import make_section

__all__ = [
    "Item",
    "NamedFigure",
    "NamedTable",
    "Results",
    "Section",
    "Target",
    "Verdict",
    "list_items",
    "make_section",
    "measure_targets",
    "write_report",
]
