"""Pictures against the numbers they draw."""

from __future__ import annotations

import html
import json
import re
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bsufs.inspection._features import FeatureFindings
from bsufs.inspection.findings import Findings, Stability
from bsufs.inspection.page import _pictures as module
from bsufs.selectors import MaxVariance


def _circles(picture):
    return [
        (float(x), float(y))
        for x, y in re.findall(r'cx="([\d.]+)" cy="([\d.]+)" r="[\d.]+">', picture)
    ]


def _line(values, label="<b>", **settings):
    settings = {"title": "t", "x_label": "x", "y_label": "y", "y_range": (0, 100)} | settings
    line = module._Series(label, np.asarray(values, dtype=float), "kept")
    return module._line_chart([line], describe=lambda *point: str(point), **settings)


def test_words_are_escaped():
    picture = _line([0, 1], title='"<i>', x_label="&", y_label="<u>")
    assert 'aria-label="&#34;&lt;i&gt;"' in picture
    assert ">&amp;</text>" in picture
    assert ">&lt;u&gt;</text>" in picture
    assert "(&#39;&lt;b&gt;&#39;, 2, 1.0)" in picture
    assert "<b>" not in picture


def test_points_lie_where_their_numbers_are():
    # The plot goes from 72 to 466 across and from 254 up to 34; what is not known is left out.
    points = _circles(_line([0, 50, 100, np.nan]))
    assert points == [(72.0, 254.0), (203.33, 144.0), (334.67, 34.0)]


def test_a_logarithmic_axis():
    picture = _line([100, 10, 1], y_range=(1, 100), log="y", mark=10)
    assert _circles(picture) == [(72.0, 34.0), (269.0, 144.0), (466.0, 254.0)]
    # The selection is marked.
    assert "M72 144H466" in picture


@pytest.mark.parametrize("log", ["", "x"])
def test_many_points_are_thinned_with_their_ends(log):
    points = _circles(_line(np.linspace(100, 0, 20_000), log=log))
    assert 100 < len(points) <= 240
    assert points[0] == (72.0, 34.0)
    assert points[-1] == (466.0, 254.0)


@settings(max_examples=60, deadline=None)
@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.booleans())
def test_ticks_are_few_and_within(low, span, whole):
    ticks = module._Scale(low, low + span, 0, 1).ticks(whole)
    slack = 1e-6 * (1 + abs(low) / span)
    assert all(-slack <= place <= 1 + slack for place, _ in ticks)
    assert len(ticks) <= 7
    assert len(ticks) >= 2 or whole


def _heat_map(values, names, low=-1):
    return module._heat_map(values, names, "title", "what", low)


def test_a_heat_map_holds_its_numbers():
    correlations = np.array([[1.0, -0.5], [-0.5, 1.0]])
    picture = _heat_map(correlations, ["a", "<b>"])
    values = json.loads(re.search(r'data-values="([^"]*)"', picture).group(1))
    assert values == [100, -50, -50, 100]
    assert "&lt;b&gt;" in picture
    assert "<b>" not in picture
    # Strength is opacity, on light paper and on dark.
    assert '<path class="plus" fill-opacity="1.0" d="M0 0h1v1h-1zM1 1h1v1h-1z"/>' in picture
    assert '<path class="minus" fill-opacity="0.5" d="M1 0h1v1h-1zM0 1h1v1h-1z"/>' in picture
    assert ">x0<" not in _heat_map(np.eye(30), [f"x{i}" for i in range(30)])


def test_features_that_are_alike_lie_side_by_side():
    rng = np.random.default_rng(0)
    groups = rng.normal(size=(50, 3))
    X = np.column_stack([groups, groups, groups]) + 0.1 * rng.normal(size=(50, 9))
    picture = module._correlations(FeatureFindings(Findings(MaxVariance(9).fit(X), X)))
    names = json.loads(html.unescape(re.search('data-names="([^"]*)"', picture).group(1)))
    groups = [int(name[1:]) % 3 for name in names]
    assert sum(a != b for a, b in pairwise(groups)) == 2


def test_rows_and_strips_are_colored_by_cluster():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    X[:10] += 20.0
    found = FeatureFindings(Findings(MaxVariance(3).fit(X), X))
    assert found.clusters.sizes.tolist() == [30, 10]
    picture = module._samples(found)
    points = [re.findall(rf'class="points k{k}" d="([^"]*)"', picture)[0] for k in (0, 1)]
    assert [path.count("h0") for path in points] == [30, 10]
    across = [[float(x) for x in re.findall(r"M([\d.]+) ", path)] for path in points]
    # The few lie far from the many along the first component.
    assert min(across[1]) > max(across[0]) or max(across[1]) < min(across[0])
    strips = module._strips(found)
    assert len(strips) == 3
    low, high = (
        [float(x) for x in re.findall(r"M([\d.]+) ", path)]
        for path in re.findall(r'class="points k\d" d="([^"]*)"', strips[0])
    )
    assert max(low) < min(high)
    assert module._strips(FeatureFindings(Findings(MaxVariance(3).fit(X[:8]), X[:8]))) == []


@pytest.mark.parametrize("unit", [1e-300, 1e300])
def test_very_large_and_very_small_numbers_are_drawn(unit):
    X = unit * np.random.default_rng(0).normal(size=(30, 4))
    found = FeatureFindings(Findings(MaxVariance(3).fit(X), X))
    for picture in (module._samples(found), *module._strips(found)):
        assert "nan" not in picture
        assert "inf" not in picture


def test_numbers_are_written_into_large_cells():
    picture = _heat_map(np.array([[1.0, -0.25], [-0.25, 1.0]]), ["one", "two"])
    # With the sign that print uses.
    numbers = re.findall(r">([^<]?)(\d\.\d\d)</text>", picture)
    negative = ("\N{MINUS SIGN}", "0.25")
    assert numbers == [("", "1.00"), negative, negative, ("", "1.00")]
    # What lies over a cell does not catch the pointer.
    assert picture.count('pointer-events="none"') == 4
    assert "\N{MINUS SIGN}" not in _heat_map(np.eye(2), ["one", "two"], low=0)
    assert "pointer-events" not in _heat_map(np.eye(12), [f"m{i}" for i in range(12)])


def test_bars_and_their_intervals():
    found = SimpleNamespace(
        names=["a<b>"],
        by_chance=0.25,
        ranking=[1],
        support=[True],
        stability=Stability([0.5], [0.25], [0.75]),
    )
    picture = module._drawn("bar_chart", found=found, features=[0], labels=["a<b>"], left=176)
    # 176 is 0 and 464 is 100 percent.
    assert 'width="144"' in picture
    assert "M248 40.5H392" in picture
    assert "a&lt;b&gt;, rank 1: 50% (25 to 75%)" in picture
    # One of four by chance.
    assert '<path class="mark" d="M248 28V' in picture


def test_pixels_lie_row_by_row():
    found = SimpleNamespace(
        names=np.array([*"pabcde"], dtype=object), n_features=6,
        found=SimpleNamespace(chosen=np.array([5])),
        data=SimpleNamespace(X=np.arange(6.0)[None, :]),
    )  # fmt: skip
    picture = module._pixels(found, (2, 3))
    assert 'viewBox="0 0 3 2"' in picture
    assert "p: row 1, column 2, rank 1" in picture
    assert 'x="2.08" y="1.08"' in picture
    # The darkest pixel is the last.
    assert 'fill-opacity="0.5" d="M2 1h1v1h-1z"' in picture


def _scores(scores, n_selected=1):
    names = np.array([f"x{i}" for i in range(len(scores))], dtype=object)
    found = SimpleNamespace(
        names=names, best_first=np.arange(len(scores)),
        n_features=len(scores), n_selected=n_selected,
    )  # fmt: skip
    return module._by_rank(found, np.asarray(scores), "score")


def test_each_score_says_whose_it_is():
    picture = _scores(np.linspace(1, 0, 20_000), n_selected=5)
    assert "x0: rank 1, score 1, kept" in picture
    assert "x19999: rank 20000, score 0, left out" in picture


@pytest.mark.parametrize("scores", [[2.0, 2.0], [1e9, -5.0], [3e-9, 1e-9], [5.0]])
def test_any_scores_can_be_drawn(scores):
    points = _circles(_scores(scores))
    assert len(points) == len(scores)
    assert all(34 <= y <= 254 for _, y in points)


def test_each_step_says_what_remains():
    path = {
        "n_alive": np.array([100, 10, 1]),
        "lambda_row": np.array([0.1, 0.2, 0.3]),
        "component_variance_ratio": np.array([0.9, 0.8, 0.7, 0.6]),
    }
    picture = module._path(SimpleNamespace(path=path, n_selected_groups=10))
    words = "step 2: 10 columns remain; weight 0.2; components carry 70.0% of the variance"
    assert words in picture
    assert "M72 144H466" in picture


def test_each_number_of_features_says_what_it_explains():
    found = SimpleNamespace(
        n_selected=2, n_foremost=3, curve=np.array([0.0, 0.5, 1.0]),
        ceiling=np.array([0.5, np.nan, 1.0]), agreement={1: -0.1, 3: 0.5},
        redundancy=np.array([0.0, 0.25, 0.5]),
    )  # fmt: skip
    picture = module._by_number(found)
    points = _circles(picture)
    assert {(72.0, 254.0), (269.0, 144.0), (466.0, 34.0), (72.0, 144.0)} <= set(points)
    # What is not known is left out.
    assert len(points) == 3 + 2 + 2 + 3
    assert "2 columns: variance explained 50.0%" in picture
    assert '<path class="mark cut" d="M269 34V254"' in picture
    found.agreement = {}
    assert 'class="agree"' not in module._by_number(found)


@pytest.mark.parametrize(
    "name", ["A" * 300, "\u65e5\u672c\u8a9e" * 20, "a plain name of many words", "m<b>"]
)
def test_names_fit_beside_a_picture(name):
    (label,), left = module._labels([name])
    assert module._length(label) <= 176
    assert left == 16 + module._length(label)
    assert label == name or "\N{HORIZONTAL ELLIPSIS}" in label


def test_rows_of_equal_values_lie_side_by_side():
    X = np.repeat(np.eye(4), 10, axis=0)[:, :3]
    found = FeatureFindings(Findings(MaxVariance(2).fit(X), X, n_subsamples=0))
    for picture in (module._samples(found), module._strips(found)[0]):
        assert len(set(re.findall(r"M([\d.]+ [\d.]+)h0", picture))) > 20
