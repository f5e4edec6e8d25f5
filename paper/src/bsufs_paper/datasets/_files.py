"""Where the files of the datasets are, and whether they are what they should be."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from functools import lru_cache
from pathlib import Path

from bsufs._atomic import atomic_write
from bsufs_paper.datasets._registry import SourceFile, dataset_info, named_folders


def find_dataset(name: str, data_home: str | os.PathLike[str] | None = None) -> Path | None:
    """Return where the file of a dataset is, or None; nothing is fetched or checked."""
    return _find(dataset_info(name).file, data_folders(data_home))


def fetch_dataset(name: str, data_home: str | os.PathLike[str] | None = None) -> Path:
    """Return where the file of a dataset is, checked; download it where it is absent."""
    return fetch(dataset_info(name).file, data_home)


def dataset_checksum(name: str) -> str | None:
    """Return what tells the data from others, without loading them: a checksum, or a generator."""
    info = dataset_info(name)
    path = find_dataset(name)
    if path is None and info.generator is not None:
        return info.generator
    if path is None or info.file.sha256 is not None:
        return info.file.sha256
    return _cached_sha256(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _cached_sha256(path: Path, changed: int) -> str:
    return _sha256(path)


def data_folders(data_home: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return the folders to look into, in this order: the argument, ``BSUFS_DATA``, the cache."""
    # The specification of the cache folder says that an empty variable counts as unset.
    cache_root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    first = [Path(data_home)] if data_home else []
    folders = [*first, *named_folders(), Path(cache_root) / "bsufs"]
    return [folder.expanduser() for folder in folders]


def fetch(source: SourceFile, data_home: str | os.PathLike[str] | None = None) -> Path:
    """Return the file, checked; download it where it is in none of the folders.

    A file whose checksum is not known is never downloaded.
    """
    folders = data_folders(data_home)
    path = _find(source, folders)
    if path is None:
        return _download(source, folders)
    _check(path, source)
    return path


def record_checksum(path: Path, source: SourceFile) -> None:
    """Keep the checksum of a file that came without one, so that a later change is noticed."""
    record = _record_path(path)
    if source.sha256 is not None or record.exists():
        return
    checksum = _sha256(path)
    unknown = f"The checksum of {path.name} is not known, so its content could not be verified"
    try:
        with atomic_write(record) as stream:
            stream.write(json.dumps({"file": path.name, "sha256": checksum}).encode() + b"\n")
    except OSError as error:
        outcome = f"and sha256 {checksum} could not be recorded in {record} ({error})"
    else:
        outcome = f"sha256 {checksum} is recorded in {record.name} and will be expected from now on"
    warnings.warn(f"{unknown}; {outcome}.", UserWarning, stacklevel=3)


def _find(source: SourceFile, folders: list[Path]) -> Path | None:
    return next((path for f in folders if (path := f / source.name).is_file()), None)


def _check(path: Path, source: SourceFile) -> None:
    expected = source.sha256 or _recorded_checksum(path)
    if expected is None:
        return
    found = _sha256(path)
    if found == expected:
        return
    if source.sha256 is None:
        raise ValueError(
            f"{path} has changed since its first use: sha256 {expected} was recorded, got {found}. "
            f"Restore the file, or delete {_record_path(path).name} beside it if the change is "
            "meant."
        )
    raise ValueError(
        f"{path} is not the registered file (truncated, changed or another version): expected "
        f"sha256 {expected}, got {found}. "
        + (
            f"Delete it, so that it is downloaded again, or replace it with {source.url}."
            if source.url
            else "Restore it, or mend the checksum in its description."
        )
    )


def _recorded_checksum(path: Path) -> str | None:
    record = _record_path(path)
    if not record.exists():
        return None
    try:
        return str(json.loads(record.read_text(encoding="utf-8"))["sha256"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{record} does not hold a checksum of {path.name}. Delete it, so that it is written "
            "again."
        ) from error


def _record_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256.json")


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _download(source: SourceFile, folders: list[Path]) -> Path:
    folder = next((f for f in folders if _is_writable(f)), folders[0])
    by_hand = f"save {source.url or 'it'} as {source.name} in the folder {folder}"
    if source.url is None:
        raise FileNotFoundError(f"{source.name} is in none of {_listed(folders)}: {by_hand}.")
    if source.sha256 is None:
        raise FileNotFoundError(
            f"{source.name} is in none of {_listed(folders)}, and is not downloaded because its "
            f"checksum is not known. To use it, {by_hand}."
        )
    import pooch  # slow, and seldom needed

    pooch.get_logger().setLevel("WARNING")
    try:
        # pooch writes to a temporary file and moves it once the checksum is right.
        pooch.retrieve(
            source.url, known_hash=f"sha256:{source.sha256}", fname=source.name, path=folder
        )
    except (OSError, ValueError) as error:
        raise FileNotFoundError(
            f"{source.name} is in none of {_listed(folders)}, and its download failed: {error} "
            f"Without a connection, {by_hand}."
        ) from error
    return folder / source.name


def _listed(folders: list[Path]) -> str:
    return ", ".join(str(folder) for folder in folders)


def _is_writable(folder: Path) -> bool:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK)
