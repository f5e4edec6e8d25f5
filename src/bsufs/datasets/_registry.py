"""What is known of each dataset, read from `registry.json`: an entry there adds a dataset."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote


@dataclass(frozen=True)
class SourceFile:
    """A file at a fixed commit of a public repository.

    Parameters
    ----------
    name : str
        Name under which the file is kept.
    repository : str
        Address of the repository.
    commit : str
        The commit, in 40 hexadecimal digits.
    path : str
        Path of the file in the repository.
    sha256 : str or None
        Checksum of its bytes; None where it is not known.
    licence : str or None
        Licence of the data; None where none is stated.
    licence_note : str
        What else is known of the licence.
    note : str
        What else is known of the file.
    """

    name: str
    repository: str
    commit: str
    path: str
    sha256: str | None
    licence: str | None
    licence_note: str = ""
    note: str = ""

    @property
    def url(self) -> str:
        """The address of the bytes."""
        owner_and_name = self.repository.removeprefix("https://github.com/")
        return (
            f"https://raw.githubusercontent.com/{owner_and_name}/{self.commit}/{quote(self.path)}"
        )


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a dataset before it is loaded.

    Parameters
    ----------
    name : str
        Name for `load_dataset`.
    file : SourceFile
        The file that holds it.
    data_keys : tuple of str
        Arrays of the file that hold the samples, one below the other.
    target_keys : tuple of str
        Arrays of the file that hold the labels, in the same order.
    shape : tuple of int
        Number of samples and of features, as loaded.
    n_classes : int
        Number of classes.
    feature_prefix : str
        How the names of the features begin.
    description : str
        What the samples and the features are.
    citation : str
        Whom to cite.
    image_shape : tuple of int or None, default=None
        Height and width, where a sample is a picture.
    image_order : {"F", "C"} or None, default=None
        Order for `reshape` that shows the picture upright.
    features_in_rows : bool, default=False
        Whether the file holds the transpose.
    divisor : float, default=1
        The values of the file are divided by it.
    first_per_class : int or None, default=None
        How many samples of each class are kept, the first ones, class by class; None for all.
    target_names : tuple of str or None, default=None
        Names of the classes, by ascending label; None for the labels themselves.
    n_noise_features : int, default=0
        How many features of Gaussian noise are appended.
    corruption : {"gaussian", "salt-and-pepper"} or None, default=None
        What is then done to every value.
    """

    name: str
    file: SourceFile
    data_keys: tuple[str, ...]
    target_keys: tuple[str, ...]
    shape: tuple[int, int]
    n_classes: int
    feature_prefix: str
    description: str
    citation: str
    image_shape: tuple[int, int] | None = None
    image_order: str | None = None
    features_in_rows: bool = False
    divisor: float = 1.0
    first_per_class: int | None = None
    target_names: tuple[str, ...] | None = None
    n_noise_features: int = 0
    corruption: str | None = None

    @property
    def has_noise(self) -> bool:
        """Whether loading draws random numbers."""
        return self.n_noise_features > 0 or self.corruption is not None


@cache
def _registry() -> dict[str, DatasetInfo]:
    stored = json.loads((files(__package__) / "registry.json").read_text(encoding="utf-8"))
    sources = {name: SourceFile(name=name, **entry) for name, entry in stored["files"].items()}
    return {
        name: DatasetInfo(name=name, **_frozen(entry | {"file": sources[entry["file"]]}))
        for name, entry in stored["datasets"].items()
    }


def _frozen(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}


def list_datasets() -> list[DatasetInfo]:
    """Return what is known of every registered dataset, without loading or fetching any.

    Returns
    -------
    list of DatasetInfo
        In the order of the registry.

    Examples
    --------
    >>> from bsufs.datasets import list_datasets
    >>> [info.name for info in list_datasets()][:3]
    ['COIL20', 'Isolet', 'USPS']
    """
    return list(_registry().values())


def dataset_info(name: str) -> DatasetInfo:
    """Return what is known of one dataset.

    Parameters
    ----------
    name : str
        A registered name.

    Returns
    -------
    DatasetInfo
        Its shape, classes, file, licence and citation.

    Examples
    --------
    >>> from bsufs.datasets import dataset_info
    >>> dataset_info("umist").shape
    (575, 644)
    """
    registry = _registry()
    if name not in registry:
        raise ValueError(
            f"name must be a registered dataset, got {name!r}; choose one of {', '.join(registry)}."
        )
    return registry[name]
