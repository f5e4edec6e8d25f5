"""Other methods on the page: how far they agree, and who else chooses a feature."""

import re

import numpy as np
import pandas as pd
import pytest
from tests.inspection.page.test_page import columns_of

from bsufs.inspection import Comparison, make_report
from bsufs.inspection.page._pictures import overlap_map
from bsufs.selectors import MaxVariance


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(30, 6)) * [6, 5, 4, 3, 2, 1]


def _page(data, comparison):
    return make_report(MaxVariance(2).fit(data), data, n_subsamples=0, comparison=comparison)


def test_overlap_is_common_over_all():
    masks = {"a": np.array([1, 1, 0, 0], bool), "b": np.array([0, 1, 1, 1], bool)}
    picture = overlap_map(masks)
    assert re.findall(r">(\d\.\d\d)</text>", picture) == ["1.00", "0.25", "0.25", "1.00"]
    nothing = overlap_map({"a": masks["a"], "b": np.zeros(4, bool)})
    assert re.findall(r">(\d\.\d\d)</text>", nothing) == ["1.00", "0.00", "0.00", "0.00"]


def test_a_mask_or_numbers_and_its_own_name_once(data):
    table = pd.DataFrame({"method": ["x"]})
    selections = {"MaxVariance": [3], "numbers": [2, 0], "mask": np.arange(6) > 3}
    page = _page(data, Comparison(table, selections))
    # Beside what the page is about, columns 0 and 1.
    numbers = re.search(r'data-values="([^"]*)"', page[page.index('id="overlap"') :]).group(1)
    assert numbers == "[100,33,0,33,100,0,0,0,100]"
    assert 'id="overlap"' not in _page(data, Comparison(table, {"MaxVariance": [0]}))


@pytest.mark.parametrize("wrong", [[9], [-1], ["a"], [0.5], np.array([True, False])])
def test_a_wrong_selection_is_named(data, wrong):
    comparison = Comparison(pd.DataFrame({"method": ["x"]}), {"x": wrong})
    with pytest.raises(ValueError, match=r"comparison.selections\['x'\] .*must .*got"):
        _page(data, comparison)


def test_who_else_chooses_a_feature(data):
    table = pd.DataFrame({"method": ["MaxVariance", "<b>", "Random"], "k": [2, 2, 2]})
    selections = {"<b>": [0, 5], "other": [0, 1]}
    page = _page(data, Comparison(table, selections, ["What it <i>means</i>."], {"Random"}))
    assert 'id="overlap"' in page
    assert "Overlap of the selections of 3 methods" in page
    columns = columns_of(page)
    assert columns["methods"] == ["<b>", "other"]
    counts = dict(zip(columns["names"], columns["others"], strict=True))
    assert counts == {"x0": 2, "x1": 1, "x2": 0, "x3": 0, "x4": 0, "x5": 1}
    assert page.count('<tr class="baseline">') == 1
    assert '<tr class="baseline"><td>Random</td>' in page
    assert "What it &lt;i&gt;means&lt;/i&gt;." in page


def test_a_frame_alone_has_no_picture(data):
    page = _page(data, pd.DataFrame({"method": ["x"], "rows": [1_234_567]}))
    assert "Other methods" in page
    assert ">1234567</td>" in page
    assert 'id="overlap"' not in page
    assert "others" not in columns_of(page)


def test_cells_of_any_kind_are_shown(data):
    cells = {
        "list": [1, 2],
        "truth": True,
        "missing": pd.NA,
        "small": np.float32(0.5),
        "n": np.int8(7),
    }
    page = _page(
        data, pd.DataFrame({name: pd.Series([cell], dtype=object) for name, cell in cells.items()})
    )
    assert "<td>[1, 2]</td><td>True</td>" in page
    assert '<td class="n" data-v="">\N{EN DASH}</td><td class="n" data-v="0.5">0.5</td>' in page
    assert '<td class="n" data-v="7">7</td>' in page
