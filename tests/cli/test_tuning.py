"""Settings chosen without labels from the command line."""

import json

import numpy as np
import pytest
from scipy import sparse

from bsufs.cli import _selection
from bsufs.tuning import LabelFreeSearch

OTHERS = ("--ignore", "id", "--label", "kind", "--scale", "standard")


@pytest.fixture
def searched(monkeypatch):
    """Return the searches that the program made."""
    made = []

    def remember(self, X, y=None):
        made.append(self)
        return fit(self, X, y)

    fit = LabelFreeSearch.fit
    monkeypatch.setattr(LabelFreeSearch, "fit", remember)
    return made


def test_the_search_of_the_library_decides(invoke, table, tmp_path, searched):
    path = tmp_path / "r.json"
    result = invoke("select", table, *OTHERS, "-k", 2, "--tune", "--json", path, "--seed", 4,
                    "--jobs", 1)  # fmt: skip
    assert result.status == 0
    found = json.loads(path.read_text())
    (search,) = searched
    assert (search.random_state, search.n_jobs) == (4, 1)
    assert search.criterion == LabelFreeSearch().criterion
    tuning = found["tuning"]
    assert tuning["criterion"] == search.criterion
    assert tuning["best_params"] == search.best_params_
    assert found["parameters"].items() >= search.best_params_.items()
    assert [row["rank"] for row in tuning["candidates"]] == list(
        range(1, len(search.criteria_) + 1)
    )
    assert tuning["candidates"][0]["restart_agreement"] == pytest.approx(tuning["best_score"])
    names = [entry["name"] for entry in found["selected"]]
    assert names == list(search.selected_features_)


@pytest.mark.parametrize(
    ("words", "limit"),
    [(("--tune", "--jobs", 2), 1), (("--jobs", 2), 2), (("--tune",), None), ((), None)],
)
def test_each_thread_of_a_search_has_one_of_linear_algebra(
    invoke, table, monkeypatch, words, limit
):
    limits = []
    real = _selection.at_most_threads

    def noted(jobs):
        limits.append(jobs)
        return real(jobs)

    monkeypatch.setattr(_selection, "at_most_threads", noted)
    grid = ("--method", "LaplacianScore")
    assert invoke("select", table, *OTHERS, "-k", 2, *grid, *words).status == 0
    assert limits == [limit]


def test_what_was_tried_is_told_and_the_names_stay_alone(invoke, table):
    words = ("select", table, *OTHERS, "-k", "2,3,auto", "--tune", "--method", "BSUFS")
    words += ("--set", "n_components=2")
    result = invoke(*words)
    assert len(result.out.split()) in (2, 3, 4, 5, 6)
    # Three numbers, p and beta_row; the number of components is set and not tried.
    lines = result.err.splitlines()
    assert lines[0].startswith(
        "tried 18 settings without labels; restart_agreement chose beta_row="
    )
    assert lines[1].split("\t")[:3] == ["beta row", "p", "k"]
    assert len(lines[2:7]) == 5
    assert lines[7].startswith("BSUFS selected")
    assert invoke(*words, "-q").err == ""


def test_a_criterion_implies_a_search(invoke, table, searched):
    words = ("select", table, *OTHERS, "-k", 2, "--method", "laplacianscore")
    result = invoke(*words, "--criterion", "Restart-Agreement")
    assert "restart_agreement chose n_neighbors=" in result.err
    assert searched[0].criterion == "restart_agreement"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--criterion", "accuracy"], "There are reconstruction, permutation_gap"),
        (["--tune", "--criterion", "stabilty"], "Did you mean 'stability'?"),
        (["-k", "2,3"], "-k must be one number without --tune"),
        (["-k", "2,x", "--tune"], "got 'x'"),
        (["-k", "2,9", "--tune"], "-k must be at most 6"),
        (["-k", "2", "--tune", "--method", "MaxVariance"], "has nothing to choose from"),
        (
            ["-k", "2", "--tune", "--method", "ColumnSubset", "--set", "method=greedy"],
            "--set leave",
        ),
    ],
)
def test_what_cannot_be_tuned_is_one_line(invoke, table, words, message):
    result = invoke("select", table, *OTHERS, *words)
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert message in result.err


def test_the_number_alone_and_sparse_data(invoke, tmp_path):
    X = sparse.random(30, 8, density=0.6, format="csr", random_state=0)
    sparse.save_npz(tmp_path / "s.npz", X)
    result = invoke("select", tmp_path / "s.npz", "-k", "2,5", "--criterion", "reconstruction",
                    "--method", "MaxVariance", "-q")  # fmt: skip
    assert len(result.out.split()) in (2, 5)


def test_labels_have_no_say(invoke, table, tmp_path):
    words = ("-k", "2,4", "--tune", "--ignore", "id", "--label", "kind", "-q")
    other = tmp_path / "other.csv"
    header, *rows = table.read_text().splitlines()
    kinds = np.random.default_rng(1).permutation([row.split(",")[-1] for row in rows])
    shuffled = [f"{row.rpartition(',')[0]},{kind}" for row, kind in zip(rows, kinds, strict=True)]
    other.write_text("\n".join([header, *shuffled]) + "\n")
    assert invoke("select", table, *words).out == invoke("select", other, *words).out


def test_the_report_says_how_the_settings_were_chosen(invoke, table):
    page = invoke("select", table, *OTHERS, "-k", "2,3", "--tune", "--report", "-", "--subsamples",
                  0).out  # fmt: skip
    assert "How the settings were chosen" in page
    assert "Restart agreement decided" in page
    assert "bsufs select" in page
    assert "-k 2,3" in page
    assert "--tune" in page


def test_categories_count_as_one_column(invoke, tmp_path):
    rng = np.random.default_rng(0)
    path, found = tmp_path / "t.csv", tmp_path / "r.json"
    names = np.array(["red", "green", "blue", "gray"])
    lines = [f"{names[i % 4]},{names[(i // 4) % 4]},{x:.3f},{y:.3f}" for i, (x, y) in
             enumerate(rng.standard_normal((48, 2)))]  # fmt: skip
    path.write_text("\n".join(["a,b,x,y", *lines]) + "\n")
    words = ("--set", "n_components=2", "--tune", "--json", found)
    assert invoke("select", path, "-k", "2,3", *words).status == 0
    candidates = json.loads(found.read_text())["tuning"]["candidates"]
    assert {row["n_features"] for row in candidates} == {2, 3}
