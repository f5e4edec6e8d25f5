"""The app in a real browser."""

import json
import os
import shlex
import shutil
import signal

import pytest
from tests.app.server import live
from tests.browser import CHROMIUM, COLORS, contrast, luminance, open_browser

from bsufs.cli._program import run

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

# A worker that reads at once a table of so many columns, and never ends a selection.
SLOW = """
import json, os, pathlib, sys, time
if sys.argv[1] == "columns":
    n = {n}
    pathlib.Path(sys.argv[3]).write_text(json.dumps({{
        "names": [f"column {{i}}" for i in range(n)], "kinds": ["number"] * n, "why": [""] * n,
        "values": [0] * n, "gaps": [0] * n, "carried": [], "n_rows": 100, "n_features": n,
        "notices": [], "scale": ["none", ""], "memory": 1, "can_stream": True}}))
else:
    print(json.dumps([f"process {{os.getpid()}}", ""]), flush=True)
    print(json.dumps(["writing the report", "refit 3 of 20"]), flush=True)
    time.sleep(60)
"""
SHOWN = "!document.getElementById('{}').hidden"
NAMES = "[...document.querySelectorAll('#list tbody th')].map(cell => cell.textContent)"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


def _set(page, selector, value, event="input"):
    page.evaluate(
        f"(() => {{ const field = document.querySelector({json.dumps(selector)});"
        f"field.value = {json.dumps(value)};"
        f"field.dispatchEvent(new Event('{event}', {{ bubbles: true }})); }})()"
    )


def _use(page, name, role):
    label = json.dumps(f"Use {name}")
    page.evaluate(
        f"(() => {{ const field = [...document.querySelectorAll('#list select')].find(one => "
        f"one.getAttribute('aria-label') === {label}); field.value = {json.dumps(role)};"
        "field.dispatchEvent(new Event('change', { bubbles: true })); })()"
    )


def _drop(page, path):
    """Drop a file on the page, as a person would from a folder."""
    content = json.dumps(path.read_text(encoding="utf-8"))
    page.evaluate(
        f"(() => {{ const data = new DataTransfer(); data.items.add(new File([{content}], "
        f"{json.dumps(path.name)})); document.getElementById('drop').dispatchEvent(new DragEvent("
        "'drop', { dataTransfer: data, bubbles: true, cancelable: true })); })()"
    )


def _go(page):
    page.evaluate("document.getElementById('go').click()")


def test_from_a_dropped_table_to_what_the_command_writes(browser, table, tmp_path, monkeypatch):
    evil = "<img src=x onerror=alert(1)>, &amp;"
    with live() as client:
        other = browser.browser.tab()
        other.open(client.address)
        browser.open(client.address)
        # What was in the address is out of sight.
        assert browser.evaluate("location.search") == ""
        browser.wait_for("document.getElementById('limit').textContent === '1.0 MB'")
        _drop(browser, table)
        browser.wait_for(SHOWN.format("columns"))
        assert browser.evaluate("document.getElementById('file-name').textContent") == table.name
        shown = browser.evaluate(NAMES)
        assert shown == ["id", *(f"gene_{i}" for i in range(8)), evil, "kind"]
        rows = browser.evaluate(
            "[...document.querySelectorAll('#list tbody tr:not(.gap)')].map(row => "
            "[row.cells[1].textContent, row.cells[2].textContent])"
        )
        assert rows[0] == ["left out · it is different in every row", ""]
        assert rows[4] == ["number", "4"]
        assert rows[10] == ["category · 3 values", ""]
        _set(browser, "#k", "3")
        _use(browser, evil, "must-keep")
        _use(browser, "gene_1", "ignore")
        _use(browser, "kind", "label")
        facts = browser.evaluate("document.getElementById('columns-facts').textContent")
        assert facts == "8 columns to select from, 3 left out"
        _go(browser)
        for page in (browser, other):
            page.wait_for(SHOWN.format("result"), 60)
            facts = "document.getElementById('result-facts').textContent"
            page.wait_for(f"{facts} === '3 of 8 columns kept'")
            assert page.evaluate("document.getElementById('k').value") == "3"
            assert page.evaluate("document.images.length") == 0
            sandbox = page.evaluate("document.querySelector('iframe').sandbox.value")
            assert sandbox == "allow-scripts allow-downloads allow-modals"
            # No error, no warning, and nothing that the policy had to refuse.
            assert page.complaints() == []
            origin = f"http://127.0.0.1:{client.port}/"
            asked = [address for address in page.requests() if not address.startswith("data:,")]
            assert all(address.startswith(origin) for address in asked)
        other.close()
        policy = client.ask("GET", "/report").headers["content-security-policy"]
        assert policy.startswith("sandbox allow-scripts")
        command = browser.evaluate("document.getElementById('command').textContent")
        files = client.state()["run"]["files"]
        downloads = tmp_path / "downloads"
        downloads.mkdir()
        for key, name in files.items():
            link = f"document.querySelector('#downloads a[href=\"/files/{key}\"]').click()"
            assert browser.download(downloads, link).name == name
        lines = browser.evaluate("document.getElementById('python').textContent")
    again = tmp_path / "again"
    again.mkdir()
    monkeypatch.chdir(again)
    words = shlex.split(command)
    assert words[:3] == ["bsufs", "select", "my_table.csv"]
    shutil.copy(table, "my_table.csv")
    shutil.copy(downloads / "must-keep.txt", again)
    with pytest.raises(SystemExit) as ended:
        run(words[1:])
    assert ended.value.code == 0
    for name in set(files.values()) - {"my_table-results.json"}:
        assert (downloads / name).read_bytes() == (again / name).read_bytes(), name
    found, wanted = (json.loads((place / "my_table-results.json").read_text(encoding="utf-8"))
                     for place in (downloads, again))  # fmt: skip
    # How long it took is all that differs.
    assert found | {"seconds": 0} == wanted | {"seconds": 0}
    # The lines of Python select the same.
    names = {}
    exec(compile(lines, "lines", "exec"), names)
    kept = (downloads / "my_table-names.txt").read_text(encoding="utf-8").splitlines()
    assert list(names["selector"].selected_features_) == kept


@pytest.fixture
def running(work, browser):
    """Start a selection that does not end, in a table of some columns."""
    work(SLOW.format(n=12))
    with live() as client:
        client.upload("t.csv", b"a,b\n1,2\n")
        browser.open(client.address)
        browser.wait_for(SHOWN.format("select"))
        _set(browser, "#k", "7")
        _use(browser, "column 3", "never-keep")
        _go(browser)
        browser.wait_for("document.getElementById('run-text').textContent.includes('refit 3')")
        yield client


def _bar(page):
    return page.evaluate("document.getElementById('run-bar').value")


def test_a_run_is_seen_after_a_reload_and_in_another_tab_and_canceled_there(running, browser):
    text = browser.evaluate("document.getElementById('run-text').textContent")
    assert text.startswith("Writing the report: refit 3 of 20")
    assert _bar(browser) == 0.15
    other = browser.browser.tab()
    for page, address in ((browser, running.address.partition("?")[0]), (other, running.address)):
        page.open(address)
        page.wait_for("document.getElementById('run-text').textContent.includes('refit 3')")
        assert _bar(page) == 0.15
        assert page.evaluate("document.getElementById('k').value") == "7"
        assert page.evaluate("document.querySelectorAll('#list tr.changed').length") == 1
        assert page.evaluate("document.getElementById('go').disabled")
    other.evaluate("document.getElementById('stop-run').click()")
    for page in (other, browser):
        page.wait_for("document.getElementById('run').hidden")
        assert not page.evaluate("document.getElementById('go').disabled")
        assert page.evaluate("document.getElementById('run-error').hidden")
    other.close()
    assert running.state()["run"]["status"] == "canceled"


def test_a_worker_that_is_killed_takes_nothing_with_it(running, browser):
    (first, _) = running.state()["run"]["steps"]
    os.kill(int(first["name"].split()[1]), signal.SIGKILL)
    browser.wait_for(SHOWN.format("run-error"))
    error = browser.evaluate("document.getElementById('run-error').textContent")
    assert "SIGKILL" in error
    assert browser.evaluate("document.getElementById('run').hidden")
    # It can be started again.
    _go(browser)
    browser.wait_for("!document.getElementById('run').hidden")
    assert browser.evaluate("document.getElementById('run-error').hidden")


def test_fifty_thousand_columns(work, browser):
    work(SLOW.format(n=50_000))
    with live() as client:
        client.upload("t.csv", b"a,b\n1,2\n")
        browser.open(client.address)
        browser.wait_for(SHOWN.format("columns"))
        rows = "document.querySelectorAll('#list tbody tr').length"
        assert browser.evaluate(rows) < 100
        browser.evaluate("document.getElementById('rows').scrollTop = 1e9")
        browser.wait_for(f"{NAMES}.includes('column 49999')")
        assert browser.evaluate(rows) < 100
        _set(browser, "#search", "COLUMN 4999")
        assert browser.evaluate(NAMES) == [f"column {i}" for i in (4999, *range(49990, 50000))]
        # All that are shown, at once.
        _set(browser, "#all-as", "ignore", "change")
        _set(browser, "#show", "changed", "change")
        _set(browser, "#search", "")
        assert len(browser.evaluate(NAMES)) == 11
        _go(browser)
        client.until(lambda state: state["run"])
        assert len(json.loads(client.ask("GET", "/settings").body)["roles"]) == 11


def test_what_goes_wrong_is_said_where_it_happened(browser, tmp_path):
    with live() as client:
        browser.open(client.address)
        browser.wait_for("document.getElementById('limit').textContent")
        large = tmp_path / "large.csv"
        large.write_bytes(b"x" * 1_000_001)
        browser.set_files("#choose", large)
        browser.wait_for(SHOWN.format("table-error"))
        error = "document.getElementById('table-error').textContent"
        assert "the limit is 1.0 MB" in browser.evaluate(error)
        wrong = tmp_path / "a.exe"
        wrong.write_bytes(b"MZ")
        browser.set_files("#choose", wrong)
        browser.wait_for(f"{error}.includes('extension')")
        values = tmp_path / "values.csv"
        values.write_text("1;1;2\n2;5;3\n4;1;9\n0;2;6\n", encoding="utf-8")
        browser.set_files("#choose", values)
        browser.wait_for(f"{error}.includes('column names must differ')")
        assert browser.evaluate("document.getElementById('columns').hidden")
        # The cure is at hand.
        assert browser.evaluate("document.getElementById('as-read').open")
        browser.evaluate("document.querySelector('[name=no-header]').click()")
        browser.evaluate("document.querySelector('#read-again button').click()")
        browser.wait_for(SHOWN.format("columns"))
        assert browser.evaluate(NAMES) == ["x0", "x1", "x2"]
        assert browser.evaluate("document.getElementById('table-error').hidden")
    # The app has ended, and the page says so.
    browser.wait_for(SHOWN.format("lost"))


def test_a_wrong_token_opens_nothing(browser):
    with live() as client:
        browser.call("Network.clearBrowserCookies")
        browser.open(f"http://127.0.0.1:{client.port}/?token=wrong")
        assert "token" in browser.evaluate("document.body.textContent")
        assert not browser.evaluate("document.scripts.length")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_the_paper(running, browser, scheme):
    names = ["body", ".eyebrow", "h2 span", ".mean", "#list tbody th", "#list tr.unused th",
             "#list tr.changed select", "#list tr:not(.changed) select", ".purposes span", "u",
             "#run-text", "#stop-run"]  # fmt: skip
    browser.prefer(scheme)
    try:
        colors = browser.evaluate(f"{names}.map({COLORS})")
    finally:
        browser.prefer(None)
    for name, ink, paper in colors:
        assert contrast(ink, paper) >= 4.5, name
    assert (luminance(colors[0][2]) > 0.5) == (scheme == "light")


def test_a_phone_scrolls_down_alone(running, browser):
    browser.resize(360, 740)
    browser.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    assert browser.evaluate("document.documentElement.scrollWidth") <= 360
    cell = "document.querySelector('#list tbody th').clientWidth"
    assert browser.evaluate(cell) >= 100


def test_all_is_reached_with_the_keyboard_and_has_a_name(running, browser):
    unnamed = browser.evaluate(
        "[...document.querySelectorAll('input, select, button, progress, a')].filter(one => "
        "!one.labels?.length && !one.getAttribute('aria-label') && !one.textContent.trim())"
        ".map(one => one.outerHTML)"
    )
    assert unnamed == []
    browser.evaluate("document.getElementById('stop-run').click()")
    browser.open(running.address)
    browser.wait_for("document.getElementById('file-name').textContent")
    browser.press_tab()
    assert browser.evaluate("document.activeElement.id") == "choose"
    outline = "getComputedStyle(document.getElementById('drop')).outlineStyle"
    assert browser.evaluate(outline) == "solid"
