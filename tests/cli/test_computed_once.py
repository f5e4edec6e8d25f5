"""What is computed of a table is computed once per command, however many ask for it."""

import sys
from collections import Counter

import pytest

from bsufs.inspection.findings import Findings
from bsufs.selectors import _data

OTHERS = ("--ignore", "id", "--label", "kind")
N_ROWS = 40


@pytest.fixture
def calls(monkeypatch):
    """Return how often things were computed of all rows, by name."""
    counts = Counter()

    def counting(name, function):
        def counted(X, *rest, **options):
            # Refits on parts of the rows are of other tables.
            counts[name] += X.shape[0] == N_ROWS
            return function(X, *rest, **options)

        return counted

    modules = [module for key, module in sys.modules.items() if key.startswith("bsufs.")]
    for name in ("make_scatter", "canonical_order"):
        counted = counting(name, getattr(_data, name))
        for module in modules:
            if hasattr(module, name):
                monkeypatch.setattr(module, name, counted)
    begin = Findings.__post_init__

    def begin_counted(self):
        counts["findings"] += 1
        begin(self)

    monkeypatch.setattr(Findings, "__post_init__", begin_counted)
    return counts


@pytest.mark.parametrize(
    "words",
    [
        ("select",),
        ("select", "--compare", "BSUFS,ColumnSubset,MaxVariance"),
        ("select", "--report", "-", "--subsamples", 2),
        ("select", "--method", "BSUFS", "--tune"),
        ("select", "--alternatives", 2, "--report", "-", "--subsamples", 0),
        ("compare",),
        ("compare", "--report", "-", "--subsamples", 2),
    ],
)
def test_each_thing_once(invoke, table, calls, words):
    command, *rest = words
    assert invoke(command, table, "-k", 2, *OTHERS, *rest).status == 0
    assert calls["findings"] == ("--report" in words)
    assert (calls["make_scatter"], calls["canonical_order"]) == (1, 1)


def test_findings_once_for_a_report_and_a_ranking(invoke, table, tmp_path, calls):
    ranking = tmp_path / "ranking.csv"
    files = ("--report", tmp_path / "page.html", "--ranking", ranking, "--subsamples", 2)
    assert invoke("select", table, "-k", 2, *OTHERS, *files).status == 0
    assert "kept: " in ranking.read_text()
    assert calls["findings"] == 1
    calls.clear()
    assert invoke("select", table, "-k", 2, *OTHERS, terminal=True).status == 0
    assert calls["findings"] == 1
