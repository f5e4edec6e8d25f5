"""The page: whole, self-contained, escaped, and the same every time."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser

import pandas as pd
import pytest
from matplotlib.figure import Figure
from paper.tests.reporting.made_up import made_up_info, made_up_results
from PIL import Image

from bsufs_paper.reporting import NamedFigure, Section, list_items, write_report
from bsufs_paper.reporting import html as page_module
from bsufs_paper.reporting.sections import CELL_COLUMNS

# One of each kind; all are drawn in test_views.
SOME = ["table-datasets", "fig-dartboard1", "table-acc", "fig-nemenyi-acc", "fig-convergence"]
SOME += ["table-ablation-acc", "table-pixels", "table-tasks"]


@pytest.fixture(scope="module")
def frames():
    return made_up_results(n_repetitions=6)


@pytest.fixture(scope="module")
def folder(frames, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    write_report(frames, made_up_info(), folder / "first", SOME)
    write_report(frames, made_up_info(), folder / "second", SOME)
    return folder


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.ids, self.tags, self.without_text = [], [], [], 0

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        self.links += [attributes[key] for key in ("src", "href") if key in attributes]
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.without_text += tag == "img" and not attributes.get("alt")


def _read(path):
    reader = _Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader


def test_the_page_asks_for_nothing_else(folder):
    text = (folder / "first" / "report.html").read_text(encoding="utf-8")
    reader = _read(folder / "first" / "report.html")
    assert reader.links
    assert all(link.startswith(("#", "data:")) for link in reader.links)
    assert not {"script", "link", "iframe"} & set(reader.tags)
    assert "url(" not in text
    assert "@import" not in text


def test_contents_lead_somewhere_and_pictures_have_words(folder):
    reader = _read(folder / "first" / "report.html")
    anchors = {link[1:] for link in reader.links if link.startswith("#")}
    assert anchors == set(SOME)
    assert anchors <= set(reader.ids)
    assert len(reader.ids) == len(set(reader.ids))
    assert reader.without_text == 0


def test_names_are_escaped(folder):
    text = (folder / "first" / "report.html").read_text(encoding="utf-8")
    assert "<b>x</b>" not in text
    assert "&lt;b&gt;x&lt;/b&gt; &amp; worse" in text


def test_the_same_results_give_the_same_bytes(folder):
    first = sorted(path for path in (folder / "first").rglob("*") if path.is_file())
    assert len(first) > 8
    for path in first:
        twin = folder / "second" / path.relative_to(folder / "first")
        assert path.read_bytes() == twin.read_bytes(), path.name


def test_figures_open_and_are_small(folder):
    paths = list((folder / "first" / "figures").iterdir())
    assert paths
    for path in paths:
        assert 2_000 < path.stat().st_size < 200_000
        assert path.name.startswith(tuple(f"{name}-" for name in SOME))
        if path.suffix == ".png":
            with Image.open(path) as image:
                assert image.convert("L").getextrema()[0] < 100
        else:
            assert path.read_text(encoding="utf-8").rstrip().endswith("</svg>")


def test_cells_round_trip(folder):
    cells = pd.read_csv(folder / "first" / "cells.csv")
    assert list(cells.columns) == ["item", *CELL_COLUMNS]
    assert set(cells["item"]) == set(SOME)
    judged = cells.dropna(subset=["paper", "paper_sd", "here"])
    assert len(judged) > 50
    expected = (judged["here"] - judged["paper"]) / judged["paper_sd"]
    assert judged["difference_in_sd"].to_numpy() == pytest.approx(expected.to_numpy(), abs=1e-3)


def test_the_summary_has_targets_and_notes(folder):
    text = (folder / "first" / "summary.md").read_text(encoding="utf-8")
    assert "## Targets" in text
    assert "**met**: All features" in text
    assert "samples, not the reproduction" not in text
    assert all(f"({name})" in text for name in SOME)


def test_a_quick_run_has_a_banner(tmp_path):
    path = write_report({}, {"quick": True}, tmp_path, ["table-datasets"])
    assert "samples, not the reproduction" in path.read_text(encoding="utf-8")
    assert "samples, not the reproduction" in (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_a_part_that_fails_shows_its_error(tmp_path, monkeypatch):
    def fail(item, results):
        return Section(item, error="ValueError: <i>no</i>")

    monkeypatch.setattr(page_module, "make_section", fail)
    path = write_report({}, {}, tmp_path, ["table-acc", "table-nmi"])
    text = path.read_text(encoding="utf-8")
    assert "2 of 2 parts could not be made" in text
    assert "ValueError: &lt;i&gt;no&lt;/i&gt;" in text
    assert "Could not be made: ValueError" in (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_a_figure_that_cannot_be_saved_shows_its_error(tmp_path, monkeypatch):
    figure = Figure()
    figure.text(0, 0, "$\\no such command$")
    monkeypatch.setattr(
        page_module,
        "make_section",
        lambda item, _: Section(item, figures=[NamedFigure("x", figure, "x")]),
    )
    text = write_report({}, {}, tmp_path, ["fig-acc"]).read_text(encoding="utf-8")
    assert "1 of 1 parts could not be made" in text


def test_figures_of_an_earlier_report_go_and_others_stay(tmp_path):
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "fig-acc-old.svg").write_text("old")
    (tmp_path / "figures" / "mine.svg").write_text("mine")
    write_report({}, {}, tmp_path, ["table-datasets"])
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["mine.svg"]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("full")

    monkeypatch.setattr(page_module.os, "replace", fail)
    with pytest.raises(OSError, match="full"):
        write_report({}, {}, tmp_path, ["table-datasets"])
    assert [path.name for path in tmp_path.iterdir()] == ["figures"]


def test_an_unknown_item_is_named(tmp_path):
    with pytest.raises(
        ValueError, match=r"items must be ids.*'table-x'.*choose from table-datasets"
    ):
        write_report({}, {}, tmp_path, ["table-x"])


def test_items_may_be_given_themselves(tmp_path):
    path = write_report({}, {}, tmp_path, list_items()[:1])
    assert re.findall(r'section id="(table|fig)', path.read_text(encoding="utf-8")) == ["table"]


def test_reporting_needs_no_selector_and_no_solver():
    # `import bsufs` offers BSUFS and so imports selectors: an empty package takes its place.
    program = """
import importlib.util, sys, types
package = types.ModuleType("bsufs")
package.__path__ = list(importlib.util.find_spec("bsufs").submodule_search_locations)
sys.modules["bsufs"] = package
import bsufs_paper.reporting
print(*sorted(name for name in sys.modules if name.startswith("bsufs")))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    assert "bsufs_paper.reporting.views.tables" in loaded
    forbidden = ("bsufs.selectors", "bsufs.solvers", "bsufs_paper.experiments", "bsufs.tuning")
    assert not [name for name in loaded if name.startswith(forbidden)]
