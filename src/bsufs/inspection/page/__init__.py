"""One selection as one HTML page: what was kept, why, how sure it is, and how to repeat it."""

from bsufs._extras import needs

with needs("bsufs.inspection.page", "report"):
    from bsufs.inspection.page._page import Comparison, ReportView, make_report

__all__ = ["Comparison", "ReportView", "make_report"]
