"""Tables as people have them, in Python."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import bsufs
from bsufs import ClusterAlignment, TableSelector, explain, make_report, select
from bsufs.selectors import BSUFS, MaxVariance
from bsufs.tables import open_table, prepare
from bsufs.tuning import ConsensusSelector, LabelFreeSearch

pd = pytest.importorskip("pandas", reason="needs the extra tables")
pytest.importorskip("pyarrow", reason="needs the extra tables")


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    sort = rng.integers(0, 3, 90)
    size = np.array([1.0, 5.0, 9.0])[sort] + 0.3 * rng.standard_normal(90)
    table = {
        "patient": [f"p{i}" for i in range(90)],
        "size": size,
        "weight": 700.0 * size + rng.standard_normal(90),
        "sort": np.array(["a", "b", "c"])[sort],
        "day": pd.date_range("2024-01-01", periods=90)[rng.permutation(90)],
        "noise": rng.standard_normal(90),
    }
    table["noise"][4] = np.nan
    return pd.DataFrame(table)


def test_columns_of_all_kinds_are_selected_as_the_command_line_does(frame, tmp_path, capsys):
    from bsufs.cli._program import run

    selector = select(frame, 3)
    assert isinstance(selector, TableSelector)
    assert selector.feature_names_in_.tolist() == frame.columns.tolist()
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(SystemExit):
        run(["select", str(tmp_path / "t.csv"), "-k", "3", "-q"])
    assert capsys.readouterr().out.split() == selector.selected_features_.tolist()
    np.testing.assert_array_equal(select(tmp_path / "t.csv", 3).ranking_, selector.ranking_)
    reduced = selector.transform(frame)
    pd.testing.assert_frame_equal(reduced, frame[frame.columns[selector.get_support()]])


def test_scores_ranks_and_support_agree(frame):
    selector = select(frame, 2)
    by_rank = np.argsort(selector.ranking_)
    assert sorted(selector.ranking_) == list(range(1, 7))
    assert (np.diff(selector.scores_[by_rank]) <= 0).all()
    assert frame.columns[by_rank[-1]] == "patient"
    assert selector.selected_features_.tolist() == frame.columns[by_rank[:2]].tolist()
    np.testing.assert_array_equal(selector.support_, selector.ranking_ <= 2)
    assert selector.scale_columns_.startswith("standard: ")
    assert selector.table_.columns[0].kind == "left out"


def test_options_name_columns_of_the_table(frame):
    kept = select(frame, 2, must_keep=["noise", 3], never_keep=["patient", "size"])
    assert set(kept.selected_features_) == {"noise", "sort"}
    grouped = select(frame, 1, groups={"both": ["noise", "sort"]}, must_keep="both")
    assert set(grouped.selected_features_) == {"noise", "sort"}
    cleared = select(frame, 1, adjust_for="sort")
    assert "sort" not in cleared.selected_features_
    assert cleared.selected_features_.tolist() != select(frame, 1).selected_features_.tolist()
    assert "size" not in select(frame, 4, ignore=["size"]).selected_features_
    number = frame.assign(code=[1, 2, 3] * 30)
    as_category = select(number, 3, kinds={"code": "category"}).table_
    assert {column.name: column.kind for column in as_category.columns}["code"] == "category"


def test_any_method_and_an_open_table(frame, tmp_path):
    frame.to_csv(tmp_path / "t.csv", index=False)
    for method in (BSUFS(2), MaxVariance(2)):
        expected = TableSelector(method).fit(frame).selected_features_
        table = open_table(tmp_path / "t.csv", scale="auto")
        assert TableSelector(clone(method)).fit(table).selected_features_.tolist() == list(expected)
    inside = ClusterAlignment(2, must_keep="noise", never_keep=[1], adjust_for="day")
    search = TableSelector(LabelFreeSearch(inside, param_grid={"n_neighbors": [2, 3]})).fit(frame)
    alone = TableSelector(inside).fit(frame)
    assert search.selected_features_.tolist() == alone.selected_features_.tolist()
    consensus = TableSelector(ConsensusSelector(BSUFS(2, must_keep="sort"), n_pairs=2)).fit(frame)
    assert "sort" in consensus.selected_features_
    table = prepare(frame)
    selector = TableSelector(ClusterAlignment(2)).fit(table)
    groups = [table.names[number] for number in table.groups]
    inside = ClusterAlignment(2, groups=groups).fit(table.values)
    assert selector.selected_features_.tolist() == inside.selected_groups_.tolist()


def test_it_is_explained_and_shown(frame):
    selector = select(frame, 2)
    told = explain(selector, frame, n_subsamples=3)
    assert told["name"].tolist() == frame.columns[told.index].tolist()
    assert told["name"].tolist()[:2] == selector.selected_features_.tolist()
    assert told["rank"].tolist() == selector.ranking_[told.index].tolist() == [1, 2, 3, 4, 5]
    assert "group" not in told
    grouped = select(frame, 2, groups={"both": ["noise", "sort"]})
    assert explain(grouped, frame, n_subsamples=0).set_index("name").group["sort=a"] == "both"
    page = make_report(selector, frame, n_subsamples=2)
    assert "2 of 5 columns" in page
    assert "kept 2 of 6 columns" in selector._repr_mimebundle_()["text/html"]
    with pytest.raises(ValueError, match=r"of shape \(90, 6\), got \(10, 6\)"):
        explain(selector, frame[:10])


def test_data_frames_of_polars(frame):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    table = polars.from_pandas(frame)
    selector = select(table, 3)
    assert selector.transform(table).columns == select(frame, 3).get_feature_names_out().tolist()


def test_plain_numbers_stay_as_they_are(frame):
    numbers = frame[["size", "weight"]].assign(number=range(90))
    selector = select(numbers, 2, scale_columns="none")
    assert isinstance(selector, ClusterAlignment)
    without = select(numbers, 1, ignore=["number"])
    assert isinstance(without, TableSelector)
    assert "number" not in without.selected_features_


def test_what_is_wrong_is_said(frame):
    with pytest.raises(ValueError, match="must_keep must name features, got 'patient'"):
        select(frame, 2, must_keep=["patient"])
    with pytest.raises(ValueError, match="ignore is for data frames and files, got ndarray"):
        select(np.eye(4), 2, ignore=["a"])
    with pytest.raises(OSError, match="nowhere"):
        select("nowhere.csv", 2)
    with pytest.raises(NotFittedError):
        TableSelector(ClusterAlignment(2)).transform(frame)
    selector = select(frame, 3)
    with pytest.raises(TypeError, match="X must be a data frame, got ndarray"):
        selector.transform(np.eye(6))
    with pytest.raises(ValueError, match="it has no"):
        selector.transform(frame[["noise"]])
    with pytest.raises(bsufs.tables.TableError, match="missing"):
        select(frame, 2, missing="error")
