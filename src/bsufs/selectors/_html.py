"""What a notebook shows of a fitted selector: the names, the curve, and what the fit knows of each.

Colors are those of the notebook, light or dark, and no script is needed.
"""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
from sklearn.utils import estimator_html_repr

from bsufs._colors import KEPT
from bsufs._names import shortened
from bsufs._typing import Array

_MOST_NAMES, _NAME_WIDTH = 100, 48
_CHIP = (
    "display: inline-block; border: 1px solid #8888; border-radius: 5px; padding: 0 .5em; "
    "margin: .15em .3em .15em 0"
)


class ShownInNotebooks:
    """Lets a notebook show what a fitted selector has found."""

    def _repr_html_inner(self) -> str:
        return selection_html(self) if hasattr(self, "support_") else estimator_html_repr(self)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        inherited: Any = super()
        bundle: dict[str, str] = inherited._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle


def selection_html(selector: Any) -> str:
    """Return a fitted selector as HTML, with scikit-learn's diagram folded in."""
    chosen, d = selector.selected_features_, selector.n_features_in_
    names = [escape(shortened(str(name), _NAME_WIDTH)) for name in chosen[:_MOST_NAMES].tolist()]
    curve = getattr(selector, "explained_variance_curve_", np.empty(0))
    heading = f"{type(selector).__name__} kept {chosen.size} of {d} columns"
    if curve.size and not np.isnan(curve[-1]):
        heading += f", which explain {curve[-1]:.1%} of the variance"
    chips = "".join(f'<span style="{_CHIP}">{name}</span>' for name in names)
    more = f" and {chosen.size - len(names)} more" if chosen.size > len(names) else ""
    return (
        f'<div style="max-width: 60em"><p><b>{heading}</b></p><p>{chips}{more}</p>'
        f"{_curve(curve)}{_fold_out('What the fit knows of each', _reasons(selector, names))}"
        f"{_fold_out('Estimator', estimator_html_repr(selector))}"
        "<p><small>make_report(selector, X, display=True) shows why each was kept and how sure "
        "that is.</small></p></div>"
    )


def _fold_out(summary: str, content: str) -> str:
    return f"<details><summary>{summary}</summary>{content}</details>"


def _curve(curve: Array) -> str:
    """Draw the explained share, from 0 to 1, over the number of columns."""
    known = curve[~np.isnan(curve)]
    if known.size < 2:
        return ""
    places = np.unique(np.linspace(0, known.size - 1, 120).round().astype(int))
    points = " ".join(
        f"{280 * place / (known.size - 1):.0f},{60 - 60 * known[place]:.1f}"
        for place in places.tolist()
    )
    return (
        '<svg viewBox="-4 -4 288 68" width="288" height="68" role="img" '
        'aria-label="variance explained by the best columns">'
        '<path d="M0 0V60H280" fill="none" stroke="currentColor" stroke-opacity=".3"/>'
        f'<polyline points="{points}" fill="none" stroke="{KEPT}" stroke-width="2"/></svg>'
        f"<p><small>variance explained by the best 1 to {known.size} columns, from 0 to 100%"
        "</small></p>"
    )


def _reasons(selector: Any, names: list[str]) -> str:
    """Return a table of what each column adds, how much it knows of clusters, and its score."""
    columns = np.argsort(selector.ranking_)[: len(names)]
    fields: dict[str, list[str]] = {"column": names}
    curve = getattr(selector, "explained_variance_curve_", np.empty(0))
    if curve.size:
        gains = np.diff(curve[: len(names)], prepend=0.0)
        fields["adds to the variance explained"] = [f"{gain:.1%}" for gain in gains.tolist()]
    shares = getattr(selector, "cluster_shares_", None)
    if shares is not None:
        fields["variance between clusters"] = [f"{share:.0%}" for share in shares[columns]]
    else:
        fields["score"] = [f"{score:.4g}" for score in selector.scores_[columns].tolist()]
    head = "".join(f"<th>{field}</th>" for field in ["rank", *fields])
    rows = zip(*fields.values(), strict=True)
    body = "".join(
        f"<tr><td>{rank}</td>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>"
        for rank, row in enumerate(rows, start=1)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
