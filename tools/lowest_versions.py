"""Print the lowest versions that pyproject.toml promises, as constraints for pip.

Development tools are left out: nobody who uses the library has them.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
# Extras of those who work on the library, not with it.
DEVELOPMENT = frozenset({"bench", "docs", "release", "run-tests", "test"})
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(\[[^]]*])?>=(?P<version>[\w.]+)")


def lowest_versions(project: dict[str, Any]) -> dict[str, str]:
    """Return the lowest version of each package by its name.

    Parameters
    ----------
    project : dict
        The table ``project`` of a pyproject.toml.

    Returns
    -------
    dict of str to str
        In alphabetical order.

    Raises
    ------
    ValueError
        If a requirement has no lower bound, or a package has two.
    """
    lowest: dict[str, str] = {}
    for requirement in _requirements(project):
        found = _REQUIREMENT.fullmatch(requirement)
        if found is None:
            raise ValueError(f"a requirement must read name>=version, got {requirement!r}.")
        name, version = found["name"], found["version"]
        if lowest.setdefault(name, version) != version:
            raise ValueError(
                f"{name} must have one lower bound everywhere, got {lowest[name]} and {version}."
            )
    return dict(sorted(lowest.items()))


def _requirements(project: dict[str, Any]) -> Iterable[str]:
    yield from project["dependencies"]
    for extra, requirements in project["optional-dependencies"].items():
        if extra not in DEVELOPMENT:
            # An extra that consists of others adds no bound of its own.
            yield from (one for one in requirements if not one.startswith(f"{project['name']}["))


if __name__ == "__main__":
    try:
        versions = lowest_versions(tomllib.loads(PROJECT.read_text())["project"])
    except ValueError as error:
        sys.exit(f"{PROJECT.name}: {error}")
    for name, version in versions.items():
        print(f"{name}=={version}")
