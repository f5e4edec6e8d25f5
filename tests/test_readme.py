"""What the front page promises is executed."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = ["README.md"]


def python_blocks():
    for page in PAGES:
        for number, block in enumerate(
            re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)
        ):
            yield pytest.param(block, id=f"{page}-{number}")


@pytest.mark.parametrize("block", list(python_blocks()))
def test_code_blocks_run(block, capsys):
    exec(compile(block, "block", "exec"), {})
    assert capsys.readouterr().out


def test_links_lead_somewhere():
    for page in [*PAGES, "CONTRIBUTING.md", "docs/benchmarks.md", "docs/methods.md"]:
        path = ROOT / page
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
            assert target.startswith("http") or (path.parent / target).exists(), (page, target)


def test_the_citation_has_the_version_of_the_package():
    import bsufs

    assert f"version: {bsufs.__version__}\n" in (ROOT / "CITATION.cff").read_text()
