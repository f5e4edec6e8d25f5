"""The tables of a page, as its template shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from bsufs._names import shortened
from bsufs._typing import Mask
from bsufs.inspection.page._charts import with_minus_sign
from bsufs.inspection.page._comparison import Comparison
from bsufs.inspection.page._contents import NAME_WIDTH, Tuning
from bsufs.inspection.page._figures import overlap_figure

# A name longer than this is not shown in full anywhere: the page must stay small.
LONGEST_NAME = 300


def feature_rows(explanation: pd.DataFrame, others: Mapping[str, Mask]) -> list[dict[str, Any]]:
    """Return the rows of the table of features."""
    shown = []
    for column, row in zip(explanation.index.tolist(), explanation.to_dict("records"), strict=True):
        name, closest = row["name"], row["closest"]
        short = shortened(name, NAME_WIDTH)
        shown.append(
            {
                "column": column,
                "rank": row["rank"],
                "name": short,
                "full_name": "" if short == name else shortened(name, LONGEST_NAME),
                "kept": row["selected"],
                "reason": row["reason"].removeprefix("kept: ").removeprefix("left out: "),
                "score": f"{row['score']:.4g}",
                "died_at": "" if pd.isna(row["died_at"]) else row["died_at"],
                "frequency": "" if np.isnan(row["frequency"]) else f"{row['frequency']:.0%}",
                "interval": "\N{EN DASH}".join(
                    f"{100 * row[end]:.0f}" for end in ("frequency_low", "frequency_high")
                ),
                "share": f"{row['variance_share']:.3%}",
                "share_value": f"{row['variance_share']:.4g}",
                "closest": shortened(closest, NAME_WIDTH) if isinstance(closest, str) else "",
                "correlation": ""
                if np.isnan(row["correlation"])
                else with_minus_sign(f"{row['correlation']:.2f}"),
                "correlation_value": ""
                if np.isnan(row["correlation"])
                else f"{row['correlation']:.4f}",
                "others": [name for name, mask in others.items() if mask[column]],
                "n_others": len(others),
            }
        )
    return shown


def tuning_table(found: Tuning | None) -> dict[str, Any] | None:
    """Return what the page shows of a search."""
    if found is None:
        return None
    table = _cells(found.table)
    table["rows"][0]["kind"] = "best"
    return {"words": found.words, "table": table, "meanings": found.meanings}


def comparison_table(comparison: Comparison, masks: Mapping[str, Mask]) -> dict[str, Any]:
    """Return what the page shows of other methods."""
    table = _cells(comparison.table)
    for row, name in zip(table["rows"], comparison.table.iloc[:, 0], strict=True):
        if name in comparison.baselines:
            row["kind"] = "baseline"
    return {"table": table, "notes": comparison.notes, "figure": overlap_figure(masks)}


def _cells(frame: pd.DataFrame) -> dict[str, Any]:
    """Return a frame as text, with numbers in few digits."""
    return {
        "columns": [shortened(str(column), NAME_WIDTH) for column in frame.columns],
        "rows": [
            {"kind": "", "cells": [_cell(value) for value in row]}
            for row in frame.itertuples(index=False, name=None)
        ],
    }


def _cell(value: Any) -> dict[str, Any]:
    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return {"text": "\N{EN DASH}", "number": True, "value": ""}
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return {"text": str(value), "number": True, "value": str(value)}
    if isinstance(value, float | np.floating):
        return {"text": f"{value:.4g}", "number": True, "value": repr(float(value))}
    return {"text": shortened(str(value), NAME_WIDTH * 2), "number": False, "value": ""}
