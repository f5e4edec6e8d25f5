"""``bsufs app`` as a program."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from tests.app.server import NEEDED, Client

from bsufs.cli._program import run

pytest.importorskip(**NEEDED)


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="a process cannot be sent these signals")
@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("busy", ["reading", "uploading"])
def test_it_ends_with_all_that_it_has_begun(how, busy, table, tmp_path):
    if signal.getsignal(how := getattr(signal, how)) is signal.SIG_IGN:
        pytest.skip("the tests were started such that this signal is ignored")
    environment = os.environ | {"TMPDIR": str(tmp_path), "BROWSER": "true"}
    process = subprocess.Popen(
        [sys.executable, "-m", "bsufs", "app", *[str(table)][: busy == "reading"]],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    try:
        address = re.search(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43}", process.stdout.readline())
        page = urlopen(address[0], timeout=10).read()
        assert b"Keep the columns that matter" in page
        client = Client(address[0])
        if busy == "uploading":
            upload = client.begin("PUT", "/table?name=a.csv", b"half of it", Content_Length="1000")
            client.until(lambda state: state["uploading"])
        (folder,) = tmp_path.iterdir()
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        workers = children.read_text().split() if children.exists() else []
        process.send_signal(how)
        assert process.wait(10) == (143 if how == signal.SIGTERM else 0)
        assert not folder.exists()
        assert not [worker for worker in workers if Path(f"/proc/{worker}").exists()]
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.communicate()
        if busy == "uploading":
            upload.close()


@pytest.mark.parametrize(
    ("words", "message"),
    [(["nothing.csv"], "nothing.csv: No such file"), (["."], "must be a file"),
     (["--limit-size", "x"], "a size must be"), (["pyproject.toml"], "extension")],
)  # fmt: skip
def test_what_cannot_be_is_said_at_once(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text("", encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        run(["app", "--no-browser", *words])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
