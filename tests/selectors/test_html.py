"""What a notebook shows of a selector."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline

from bsufs import BSUFS, ClusterAlignment
from bsufs.selectors import MaxVariance, all_selectors

EVIL = ["<script>alert(1)</script>", "'\"><img src=x onerror=alert(1)>", "a\nb", "</details>"]


def _data(names=None):
    X = np.random.default_rng(0).normal(size=(40, 8)) * np.arange(8, 0, -1)
    return X if names is None else pd.DataFrame(X, columns=[*names, *"efgh"])


@pytest.mark.parametrize("name", sorted(all_selectors()))
def test_every_fitted_selector_shows_its_names(name):
    X = _data(EVIL)
    selector = all_selectors()[name](3).fit(X)
    text = selector._repr_html_()
    assert f"<b>{name} kept 3 of 8 columns" in text
    own = text[: text.index("<summary>Estimator")]
    shown = [html.unescape(chip) for chip in re.findall(r"<span[^>]*>([^<]*)</span>", own)]
    assert shown == [chosen.replace("\n", "\\n") for chosen in selector.selected_features_]
    assert "<script" not in own
    assert "<img" not in own
    assert selector._repr_mimebundle_()["text/html"].count("<summary>Estimator") == 1
    HTMLParser().feed(text)


def test_the_curve_and_what_each_adds():
    X = _data()
    selector = BSUFS(3).fit(X)
    text = selector._repr_html_()
    curve = selector.explained_variance_curve_
    points = re.search('<polyline points="([^"]*)"', text).group(1).split()
    heights = [float(point.split(",")[1]) for point in points]
    assert heights == pytest.approx(60 - 60 * curve, abs=0.051)
    assert f"{curve[-1]:.1%} of the variance</b>" in text
    assert f">{curve[1] - curve[0]:.1%}</td>" in text
    clusters = ClusterAlignment(3).fit(X)
    assert "variance between clusters" in clusters._repr_html_()
    # A method without a curve has scores.
    assert "<polyline" not in MaxVariance(3).fit(X)._repr_html_()
    assert ">score</th>" in MaxVariance(3).fit(X)._repr_html_()
    # Nothing is left to fold out of scores that are ranks.
    ranked = MaxVariance(3).fit(X)
    ranked.scores_ = 1.0 / 8 * np.argsort(np.argsort(ranked.scores_))
    assert "What the fit knows" not in ranked._repr_html_()


def test_of_many_names_the_first_are_shown():
    X = np.random.default_rng(0).normal(size=(10, 300))
    assert " and 150 more</p>" in MaxVariance(250).fit(X)._repr_html_()


def test_it_is_scikit_learns_diagram_before_a_fit_and_within_a_pipeline():
    assert "kept" not in BSUFS(3)._repr_html_()
    assert "sk-estimator" in BSUFS(3)._repr_html_()
    assert "kept" not in make_pipeline(BSUFS(3)).fit(_data())._repr_html_()
    with config_context(display="text"):
        assert not hasattr(BSUFS(3).fit(_data()), "_repr_html_")
        assert "text/html" not in BSUFS(3).fit(_data())._repr_mimebundle_()
