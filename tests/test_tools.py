"""What is built and what is promised: the tools that check both."""

import io
import re
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from tools import check_distribution as check
from tools import check_docstrings
from tools.lowest_versions import PROJECT, lowest_versions

from bsufs.selectors import MaxVariance


def project(dependencies, **extras):
    return {"name": "mine", "dependencies": dependencies, "optional-dependencies": extras}


def test_the_lowest_versions_are_those_of_the_library_and_its_extras():
    found = lowest_versions(project(["b>=1.2"], plot=["a[x,y]>=3", "b>=1.2"], all=["mine[plot]"]))
    assert found == {"a": "3", "b": "1.2"}


@pytest.mark.parametrize(
    ("dependencies", "words"),
    [(["a"], "name>=version, got 'a'"), (["a>=1", "a>=2"], "one lower bound .* 1 and 2")],
)
def test_a_promise_without_one_lower_bound(dependencies, words):
    with pytest.raises(ValueError, match=words):
        lowest_versions(project(dependencies))


def test_every_promise_of_the_project_has_a_lower_bound():
    promised = lowest_versions(tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"])
    assert {"numpy", "scipy", "scikit-learn", "joblib", "anndata", "dask"} <= set(promised)


def wheel(path, names, size=0):
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, b"0" * size)
    return path


def source(path, names, size=0):
    with tarfile.open(path, "w") as archive:
        for name in names:
            member = tarfile.TarInfo(f"mine-1.0/{name}")
            member.size = size
            archive.addfile(member, io.BytesIO(b"0" * size))
    return path


def test_archives_with_all_they_need(tmp_path, capsys):
    wheel(tmp_path / "a.whl", [*check.NEEDED_IN_WHEEL, "bsufs-1.0.dist-info/METADATA"])
    source(tmp_path / "a.tar.gz", check.NEEDED_IN_SOURCE)
    check.main(tmp_path)
    assert "a.whl: " in capsys.readouterr().out


def test_what_is_wrong_with_a_wheel(tmp_path, monkeypatch):
    monkeypatch.setattr(check, "WHEEL_BYTES", 10)
    monkeypatch.setattr(check, "NEEDED_IN_WHEEL", ("bsufs/py.typed",))
    path = wheel(tmp_path / "a.whl", ["bsufs/data.npz", "tests/test_a.py"])
    faults = "\n".join(check.wheel_faults(path))
    assert "bytes, at most 10 are allowed" in faults
    assert "bsufs/py.typed is missing" in faults
    assert "bsufs/data.npz is neither code nor text" in faults
    assert "tests/test_a.py must not be installed" in faults


def test_what_is_wrong_with_a_source_archive(tmp_path):
    names = [*check.NEEDED_IN_SOURCE[1:], "tests/table.mat"]
    path = source(tmp_path / "a.tar.gz", names, size=check.LARGEST_FILE_BYTES + 1)
    faults = "\n".join(check.source_faults(path))
    assert f"{check.NEEDED_IN_SOURCE[0]} is missing" in faults
    assert "tests/table.mat is a data file" in faults
    assert f"Makefile has {check.LARGEST_FILE_BYTES + 1} bytes" in faults
    assert "a.tar.gz has" in faults


def test_faults_end_the_check(tmp_path):
    with pytest.raises(SystemExit, match=r"must hold one \*\.whl, got 0"):
        check.main(tmp_path)
    wheel(tmp_path / "a.whl", [])
    source(tmp_path / "a.tar.gz", [])
    with pytest.raises(SystemExit, match="is missing"):
        check.main(Path(tmp_path))


def test_what_makefile_and_workflow_install_is_declared():
    declared = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    root = PROJECT.parent
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    (extras,) = re.findall(r"^EXTRAS := (\S+)$", makefile, flags=re.MULTILINE)
    assert set(extras.split(",")) <= set(declared["project"]["optional-dependencies"])
    groups = set(re.findall(r"(?:\.installed-|--group )([a-z][\w-]*)", makefile))
    assert groups - {"demo", "paper"} <= set(declared["dependency-groups"])
    workflow = (root / ".github/workflows/checks.yml").read_text(encoding="utf-8")
    assert f'".[{extras}]" --editable ./paper --group test' in workflow
    targets = re.findall(r"- run: make ([\w-]+)", workflow)
    assert all(re.search(rf"^{target}:", makefile, flags=re.MULTILINE) for target in targets)


def test_every_docstring_is_complete_and_an_incomplete_one_is_named(monkeypatch, capsys):
    names = set(check_docstrings.public_names("bsufs"))
    assert {"bsufs.BSUFS", "bsufs.selectors.MaxVariance", "bsufs.penalties.RowPenalty"} <= names
    assert not any("._" in name for name in names)
    monkeypatch.setattr(check_docstrings, "public_names", lambda package: [f"{package}.BSUFS"])
    assert check_docstrings.main() == 0
    monkeypatch.setattr(MaxVariance, "__doc__", "The variances of the columns as scores.")
    monkeypatch.setattr(
        check_docstrings, "public_names", lambda package: [f"{package}.selectors.MaxVariance"]
    )
    assert check_docstrings.main() == 1
    assert "MaxVariance: PR01 Parameters {'n_features_to_select'}" in capsys.readouterr().out
