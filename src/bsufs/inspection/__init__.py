"""What a selection holds: explained, drawn, and told on one page.

`Findings` computes each thing once; `explain`, the plots and `make_report` show it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bsufs.inspection.alternative import Alternative, alternatives
from bsufs.inspection.findings import Findings
from bsufs.inspection.plots import (
    plot_explained_variance,
    plot_path,
    plot_pixels,
    plot_redundancy,
    plot_scores,
    plot_stability,
)

if TYPE_CHECKING:
    from bsufs.inspection.explanation import explain
    from bsufs.inspection.page import Comparison, make_report

__all__ = [
    "Alternative",
    "Comparison",
    "Findings",
    "alternatives",
    "explain",
    "make_report",
    "plot_explained_variance",
    "plot_path",
    "plot_pixels",
    "plot_redundancy",
    "plot_scores",
    "plot_stability",
]

# Fetched when first used: they need an extra that the others do not.
_HOMES = {"Comparison": "page", "explain": "explanation", "make_report": "page"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
