"""The page in a real browser."""

from __future__ import annotations

import base64
import csv
import re

import numpy as np
import pandas as pd
import pytest
from tests.browser import CHROMIUM, COLORS, contrast, luminance, open_browser

from bsufs import BSUFS
from bsufs.inspection import Comparison, Findings, make_report
from bsufs.inspection.page import ReportView
from bsufs.selectors import MaxVariance
from bsufs.tuning import LabelFreeSearch

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

NAMES = ["<script>document.title = 'run'</script>", "'\"><img src=x onerror=alert(1)>"]
ROWS = "[...document.querySelectorAll('#features tbody tr:not(.gap)')]"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 40)) + 0.4 * rng.normal(size=(60, 40))
    X[:, 39] = 1.0
    frame = pd.DataFrame(X, columns=NAMES + [f"column {i}" for i in range(2, 40)])
    search = LabelFreeSearch(
        BSUFS(12, must_keep=NAMES), param_grid={"p": [0.0, 0.5, 1.0]}, report=["redundancy"]
    )
    return search.fit(frame), frame


@pytest.fixture(scope="module")
def findings(fitted):
    return Findings(*fitted)


@pytest.fixture(scope="module")
def report(fitted, tmp_path_factory):
    table = pd.DataFrame({"method": ["b", "a", NAMES[0]], "ACC": [10.5, 9.5, None]})
    comparison = Comparison(table, {"a": [0, 1], NAMES[0]: [2, 3]}, [NAMES[1]], {"b"})
    path = tmp_path_factory.mktemp("report") / "report.html"
    return make_report(*fitted, path, n_subsamples=3, comparison=comparison, image_shape=(5, 8))


READY = """new Promise((done) => {
  const look = () => ("ready" in document.documentElement.dataset ? done() : setTimeout(look, 5));
  look();
})"""


@pytest.fixture
def page(browser, report):
    browser.open(report)
    browser.evaluate(READY)
    return browser


def test_it_loads_without_a_complaint_and_without_a_request(page, report):
    assert page.requests() == [report.as_uri()]
    assert page.complaints() == []
    assert page.evaluate("document.title") == "Selected columns · 12 of 40 columns · bsufs"
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


def _column(page, heading):
    place = page.evaluate(
        "[...document.querySelectorAll('#features thead th')]"
        f".findIndex(head => head.textContent === '{heading}')"
    )
    return page.evaluate(f"{ROWS}.map(row => row.cells[{place}].textContent)")


def test_headings_sort_both_ways_and_the_missing_come_last(page):
    ranks = list(range(1, 41))
    assert [int(rank) for rank in _column(page, "rank")] == ranks
    _click(page, "rank")
    assert [int(rank) for rank in _column(page, "rank")] == ranks[::-1]
    for reverse in (False, True):
        _click(page, "correlation")
        cells = _column(page, "correlation")
        # The constant column has none.
        assert cells[-1] == ""
        numbers = [float(cell.replace("\N{MINUS SIGN}", "-")) for cell in cells[:-1]]
        assert numbers == sorted(numbers, reverse=reverse)
    assert page.evaluate("document.querySelectorAll('#features [aria-sort]').length") == 1
    _click(page, "column")
    names = [name for name in _column(page, "column") if name.startswith("column")]
    # Numbers within names count as numbers.
    assert names == [f"column {i}" for i in range(2, 40)]


def test_the_comparison_sorts_too(page):
    _click(page, "ACC", "#comparison + .scroll")
    rows = "[...document.querySelectorAll('#comparison + .scroll tbody tr')]"
    names = page.evaluate(f"{rows}.map(row => row.cells[0].textContent)")
    assert names == ["a", "b", NAMES[0]]


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


def _search(page, text, show=""):
    page.evaluate(
        f"document.getElementById('search').value = {text!r};"
        f"document.getElementById('show').value = {show!r};"
        "document.getElementById('search').dispatchEvent(new Event('input'))"
    )
    visible = _column(page, "column")
    assert page.evaluate("document.getElementById('shown').textContent") == (
        f"{len(visible)} of 40 columns"
    )
    return visible


def test_searching_shows_what_fits(page):
    assert _search(page, "COLUMN 17") == ["column 17"]
    assert _search(page, "<script>") == [NAMES[0]]
    assert _search(page, "constant") == ["column 39"]
    assert _search(page, "nothing like it") == []
    assert len(_search(page, "", "kept")) == 12
    assert len(_search(page, "", "out")) == 28
    assert len(_search(page, "")) == 40


def _slide(page, number):
    page.evaluate(
        f"document.getElementById('number').value = {number};"
        "document.getElementById('number').dispatchEvent(new Event('input'))"
    )
    return page.evaluate(
        """({
          at: document.getElementById("at").textContent,
          tiles: [...document.querySelectorAll("#follow b")].map((b) => b.textContent),
          names: [...document.querySelectorAll("#first li:not(.off)")].map((li) => li.textContent),
          mark: document.querySelector("#numbers .cut").getBoundingClientRect().x,
        })"""
    )


def test_all_follows_the_slider(page, findings):
    chosen = findings.names[findings.foremost].tolist()
    before = _slide(page, 12)
    assert before["at"] == "12 of 40 columns"
    assert before["names"] == chosen[:12]
    fewer = _slide(page, 5)
    assert fewer["names"] == chosen[:5]
    assert fewer["tiles"][0] == f"{100 * findings.curve[4]:.1f}%"
    assert fewer["tiles"][2] == f"{findings.redundancy[4]:.2f}"
    assert fewer["mark"] < before["mark"]
    more = _slide(page, 24)
    assert more["names"] == chosen[:24]
    assert more["tiles"][1] == f"{findings.agreement[24]:.2f}"
    assert more["mark"] > before["mark"]


def test_names_are_copied_and_saved_as_they_are(page, findings):
    page.evaluate(
        """(() => {
          window.texts = [];
          Object.defineProperty(navigator, "clipboard", {
            value: { writeText: async (text) => { window.texts.push(text); } } });
          URL.createObjectURL = (blob) => { window.saved = blob; return "data:,"; };
          HTMLAnchorElement.prototype.click = function () { window.file = this.download; };
          document.querySelector("#which [data-copy]").click();
          document.querySelector("#which [data-save]").click();
        })()"""
    )
    chosen = findings.names[findings.chosen].tolist()
    assert page.evaluate("window.texts[0]").split("\n") == chosen
    lines = list(csv.reader(page.evaluate("window.saved.text()").splitlines()))
    assert lines == [["rank", "name"]] + [[str(i), name] for i, name in enumerate(chosen, 1)]
    assert page.evaluate("window.file") == "selected.csv"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_the_paper(page, scheme):
    names = ["body", ".eyebrow", "nav a", ".verdict", ".note, .verdict", ".tiles li", "td.dot"]
    page.prefer(scheme)
    try:
        colors = page.evaluate(f"{names}.map({COLORS})")
    finally:
        page.prefer(None)
    for name, ink, paper in colors:
        assert contrast(ink, paper) >= 4.5, name
    assert (luminance(colors[0][2]) > 0.5) == (scheme == "light")


def test_links_stay_within_the_frame_of_a_notebook(browser, report, tmp_path):
    frame = ReportView(report.read_text(encoding="utf-8"))._repr_html_()
    # Out of its sandbox a test can look into it.
    frame = re.sub(r' sandbox="[^"]*"', "", frame)
    path = tmp_path / "notebook.html"
    path.write_text(f"<!DOCTYPE html><body>{frame}</body>", encoding="utf-8")
    browser.open(path)
    found = browser.evaluate(
        f"""(async () => {{
          const {{ contentWindow: inner, contentDocument: document }} =
            window.document.querySelector("iframe");
          await {READY};
          document.querySelector("nav a[href='#table']").click();
          return [inner.location.href, inner.scrollY > 500,
                  document.querySelectorAll("#first li").length];
        }})()"""
    )
    assert found == ["about:srcdoc", True, 24]
    assert browser.complaints() == []


def test_pointing_tells_what_is_there(page):
    page.evaluate("document.querySelector('#redundancy').scrollIntoView()")
    words = page.evaluate(
        """(() => {
          const point = (element, x, y) => element.dispatchEvent(
            new PointerEvent("pointermove", { clientX: x, clientY: y, bubbles: true }));
          const box = document.querySelector("#redundancy .cells").getBoundingClientRect();
          const cell = document.querySelector("#redundancy .cells path");
          point(cell, box.left + 2, box.top + 2);
          const first = document.getElementById("tip").textContent;
          point(cell, box.right - 2, box.top + 2);
          const last = document.getElementById("tip").textContent;
          point(document.querySelector("#numbers .kept circle"), 9, 9);
          const circle = document.getElementById("tip").textContent;
          point(document.body, 1, 1);
          return [first, last, circle, document.getElementById("tip").hidden];
        })()"""
    )
    names = page.evaluate("JSON.parse(document.querySelector('#redundancy .cells').dataset.names)")
    assert words[0] == f"{names[0]} and {names[0]}: 1.00"
    assert words[1].startswith(f"{names[0]} and {names[11]}: ")
    assert "columns: variance explained" in words[2]
    assert words[3] is True


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_sticks_out(page, width):
    page.resize(width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # Letters in pictures shrink with them.
    smallest = page.evaluate(
        "Math.min(...[...document.querySelectorAll('figure svg text')].map(text => "
        "14 * text.ownerSVGElement.getBoundingClientRect().width / 480))"
    )
    assert smallest > 10
    # The table of all columns fits too, and names have the room that is left.
    name = "document.querySelector('#features tbody th').getBoundingClientRect().width"
    assert page.evaluate(name) > 70
    # The end of a name is in sight, also of a long one.
    ends = (
        "[...document.querySelectorAll('#features tbody th')].every(cell =>"
        " cell.querySelector('span :last-child').getBoundingClientRect().right"
        " <= cell.getBoundingClientRect().right)"
    )
    assert page.evaluate(ends)
    assert page.evaluate(
        "document.getElementById('rows').scrollWidth <= document.getElementById('rows').clientWidth"
    )


def test_a_narrow_page_shows_more_details_when_asked(page):
    page.resize(400)
    hidden = "!document.querySelector('#features .extra').checkVisibility()"
    assert page.evaluate(hidden)
    page.evaluate("document.getElementById('wide').click()")
    assert not page.evaluate(hidden)
    page.resize(1400)
    page.evaluate("document.getElementById('wide').click()")
    assert not page.evaluate(hidden)


def test_on_paper_there_are_no_controls_and_all_rows(page):
    page.call("Emulation.setEmulatedMedia", media="print")
    try:
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert not page.evaluate("document.querySelector('.controls').checkVisibility()")
        assert len(_column(page, "rank")) == 40
        # A sheet of A4 between its margins.
        page.resize(718)
        assert page.evaluate("document.documentElement.scrollWidth") <= 718
        assert page.evaluate(
            "document.getElementById('rows').scrollHeight"
            " <= document.getElementById('rows').clientHeight + 2"
        )
    finally:
        page.call("Emulation.setEmulatedMedia", media="")
        page.evaluate("dispatchEvent(new Event('afterprint'))")


def test_of_fifty_thousand_columns_those_in_sight_are_made(browser, tmp_path):
    X = np.random.default_rng(0).normal(size=(12, 50_000))
    path = make_report(MaxVariance(50).fit(X), X, tmp_path / "wide.html", n_subsamples=0)
    browser.open(path)
    browser.evaluate(READY)
    assert browser.complaints() == []
    assert browser.evaluate("document.getElementById('shown').textContent") == (
        "50,000 of 50,000 columns"
    )
    assert 10 < len(_column(browser, "rank")) < 100
    last = (
        "new Promise((done) => { const rows = document.getElementById('rows');"
        " rows.scrollTop = rows.scrollHeight; requestAnimationFrame(() => setTimeout(done, 0)); })"
    )
    browser.evaluate(last)
    assert _column(browser, "rank")[-1] == "50000"
    # The last row lies at the end of the box, so no height was counted wrong.
    assert browser.evaluate(
        f"Math.abs({ROWS}.at(-1).getBoundingClientRect().bottom"
        " - document.getElementById('rows').getBoundingClientRect().bottom)"
    ) < 4  # fmt: skip
    browser.evaluate(
        "document.getElementById('search').value = 'x49999';"
        "document.getElementById('search').dispatchEvent(new Event('input'))"
    )
    assert _column(browser, "column") == ["x49999"]
    browser.evaluate(
        "document.getElementById('search').value = '';"
        "document.getElementById('search').dispatchEvent(new Event('input'))"
    )
    # On paper there are the first rows, and no room for the others.
    printed = base64.b64decode(browser.call("Page.printToPDF")["data"])
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) < 20
    _click(browser, "share of variance")
    shares = [float(share.rstrip("%")) for share in _column(browser, "share of variance")]
    assert shares == sorted(shares)
