import sys
from types import SimpleNamespace

import numpy as np
import pytest

from bsufs.cli._program import run


@pytest.fixture
def invoke(capsys, monkeypatch):
    """Return a function that runs the program in this process, by default on unscaled columns."""

    def call(*words, terminal=False):
        if words[:1] in (("select",), ("compare",)) and "--scale" not in words:
            words = (*words, "--scale", "none")
        monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
        with pytest.raises(SystemExit) as ended:
            run([str(word) for word in words])
        out, err = capsys.readouterr()
        return SimpleNamespace(status=ended.value.code, out=out, err=err)

    return call


@pytest.fixture
def table(tmp_path):
    """Write a table of two classes with a text column, and return its path."""
    rng = np.random.default_rng(0)
    classes = np.repeat(["red", "blue"], 20)
    X = rng.normal(size=(40, 6)) * [1, 5, 1, 1, 4, 1]
    X[classes == "red", 1] += 30
    X[classes == "red", 4] += 15
    lines = ["id,a,b,c,d,e,f,kind"]
    for i, (row, kind) in enumerate(zip(X, classes, strict=True)):
        lines.append(f"s{i:02},{','.join(f'{value:.3f}' for value in row)},{kind}")
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    return path
