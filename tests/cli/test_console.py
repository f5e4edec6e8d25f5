"""What a terminal of 80 characters shows."""

import io
import os
import pty
import re
import subprocess
import sys

from bsufs.cli._console import Console, print_table


class _Terminal(io.StringIO):
    def isatty(self):
        return True


def test_headings_break_between_words_and_cells_stay_whole(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    screen = _Terminal()
    rows = [["LaplacianScore", "1.5%"], ["[red]\x1b[2J", "20%"]]
    print_table("title", ["method", "share of the variance"], rows, screen)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue())
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    assert lines == [
        "title",
        "share of",
        "the",
        "method          variance",
        lines[4],
        "LaplacianScore      1.5%",
        "[red]\\x1b[2J         20%",
    ]
    assert set(lines[4]) == {"\N{BOX DRAWINGS LIGHT HORIZONTAL}"}


def test_a_table_that_is_too_wide_is_set_tighter(monkeypatch):
    monkeypatch.setenv("COLUMNS", "38")
    screen = _Terminal()
    columns = ["method", "explained", "redundancy", "overlap"]
    print_table("title", columns, [["BSUFS", "0.1", "0.2", "0.3"]], screen)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue())
    assert "method explained redundancy overlap" in plain


def test_work_within_work_is_shown_with_how_far_it_is(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    # As on a terminal that can be written over, to see every line.
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    console, lines = Console(quiet=False), []
    with console.busy("reading [t.csv]"):
        console.progress("1,000 rows")
        lines.append(console._status.status.plain)
        with console.busy("looking \x1b[2J"):
            lines.append(console._status.status.plain)
        lines.append(console._status.status.plain)
        console.progress("the end")
    # Nothing is under way any more.
    console.progress("nothing")
    shown = capsys.readouterr().err
    assert lines == ["reading [t.csv]: 1,000 rows", "looking \\x1b[2J", "reading [t.csv]"]
    assert "reading [t.csv]: the end" in shown
    assert "nothing" not in shown


def test_no_progress_where_nobody_looks(monkeypatch, capsys):
    with Console(quiet=False).busy("reading"):
        pass
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with Console(quiet=True).busy("reading"):
        pass
    assert capsys.readouterr().err == ""


def test_whoever_runs_the_command_is_told_as_well(monkeypatch, capsys):
    told = []
    monkeypatch.setattr(Console, "listeners", [lambda *what: told.append(what)])
    console = Console(quiet=True)
    with console.busy("reading"):
        console.progress("1,000 rows")
        with console.busy("looking"):
            pass
    assert told == [
        ("reading", ""),
        ("reading", "1,000 rows"),
        ("looking", ""),
        ("reading", ""),
        ("", ""),
    ]
    assert capsys.readouterr().err == ""


def test_every_step_is_shown_on_a_terminal(table, tmp_path):
    words = ("--ignore", "id,kind", "-k", "2")
    shown = _on_a_terminal("select", table, *words, "-o", tmp_path / "small.csv")
    shown += _on_a_terminal("compare", table, *words, "--methods", "BSUFS,MaxVariance")
    steps = ["starting", "reading", "selecting from 6 features", "writing", "starting", "reading",
             "computing the scatter", "BSUFS (1 of 2)", "MaxVariance (2 of 2)"]  # fmt: skip
    places = [0]
    for step in steps:
        places.append(shown.find(step, places[-1]))
    assert -1 not in places
    quiet = _on_a_terminal("select", table, *words, "-o", tmp_path / "again.csv", "--quiet")
    assert quiet == ""


def _on_a_terminal(*words):
    """Run the program in a terminal, and return what it shows."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"COLUMNS": "80", "TERM": "xterm"}
    with subprocess.Popen(
        [sys.executable, "-m", "bsufs", *map(str, words)],
        stdin=theirs, stdout=theirs, stderr=theirs, env=environment,
    ):  # fmt: skip
        os.close(theirs)
        shown = b""
        # The end of a terminal is an error here.
        with open(ours, "rb", buffering=0) as stream:
            try:
                while part := stream.read(65536):
                    shown += part
            except OSError:
                pass
    return shown.decode()


def test_a_selection_as_a_person_sees_it(table):
    shown = _on_a_terminal("select", table, "-k", "2,3", "--tune", "--scale", "standard", "--label",
                           "kind", "--ignore", "id", "--compare", "ColumnSubset")  # fmt: skip
    # Something moves while work goes on, and has gone at the end.
    assert "selecting from 6 features" in shown
    assert "\x1b[?25h" in shown
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown).replace("\r", "\n").split("\n")
    tables = [line for line in lines if line.startswith(" ")]
    assert max(len(line.rstrip()) for line in tables) <= 80
    text = "\n".join(lines)
    assert "The 5 best of " in text
    assert "Other methods" in text
    assert re.search(r"RandomSelector +[23] ", text)
