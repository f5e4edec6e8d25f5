"""Every number of the paper's tables, held against its source where that is at hand."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from bsufs_paper.reporting import paper
from bsufs_paper.reporting.paper import CASES, METHODS, load_printed

_SOURCE = Path(
    os.environ.get("BSUFS_PAPER", Path(__file__).resolve().parents[4] / "shared" / "paper")
)
_MARKS = {"1.00,0.00,0.00": "first", "0.00,0.00,1.00": "second"}


@pytest.fixture(scope="module")
def source():
    path = _SOURCE / "paper.tex"
    if not path.exists():
        pytest.skip("paper.tex is absent; set BSUFS_PAPER to its folder")
    return path.read_text(encoding="utf-8")


def _rows(source, label):
    """Return the rows of a table as lists of cells without their markup, and their marks."""
    body = source[source.index(f"\\label{{{label}}}") :]
    body = body[: re.search(r"\\end\{(tabular|tblr)\}", body).start()]
    rows = []
    for line in body.split("\\\\"):
        cells = line.split("&")
        marks = [next((m for rgb, m in _MARKS.items() if rgb in cell), "") for cell in cells]
        plain = [re.sub(r"\\textcolor\[rgb\]\{[^}]*\}|\\includegraphics.*", "", c) for c in cells]
        rows.append((plain, marks))
    return [row for row in rows if len(row[0]) > 2]


def _name(cell):
    return re.findall(r"\\textbf\{([\w ]+?)\s*\}", cell)[-1]


@pytest.mark.parametrize("metric", ["acc", "nmi"])
def test_clustering_tables_are_the_papers(source, metric):
    rows = _rows(source, metric)[1:]
    found = []
    for index, (cells, marks) in enumerate(rows):
        if "multirow" not in cells[0]:
            continue
        is_average = "Average" in cells[0]
        counts = (
            [None] * 10 if is_average else [int(c.strip(" {}()\n")) for c in rows[index + 1][0][1:]]
        )
        for method, cell, mark, count in zip(METHODS, cells[1:], marks[1:], counts, strict=True):
            mean, sd = re.search(r"([\d.]+)\$\\pm\$([\d.]+)", cell).groups()
            found.append((_name(cells[0]), method, float(mean), float(sd), count, mark))
    table = load_printed(f"clustering-{metric}")
    ours = [
        (*row[:4], None if row[4] != row[4] else int(row[4]), row[5])
        for row in table.itertuples(index=False, name=None)
    ]
    assert len(found) == 90
    assert ours == found


@pytest.mark.parametrize(("metric", "label"), [("acc", "a-acc"), ("nmi", "ff-nmi")])
def test_ablation_tables_are_the_papers(source, metric, label):
    found = [
        (_name(cells[0]), case, float(re.search(r"\d+\.\d+", cell)[0]), mark)
        for cells, marks in _rows(source, label)[1:]
        for case, cell, mark in zip(CASES, cells[1:], marks[1:], strict=True)
    ]
    table = load_printed(f"ablation-{metric}")
    assert len(found) == 32
    assert list(table.itertuples(index=False, name=None)) == found


def test_pixel_table_is_the_papers(source):
    found = [
        ("pie", _name(cells[0]), metric, float(re.search(r"\d+\.\d+", cell)[0]), mark)
        for cells, marks in _rows(source, "graph")[1:]
        for metric, cell, mark in zip(("ACC", "NMI"), cells[-2:], marks[-2:], strict=True)
    ]
    assert len(found) == 8
    assert list(load_printed("pixels").itertuples(index=False, name=None)) == found


def test_dataset_table_is_the_papers(source):
    found = [
        (re.search(r"\w+", cells[1])[0], *(int(re.search(r"\d+", cell)[0]) for cell in cells[2:]))
        for cells, _ in _rows(source, "data")[1:]
    ]
    table = load_printed("datasets").drop(columns="type")
    assert len(found) == 10
    assert list(table.itertuples(index=False, name=None)) == found


@pytest.mark.parametrize(
    ("dataset", "sentence"),
    [
        ("Diamond9", r"is demonstrated that (.*?) is the only method that can"),
        ("Dartboard1", r"shows that (.*?) are all capable of"),
        ("Dartboard1-gaussian", r"on this dataset, (.*?) identify the right"),
        ("Dartboard1-salt-and-pepper", r"From this figure, only (.*?) are capable"),
    ],
)
def test_found_features_are_as_the_text_says(source, dataset, sentence):
    named = set(re.split(r", and |, | and ", re.search(sentence, source)[1]))
    table = load_printed("synthetic")
    ours = table[(table["dataset"] == dataset) & (table["found"] == 1)]
    assert set(ours["method"]) == named


def test_differences_are_as_the_text_says(source):
    named = re.search(r"differences when compared to (.*?), while", source)[1]
    table = load_printed("nemenyi")
    ours = set(table.loc[table["differs_from_bsufs"] == 1, "method"])
    assert ours == set(re.split(r", and |, ", named))
    assert len(table) == 8


def test_exponents_are_as_the_text_says(source):
    text = re.search(r"In specific, for the (\w+) dataset.*? are \$(.*?)\$ and \$(.*?)\$", source)
    table = load_printed("exponents").set_index("dataset")
    assert tuple(table.loc[text[1]]) == (text[2], text[3])
    text = re.search(
        r"for the (\w+) dataset, the optimal values are \$(.*?)\$ and \$(.*?)\$", source
    )
    assert tuple(table.loc[text[1]]) == (text[2], text[3])
    text = re.search(r"for the (\w+) and (\w+) datasets, the best .*? both .*? set to 0", source)
    assert [tuple(table.loc[name]) for name in text.groups()] == [("0", "0")] * 2


def test_an_average_that_does_not_add_up_is_named():
    table = load_printed("clustering-acc")
    assert paper.average_notes(table) != []
    table.loc[(table["dataset"] == "Average") & (table["method"] == "RNE"), "mean"] = 99.0
    assert any("99.00 for RNE" in note for note in paper.average_notes(table))


def test_a_mark_on_the_wrong_number_is_named():
    notes = paper.mark_notes(load_printed("ablation-acc"))
    assert notes == [
        "On Isolet the paper marks Case III (56.19) as second; by its numbers it is "
        "Case II (58.78)."
    ]


def test_numbers_printed_twice_agree():
    assert paper.agreement_notes("acc") == ["The 12 numbers that the paper prints twice agree."]
    assert "12" in paper.agreement_notes("nmi")[0]


def test_the_printed_count_of_all_features_is_named():
    assert "(10)" in paper.all_features_note()
    assert "256 to 4434" in paper.all_features_note()
    assert "of 72 cells" in paper.feature_count_note()
