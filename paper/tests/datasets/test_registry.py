import dataclasses
import re

import pytest

from bsufs_paper.datasets import dataset_info, list_datasets

NAMES = [info.name for info in list_datasets()]


def test_the_datasets_of_the_paper_are_registered():
    expected = {"COIL20", "Isolet", "USPS", "USPS-all", "umist", "GLIOMA", "pie", "LUNG", "MSTAR"}
    for shape in ("Diamond9", "Dartboard1"):
        expected |= {shape, f"{shape}-noise", f"{shape}-gaussian", f"{shape}-salt-and-pepper"}
    # Further public data, to develop defaults on; no number of the paper is of them.
    expected |= {"ORL", "Yale", "warpPIE10P", "warpAR10P", "orlraws10P"}
    expected |= {"colon", "lymphoma", "TOX-171", "Prostate-GE", "nci9"}
    assert set(NAMES) == expected
    assert len(NAMES) == len(expected)


@pytest.mark.parametrize("name", NAMES)
def test_entries_are_complete(name):
    info = dataset_info(name)
    assert info.name == name
    assert info.description
    assert info.citation
    assert info.file.license or info.file.license_note
    assert len(info.shape) == 2
    assert info.n_classes > 1
    assert len(info.data_keys) == len(info.target_keys) > 0
    if info.image_shape is not None:
        height, width = info.image_shape
        assert height * width == info.shape[1]
        assert info.image_order == "F"
    if info.target_names is not None:
        assert len(info.target_names) == info.n_classes
    if info.first_per_class is not None:
        assert info.first_per_class * info.n_classes == info.shape[0]


@pytest.mark.parametrize("name", NAMES)
def test_files_have_an_address_at_a_fixed_commit(name):
    source = dataset_info(name).file
    assert re.fullmatch(
        r"https://raw\.githubusercontent\.com/[\w.-]+/[\w.-]+/[0-9a-f]{40}/[\w./%-]+\.mat",
        source.url,
    )
    assert source.commit in source.url


@pytest.mark.parametrize("name", [name for name in NAMES if name != "MSTAR"])
def test_checksums_are_sha256(name):
    assert re.fullmatch("[0-9a-f]{64}", dataset_info(name).file.sha256)


def test_the_unknown_checksum_is_admitted():
    source = dataset_info("MSTAR").file
    assert source.sha256 is None
    assert "first use" in source.note


def test_spaces_in_an_address_are_quoted():
    assert "02.%20Synthetic/diamond9.mat" in dataset_info("Diamond9").file.url


def test_entries_are_frozen_and_hashable():
    info = dataset_info("COIL20")
    with pytest.raises(dataclasses.FrozenInstanceError):
        info.name = "other"
    assert len({dataset_info(name) for name in NAMES}) == len(NAMES)


def test_the_list_is_the_callers_own():
    list_datasets().clear()
    assert list_datasets()


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="'COIL21'; choose one of COIL20, colon, Dartboard1"):
        dataset_info("COIL21")
