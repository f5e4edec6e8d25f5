"""The command that a request makes."""

import shlex

import pytest

from bsufs.app._request import Reading, Settings, output_names, shell_words


def test_the_shortest_command():
    words, files = shell_words("t.csv", Settings(), Reading())
    assert shlex.join(words) == (
        "select t.csv -k auto --output t-selected.csv --ranking t-ranking.csv --names t-names.txt "
        "--json t-results.json --report t-report.html"
    )
    assert files == {}


def test_everything_has_its_option():
    roles = {"a": "number", "b": "category", "c": "date", "d": "ignore", "e": "ignore",
             "-f": "label", "g": "must-keep", "h": "never-keep", "i": "adjust-for",
             "j": "batch-key"}  # fmt: skip
    settings = Settings(
        k="0.1", purpose="neighbors", roles=roles, group_by="-", scale="none", missing="drop-rows",
        center_rows=True, seed=3, report=False,
    )  # fmt: skip
    reading = Reading(transpose=True, header=False, delimiter=";", array="--force")
    words, _ = shell_words("/home/me/t.xlsx", settings, reading)
    assert shlex.join(words) == (
        "select /home/me/t.xlsx -k 0.1 --purpose neighbors --numbers a --categories b --dates c "
        "--ignore d,e --label=-f --must-keep g --never-keep h --adjust-for i --batch-key j "
        "--group-by=- --scale none --missing drop-rows --center-rows --seed 3 --transpose "
        "--no-header --delimiter ';' --array=--force --output t-selected.csv "
        "--ranking t-ranking.csv --names t-names.txt --json t-results.json"
    )
    assert "--groups groups.csv" in shlex.join(
        shell_words("t.csv", Settings(group_file=True, group_by="_"), Reading())[0]
    )


@pytest.mark.parametrize("name", ["a,b", "@/etc/passwd", "x" * 1001])
def test_names_that_a_list_cannot_hold_go_to_a_file(name):
    settings = Settings(roles={name: "ignore", "plain": "ignore"})
    words, files = shell_words("t.csv", settings, Reading())
    assert words[words.index("--ignore") + 1] == "@ignore.txt"
    assert files == {"ignore.txt": f"{name}\nplain\n"}


@pytest.mark.parametrize(
    ("table", "output"),
    [("t.parquet", "t-selected.parquet"), ("t.csv.gz", "t-selected.csv"),
     ("t.tsv", "t-selected.tsv"), ("t.mat", "t-selected.csv"),
     ("/a/b c.d.h5ad", "b_c_d-selected.h5ad")],
)  # fmt: skip
def test_the_output_is_of_the_kind_of_the_table_where_that_can_be(table, output):
    assert output_names(table, False)["output"] == output
