import os
import subprocess
import sys
from pathlib import Path

import pytest

import bsufs

PACKAGE = Path(bsufs.__file__).parent
PROGRAM = Path(__file__).with_name("program.py")


def test_a_program_of_a_user_passes_strict_checking(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    # An installed package is found by itself, and the folder of all of them may not be named.
    installed = PACKAGE.parent.name == "site-packages"
    options = ["--strict", "--config-file=", "--follow-imports=silent", "--cache-dir", tmp_path]
    ended = subprocess.run(
        [sys.executable, "-m", "mypy", *options, PROGRAM],
        env=os.environ | ({} if installed else {"MYPYPATH": str(PACKAGE.parent)}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").is_file()
