"""The command that a request makes, and the lines of Python that do the same."""

import shlex

import pytest

from bsufs.app._request import Reading, Settings, output_names, python_lines, shell_words
from bsufs.cli._program import run


def test_the_shortest_command():
    words, files = shell_words("t.csv", Settings(), Reading())
    assert shlex.join(words) == (
        "select t.csv -k auto --output t-selected.csv --ranking t-ranking.csv --names t-names.txt "
        "--json t-results.json --report t-report.html"
    )
    assert files == {}


def test_everything_has_its_option():
    roles = {"a": "number", "b": "category", "c": "date", "d": "ignore", "e": "ignore",
             "-f": "label", "g": "must-keep", "h": "never-keep", "i": "adjust-for"}  # fmt: skip
    settings = Settings(
        k="0.1", purpose="neighbors", roles=roles, group_by="-", scale="none", missing="drop-rows",
        center_rows=True, seed=3, report=False,
    )  # fmt: skip
    reading = Reading(transpose=True, header=False, delimiter=";", array="--force")
    words, _ = shell_words("/home/me/t.xlsx", settings, reading)
    assert shlex.join(words) == (
        "select /home/me/t.xlsx -k 0.1 --purpose neighbors --numbers a --categories b --dates c "
        "--ignore d,e --label=-f --must-keep g --never-keep h --adjust-for i --group-by=- "
        "--scale none --missing drop-rows --center-rows --seed 3 --transpose --no-header "
        "--delimiter ';' --array=--force --output t-selected.csv --ranking t-ranking.csv "
        "--names t-names.txt --json t-results.json"
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


@pytest.mark.parametrize(
    ("purpose", "settings"),
    [
        ("clusters", {}),
        ("clusters", {"group_by": "_", "k": "2"}),
        ("clusters", {"group_file": True, "k": "2"}),
        ("clusters", {"roles": {"kind": "label"}, "center_rows": True}),
        ("clusters", {"seed": 4, "scale": "none"}),
        ("reconstruction", {"roles": {"gene_2": "must-keep", "gene_1": "never-keep"}}),
        ("reconstruction", {"roles": {"id": "category"}, "missing": "drop-rows", "k": "3"}),
        ("neighbors", {"roles": {"kind": "ignore"}}),
        ("neighbors", {"roles": {"kind": "ignore", "gene_1": "ignore"}, "k": "auto"}),
    ],
)
def test_the_lines_of_python_write_what_the_command_writes(
    purpose, settings, table, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "groups.csv").write_text("column,group\n\ngene_1, g\ngene_2,g\n", encoding="utf-8")
    asked = Settings(**{"k": "4", "purpose": purpose, "report": False, **settings})
    words, files = shell_words(str(table), asked, Reading())
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        run(words)
    assert ended.value.code == 0, capsys.readouterr().err
    written = tmp_path / output_names(str(table), False)["output"]
    by_command = written.read_bytes()
    written.unlink()
    categories = "kind" not in asked.roles
    lines = python_lines(str(table), asked, Reading(), categories)
    exec(compile(lines, "lines", "exec"), {})
    assert written.read_bytes() == by_command


def test_where_the_command_alone_can_do_it_there_are_no_lines():
    for settings, categories in [
        (Settings(purpose="neighbors", group_by="_"), False),
        (Settings(purpose="neighbors"), True),
        (Settings(purpose="reconstruction", center_rows=True), False),
        (Settings(roles={"a": "adjust-for"}), False),
    ]:
        assert python_lines("t.csv", settings, Reading(), categories) is None


def test_lines_say_how_the_file_is_read():
    lines = python_lines("t.csv", Settings(), Reading(header=False, delimiter="\\t"), False)
    assert "open_table('t.csv', scale='auto', delimiter='\\t', header=False)" in lines
