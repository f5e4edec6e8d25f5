"""What the front page promises is executed."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = ["README.md", "docs/experiments.md", "docs/scale.md", "docs/streaming.md"]


def python_blocks():
    for page in PAGES:
        for number, block in enumerate(
            re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)
        ):
            yield pytest.param(block, id=f"{page}-{number}")


@pytest.mark.parametrize("block", list(python_blocks()))
def test_code_blocks_run(block, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "block", "exec"), {})
    assert capsys.readouterr().out


def test_links_lead_somewhere():
    pages = ["CONTRIBUTING.md", "docs/benchmarks.md", "docs/methods.md", "docs/tuning.md"]
    for page in [*PAGES, *pages, "docs/reproduction/README.md"]:
        path = ROOT / page
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
            assert target.startswith("http") or (path.parent / target).exists(), (page, target)


def test_the_spec_in_the_documentation_is_one():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    from bsufs.experiments import load_spec

    (block,) = re.findall(
        r"```yaml\n(.*?)```", (ROOT / "docs/experiments.md").read_text(), flags=re.DOTALL
    )
    spec = load_spec(yaml.safe_load(block))
    sizes = {method.label: len(method.settings) for method in spec.methods}
    assert sizes["Random"] == sizes["BSUFS"] == 6
    assert load_spec(yaml.safe_load(block), quick=True).datasets == ("LUNG",)


def test_the_citation_has_the_version_of_the_package():
    import bsufs

    assert f"version: {bsufs.__version__}\n" in (ROOT / "CITATION.cff").read_text()
