"""How much memory there is or an object takes, and sizes in words that people write and read."""

import contextlib
import os
import re
import sys
from pathlib import Path
from typing import Any

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([KMGT]?)(I?)B?\s*", re.IGNORECASE)
# The root of the control groups, whose limits a container or a batch system sets.
_GROUPS = Path("/sys/fs/cgroup")
# Version 1 writes a number near 2**63 where there is no limit.
_NO_LIMIT = 2**60


def parse_size(text: str) -> int:
    """Read a number of bytes such as 2GB, 500M or 1.5GiB."""
    found = _SIZE.fullmatch(text)
    if found is None or (found[3] and not found[2]):
        raise ValueError(f"a size must be a number and a unit, such as 2GB or 500MB, got {text!r}.")
    unit = _UNITS[found[2].upper()]
    if found[3]:
        unit = 1024 ** list(_UNITS).index(found[2].upper())
    size = int(float(found[1]) * unit)
    if size < 1:
        raise ValueError(f"a size must be at least one byte, got {text!r}.")
    return size


def size_in_words(n_bytes: float) -> str:
    """Return a number of bytes as people read it."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} bytes" if unit == "bytes" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} TB"


def available_memory() -> int:
    """Return how many bytes this process can still take without swapping, whatever limits it."""
    known = [_free_on_the_machine(), *_left_by_groups(), _left_of_address_space()]
    return max(0, min(size for size in known if size is not None))


def _free_on_the_machine() -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with contextlib.suppress(OSError, ValueError, AttributeError):
        # Not what is free, but what there is: better than nothing to go by.
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return sys.maxsize


def _left_by_groups() -> list[int]:
    """Return what is left below each limit of the control groups that this process is in."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    left = []
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            top, limit, usage = _GROUPS, "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            top, limit, usage = (
                _GROUPS / "memory",
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
            )
        else:
            continue
        # A limit holds for all groups below; inside a container the group itself may be the root.
        folder = top / group.lstrip("/")
        for place in [folder, *folder.parents]:
            with contextlib.suppress(OSError, ValueError):
                most = int((place / limit).read_text(encoding="ascii"))
                if most < _NO_LIMIT:
                    left.append(most - _in_use(place, usage))
            if place == top:
                break
    return left


def _in_use(place: Path, usage: str) -> int:
    """Return what a group holds that cannot be given back: without pages of files."""
    used = int((place / usage).read_text(encoding="ascii"))
    with contextlib.suppress(OSError, ValueError):
        for line in (place / "memory.stat").read_text(encoding="ascii").splitlines():
            name, value = line.split()
            if name in ("inactive_file", "total_inactive_file"):
                used -= int(value)
                break
    return used


def _left_of_address_space() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    with contextlib.suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        return limit - pages * resource.getpagesize()
    return limit


class KnownSize:
    """An object as large as the arrays that it holds.

    Dask asks for the size of what a task returns and decides by it which worker gets the next task.
    Of an object that says nothing it believes some fifty bytes, and sends it around for nothing.
    """

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + _held_bytes(self)


def _held_bytes(value: Any) -> int:
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    if isinstance(value, tuple | list):
        return sum(map(_held_bytes, value))
    return sum(map(_held_bytes, vars(value).values())) if hasattr(value, "__dict__") else 0
