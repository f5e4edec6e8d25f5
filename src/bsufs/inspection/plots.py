"""Pictures of one selection. Matplotlib (extra ``plot``) is imported when one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bsufs._colors import BOUND, DIVERGING, GRID, INK, KEPT, LEFT_OUT, MUTED
from bsufs._extras import needs
from bsufs._names import shortened
from bsufs.inspection.findings import Findings, around_the_cut, check_image_shape
from bsufs.selectors._docs import fill_docstring

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_NAME_WIDTH = 24
# Beyond this many, tick labels would run into each other.
_MOST_LABELS = 40


@fill_docstring
def plot_path(selector: Any, *, ax: Axes | None = None) -> Axes:
    """Draw how many features remain at each step of the path, and what the components carry.

    Parameters
    ----------
    selector : BSUFS
        Fitted, with ``lambda_row="path"``.
    %(axes)s
    >>> inspection.plot_path(selector).get_xlabel()
    'step of the path'
    """
    found = Findings(selector)
    if found.path is None:
        raise ValueError(
            "selector must have followed a path, as BSUFS does with lambda_row='path', got a "
            f"{type(selector).__name__} without one. plot_scores works with any selector."
        )
    ax = _axes(ax, "Features are eliminated step by step")
    from matplotlib.ticker import LogLocator

    remaining = found.path["n_alive"]
    # The first share is that of the start, before any step.
    carried = found.path["component_variance_ratio"][1:]
    steps = np.arange(1, remaining.size + 1)
    ax.step(steps, remaining, where="mid", color=INK, lw=2, label="remaining features")
    k = found.n_selected_groups
    ax.axhline(k, color=KEPT, lw=1.5, ls="--", label=f"{k} selected")
    ax.set(xlabel="step of the path", ylabel="remaining features", yscale="log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter("{x:.0f}")
    ax.yaxis.set_minor_formatter("")
    share = ax.twinx()
    share.plot(
        steps, 100 * carried, color=BOUND, lw=1.5, ls=":", label="variance of the components"
    )
    share.set_ylim(0, 105)
    share.set_ylabel("variance of the components, %", color=BOUND)
    share.tick_params(colors=BOUND)
    share.spines["top"].set_visible(False)
    lines = [*ax.get_lines(), *share.get_lines()]
    ax.legend(lines, [str(line.get_label()) for line in lines], frameon=False, loc="best")
    return ax


@fill_docstring
def plot_scores(selector: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the scores of all features, best first, and where the selection ends.

    Parameters
    ----------
    %(selector)s
    %(axes)s
    >>> inspection.plot_scores(selector).get_ylabel()
    'score'
    """
    found = Findings(selector)
    k, scores = found.n_selected, found.selector.scores_[found.best_first]
    ranks = np.arange(1, scores.size + 1)
    ax = _axes(ax, f"Scores by {found.method}")
    ax.plot(ranks[:k], scores[:k], "o", color=KEPT, ms=5, label=f"{k} selected")
    ax.plot(ranks[k:], scores[k:], ".", color=LEFT_OUT, ms=4, label=f"{ranks.size - k} left out")
    ax.axvline(k + 0.5, color=MUTED, lw=1, ls="--")
    if scores.size > 50 * k:
        ax.set_xscale("log")
    ax.set(xlabel="rank", ylabel="score")
    ax.legend(frameon=False)
    return ax


@fill_docstring
def plot_redundancy(
    selector: Any,
    X: Any,
    *,
    feature_names: Sequence[str] | None = None,
    max_features: int = 40,
    ax: Axes | None = None,
) -> Axes:
    """Draw the correlations among the selected features.

    Parameters
    ----------
    %(selector)s
    %(X)s
    %(feature_names)s
    max_features : int, default=40
        Draw at most this many, the best.
    %(axes)s
    >>> inspection.plot_redundancy(selector, X).get_title()
    'Correlations among the 16 selected'
    """
    found = Findings(selector, X, feature_names)
    correlations = found.correlations[:max_features, :max_features]
    k, n_shown = found.n_selected, len(correlations)
    which = f"the {k} selected" if n_shown == k else f"the best {n_shown} of {k} selected"
    ax = _axes(ax, f"Correlations among {which}", height=5.4)
    from matplotlib.colors import LinearSegmentedColormap

    colors = LinearSegmentedColormap.from_list("correlation", DIVERGING)
    image = ax.imshow(correlations, cmap=colors, vmin=-1, vmax=1)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.8)
    bar.set_label("correlation")
    bar.outline.set_visible(False)
    if n_shown <= _MOST_LABELS:
        labels = [shortened(name, _NAME_WIDTH) for name in found.names[found.chosen[:n_shown]]]
        size = 9 if n_shown <= 20 else 7
        # A name is no formula, whatever signs it holds.
        ax.set_xticks(range(n_shown), labels, rotation=90, fontsize=size, parse_math=False)
        ax.set_yticks(range(n_shown), labels, fontsize=size, parse_math=False)
    else:
        ax.set(xlabel="rank", ylabel="rank")
    ax.spines[:].set_visible(False)
    return ax


@fill_docstring
def plot_stability(
    explanation: pd.DataFrame, *, max_features: int = 30, ax: Axes | None = None
) -> Axes:
    """Draw how often features are selected again on parts of the rows, with 95 % intervals.

    Parameters
    ----------
    explanation : pandas.DataFrame
        What `explain` returned, with `n_subsamples` of 1 or more.
    max_features : int, default=30
        Draw at most this many, by rank, around the cut between the selected and the others.
    %(axes)s
    >>> inspection.plot_stability(inspection.explain(selector, X, n_subsamples=4)).get_xlabel()
    'chosen again, % of subsamples'
    """
    if explanation["frequency"].isna().any():
        raise ValueError(
            "explanation must have selection frequencies, got one without. Call explain with "
            "n_subsamples of 1 or more."
        )
    n_selected = int(explanation["selected"].sum())
    shown = explanation.iloc[around_the_cut(n_selected, len(explanation), max_features)]
    which = "features" if len(shown) == len(explanation) else "features on both sides of the cut"
    title = f"How sure the choice is: {len(shown)} {which}"
    ax = _axes(ax, title, height=max(2.4, 0.7 + 0.24 * len(shown)))
    frequency = 100 * shown["frequency"].to_numpy()
    reach = np.abs(100 * shown[["frequency_low", "frequency_high"]].to_numpy().T - frequency)
    kept = shown["selected"].to_numpy()
    places = np.arange(len(shown))
    for mask, color, label in ((kept, KEPT, "selected"), (~kept, LEFT_OUT, "left out")):
        if mask.any():
            ax.barh(places[mask], frequency[mask], color=color, height=0.7, label=label)
    ax.errorbar(frequency, places, xerr=reach, fmt="none", ecolor=INK, elinewidth=1, capsize=2.5)
    labels = [shortened(name, _NAME_WIDTH) for name in shown["name"]]
    ax.set_yticks(places, labels, fontsize=9, parse_math=False)
    ax.set(xlim=(0, 102), ylim=(len(shown) - 0.4, -0.6))
    ax.set_xlabel("chosen again, % of subsamples")
    ax.grid(axis="x", color=GRID)
    ax.set_axisbelow(True)
    # Where the bars are shortest, as a rule.
    ax.legend(loc="lower right", edgecolor=GRID, framealpha=0.9)
    return ax


@fill_docstring
def plot_explained_variance(selector: Any, X: Any, *, ax: Axes | None = None) -> Axes:
    """Draw what the best 1, 2, ... features explain, below what principal components would.

    Parameters
    ----------
    %(selector)s
    %(X)s
    %(axes)s
    >>> inspection.plot_explained_variance(selector, X).get_xlabel()
    'number of features'
    """
    found = Findings(selector, X)
    numbers = np.arange(1, found.n_selected + 1)
    # Of very many features the share is not known.
    known = found.explained[~np.isnan(found.explained)]
    ax = _axes(ax, f"{known.size} features explain {100 * known[-1]:.1f} %")
    marker: dict[str, Any] = {"marker": "o", "ms": 4} if numbers.size <= 40 else {}
    bound = "as many principal components"
    ax.plot(numbers, 100 * found.bound, color=BOUND, lw=1.5, ls="--", label=bound)
    ax.plot(numbers, 100 * found.explained, color=KEPT, lw=2, label="selected features", **marker)
    ax.set(ylim=(0, 103), xlabel="number of features", ylabel="variance explained, %")
    ax.locator_params(axis="x", integer=True)
    ax.grid(axis="y", color=GRID)
    ax.legend(frameon=False, loc="lower right")
    return ax


@fill_docstring
def plot_pixels(
    selector: Any, image_shape: tuple[int, int], *, X: Any = None, ax: Axes | None = None
) -> Axes:
    """Draw the selected features where they lie in an image.

    Parameters
    ----------
    selector : selector
        A fitted selector of the library, whose features are the pixels of an image row by row.
    image_shape : tuple of int
        Rows and columns of the image.
    X : array, data frame or sparse matrix of shape (n_samples, n_features), optional
        The data, whose mean image is drawn below.
    %(axes)s
    >>> inspection.plot_pixels(selector, (8, 8), X=X).get_title()
    '16 of 64 pixels'
    """
    found = Findings(selector)
    height, width = check_image_shape(image_shape, found.n_features)
    ax = _axes(ax, f"{found.n_selected} of {height * width} pixels", width=4.8, height=4.8)
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    background = np.zeros(height * width) if X is None else np.ravel(X.mean(axis=0))
    # Light greys only, so that the frames stand out on dark pixels too.
    top = background.max() + 0.6 * np.ptp(background) if np.ptp(background) else 1.0
    ax.imshow(background.reshape(height, width), cmap="Greys", vmin=background.min(), vmax=top)
    rows, columns = np.divmod(found.chosen, width)
    frames = [
        Rectangle((x - 0.42, y - 0.42), 0.84, 0.84) for x, y in zip(columns, rows, strict=True)
    ]
    line = float(np.clip(40 / max(height, width), 0.6, 2.0))
    ax.add_collection(
        PatchCollection(frames, facecolor=f"{KEPT}66", edgecolor=KEPT, linewidth=line)
    )
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_color(GRID)
    return ax


def _axes(ax: Axes | None, title: str, width: float = 6.4, height: float = 4.0) -> Axes:
    with needs("bsufs.inspection.plots", "plot"):
        import matplotlib.pyplot as plt
    if ax is None:
        _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_title(title, fontsize=11, color=INK, parse_math=False)
    return ax
