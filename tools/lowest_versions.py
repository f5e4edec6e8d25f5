"""Print the lowest versions that pyproject.toml promises its users, as constraints for pip."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(\[[^]]*])?>=(?P<version>[\w.]+)")


def lowest_versions(project: dict[str, Any]) -> dict[str, str]:
    """Return the lowest version of each package, from the table ``project`` of a pyproject.toml."""
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
    for requirement in chain(project["dependencies"], *project["optional-dependencies"].values()):
        # An extra that includes others adds no bound of its own.
        if not requirement.startswith(f"{project['name']}["):
            yield requirement


if __name__ == "__main__":
    try:
        versions = lowest_versions(tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"])
    except ValueError as error:
        sys.exit(f"{PROJECT.name}: {error}")
    for name, version in versions.items():
        print(f"{name}=={version}")
