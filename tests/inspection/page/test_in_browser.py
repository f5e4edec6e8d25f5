"""The page in a real browser."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.inspection.page.browser import CHROMIUM, open_browser

from bsufs import BSUFS
from bsufs.inspection import Comparison, make_report
from bsufs.selectors import MaxVariance
from bsufs.tuning import LabelFreeSearch

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

NAMES = ["<script>document.title = 'run'</script>", "'\"><img src=x onerror=alert(1)>"]
ROWS = "[...document.querySelectorAll('#features tbody tr')]"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 40)) + 0.4 * rng.normal(size=(60, 40))
    X[:, 39] = 1.0
    frame = pd.DataFrame(X, columns=NAMES + [f"column {i}" for i in range(2, 40)])
    table = pd.DataFrame({"method": ["b", "a", NAMES[0]], "ACC": [10.5, 9.5, None]})
    comparison = Comparison(table, {"a": [0, 1], NAMES[0]: [2, 3]}, [NAMES[1]], {"b"})
    search = LabelFreeSearch(
        BSUFS(12, must_keep=NAMES), param_grid={"p": [0.0, 0.5, 1.0]}, report=["redundancy"]
    )
    path = tmp_path_factory.mktemp("report") / "report.html"
    return make_report(
        search.fit(frame), frame, path, n_subsamples=3, comparison=comparison, image_shape=(5, 8)
    )


@pytest.fixture
def page(browser, report):
    browser.open(report)
    return browser


def test_it_loads_without_a_complaint_and_without_a_request(page, report):
    assert page.requests() == [report.as_uri()]
    assert page.complaints() == []
    assert page.evaluate("document.title") == "BSUFS kept 12 of 40 features · bsufs"
    shown = page.evaluate(f"{ROWS}.map(row => row.cells[1].textContent)")
    assert set(NAMES) <= set(shown)
    assert page.evaluate("document.images.length") == 0


def test_the_policy_forbids_what_the_page_does_not_need(page):
    page.evaluate("fetch('data:,x').catch(() => { document.body.dataset.fetch = 'refused' }); 0")
    page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran = 1\">'); 0"
    )
    page.evaluate("const s = document.createElement('script'); s.text = 'window.ran = 1';"
                  "document.body.append(s); 0")  # fmt: skip
    refused = "new Promise(done => setTimeout(() => done(document.body.dataset.fetch), 50))"
    assert page.evaluate(refused) == "refused"
    assert page.evaluate("window.ran") is None
    assert page.complaints()


def _click(page, heading, table="#features"):
    page.evaluate(
        f"[...document.querySelectorAll('{table} thead button')]"
        f".find(button => button.textContent === '{heading}').click()"
    )


def _column(page, place):
    return page.evaluate(f"{ROWS}.map(row => row.cells[{place}].dataset.v ?? "
                         f"row.cells[{place}].textContent)")  # fmt: skip


def test_headings_sort_both_ways_and_the_missing_come_last(page):
    ranks = list(range(1, 41))
    assert [int(rank) for rank in _column(page, 0)] == ranks
    _click(page, "rank")
    assert [int(rank) for rank in _column(page, 0)] == ranks[::-1]
    for reverse in (False, True):
        _click(page, "correlation")
        cells = _column(page, 9)
        # The constant column has none.
        assert cells[-1] == ""
        numbers = [float(cell) for cell in cells[:-1]]
        assert numbers == sorted(numbers, reverse=reverse)
    assert page.evaluate("document.querySelectorAll('#features [aria-sort]').length") == 1
    _click(page, "feature")
    names = [name for name in _column(page, 1) if name.startswith("column")]
    # Numbers within names count as numbers.
    assert names == [f"column {i}" for i in range(2, 40)]


def test_the_comparison_sorts_too(page):
    _click(page, "ACC", "#comparison table")
    order = (
        "[...document.querySelectorAll('#comparison tbody tr')].map(r => r.cells[0].textContent)"
    )
    assert page.evaluate(order) == ["a", "b", NAMES[0]]


def test_the_settings_that_were_tried_sort(page):
    ranks = "[...document.querySelectorAll('#tuning tbody tr')].map(r => r.cells[0].textContent)"
    assert page.evaluate(ranks) == ["1", "2", "3"]
    _click(page, "rank", "#tuning table")
    _click(page, "rank", "#tuning table")
    assert page.evaluate(ranks) == ["3", "2", "1"]


def test_pointing_at_an_overlap_names_both_methods(page):
    page.evaluate("document.querySelector('#overlap').scrollIntoView()")
    words = page.evaluate(
        """(() => {
          const cells = document.querySelector("#overlap g.cells");
          const box = cells.getBoundingClientRect();
          cells.firstElementChild.dispatchEvent(new PointerEvent("pointermove", {
            clientX: box.right - 2, clientY: box.top + 2, bubbles: true }));
          return document.getElementById("tip").textContent;
        })()"""
    )
    assert words.startswith(f"BSUFS and {NAMES[0]}: 0.")


def _search(page, text, which=""):
    page.evaluate(
        f"document.getElementById('search').value = {text!r};"
        f"document.getElementById('which').value = {which!r};"
        "document.getElementById('search').dispatchEvent(new Event('input'))"
    )
    visible = page.evaluate(
        f"{ROWS}.filter(row => row.checkVisibility()).map(row => row.cells[1].textContent)"
    )
    assert page.evaluate("document.getElementById('shown').textContent") == (
        f"{len(visible)} of 40 rows"
    )
    return visible


def test_searching_shows_what_fits(page):
    assert _search(page, "COLUMN 17") == ["column 17"]
    # Those that it stands for are found too: their reasons name it.
    assert NAMES[0] in _search(page, "<script>")
    assert _search(page, "constant") == ["column 39"]
    assert _search(page, "nothing like it") == []
    assert len(_search(page, "", "kept")) == 12
    assert len(_search(page, "", "out")) == 28
    assert len(_search(page, "")) == 40


def test_pointing_tells_what_is_there(page):
    page.evaluate("document.querySelector('#redundancy').scrollIntoView()")
    words = page.evaluate(
        """(() => {
          const point = (element, x, y) => element.dispatchEvent(
            new PointerEvent("pointermove", { clientX: x, clientY: y, bubbles: true }));
          const box = document.querySelector("g.cells").getBoundingClientRect();
          const cell = document.querySelector("g.cells path");
          point(cell, box.left + 2, box.top + 2);
          const first = document.getElementById("tip").textContent;
          point(cell, box.right - 2, box.top + 2);
          const last = document.getElementById("tip").textContent;
          point(document.querySelector("#explained circle"), 9, 9);
          const circle = document.getElementById("tip").textContent;
          point(document.body, 1, 1);
          return [first, last, circle, document.getElementById("tip").hidden];
        })()"""
    )
    names = page.evaluate("JSON.parse(document.querySelector('g.cells').dataset.names)")
    assert words[0] == f"{names[0]} and {names[0]}: 1.00"
    assert words[1].startswith(f"{names[0]} and {names[11]}: ")
    assert "explain" in words[2]
    assert words[3] is True


@pytest.mark.parametrize("width", [400, 1400])
def test_nothing_sticks_out(page, width):
    page.resize(width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # Letters in pictures shrink with them.
    smallest = page.evaluate(
        "Math.min(...[...document.querySelectorAll('svg text')].map(text => "
        "14 * text.ownerSVGElement.getBoundingClientRect().width / 480))"
    )
    assert smallest > 10


def test_a_narrow_page_shows_more_columns_when_asked(page):
    page.resize(400)
    hidden = "!document.querySelector('#features td.near').checkVisibility()"
    assert page.evaluate(hidden)
    page.evaluate("document.getElementById('more').click()")
    assert not page.evaluate(hidden)
    page.resize(1400)
    page.evaluate("document.getElementById('more').click()")
    assert not page.evaluate(hidden)


def test_on_paper_there_are_no_controls_and_all_rows(page):
    page.call("Emulation.setEmulatedMedia", media="print")
    try:
        assert not page.evaluate("document.querySelector('.controls').checkVisibility()")
        # A sheet of A4 between its margins.
        page.resize(718)
        assert page.evaluate("document.documentElement.scrollWidth") <= 718
        assert page.evaluate(
            "document.querySelector('.scroll').scrollHeight"
            " <= document.querySelector('.scroll').clientHeight + 2"
        )
    finally:
        page.call("Emulation.setEmulatedMedia", media="")


def _printed(page):
    page.call("Emulation.setEmulatedMedia", media="print")
    try:
        return page.evaluate(f"{ROWS}.filter(row => row.checkVisibility()).length")
    finally:
        page.call("Emulation.setEmulatedMedia", media="")


def test_twenty_thousand_features_load(browser, tmp_path):
    X = np.random.default_rng(0).normal(size=(12, 20_000))
    path = make_report(MaxVariance(50).fit(X), X, tmp_path / "wide.html", n_subsamples=1)
    assert path.stat().st_size < 5_000_000
    browser.open(path)
    assert browser.complaints() == []
    assert browser.evaluate(f"{ROWS}.length") == 1000
    assert _printed(browser) == 50
    browser.evaluate(
        "document.getElementById('search').value = 'rank';"
        "document.getElementById('search').dispatchEvent(new Event('input'))"
    )
    assert _printed(browser) > 50
    _click(browser, "score")
    scores = [float(score) for score in _column(browser, 5)]
    assert scores == sorted(scores)
