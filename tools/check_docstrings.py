"""Check the docstrings of the public objects as they are when imported, with their shared texts.

Everything that `bsufs` and `bsufs.selectors` offer must be documented in full; elsewhere,
where parameters, attributes or results are listed, they must be complete. Methods and properties
are checked in the same way; names with an underscore are not.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from numpydoc.validate import ERROR_MSGS, validate

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
_SECTION = re.compile(r"^ *(Parameters|Attributes|Returns|Yields)\n *---", re.MULTILINE)
# All that these offer must be documented in full.
IN_FULL = ("bsufs", "bsufs.selectors")
# Their docstrings are help texts.
NOT_CHECKED = ("bsufs.__main__", "bsufs.cli", "bsufs.app")


def public_modules(package: str) -> Iterator[Any]:
    """Import a package and what is in it, but for names with an underscore."""
    root = import_module(package)
    yield root
    for found in pkgutil.walk_packages(root.__path__, f"{package}."):
        if "._" not in found.name and not found.name.startswith(NOT_CHECKED):
            yield import_module(found.name)


def has_sections(item: Any) -> bool:
    """Tell whether a docstring lists parameters, attributes or results."""
    return bool(_SECTION.search(item.__doc__ or ""))


def is_ours(item: Any) -> bool:
    """Tell whether a class, function or property was written here."""
    function = item.fget if isinstance(item, property) else item
    written = inspect.isclass(function) or inspect.isfunction(function)
    return written and function.__module__.partition(".")[0] == "bsufs"


def public_names(package: str) -> Iterator[str]:
    """Return the full names of what a package offers, each object once."""
    seen = set()
    for module in public_modules(package):
        listed = getattr(module, "__all__", None)
        for name in vars(module) if listed is None else listed:
            item = getattr(module, name)
            if name.startswith("_") or not is_ours(item) or item in seen:
                continue
            if listed is None and item.__module__ != module.__name__:
                continue
            seen.add(item)
            if module.__name__ in IN_FULL or has_sections(item):
                yield f"{module.__name__}.{name}"
            for member, value in vars(item).items() if inspect.isclass(item) else ():
                if not member.startswith("_") and is_ours(value) and has_sections(value):
                    yield f"{module.__name__}.{name}.{member}"


def main() -> int:
    """Print what is wrong with which object; return 1 if anything is."""
    settings = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["tool"]["numpydoc_validation"]
    checks = set(ERROR_MSGS) - set(settings["checks"])
    names = list(public_names("bsufs"))
    wrong = [
        f"{name}: {code} {message}"
        for name in names
        for code, message in validate(name)["errors"]
        if code in checks
    ]
    print("\n".join(wrong) or f"The docstrings of {len(names)} objects are as they should be.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
