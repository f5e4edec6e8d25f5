import sys
from types import SimpleNamespace

import pytest

from bsufs.cli._program import run
from bsufs_paper.cli import PROGRAM


@pytest.fixture
def invoke(capsys, monkeypatch):
    """Return a function that runs the program in this process."""

    def call(*words, terminal=False):
        monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
        with pytest.raises(SystemExit) as ended:
            run([str(word) for word in words], PROGRAM)
        out, err = capsys.readouterr()
        return SimpleNamespace(status=ended.value.code, out=out, err=err)

    return call
