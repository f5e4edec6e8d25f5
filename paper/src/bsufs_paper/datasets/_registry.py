"""What is known of each dataset, read from data files: a file more is a dataset more.

The files are those of the folder ``registry`` and, for data of one's own, those whose names end in
``.dataset.json`` in the folders of the environment variable ``BSUFS_DATA``. Each describes a file
of data, and the datasets that are read from it.
"""

from __future__ import annotations

import json
import os
from dataclasses import MISSING, dataclass, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote


@dataclass(frozen=True)
class SourceFile:
    """A file at a fixed commit of a public repository, or one of the user's own."""

    name: str
    repository: str | None = None
    commit: str | None = None
    path: str | None = None
    sha256: str | None = None
    license: str | None = None
    license_note: str = ""
    note: str = ""

    @property
    def url(self) -> str | None:
        """The address of the bytes; None for a file of the user's own."""
        if self.repository is None or self.path is None:
            return None
        owner_and_name = self.repository.removeprefix("https://github.com/")
        return (
            f"https://raw.githubusercontent.com/{owner_and_name}/{self.commit}/{quote(self.path)}"
        )


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a dataset before it is loaded."""

    name: str
    file: SourceFile
    data_keys: tuple[str, ...]
    target_keys: tuple[str, ...]
    shape: tuple[int, int]
    n_classes: int
    feature_prefix: str = "x"
    description: str = "Not described."
    citation: str = "None is known."
    image_shape: tuple[int, int] | None = None
    image_order: str | None = None
    features_in_rows: bool = False
    divisor: float = 1.0
    first_per_class: int | None = None
    target_names: tuple[str, ...] | None = None
    n_noise_features: int = 0
    corruption: str | None = None
    # The function that draws points of the same shape where the file is absent.
    generator: str | None = None

    @property
    def has_noise(self) -> bool:
        """Whether loading draws random numbers."""
        return self.n_noise_features > 0 or self.corruption is not None


def _registry() -> dict[str, DatasetInfo]:
    return _read_registry(tuple(_own_entries()))


def named_folders() -> list[Path]:
    """Return the folders of the environment variable ``BSUFS_DATA``, separated as in ``PATH``."""
    named = os.environ.get("BSUFS_DATA", "").split(os.pathsep)
    return [Path(folder).expanduser() for folder in named if folder]


def _own_entries() -> list[tuple[Path, int]]:
    """Return the user's own descriptions, with the time of their last change."""
    entries = [path for f in named_folders() for path in sorted(f.glob("*.dataset.json"))]
    return [(path, path.stat().st_mtime_ns) for path in entries]


@cache
def _read_registry(own: tuple[tuple[Path, int], ...]) -> dict[str, DatasetInfo]:
    shipped = sorted(Path(str(files(__package__) / "registry")).glob("*.json"))
    found: dict[str, DatasetInfo] = {}
    for path in [*shipped, *(path for path, _ in own)]:
        for info in _described(path):
            if info.name in found:
                raise ValueError(f"{path} describes {info.name!r}, which exists. Rename it.")
            found[info.name] = info
    return found


def _described(path: Path) -> list[DatasetInfo]:
    """Return the datasets that a file describes."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        for part in ("file", "datasets"):
            if not isinstance(stored, dict) or not isinstance(stored.get(part), dict):
                raise ValueError(f"it has no object `{part}`")
        source = _made(SourceFile, "`file`", stored["file"])
        return [
            _made(DatasetInfo, repr(name), {"name": name, "file": source} | entry)
            for name, entry in stored["datasets"].items()
        ]
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{path} does not describe datasets: {error}. It must hold an object with `file` and "
            "`datasets`."
        ) from error


_Described = TypeVar("_Described", SourceFile, DatasetInfo)


def _made(kind: type[_Described], what: str, entry: dict[str, Any]) -> _Described:
    """Make a description of what a file says; name what it lacks or what nobody knows."""
    known = {field.name: field for field in fields(kind)}
    lacking = [name for name, field in known.items() if field.default is MISSING]
    lacking = [name for name in lacking if name not in entry]
    if lacking:
        raise ValueError(f"{what} lacks {', '.join(lacking)}")
    strange = [name for name in entry if name not in known]
    if strange:
        raise ValueError(f"{what} has {', '.join(strange)}, but its fields are {', '.join(known)}")
    frozen: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()
    }
    return kind(**frozen)


def list_datasets() -> list[DatasetInfo]:
    """Return what is known of every registered dataset, without loading or fetching any."""
    return list(_registry().values())


def dataset_info(name: str) -> DatasetInfo:
    """Return what is known of one dataset."""
    registry = _registry()
    if name not in registry:
        raise ValueError(
            f"name must be a registered dataset, got {name!r}; choose one of {', '.join(registry)}."
        )
    return registry[name]
