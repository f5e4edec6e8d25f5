"""Writing a file whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

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
