import sys

import numpy as np
import pytest
from tests.app.server import live

from bsufs.app import _jobs


@pytest.fixture
def client():
    with live() as client:
        yield client


@pytest.fixture
def work(monkeypatch):
    """Let jobs run a script in the place of the worker."""

    def set_script(script):
        monkeypatch.setattr(_jobs, "WORKER", [sys.executable, "-c", script])

    return set_script


@pytest.fixture(scope="session")
def table(tmp_path_factory):
    """Write a table with an identifier, a category, a gap, and a name that is markup."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 9)) + 0.3 * rng.normal(size=(40, 9))
    names = [*(f"gene_{i}" for i in range(8)), '"<img src=x onerror=alert(1)>, &amp;"']
    lines = [f"id,{','.join(names)},kind"]
    for i, row in enumerate(X):
        cells = [f"{value:.3f}" for value in row]
        cells[3] = "" if i % 10 == 0 else cells[3]
        lines.append(f"s{i:02},{','.join(cells)},{['red', 'green', 'blue'][i % 3]}")
    path = tmp_path_factory.mktemp("table") / "my table.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
