"""What a terminal of 80 characters shows."""

import io
import os
import pty
import re
import subprocess
import sys

from bsufs.cli._console import print_table


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
