"""Writing a file whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

# Stands for standard input and standard output.
STANDARD = "-"
# What a process that was killed while it wrote may leave behind, for those who clear up.
LEFTOVERS = ".*.tmp"


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that takes its place once it is complete and on the disk.

    What is written goes to a temporary file in the same folder. Where anything fails, also by
    Ctrl-C, that one is removed and an old file stays as it was.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name[:50]}.{secrets.token_hex(8)}.tmp")
    # Opened like any new file, so that the user's mask decides who may read it.
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        with contextlib.suppress(FileNotFoundError):
            os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
        os.replace(temporary, target)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            # A write that fails does not say by itself which file it was for.
            error.filename = os.fspath(path)
        raise


@contextlib.contextmanager
def checked_write(path: str | os.PathLike[str], *, force: bool) -> Iterator[BinaryIO]:
    """Open a file that a user named, see `atomic_write`; pipes and devices are written directly."""
    if os.fspath(path) == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    check_target(path, force=force)
    if _is_pipe_or_device(path):
        with Path(path).open("wb") as stream:
            yield stream
        return
    with atomic_write(path) as stream:
        yield stream
        # Another process may have made it in the meantime.
        check_target(path, force=force)


def check_target(path: str | os.PathLike[str], *, force: bool) -> None:
    """Raise an error where a file could not be written, before work is done for it."""
    if os.fspath(path) == STANDARD or _is_pipe_or_device(path):
        return
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise ValueError(f"{path}: this is a folder; name a file in it.")
    folder = target.parent
    if not folder.is_dir():
        raise ValueError(f"{path}: there is no folder {folder}. Make it first.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"{path}: the folder {folder} cannot be written to. Choose another.")
    if target.exists() and not force:
        raise ValueError(f"{path}: the file exists. Replace it with --force, or choose another.")


def _is_pipe_or_device(path: str | os.PathLike[str]) -> bool:
    # Asked of the path as given: where a pipe has a name in /dev/fd, its target has none.
    given = Path(path)
    return given.exists() and not given.is_file() and not given.is_dir()
