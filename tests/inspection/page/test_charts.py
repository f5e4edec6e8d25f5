"""Charts against the numbers they draw."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from bsufs.inspection.page import _charts as charts


def _circles(picture):
    return [
        (float(x), float(y))
        for x, y in re.findall(r'cx="([\d.]+)" cy="([\d.]+)" r="[\d.]+">', picture)
    ]


def test_an_element_escapes_all_but_elements():
    inner = charts.element("title", "<b>")
    found = charts.element("g", inner, "&", class_='x"y', stroke_width=2)
    assert found == Markup('<g class="x&#34;y" stroke-width="2"><title>&lt;b&gt;</title>&amp;</g>')


def test_points_lie_where_their_numbers_are():
    curve = pd.DataFrame(
        {"explained": [0.0, 0.5, 1.0], "bound": [0.5, np.nan, 1.0]}, index=[1, 2, 3]
    )
    picture = charts.explained_chart(curve)
    # The plot goes from 72 to 466 across and from 254 up to 34.
    points = _circles(picture)
    assert {(72.0, 254.0), (269.0, 144.0), (466.0, 34.0), (72.0, 144.0)} <= set(points)
    assert len(points) == 5
    assert "2 selected features explain 50.0 %" in picture


def test_a_logarithmic_axis():
    path = {
        "n_alive": np.array([100, 10, 1]),
        "component_variance_ratio": np.array([0.9, 0.8, 0.7, 0.6]),
        "lambda_row": np.array([0.1, 0.2, 0.3]),
    }
    picture = charts.path_chart(path, 10)
    assert _circles(picture) == [(72.0, 34.0), (269.0, 144.0), (466.0, 254.0)]
    assert "step 2: 10 features live; weight 0.2; components carry 70.0% of the variance" in picture
    # The selection is marked.
    assert "M72 144H466" in picture


def test_many_points_are_thinned_with_their_ends():
    d = 20_000
    frame = pd.DataFrame(
        {
            "rank": np.arange(1, d + 1),
            "score": np.linspace(1, 0, d),
            "selected": np.arange(d) < 5,
            "name": [f"x{i}" for i in range(d)],
        }
    )
    picture = charts.score_chart(frame)
    points = _circles(picture)
    assert len(points) < 260
    assert min(x for x, _ in points) == 72.0
    assert max(x for x, _ in points) == 466.0
    assert "x0: rank 1, score 1, kept" in picture
    assert "x19999: rank 20000, score 0, left out" in picture


@pytest.mark.parametrize("scores", [[2.0, 2.0], [1e9, -5.0], [3e-9, 1e-9], [5.0]])
def test_any_scores_can_be_drawn(scores):
    frame = pd.DataFrame(
        {
            "rank": range(1, len(scores) + 1),
            "score": scores,
            "selected": [True] + [False] * (len(scores) - 1),
            "name": "x",
        }
    )
    points = _circles(charts.score_chart(frame))
    assert len(points) == len(scores)
    assert all(34 <= y <= 254 for _, y in points)


@settings(max_examples=60, deadline=None)
@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.booleans())
def test_ticks_are_few_and_within(low, span, whole):
    ticks = charts._Scale(low, low + span, 0, 1).ticks(whole)
    slack = 1e-6 * (abs(low) + span)
    assert all(low - slack <= tick <= low + span + slack for tick in ticks)
    assert len(ticks) <= 7
    assert len(ticks) >= 2 or whole


def test_a_heat_map_holds_its_numbers():
    correlations = np.array([[1.0, -0.5], [-0.5, 1.0]])
    picture = charts.correlation_map(correlations, ["a", "<b>"])
    values = json.loads(re.search(r'data-values="([^"]*)"', picture).group(1))
    assert values == [100, -50, -50, 100]
    assert "&lt;b&gt;" in picture
    assert "<b>" not in picture
    assert "#d55e00" in picture
    assert ">x0<" not in charts.correlation_map(np.eye(30), [f"x{i}" for i in range(30)])


def test_overlaps_run_from_nothing_to_all_and_are_written_into_their_cells():
    picture = charts.overlap_map(np.array([[1.0, 0.25], [0.25, 1.0]]), ["one", "two"])
    assert re.findall(r">(\d\.\d\d)</text>", picture) == ["1.00", "0.25", "0.25", "1.00"]
    # What lies over a cell does not catch the pointer.
    assert picture.count('pointer-events="none"') == 4
    assert "\N{MINUS SIGN}" not in picture
    many = charts.overlap_map(np.eye(12), [f"m{i}" for i in range(12)])
    assert "pointer-events" not in many


def test_bars_and_their_intervals():
    frame = pd.DataFrame(
        {"name": ["a"], "rank": [1], "selected": [True], "frequency": [0.5],
         "frequency_low": [0.25], "frequency_high": [0.75]}
    )  # fmt: skip
    picture = charts.bar_chart(frame)
    # 170 is 0 and 464 is 100 per cent.
    assert 'width="147"' in picture
    assert "M243.5 40.5H390.5" in picture
    assert "a, rank 1: 50 % (25 to 75 %)" in picture


def test_pixels_lie_row_by_row():
    picture = charts.pixel_map(np.array([5]), ["p"], np.arange(6.0), (2, 3))
    assert 'viewBox="0 0 3 2"' in picture
    assert "p: row 1, column 2, rank 1" in picture
    assert 'x="2.08" y="1.08"' in picture
    # The darkest pixel is the last.
    assert 'd="M2 1h1v1h-1z" fill="#7d7d7d"' in picture
