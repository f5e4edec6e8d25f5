"""Check what is in the wheel and in the source archive before anybody gets them.

Usage: python tools/check_distribution.py dist
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

# Code, docstrings and templates; anything that makes the wheel larger does not belong in it.
WHEEL_BYTES = 420_000
SOURCE_BYTES = 2_500_000
# Pictures and the table of all cells in docs/reproduction are the largest files that belong there.
LARGEST_FILE_BYTES = 400_000

WHEEL_SUFFIXES = frozenset(
    {".css", ".csv", ".html", ".j2", ".js", ".json", ".py", ".typed", ".yaml"}
)
DATA_SUFFIXES = frozenset({".feather", ".h5ad", ".mat", ".npy", ".npz", ".parquet", ".pkl", ".pyc"})
_SOURCES = Path(__file__).resolve().parents[1] / "src"
NEEDED_IN_WHEEL = tuple(
    path.relative_to(_SOURCES).as_posix()
    for path in sorted(_SOURCES.rglob("*"))
    if path.suffix in WHEEL_SUFFIXES
)
NEEDED_IN_SOURCE = (
    "CHANGELOG.md",
    "CITATION.cff",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "benchmarks/__main__.py",
    "docs/methods.md",
    "examples/demo_digits.py",
    "pyproject.toml",
    "src/bsufs/py.typed",
    "tests/selectors/test_bsufs.py",
    "tools/check_distribution.py",
)


def wheel_faults(path: Path) -> Iterator[str]:
    """Say what is wrong with a wheel."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    yield from _too_large(path, WHEEL_BYTES)
    yield from _missing(path, names, NEEDED_IN_WHEEL)
    for name in names:
        top, suffix = PurePosixPath(name).parts[0], PurePosixPath(name).suffix
        if top.endswith(".dist-info"):
            continue
        if top != "bsufs":
            yield f"{path.name}: {name} must not be installed beside the package."
        elif suffix not in WHEEL_SUFFIXES:
            yield f"{path.name}: {name} is neither code nor text that the library reads."


def source_faults(path: Path) -> Iterator[str]:
    """Say what is wrong with a source archive."""
    with tarfile.open(path) as archive:
        sizes = {
            str(PurePosixPath(*PurePosixPath(member.name).parts[1:])): member.size
            for member in archive.getmembers()
            if member.isfile()
        }
    yield from _too_large(path, SOURCE_BYTES)
    yield from _missing(path, sizes, NEEDED_IN_SOURCE)
    for name, size in sizes.items():
        if PurePosixPath(name).suffix in DATA_SUFFIXES:
            yield f"{path.name}: {name} is a data file; tests generate their data or skip."
        if size > LARGEST_FILE_BYTES:
            yield f"{path.name}: {name} has {size} bytes, at most {LARGEST_FILE_BYTES} are allowed."


def _too_large(path: Path, limit: int) -> Iterator[str]:
    size = path.stat().st_size
    if size > limit:
        yield f"{path.name} has {size} bytes, at most {limit} are allowed."


def _missing(path: Path, names: Collection[str], needed: tuple[str, ...]) -> Iterator[str]:
    yield from (f"{path.name}: {name} is missing." for name in needed if name not in names)


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        sys.exit(f"{folder} must hold one {pattern}, got {len(found)}: remove it and build again.")
    return found[0]


def main(folder: Path) -> None:
    """Check the two archives in a folder, print their sizes, and exit with the faults."""
    wheel, source = _only(folder, "*.whl"), _only(folder, "*.tar.gz")
    faults = [*wheel_faults(wheel), *source_faults(source)]
    for path in (wheel, source):
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
