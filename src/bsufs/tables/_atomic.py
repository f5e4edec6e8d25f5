"""Writing a file that a user named: checked first, and whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from bsufs._atomic import atomic_write
from bsufs.tables._errors import TableError


@contextlib.contextmanager
def write_atomically(path: str | os.PathLike[str], *, force: bool = False) -> Iterator[BinaryIO]:
    """Open a file that takes its place once it is complete and on the disk.

    What is written goes to a temporary file in the same folder. Where anything fails, also by
    Ctrl-C, that one is removed and an old file stays as it was. Pipes and devices are written to
    directly.
    """
    check_target(path, force=force)
    if _is_pipe_or_device(path):
        with Path(path).open("wb") as stream:
            yield stream
        return
    with atomic_write(path) as stream:
        yield stream
        # Another process may have made it in the meantime.
        check_target(path, force=force)


def check_target(path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Raise an error where a file could not be written, before work is done for it."""
    if _is_pipe_or_device(path):
        return
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise TableError(f"{path}: this is a folder; name a file in it.")
    folder = target.parent
    if not folder.is_dir():
        raise TableError(f"{path}: there is no folder {folder}. Make it first.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise TableError(f"{path}: the folder {folder} cannot be written to. Choose another.")
    if target.exists() and not force:
        raise TableError(f"{path}: the file exists. Replace it with --force, or choose another.")


def _is_pipe_or_device(path: str | os.PathLike[str]) -> bool:
    # Asked of the path as given: where a pipe has a name in /dev/fd, its target has none.
    given = Path(path)
    return given.exists() and not given.is_file() and not given.is_dir()
