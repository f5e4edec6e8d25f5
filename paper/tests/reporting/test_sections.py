"""How a number is judged, and how frames are read."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from bsufs_paper.reporting import Results, Verdict
from bsufs_paper.reporting.results import COLUMNS, confirmed, expand_parameters
from bsufs_paper.reporting.sections import CELL_COLUMNS, cells_frame, judge, list_items, make_cell

NAN = math.nan


@pytest.mark.parametrize(
    ("paper", "paper_sd", "here", "here_sd", "difference", "verdict"),
    [
        (50.0, 2.0, 52.0, 9.0, 1.0, Verdict.WITHIN),
        (50.0, 2.0, 48.0, 9.0, -1.0, Verdict.WITHIN),
        (50.0, 2.0, 52.5, 9.0, 1.25, Verdict.ABOVE),
        (50.0, 2.0, 47.0, 9.0, -1.5, Verdict.BELOW),
        (50.0, NAN, 53.0, 2.0, 1.5, Verdict.ABOVE),
        (50.0, NAN, 50.0, NAN, 0.0, Verdict.WITHIN),
        (50.0, NAN, 51.0, NAN, NAN, Verdict.ABOVE),
        (50.0, NAN, 49.0, 0.0, NAN, Verdict.BELOW),
        (NAN, NAN, 49.0, 1.0, NAN, Verdict.NOT_PRINTED),
        (50.0, 2.0, NAN, NAN, NAN, Verdict.NOT_RUN),
        (NAN, NAN, NAN, NAN, NAN, Verdict.NOT_RUN),
    ],
)
def test_judge(paper, paper_sd, here, here_sd, difference, verdict):
    found = judge(paper, paper_sd, here, here_sd)
    assert found[0] == pytest.approx(difference, nan_ok=True)
    assert found[1] is verdict


def test_a_reason_stands_only_where_there_is_no_number():
    cells = cells_frame(
        [make_cell("r", "c", "m", here=1, reason="why"), make_cell("r", "d", "m", reason="why")]
    )
    assert list(cells["reason"]) == ["", "why"]
    assert list(cells.columns) == list(CELL_COLUMNS)


def _tasks(*rows):
    columns = list(COLUMNS["tasks"])
    return pd.DataFrame([dict(zip(columns, row, strict=True)) for row in rows], columns=columns)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (("clustering", "COIL20", "RNE"), "failed: singular"),
        (("clustering", "COIL20", "UDFS"), "timeout"),
        (("clustering", "COIL20", "FSPCA"), "no scores, although its tasks are done"),
        (("clustering", "MSTAR", "RNE"), "skipped: no file"),
        (("ablation", "COIL20", "Case I"), "not asked for (--only)"),
    ],
)
def test_why_a_number_is_missing(key, reason):
    tasks = _tasks(
        ("clustering", "search", "COIL20", "RNE", "{}", "failed", "singular", 1.0),
        ("clustering", "search", "COIL20", "RNE", "{}", "done", "", 1.0),
        ("clustering", "search", "COIL20", "UDFS", "{}", "timeout", None, 1.0),
        ("clustering", "search", "COIL20", "FSPCA", "{}", "done", "", 1.0),
        ("clustering", "load", "MSTAR", None, "{}", "skipped", "no file", 0.0),
    )
    assert Results({"tasks": tasks}).why_missing(*key) == reason


def test_of_several_reasons_the_gravest_counts_and_then_the_first_in_words():
    tasks = _tasks(
        ("clustering", "load", "COIL20", "RNE", "{}", "skipped", "no file", 1.0),
        ("clustering", "search", "COIL20", "RNE", "{}", "interrupted", "", 1.0),
        ("clustering", "search", "COIL20", "RNE", "{}", "timeout", None, 1.0),
        ("clustering", "search", "COIL20", "RNE", "{}", "timeout", "after 60 s", 1.0),
        ("clustering", "search", None, "UDFS", "{}", "failed", "for all datasets", 1.0),
    )
    results = Results({"tasks": tasks})
    assert results.why_missing("clustering", "COIL20", "RNE") == "timeout: after 60 s"
    # A task without a dataset stands for all of them.
    assert results.why_missing("clustering", "USPS", "UDFS") == "failed: for all datasets"
    assert results.why_missing("clustering", "USPS", "RNE") == "not asked for (--only)"


def test_a_quick_run_says_so():
    assert Results({}, {"quick": True}).why_missing("x") == "--quick leaves it out"
    tasks = _tasks(("synthetic", "recover", "Dartboard1", "BSUFS", "{}", "done", "", 1.0))
    assert Results({"tasks": tasks}, {"quick": True}).why_missing("synthetic") == (
        "--quick leaves it out"
    )


def test_missing_columns_are_named():
    with pytest.raises(ValueError, match=r"results\['scores'\] must have .*missing: run, dataset"):
        Results({"scores": pd.DataFrame({"acc": [0.5]})})


def _scores(**fields):
    base = {"run": "clustering", "dataset": "USPS", "method": "BSUFS", "setting": 1}
    base |= {"parameters": "{}", "n_features": 50, "kmeans_init": "k-means++", "repetition": 0}
    return {**base, "acc": 0.5, "nmi": 0.6, **fields}


def test_a_cell_is_the_mean_at_the_winner():
    scores = pd.DataFrame(
        [
            _scores(acc=0.50),
            _scores(acc=0.52),
            _scores(acc=0.99, setting=2),
            _scores(acc=0.98, kmeans_init="random"),
            _scores(acc=0.10, nmi=0.7, n_features=60),
            _scores(method="ALLfea", setting=0, n_features=256, acc=0.4),
            _scores(method="RNE", setting=0),
            _scores(method="RNE", setting=1),
        ]
    )
    winners = pd.DataFrame(
        [("clustering", "USPS", "BSUFS", 1, "{}", 50, 60, 9, 9)], columns=list(COLUMNS["winners"])
    )
    results = Results({"scores": scores, "winners": winners})
    acc, nmi = confirmed(results, "clustering", "acc"), confirmed(results, "clustering", "nmi")
    assert acc.loc[("USPS", "BSUFS"), "mean"] == pytest.approx(51)
    assert acc.loc[("USPS", "BSUFS"), "sd"] == pytest.approx(math.sqrt(2))
    assert nmi.loc[("USPS", "BSUFS"), ["mean", "n_features"]].tolist() == pytest.approx([70, 60])
    # One setting leaves nothing to choose; two without a winner cannot be told apart.
    assert acc.loc[("USPS", "ALLfea"), "mean"] == pytest.approx(40)
    assert ("USPS", "RNE") not in acc.index


def test_parameters_become_numbers():
    frame = pd.DataFrame({"parameters": ['{"p": 0.5, "lambda_row": "path"}', "{}", None]})
    expanded = expand_parameters(frame, ("p", "lambda_row"))
    assert expanded["p"].tolist() == pytest.approx([0.5, NAN, NAN], nan_ok=True)
    assert expanded["lambda_row"].isna().all()


def test_items_are_those_of_the_paper_and_ours():
    paper = "table-datasets fig-diamond9 fig-dartboard1 fig-dartboard1-gaussian "
    paper += "fig-dartboard1-salt-and-pepper fig-acc fig-nmi table-acc table-nmi "
    paper += "table-ablation-acc table-ablation-nmi table-pixels fig-sparsity fig-nemenyi-acc "
    paper += "fig-nemenyi-nmi fig-pq-acc fig-pq-nmi fig-correlation fig-box fig-lambda "
    paper += "fig-convergence"
    ours = "table-label-free table-recovery table-initialization table-stopping table-tasks"
    assert [item.id for item in list_items()] == f"{paper} {ours}".split()
