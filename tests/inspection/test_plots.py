"""Plots: on given axes or new ones, and what they show is what was computed."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy import sparse

from bsufs import BSUFS
from bsufs.inspection import (
    Findings,
    explain,
    plot_explained_variance,
    plot_path,
    plot_pixels,
    plot_redundancy,
    plot_scores,
    plot_stability,
)
from bsufs.selectors import MaxVariance

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _closed():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4)) @ rng.normal(size=(4, 60)) + 0.5 * rng.normal(size=(50, 60))
    names = [f"a $rather$ long name, which must be cut, of column {i}" for i in range(60)]
    return pd.DataFrame(X, columns=names)


@pytest.fixture(scope="module")
def selector(data):
    return BSUFS(10).fit(data)


@pytest.fixture(scope="module")
def explanation(selector, data):
    return explain(selector, data, n_subsamples=3)


def _every_plot(selector, data, explanation):
    return {
        "path": lambda ax=None: plot_path(selector, ax=ax),
        "scores": lambda ax=None: plot_scores(selector, ax=ax),
        "redundancy": lambda ax=None: plot_redundancy(selector, data, ax=ax),
        "stability": lambda ax=None: plot_stability(explanation, ax=ax),
        "explained": lambda ax=None: plot_explained_variance(selector, data, ax=ax),
        "pixels": lambda ax=None: plot_pixels(selector, (6, 10), ax=ax),
    }


@pytest.mark.parametrize(
    "name", ["path", "scores", "redundancy", "stability", "explained", "pixels"]
)
def test_each_takes_axes_and_returns_them(name, selector, data, explanation, tmp_path):
    draw = _every_plot(selector, data, explanation)[name]
    given = Figure().subplots()
    assert draw(given) is given
    new = draw()
    assert new is not given
    assert new.get_title()
    # Signs of formulas in names are signs, and nothing is said about the layout.
    new.figure.savefig(tmp_path / "plot.png", dpi=50)


def test_the_path_shows_remaining_features(selector):
    line = plot_path(selector).get_lines()[0]
    assert line.get_ydata().tolist() == selector.path_["n_alive"].tolist()
    no_step = BSUFS(1, n_components=2).fit(np.random.default_rng(0).normal(size=(9, 2)))
    for other in (MaxVariance(2).fit(np.eye(4)), no_step):
        with pytest.raises(ValueError, match=r"followed a path.*plot_scores"):
            plot_path(other)


def test_scores_stand_on_both_sides_of_the_cut(selector):
    kept, left_out = plot_scores(selector).get_lines()[:2]
    assert kept.get_xdata().tolist() == list(range(1, 11))
    assert sorted(kept.get_ydata()) == sorted(selector.scores_[selector.support_])
    assert len(left_out.get_xdata()) == 50
    many = MaxVariance(1).fit(np.random.default_rng(0).normal(size=(9, 99)))
    assert plot_scores(many).get_xscale() == "log"


def test_the_heat_map_shows_the_best(selector, data):
    ax = plot_redundancy(selector, data)
    assert ax.images[0].get_array().data == pytest.approx(Findings(selector, data).correlations)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert all(len(label) <= 24 for label in labels)
    assert labels[0].endswith(selector.selected_features_[0][-3:])
    ax = plot_redundancy(selector, data, max_features=4)
    assert ax.images[0].get_array().shape == (4, 4)
    assert ax.get_title() == "Correlations among the best 4 of 10 selected"
    wide = MaxVariance(50).fit(data)
    ax = plot_redundancy(wide, data, max_features=50)
    assert ax.get_ylabel() == "rank"
    assert len(plot_redundancy(wide, data).get_yticklabels()) == 40


def test_bars_have_the_length_of_frequencies(explanation):
    ax = plot_stability(explanation, max_features=9)
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == pytest.approx(100 * explanation["frequency"].iloc[4:13].to_numpy())
    assert "both sides of the cut" in ax.get_title()
    everything = explanation.head(10)
    assert plot_stability(everything).get_title().endswith("10 features")


def test_bars_need_frequencies(selector, data):
    with pytest.raises(ValueError, match="n_subsamples of 1 or more"):
        plot_stability(explain(selector, data, n_subsamples=0))


def test_explained_variance_lies_below_its_bound(selector, data, monkeypatch):
    found = Findings(selector, data)
    bound, explained = plot_explained_variance(selector, data).get_lines()
    assert explained.get_ydata() == pytest.approx(100 * found.explained)
    assert bound.get_ydata() == pytest.approx(100 * found.bound)
    known = f"2 features explain {100 * found.explained[1]:.1f} %"
    in_part = np.where(np.arange(10) < 2, found.explained, np.nan)
    monkeypatch.setattr(Findings, "explained", in_part)
    assert plot_explained_variance(selector, data).get_title() == known


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, pd.DataFrame])
def test_pixels_lie_over_the_mean_image(kind):
    X = np.random.default_rng(0).uniform(size=(20, 12)) * np.arange(12)
    selector = MaxVariance(3).fit(X)
    ax = plot_pixels(selector, (3, 4), X=kind(X))
    assert ax.images[0].get_array().data == pytest.approx(X.mean(0).reshape(3, 4))
    centers = {tuple(path.vertices[:4].mean(axis=0)) for path in ax.collections[0].get_paths()}
    chosen = np.flatnonzero(selector.support_)
    assert {(round(x), round(y)) for x, y in centers} == {(p % 4, p // 4) for p in chosen.tolist()}
    with pytest.raises(ValueError, match="image_shape"):
        plot_pixels(selector, (4, 4))
