"""Result tables in; tables, figures and one HTML report out. Imports no selector and no solver."""

from bsufs._extras import needs

with needs("bsufs.reporting", "report"):
    from bsufs.reporting.catalogue import Item, list_items
    from bsufs.reporting.html import write_report
    from bsufs.reporting.results import Results
    from bsufs.reporting.sections import NamedFigure, NamedTable, Section, Verdict
    from bsufs.reporting.targets import Target, measure_targets
    from bsufs.reporting.views import make_section

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
