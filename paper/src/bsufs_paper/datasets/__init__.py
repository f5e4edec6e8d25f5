"""The datasets of the paper, fetched with a checksum, and generators that need no file."""

from bsufs_paper.datasets._files import data_folders, dataset_checksum, fetch_dataset, find_dataset
from bsufs_paper.datasets._loaders import load_dataset
from bsufs_paper.datasets._registry import DatasetInfo, SourceFile, dataset_info, list_datasets
from bsufs_paper.datasets._synthetic import (
    add_gaussian_noise,
    add_salt_and_pepper,
    make_dartboard1,
    make_diamond9,
)

__all__ = [
    "DatasetInfo",
    "SourceFile",
    "add_gaussian_noise",
    "add_salt_and_pepper",
    "data_folders",
    "dataset_checksum",
    "dataset_info",
    "fetch_dataset",
    "find_dataset",
    "list_datasets",
    "load_dataset",
    "make_dartboard1",
    "make_diamond9",
]
