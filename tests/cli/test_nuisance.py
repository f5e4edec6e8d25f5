import json

import numpy as np
import pandas as pd
import pytest

from bsufs.selectors import ClusterAlignment

ALL = ("--label", "cluster", "--adjust-for", "batch,depth")
KNOWN = ("--label", "cluster", "--adjust-for", "depth", "--batch-key", "batch")


@pytest.fixture
def batched(tmp_path):
    """Write a table in which a batch hides clusters, and return its path."""
    rng = np.random.default_rng(0)
    batch, cluster = rng.integers(0, 3, 150), rng.integers(0, 4, 150)
    X = rng.standard_normal((150, 30))
    X[:, :12] += 6.0 * np.eye(3)[batch] @ rng.standard_normal((3, 12))
    X[:, 12:20] += 2.0 * np.eye(4)[cluster] @ rng.standard_normal((4, 8))
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(30)])
    frame.insert(3, "batch", np.array(["x", "y", "z"])[batch])
    frame["depth"], frame["cluster"] = rng.standard_normal(150), cluster
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    return path


def selected(done):
    assert done.status in (0, None), done.err
    return done.out.split()


@pytest.mark.parametrize("more", [(), ("--center-rows", "--never-keep", "c0,c29")])
def test_held_and_batched_tables_are_adjusted_alike(invoke, batched, more):
    words = ("select", batched, "-k", "5", "--adjust-for", "batch", "--adjust-for", "depth")
    words += ("--ignore", "cluster", *more)
    at_once = selected(invoke(*words))
    frame = pd.read_csv(batched).drop(columns="cluster")
    centered = {"center_rows": True, "never_keep": ["c0", "c29"]} if more else {}
    expected = ClusterAlignment(5, adjust_for=["batch", "depth"], **centered).fit(frame)
    assert at_once == list(expected.selected_features_)
    assert selected(invoke(*words, "--memory", "30KB")) == at_once
    assert more or all(12 <= int(name[1:]) < 20 for name in at_once)


@pytest.mark.parametrize("extension", ["csv", "parquet"])
def test_a_batch_key_means_groups_also_where_it_holds_numbers(invoke, batched, tmp_path, extension):
    frame = pd.read_csv(batched)
    # In no order in which a line could follow the means of the batches.
    frame["batch"] = frame["batch"].map({"x": 1, "y": 2, "z": 3})
    path = tmp_path / f"numbers.{extension}"
    (frame.to_csv if extension == "csv" else frame.to_parquet)(path, index=False)
    words = ("select", path, "-k", "5", "--ignore", "cluster")
    as_groups = selected(invoke(*words, "--batch-key", "batch", "--adjust-for", "depth"))
    texts = selected(invoke("select", batched, *words[2:], "--adjust-for", "batch,depth"))
    assert as_groups == texts
    assert all(12 <= int(name[1:]) < 20 for name in as_groups)
    as_number = selected(invoke(*words, "--adjust-for", "batch,depth"))
    assert any(int(name[1:]) < 12 for name in as_number)
    small = ("--memory", "30KB")
    both = ("--batch-key", "batch", "--adjust-for", "depth,batch")
    assert selected(invoke(*words, *both, *small)) == as_groups
    assert selected(invoke(*words, "--adjust-for", "batch,depth", *small)) == as_number


def test_text_of_digits_is_groups_where_a_file_knows_what_is_text(invoke, batched, tmp_path):
    frame = pd.read_csv(batched)
    digits = frame["batch"].map({"x": "1", "y": "2", "z": "3"})
    words = ("-k", "5", "--ignore", "cluster", "--adjust-for", "batch,depth")
    expected = selected(invoke("select", batched, *words))
    for number, column in enumerate((digits, digits.astype("category"))):
        path = tmp_path / f"digits{number}.parquet"
        frame.assign(batch=column).to_parquet(path, index=False)
        assert selected(invoke("select", path, *words)) == expected


def test_what_is_adjusted_for_is_carried_to_the_output(invoke, batched, tmp_path):
    target, page = tmp_path / "small.csv", tmp_path / "page.html"
    done = invoke(
        "select", batched, "-k", "3", *KNOWN, "-o", target, "--json", "-", "--report", page,
        "--subsamples", "2",
    )  # fmt: skip
    document = json.loads(done.out)
    assert (document["adjust_for"], document["batch_key"]) == (["depth"], ["batch"])
    assert document["clustering"]["selected"]["accuracy"] > 0.9
    header = target.read_text().splitlines()[0].split(",")
    assert {"batch", "depth", "cluster"} < set(header)
    assert len(header) == 6
    assert "Adjusted for" in page.read_text()
    assert "their means were taken off first (batch)" in page.read_text()
    assert "rise and fall together" not in page.read_text() + done.err


def test_all_methods_and_measures_see_the_adjusted_data(invoke, batched):
    words = ("compare", batched, "-k", "4", "--methods", "MaxVariance,BSUFS,RandomSelector")
    raw, adjusted = (
        json.loads(invoke(*words, "--json", "-", *options).out)["methods"]
        for options in (("--label", "cluster", "--ignore", "batch,depth"), ALL)
    )
    for before, after in zip(raw[:2], adjusted[:2], strict=True):
        assert before["accuracy"] < 0.6 < 0.9 < after["accuracy"]


def test_a_level_that_rows_share_is_noticed(invoke, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 25)) + 3.0 * rng.standard_normal((60, 1))
    path, page = tmp_path / "level.csv", tmp_path / "page.html"
    pd.DataFrame(X, columns=[f"c{i}" for i in range(25)]).to_csv(path, index=False)
    words = ("select", path, "-k", "3", "--report", page, "--subsamples", "0")
    assert "try --center-rows" in invoke(*words).err
    assert "try --center-rows, or --adjust-for" in page.read_text()
    assert "rise and fall together" not in invoke(*words, "--center-rows", "--force").err
    assert "rise and fall together" not in page.read_text()
    noise = tmp_path / "noise.csv"
    pd.DataFrame(rng.standard_normal((60, 25))).add_prefix("c").to_csv(noise, index=False)
    assert "rise and fall together" not in invoke("select", noise, "-k", "3").err


@pytest.mark.parametrize(
    ("change", "words", "message"),
    [
        ({"batch": None}, (), "--adjust-for 'batch' must have a value in every row, but 1 are"),
        ({"batch": " NA "}, (), "the first in row 8. Fill them in, or delete these rows"),
        ({"depth": ""}, (), "--adjust-for 'depth' must have a value"),
        ({}, ("--adjust-for", "bach"), "--adjust-for 'bach' is no column of the table. Did you"),
        ({}, ("--batch-key", "bach"), "--batch-key 'bach' is no column of the table. Did you"),
        ({"c3": None}, ("--batch-key", "c3"), "--batch-key 'c3' must have a value in every row"),
        ({}, ("--batch-key", "depth"), "every batch must have at least two rows, but '-0."),
        ({}, ("--batch-key", "depth"), "of --batch-key 'depth' has one, of which nothing is left"),
        ({}, ("--batch-key", "depth"), "Leave that row out, or join it to another batch."),
        ({}, ("--set", "adjust_for=1"), "use --adjust-for"),
        ({}, ("--set", "center_rows=1"), "use --center-rows"),
    ],
)
def test_bad_input_is_told_in_one_line(invoke, batched, change, words, message):
    frame = pd.read_csv(batched).astype(object)
    for name, value in change.items():
        frame.loc[7, name] = value
    frame.to_csv(batched, index=False)
    done = invoke("select", batched, "-k", "5", *ALL, *words)
    assert done.status not in (0, None)
    assert message in done.err
    assert len(done.err.splitlines()) == 1


def test_a_constant_column_is_nothing_to_adjust_for(invoke, batched):
    pd.read_csv(batched).assign(batch="same").to_csv(batched, index=False)
    done = invoke("select", batched, "-k", "5", *ALL)
    assert "--adjust-for must hold columns that vary, but column 'batch'" in done.err
    done = invoke("select", batched, "-k", "5", "--batch-key", "batch")
    assert "--batch-key 'batch' must tell two batches apart, got one. Leave it out" in done.err


def test_where_nothing_is_left_the_options_that_were_given_are_named(invoke, batched):
    frame = pd.read_csv(batched)[["batch"]]
    frame["a"], frame["b"] = frame["batch"] == "x", frame["batch"] == "y"
    frame.astype({"a": int, "b": int}).to_csv(batched, index=False)
    done = invoke("select", batched, "-k", "1", "--batch-key", "batch")
    assert "every column is constant after --batch-key. There is nothing to select" in done.err
