"""Every view with everything, with a part, and with nothing."""

from __future__ import annotations

import pandas as pd
import pytest
from paper.tests.reporting.made_up import made_up_info, made_up_results

from bsufs_paper.reporting import Results, Verdict, list_items, make_section, measure_targets
from bsufs_paper.reporting.sections import CELL_COLUMNS, Item
from bsufs_paper.reporting.views import VIEWS

ITEMS = {item.id: item for item in list_items()}
# Drawn from the numbers of the paper alone, or from no run at all.
NEEDS_NO_RUN = {"table-datasets", "fig-nemenyi-acc", "fig-nemenyi-nmi"}


@pytest.fixture(scope="module")
def full():
    return Results(made_up_results(n_repetitions=6), made_up_info())


@pytest.fixture(scope="module")
def partial(full):
    """Two datasets, some methods, no ablation: what `--only` leaves."""
    frames = {
        name: frame[frame["dataset"].isin(["COIL20", "USPS", "Diamond9"])]
        for name, frame in full.frames.items()
    }
    for name in ("scores", "search", "winners"):
        kept = frames[name]["method"].isin(["ALLfea", "BSUFS", "LapScore"])
        frames[name] = frames[name][kept & (frames[name]["run"] != "ablation")]
    frames["weights"] = frames["weights"][frames["weights"]["method"] == "Case IV"]
    frames["correlations"] = frames["correlations"][frames["correlations"]["method"] == "BSUFS"]
    return Results(frames)


@pytest.mark.parametrize("name", ITEMS)
def test_full(full, name):
    section = make_section(ITEMS[name], full)
    assert section.error == ""
    assert list(section.cells.columns) == list(CELL_COLUMNS)
    assert len(section.cells)
    assert section.notes
    assert section.cells["here"].notna().any()
    assert bool(section.figures) == (ITEMS[name].is_figure or name == "table-pixels")
    assert set(section.cells["verdict"]) <= {verdict.value for verdict in Verdict}
    missing = section.cells["verdict"] == Verdict.NOT_RUN
    assert (section.cells.loc[missing, "reason"] != "").all()
    assert not section.cells.duplicated(["row", "column", "metric"]).any()


@pytest.mark.parametrize("name", ITEMS)
def test_partial(partial, name):
    section = make_section(ITEMS[name], partial)
    assert section.error == ""


@pytest.mark.parametrize("frames", [{}, "empty"], ids=["absent", "empty"])
@pytest.mark.parametrize("name", ITEMS)
def test_nothing_was_run(full, name, frames):
    if frames == "empty":
        frames = {key: frame.iloc[:0] for key, frame in full.frames.items()}
    section = make_section(ITEMS[name], Results(frames))
    assert section.error == ""
    if name not in NEEDS_NO_RUN:
        assert section.cells["here"].isna().all()
        assert section.figures == []


def _cell(section, row, column):
    cells = section.cells
    return cells[(cells["row"] == row) & (cells["column"] == column)].iloc[0]


def test_reasons_come_from_the_tasks(full):
    section = make_section(ITEMS["table-acc"], full)
    assert _cell(section, "GLIOMA", "SOGFS")["reason"] == "timeout: more than 600 s"
    assert _cell(section, "MSTAR", "BSUFS")["reason"].startswith("skipped: MSTAR.mat is absent")


def test_averages_compare_the_same_datasets(full):
    section = make_section(ITEMS["table-acc"], full)
    cells = section.cells
    own = cells[(cells["column"] == "SOGFS") & cells["here"].notna() & (cells["row"] != "Average")]
    average = _cell(section, "Average", "SOGFS")
    assert len(own) == 6
    assert average["paper"] == pytest.approx(own["paper"].mean())
    assert average["here"] == pytest.approx(own["here"].mean())


@pytest.mark.parametrize("name", ["table-acc", "table-nmi", "table-label-free", "table-stopping"])
def test_random_stands_in_every_comparison(full, name):
    section = make_section(ITEMS[name], full)
    assert section.cells.loc[section.cells["column"] == "Random", "here"].notna().any()


def test_label_free_scores_take_no_part_in_label_tuned_tables(full):
    moved = full.frames["scores"].copy()
    moved.loc[moved["run"] == "label-free", ["acc", "nmi"]] = 0.0
    other = Results({**full.frames, "scores": moved}, full.info)
    for name in ("table-acc", "table-ablation-acc", "fig-box", "table-initialization"):
        before, after = make_section(ITEMS[name], full), make_section(ITEMS[name], other)
        pd.testing.assert_frame_equal(before.cells, after.cells)


def test_notes_follow_the_numbers(full):
    scores = full.frames["scores"].copy()
    scores.loc[scores["method"] == "Random", "acc"] = 0.01
    low = make_section(ITEMS["table-acc"], Results({**full.frames, "scores": scores}))
    assert any("BSUFS is above Random in ACC on 7 of 7" in note for note in low.notes)
    scores.loc[scores["method"] == "Random", "acc"] = 0.99
    high = make_section(ITEMS["table-acc"], Results({**full.frames, "scores": scores}))
    assert any("BSUFS is above Random in ACC on 0 of 7" in note for note in high.notes)


def test_zero_shares_and_correlations_are_counted(full):
    section = make_section(ITEMS["fig-sparsity"], full)
    dense = section.cells[section.cells["column"] == "Case I"]
    assert (dense["here"] == 0).all()
    weights = full.frames["weights"]
    own = weights[(weights["dataset"] == "USPS") & (weights["method"] == "Case IV")]
    share = section.cells.query("row == 'USPS' and column == 'Case IV'").set_index("metric")["here"]
    assert share["zero entries, %"] == pytest.approx(100 * (own["value"] == 0).mean())


def test_a_rise_of_the_objective_is_seen(full):
    objective = full.frames["objective"].copy()
    at = (objective["dataset"] == "USPS") & (objective["iteration"] == 50)
    objective.loc[at, "value"] += 1000
    section = make_section(ITEMS["fig-convergence"], Results({"objective": objective}))
    assert "on 3 of 4 datasets" in section.notes[0]


def test_an_error_stays_in_its_section():
    item = Item("fig-x", "X", "c", "", "no such view")
    section = make_section(item, Results({}))
    assert "view of fig-x must be one of" in section.error


def test_every_view_is_shown_and_every_item_has_one():
    assert {item.view for item in list_items()} == set(VIEWS)


def test_targets(full):
    targets = measure_targets(full)
    assert len(targets) == 7
    assert [target.met for target in targets[:4]] == [True, True, True, True]
    assert "BSUFS 160 of 160" in targets[4].measured
    assert targets[4].met


def test_a_target_that_cannot_be_reached_any_more_is_not_met(full):
    scores = full.frames["scores"]
    scores = scores.assign(acc=scores["acc"].where(scores["method"] != "BSUFS", 0.01))
    targets = measure_targets(Results({**full.frames, "scores": scores}))
    assert [targets[1].outcome, targets[5].outcome] == ["not met", "not met"]


def test_without_results_no_target_is_decided():
    assert {target.outcome for target in measure_targets(Results({}))} == {"not decided"}
