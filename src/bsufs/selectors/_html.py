"""What a notebook shows of a fitted selector: the names, the curve, and what the fit knows of each.

Colors are those of the notebook, light or dark, and no script is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
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
        f'<div><p><b>{heading}</b></p><p style="max-width: 60em">{chips}{more}</p>'
        f"{_curve(curve)}{_fold_out('What the fit knows of each', _reasons(selector, names))}"
        f"{_fold_out('Estimator', estimator_html_repr(selector))}"
        "<p><small>make_report(selector, X, display=True) shows why each was kept and how sure "
        "that is.</small></p></div>"
    )


def _fold_out(summary: str, content: str) -> str:
    return f"<details><summary>{summary}</summary>{content}</details>" if content else ""


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
        '<svg viewBox="-42 -10 330 90" width="330" height="90" role="img" fill="currentColor" '
        'font-size="11" aria-label="variance explained by the best columns">'
        '<path d="M0 0V60H280M-4 0h4M-4 60h4" fill="none" stroke="currentColor" '
        'stroke-opacity=".4"/><g text-anchor="end"><text x="-7" y="4">100%</text>'
        '<text x="-7" y="64">0</text></g><text y="76">1</text>'
        '<text x="140" y="76" text-anchor="middle">variance explained, by columns kept</text>'
        f'<text x="280" y="76" text-anchor="end">{known.size}</text>'
        f'<polyline points="{points}" fill="none" stroke="{KEPT}" stroke-width="2"/></svg>'
    )


def _reasons(selector: Any, names: list[str]) -> str:
    """Return a table of what each column adds, how much it knows of clusters, or its score."""
    columns = np.argsort(selector.ranking_)[: len(names)]
    fields: dict[str, list[str]] = {"column": names}
    curve = getattr(selector, "explained_variance_curve_", np.empty(0))
    if curve.size:
        gains = np.diff(curve[: len(names)], prepend=0.0)
        fields["adds to the variance explained"] = [f"{gain:.1%}" for gain in gains.tolist()]
    shares = getattr(selector, "cluster_shares_", None)
    if shares is not None:
        fields["variance between clusters"] = [f"{share:.0%}" for share in shares[columns]]
    elif not are_ranks(selector.scores_):
        fields["score"] = [f"{score:.4g}" for score in selector.scores_[columns].tolist()]
    if len(fields) == 1:
        return ""
    ranks = [str(rank) for rank in range(1, len(names) + 1)]
    head = _row("th", ["rank", *fields])
    body = "".join(_row("td", row) for row in zip(ranks, *fields.values(), strict=True))
    return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"


def are_ranks(scores: Array) -> bool:
    """Tell whether scores lie at the same distance from one another."""
    steps = np.diff(np.sort(scores))
    return bool(steps.size == 0 or np.ptp(steps) <= 1e-9 * steps.max())


def _row(tag: str, cells: Sequence[str]) -> str:
    """Return a row of a table: numbers, but for a name in the second place."""
    sides = ["left" if place == 1 else "right" for place in range(len(cells))]
    style = "padding: 0 .8em; text-align:"
    shown = (
        f'<{tag} style="{style} {side}">{cell}</{tag}>'
        for side, cell in zip(sides, cells, strict=True)
    )
    return f"<tr>{''.join(shown)}</tr>"
