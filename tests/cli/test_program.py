import contextlib
import os
import re
import runpy
import signal
import subprocess
import sys
import time
import warnings

import pytest

import bsufs
from bsufs.cli import _program as program
from bsufs.cli import _selection, main
from bsufs.cli._console import Console
from bsufs.tables import open_table

PROGRAM = [sys.executable, "-m", "bsufs"]


def _start(*words, **options):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    return subprocess.Popen([*PROGRAM, *map(str, words)], **pipes)


def test_help_and_version(invoke):
    result = invoke("--help")
    assert result.status == 0
    assert all(word in result.out for word in ("select", "compare", "Examples"))
    shown = invoke("select", "-h").out
    assert "--must-keep" in shown
    assert "Usage: bsufs select [OPTIONS] TABLE" in shown
    assert "Usage: bsufs app [OPTIONS] [TABLE]" in invoke("app", "-h").out
    noise = ("<bool>", "<str>", "{TABLE}", "--no-tune", "[x>=0]")
    assert not any(one in shown + result.out for one in noise)
    assert invoke("--version").out == f"bsufs {bsufs.__version__}\n"
    assert invoke().out == result.out


def test_help_is_in_groups(invoke):
    shown = invoke("select", "--help").out
    groups = re.findall(r"^(?:\x1b\[1m)?(\w[\w ]*)(?:\x1b\[0m)?:$", shown, re.MULTILINE)
    assert groups == [
        "Arguments",
        "Options",
        "Which columns may be selected",
        "Methods",
        "Further files",
        "How it runs",
        "What must not decide",
        "How the table is read",
        "Examples",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["select"], "Missing argument 'TABLE'. See bsufs select --help."),
        (["t.csv"], "No such command 't.csv'. See bsufs --help."),
        (["select", "t.csv", "--scale", "std"], "Invalid value for '--scale': 'std' is not one of"),
    ],
)
def test_wrong_words_say_where_to_read_on(invoke, words, message):
    result = invoke(*words)
    assert result.status == 2
    assert result.err.startswith(f"bsufs: error: {message}")


def test_a_traceback_only_when_asked_for(invoke):
    assert invoke("select", "none.csv").err == "bsufs: error: none.csv: No such file or directory\n"
    assert "Traceback" in invoke("select", "none.csv", "--debug").err


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (KeyboardInterrupt(), 130, "bsufs: interrupted\n"),
        (MemoryError(), 2, "bsufs: error: out of memory\n"),
        (ValueError("two\nlines"), 2, "bsufs: error: two lines\n"),
        (PermissionError(13, "Permission denied", "t.csv"), 2, "bsufs: error: t.csv: Permission"),
        (RuntimeError("a bug"), 1, "RuntimeError: a bug"),
    ],
)
def test_how_a_run_may_end(invoke, monkeypatch, error, status, words):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("bsufs.cli._input.open_table", fail)
    result = invoke("select", "t.csv")
    assert result.status == status
    assert words in result.err


def test_ctrl_c_while_a_compiled_module_is_loaded(invoke, monkeypatch):
    def fail(*_, **__):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as interruption:
            raise ImportError("initialization failed") from interruption

    monkeypatch.setattr("bsufs.cli._input.open_table", fail)
    result = invoke("select", "t.csv")
    assert (result.status, result.err) == (130, "bsufs: interrupted\n")


@pytest.mark.parametrize("hides", [True, False])
def test_a_signal_to_end_while_a_compiled_module_is_loaded(invoke, monkeypatch, table, hides):
    opened = open_table

    def fail(*words, **options):
        with contextlib.suppress(SystemExit):
            signal.raise_signal(signal.SIGTERM)
        if hides:
            raise ImportError("initialization failed")
        return opened(*words, **options)

    monkeypatch.setattr("bsufs.cli._input.open_table", fail)
    target = table.with_name("o.csv")
    result = invoke("select", table, "-k", 1, "-q", "-o", target)
    assert (result.status, result.err) == (143, "")
    assert not target.exists()
    assert Console.listeners == []


def test_ctrl_c_before_the_program_has_begun(monkeypatch, capsys):
    class Interrupted:
        def find_spec(self, name, path=None, target=None):
            if name == "bsufs.cli._program":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "bsufs.cli._program")
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == ""


def test_warnings_are_one_line(invoke, monkeypatch, table):
    def warn(*_):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("mind\nthe gap", UserWarning, stacklevel=1)

    monkeypatch.setattr(_selection, "show", warn)
    result = invoke("select", table, "-k", 1, "--ignore", "id,kind", "-q")
    assert result.err == "bsufs: warning: mind the gap\n"


def test_a_warning_is_told_once(invoke, monkeypatch, table):
    def warn(*_):
        for _ in range(3):
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                warnings.warn("overflow", RuntimeWarning, stacklevel=1)

    monkeypatch.setattr(_selection, "show", warn)
    assert invoke("select", table, "-k", 2, "-q").err == "bsufs: warning: overflow\n"


def test_the_package_is_a_program(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["bsufs", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("bsufs", run_name="__main__")
    assert ended.value.code == 0
    assert bsufs.__version__ in capsys.readouterr().out


def test_without_typer_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "bsufs.cli._program")
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert 'needs typer: pip install "bsufs[cli]"' in capsys.readouterr().err


def test_a_terminal_sees_that_work_goes_on(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with Console(quiet=False).busy("reading [x]"):
        pass
    assert "reading [x]" in capsys.readouterr().err


def test_a_file_in_the_package_is_a_command():
    names = set(program.build_command().commands)
    assert {"select", "compare"} <= names


def test_commands_import_nothing_heavy():
    # The package itself is left out: what it imports is its own affair.
    code = (
        "import sys, types, pathlib; package = types.ModuleType('bsufs');"
        f"package.__path__ = [{os.path.dirname(bsufs.__file__)!r}]; sys.modules['bsufs'] = package;"
        "from bsufs.cli._program import build_command; build_command();"
        "print({'numpy', 'scipy', 'pandas', 'pyarrow', 'sklearn', 'matplotlib'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_pipe_in_and_a_pipe_out(table):
    done = subprocess.run(
        [*PROGRAM, "select", "-", "-k", "2", "--ignore", "id,kind", "--scale", "none"],
        input=table.read_text(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "b\ne\n"
    assert done.stderr.startswith("ClusterAlignment selected 2 of 6 features")


def test_nobody_reads_the_output(table):
    reading, writing = os.pipe()
    os.close(reading)
    process = _start("select", table, "-k", 2, "--ignore", "id,kind", "-q", stdout=writing)
    os.close(writing)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (1, "")


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_while_writing_nothing_is_left(tmp_path, table, sent, status):
    target = tmp_path / "out" / "o.csv"
    target.parent.mkdir()
    target.write_text("old")
    reached = tmp_path / "reached"
    # Writing is held up at the moment the temporary file is complete.
    code = (
        "import os, sys, time; from pathlib import Path; from bsufs.cli._program import run;"
        "os.fsync = lambda _: (Path(sys.argv[1]).touch(), time.sleep(60)); run(sys.argv[2:])"
    )
    words = ["select", table, "-k", 2, "--ignore", "id,kind", "-o", target, "--force"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, reached, *map(str, words)], stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while not reached.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(os.listdir(target.parent)) == 2
    time.sleep(0.2)
    process.send_signal(sent)
    _, err = process.communicate(timeout=60)
    assert process.returncode == status
    assert "Traceback" not in err
    assert os.listdir(target.parent) == ["o.csv"]
    assert target.read_text() == "old"
