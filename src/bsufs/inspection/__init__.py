"""What a selection holds: explained, drawn, and told on one page.

`Findings` computes each thing once; `explain`, the plots and `make_report` show it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bsufs.inspection.explanation import explain
    from bsufs.inspection.findings import Findings
    from bsufs.inspection.page import Comparison, make_report
    from bsufs.inspection.plots import (
        plot_explained_variance,
        plot_path,
        plot_pixels,
        plot_redundancy,
        plot_scores,
        plot_stability,
    )

__all__ = [
    "Comparison",
    "Findings",
    "explain",
    "make_report",
    "plot_explained_variance",
    "plot_path",
    "plot_pixels",
    "plot_redundancy",
    "plot_scores",
    "plot_stability",
]

# Fetched when first used: `explain` needs no matplotlib, and a plot no jinja2.
_HOMES = {
    "Comparison": "page",
    "Findings": "findings",
    "explain": "explanation",
    "make_report": "page",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'plots')}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
