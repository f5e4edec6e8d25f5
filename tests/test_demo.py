"""The demo as `make demo` runs it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def test_the_demo_prints_its_tables_and_draws_its_pictures(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo_digits.py"), str(tmp_path / "pictures")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "the 16 selected pixels" in done.stdout
    assert "16 random pixels" in done.stdout
    rows = [line.split() for line in done.stdout.splitlines() if "(" in line and "0." in line]
    assert [row[0] for row in rows[:16]] == [str(rank) for rank in range(1, 17)]
    for name in ("digits-pixels.png", "digits-path.png"):
        picture = tmp_path / "pictures" / name
        assert picture.stat().st_size > 10_000
        assert str(picture) in done.stdout
