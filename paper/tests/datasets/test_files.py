import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pooch
import pytest
from scipy.io import savemat

from bsufs_paper.datasets import _files as files
from bsufs_paper.datasets import dataset_checksum, dataset_info, find_dataset, load_dataset

SOURCE = dataset_info("LUNG").file
RETRIEVE = pooch.retrieve


@pytest.fixture(autouse=True)
def offline(tmp_path, monkeypatch):
    """Let no test reach the network, the user's cache or the folder of real data."""

    def refuse(*args, **options):
        raise ConnectionError("no network")

    monkeypatch.setattr(pooch, "retrieve", refuse)
    monkeypatch.delenv("BSUFS_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _put(folder, content=b"content", name=SOURCE.name):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(content)
    return path


def _registered(content):
    return replace(SOURCE, sha256=hashlib.sha256(content).hexdigest())


def test_the_argument_goes_before_the_variable_and_the_variable_before_the_cache(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("BSUFS_DATA", str(tmp_path / "variable"))
    assert find_dataset("LUNG", tmp_path / "argument") is None
    for folder in ("cache/bsufs", "variable", "argument"):
        path = _put(tmp_path / folder)
        assert find_dataset("LUNG", tmp_path / "argument") == path
    assert find_dataset("LUNG") == tmp_path / "variable" / SOURCE.name
    assert files.fetch(_registered(b"content")) == tmp_path / "variable" / SOURCE.name


def test_empty_variables_count_as_unset(monkeypatch):
    monkeypatch.setenv("BSUFS_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert files.data_folders() == [Path("~/.cache/bsufs").expanduser()]


def test_a_home_folder_is_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert files.data_folders("~/data")[0] == tmp_path / "data"


def test_a_checksum_that_is_not_registered_is_that_of_the_file_as_it_is(tmp_path):
    assert dataset_checksum("LUNG") == SOURCE.sha256
    assert dataset_checksum("MSTAR") is None
    for changed, content in enumerate((b"one", b"other")):
        path = _put(tmp_path / "cache" / "bsufs", content, dataset_info("MSTAR").file.name)
        os.utime(path, ns=(0, changed))
        assert dataset_checksum("MSTAR") == hashlib.sha256(content).hexdigest()


def test_a_changed_or_truncated_file_is_refused(tmp_path):
    path = _put(tmp_path, b"trunc")
    with pytest.raises(ValueError, match="truncated, changed or another version") as raised:
        load_dataset("LUNG", tmp_path)
    for part in (str(path), SOURCE.sha256, hashlib.sha256(b"trunc").hexdigest(), SOURCE.url):
        assert part in str(raised.value)
    assert path.exists()  # the user's file is not ours to delete


def test_offline_the_error_says_what_to_put_where(tmp_path):
    with pytest.raises(FileNotFoundError, match="no network") as raised:
        load_dataset("LUNG", tmp_path / "data")
    assert f"save {SOURCE.url} as lung_small.mat in the folder {tmp_path / 'data'}" in str(
        raised.value
    )


def test_the_download_goes_to_the_first_folder_with_the_checksum(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(pooch, "retrieve", lambda *args, **options: calls.append((args, options)))
    assert files.fetch(SOURCE, tmp_path) == tmp_path / SOURCE.name
    options = {"known_hash": f"sha256:{SOURCE.sha256}", "fname": SOURCE.name, "path": tmp_path}
    assert calls == [((SOURCE.url,), options)]


def test_a_folder_that_cannot_be_written_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr(pooch, "retrieve", lambda *args, **options: None)
    blocked = _put(tmp_path, name="a file where a folder is expected")
    assert files.fetch(SOURCE, blocked) == tmp_path / "cache" / "bsufs" / SOURCE.name


def _download_as(monkeypatch, downloader):
    monkeypatch.setattr(pooch, "retrieve", RETRIEVE)
    monkeypatch.setattr(pooch.core, "choose_downloader", lambda *args, **options: downloader)


def test_a_good_download_is_kept(tmp_path, monkeypatch):
    _download_as(monkeypatch, lambda url, output, pooch: Path(output).write_bytes(b"content"))
    path = files.fetch(_registered(b"content"), tmp_path / "new" / "folder")
    assert path.read_bytes() == b"content"
    assert list(path.parent.iterdir()) == [path]


def _broken_off(url, output, pooch):
    Path(output).write_bytes(b"cont")
    raise ConnectionError("the connection broke off")


def _altered(url, output, pooch):
    Path(output).write_bytes(b"altered")


@pytest.mark.parametrize("downloader", [_broken_off, _altered])
def test_a_failing_download_leaves_no_file(tmp_path, monkeypatch, downloader):
    _download_as(monkeypatch, downloader)
    with pytest.raises(FileNotFoundError, match="its download failed") as raised:
        files.fetch(SOURCE, tmp_path)
    assert SOURCE.url in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_the_variable_may_name_several_folders(tmp_path, monkeypatch):
    folders = [tmp_path / "one", tmp_path / "two"]
    monkeypatch.setenv("BSUFS_DATA", os.pathsep.join(map(str, folders)))
    assert files.data_folders()[:2] == folders
    path = _put(folders[1])
    assert find_dataset("LUNG") == path


@pytest.mark.parametrize("name", ["Diamond9", "Dartboard1-gaussian"])
def test_a_generator_serves_where_the_synthetic_file_is_absent(name, tmp_path):
    info = dataset_info(name)
    drawn = load_dataset(name)
    assert drawn.data.shape == info.shape
    assert len(drawn.target_names) == info.n_classes
    assert f"drawn by {info.generator}, like https://" in drawn.DESCR
    assert np.array_equal(drawn.data, load_dataset(name).data)
    # What is drawn is not taken for what is read, wherever results are kept by their data.
    assert dataset_checksum(name) == info.generator
    _put(tmp_path / "cache" / "bsufs", name=info.file.name)
    assert dataset_checksum(name) == info.file.sha256
    with pytest.raises(ValueError, match="is not the registered file"):
        load_dataset(name)


def test_pooch_is_not_imported_with_the_package():
    program = "import sys, bsufs_paper.datasets; sys.exit('pooch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.fixture
def mstar(tmp_path):
    random = np.random.default_rng(0)
    path = tmp_path / "MSTAR_SOC_CNN.mat"
    X = random.integers(3, size=(2425, 1024)).astype(np.uint8)
    savemat(path, {"X": X, "Y": np.arange(2425) % 10})
    return path


def test_mstar_is_recorded_at_first_use_and_expected_from_then_on(mstar):
    with pytest.warns(UserWarning, match="checksum of MSTAR_SOC_CNN.mat is not known") as caught:
        assert load_dataset("MSTAR", mstar.parent).data.shape == (2425, 1024)
    assert caught[0].filename == __file__
    record = mstar.with_name("MSTAR_SOC_CNN.mat.sha256.json")
    checksum = hashlib.sha256(mstar.read_bytes()).hexdigest()
    assert json.loads(record.read_text()) == {"file": mstar.name, "sha256": checksum}
    assert sorted(mstar.parent.iterdir()) == [mstar, record]
    load_dataset("MSTAR", mstar.parent)  # known by now: no warning

    mstar.write_bytes(mstar.read_bytes() + b"\0")
    with pytest.raises(ValueError, match="has changed since its first use") as raised:
        load_dataset("MSTAR", mstar.parent)
    assert checksum in str(raised.value)
    assert record.name in str(raised.value)


@pytest.mark.parametrize("content", ["", "{}", "[]"])
def test_a_broken_record_is_named(mstar, content):
    record = mstar.with_name("MSTAR_SOC_CNN.mat.sha256.json")
    record.write_text(content)
    with pytest.raises(ValueError, match="does not hold a checksum") as raised:
        load_dataset("MSTAR", mstar.parent)
    assert str(record) in str(raised.value)


def test_a_record_that_cannot_be_written_is_said(mstar, monkeypatch):
    def full(source, target):
        raise OSError("no space left")

    monkeypatch.setattr(files.os, "replace", full)
    with pytest.warns(UserWarning, match="could not be recorded .*no space left"):
        load_dataset("MSTAR", mstar.parent)
    assert list(mstar.parent.iterdir()) == [mstar]


def test_absent_mstar_is_not_downloaded_but_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(pooch, "retrieve", lambda *args, **options: pytest.fail("downloaded"))
    with pytest.raises(FileNotFoundError, match="its checksum is not known") as raised:
        load_dataset("MSTAR", tmp_path)
    address = dataset_info("MSTAR").file.url
    assert f"save {address} as MSTAR_SOC_CNN.mat in the folder {tmp_path}" in str(raised.value)
