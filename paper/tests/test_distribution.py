"""The distribution beside the library: its version, its texts, and what it needs."""

import re
import subprocess
import sys
from pathlib import Path

import yaml

import bsufs
import bsufs_paper
from bsufs_paper.experiments import load_spec

ROOT = Path(__file__).resolve().parents[2]


def test_library_and_paper_have_one_version():
    assert bsufs_paper.__version__ == bsufs.__version__


def test_the_spec_in_the_documentation_is_one():
    page = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```yaml\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    spec = load_spec(yaml.safe_load(block))
    sizes = {method.label: len(method.settings) for method in spec.methods}
    assert sizes["Random"] == sizes["BSUFS"] == 6
    assert load_spec(yaml.safe_load(block), quick=True).datasets == ("LUNG",)


def test_without_dask_the_address_of_a_scheduler_says_what_to_install():
    program = """
import sys
sys.modules["distributed"] = None
from bsufs_paper.experiments import dask_workers
try:
    dask_workers("tcp://127.0.0.1:9").__enter__()
except ImportError as error:
    print(error)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.stdout == (
        'The address of a scheduler needs distributed: pip install "bsufs[dask]"\n'
    )
