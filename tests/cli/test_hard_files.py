"""The program as a person runs it, on files as people have them."""

import contextlib
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

PROGRAM = [sys.executable, "-m", "bsufs"]


def _run(*words, **options):
    return subprocess.run(
        [*PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=120, check=False,
        **options,
    )  # fmt: skip


def _is_one_line(done):
    return (
        done.returncode == 2
        and done.stdout == ""
        and done.stderr.startswith("bsufs: error: ")
        and done.stderr.count("\n") == 1
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"a,b,c\n", "a header of 3 names, but no row"),
        (b"a\n1\n2\n", "the table has one column"),
        (b"a,b,a\n1,2,3\n4,5,6\n", "'a' occurs more than once"),
        (b"a,b,c\n1,red,3\n4,2020-01-01,6\n", "column 'b' holds text, such as 'red' in row 1"),
        (b'a,b\n"1,234",2\n"5,000",3\n', "thousands are not read with --strict, write 1234"),
        (b"a,b,c\n1,nan,2\n2,inf,3\n4,5,6\n", "1 value is missing and 1 value is infinite"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8, "this is no text"),
    ],
    ids=["empty", "header", "one", "duplicate", "mixed", "thousands", "nan", "binary"],
)
def test_what_cannot_be_read_is_one_line(tmp_path, content, message):
    (tmp_path / "t.csv").write_bytes(content)
    done = _run("select", "t.csv", "-o", "o.csv", "--strict", cwd=tmp_path)
    assert _is_one_line(done), done
    assert done.stderr.startswith("bsufs: error: t.csv: ")
    assert message in done.stderr
    assert os.listdir(tmp_path) == ["t.csv"]


@pytest.mark.parametrize(
    ("content", "words", "names"),
    [
        (b"\xef\xbb\xbfa,b\n1,2\n9,1\n", (), ["a"]),
        ("größe,b\n1,2\n9,1\n".encode("latin-1"), (), ["größe"]),
        (b"a,b,c\n1,nan,2\n2,inf,3\n4,5,90\n", ("--missing", "median"), ["c"]),
    ],
    ids=["mark", "latin-1", "nan"],
)
def test_what_can_be_read_is(tmp_path, content, words, names):
    (tmp_path / "t.csv").write_bytes(content)
    done = _run("select", "t.csv", "-k", 1, "--names", "n.txt", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert (tmp_path / "n.txt").read_text(encoding="utf-8").splitlines() == names
    # Words for people, but nothing that moves: this is no terminal.
    assert "\x1b" not in done.stderr
    assert "\r" not in done.stderr


def test_a_file_that_is_not_there_or_has_gone(tmp_path):
    (tmp_path / "link.csv").symlink_to("gone.csv")
    done = _run("select", "link.csv", cwd=tmp_path)
    assert _is_one_line(done)
    assert done.stderr == "bsufs: error: link.csv: No such file or directory\n"


def test_a_message_is_short_and_steers_no_terminal(tmp_path):
    (tmp_path / "t.csv").write_text(f"{'a' * 3000}\x1b[2J,b\n1,x\n2,3\n")
    done = _run("select", "t.csv", "--ignore", "c", cwd=tmp_path)
    assert _is_one_line(done)
    assert "--ignore 'c' is no column of the table" in done.stderr
    assert len(done.stderr) < 600
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("option", ["-o", "--json"])
def test_a_table_is_never_replaced_by_what_is_made_of_it(tmp_path, option):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n9,1\n")
    (tmp_path / "link.csv").symlink_to("t.csv")
    done = _run("select", "t.csv", "-k", 1, option, "link.csv", "--force", cwd=tmp_path)
    assert _is_one_line(done)
    assert "must name another file than the table, got link.csv for both" in done.stderr
    assert (tmp_path / "t.csv").read_text() == "a,b\n1,2\n9,1\n"


@pytest.mark.skipif(os.name != "posix", reason="needs a shell that closes streams")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_may_be_closed(tmp_path, closed):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n9,1\n")
    words = f"{sys.executable} -m bsufs select t.csv -k 1 -o o.csv {closed}"
    done = subprocess.run(words, shell=True, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert "Traceback" not in done.stderr
    assert (tmp_path / "o.csv").read_text() == "a\n1\n9\n"
    words = f"{sys.executable} -m bsufs select - -k 1 {closed}"
    done = subprocess.run(words, shell=True, capture_output=True, text=True, input="")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_folder_that_goes_while_the_table_is_read(tmp_path):
    os.mkfifo(tmp_path / "t.csv")
    (tmp_path / "out").mkdir()
    process = subprocess.Popen(
        [*PROGRAM, "select", "t.csv", "-k", "1", "-o", "out/o.csv"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    # Opens when the program does, which has then checked where it is to write.
    with (tmp_path / "t.csv").open("wb") as stream:
        shutil.rmtree(tmp_path / "out")
        stream.write(b"a,b\n1,2\n9,1\n")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert err.splitlines()[-1].startswith("bsufs: error: out/o.csv: there is no folder")
    assert "Traceback" not in err


def test_twenty_thousand_columns(tmp_path):
    X = np.random.default_rng(0).normal(size=(12, 20_000)).round(2)
    X[:, 7] *= 30
    names = [f"gene {i}" for i in range(20_000)]
    names[7] = "<script>alert('gene')</script>"
    np.savetxt(tmp_path / "t.csv", X, "%g", ",", header=",".join(names), comments="")
    done = _run("select", "t.csv", "-k", 3, "--method", "BSUFS", "-o", "o.csv", "--json", "r.json",
                "--report", "r.html", "--subsamples", 2, "--compare", "MaxVariance",
                "--scale", "none", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "r.json").read_text())["selected"][0]["name"] == names[7]
    assert len((tmp_path / "o.csv").read_text().splitlines()[0].split(",")) == 3
    assert (tmp_path / "r.html").stat().st_size < 5_000_000
    assert names[7] not in (tmp_path / "r.html").read_text(encoding="utf-8")


OLD = {"o.csv": "-o", "n.txt": "--names", "r.json": "--json", "r.html": "--report"}


def _old_files(folder):
    for name in OLD:
        (folder / name).write_text(f"old {name}")


def _assert_old_files_alone(folder):
    assert sorted(os.listdir(folder)) == sorted(OLD)
    assert all((folder / name).read_text() == f"old {name}" for name in OLD)


@contextlib.contextmanager
def _small_disk(folder):
    """Mount a file system of 20 kB, and fill it up."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=20k", "tmpfs", folder]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small file system is not permitted here")
    try:
        _old_files(folder)
        with contextlib.suppress(OSError), (folder / "filling").open("wb", buffering=0) as stream:
            while True:
                stream.write(bytes(4096))
        yield
        (folder / "filling").unlink()
        _assert_old_files_alone(folder)
    finally:
        subprocess.run(["umount", folder], check=True)


# Names and JSON are written by the function that writes the report.
@pytest.mark.parametrize("name", ["o.csv", "r.html"])
def test_a_full_disk_leaves_the_old_file(tmp_path, table, name):
    with _small_disk(tmp_path / "disk"):
        done = _run("select", table, "-q", "-k", 2, "--ignore", "id,kind", "--subsamples", 0,
                    "--force", OLD[name], tmp_path / "disk" / name)  # fmt: skip
    assert _is_one_line(done)
    assert done.stderr == f"bsufs: error: {tmp_path}/disk/{name}: No space left on device\n"


def test_a_write_over_the_limit_leaves_the_old_file(tmp_path, table):
    resource = pytest.importorskip("resource", reason="files have no limits here")
    folder = tmp_path / "limited"
    folder.mkdir()
    _old_files(folder)

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    # Python ignores the signal, so that the write fails: a disk quota that needs no privilege.
    done = _run("select", table, "-q", "-k", 2, "--ignore", "id,kind", "--subsamples", 0, "--force",
                "--report", folder / "r.html", preexec_fn=limit)  # fmt: skip
    assert _is_one_line(done)
    assert done.stderr == f"bsufs: error: {folder}/r.html: File too large\n"
    _assert_old_files_alone(folder)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("bsufs comp", {"compare"}),
        ("bsufs select --criterion re", {"reconstruction", "restart_agreement", "redundancy"}),
    ],
)
def test_a_shell_completes_words(words, found):
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = _run(env=os.environ | asked | {"_BSUFS_COMPLETE": "complete_bash"})
    assert set(done.stdout.split()) == found


def test_help_has_examples_and_no_colors_in_a_pipe():
    done = _run("select", "--help", env=os.environ | {"COLUMNS": "80"})
    assert "Examples" in done.stdout
    assert "--tune" in done.stdout
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
