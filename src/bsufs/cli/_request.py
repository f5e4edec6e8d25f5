"""What was asked of ``bsufs select``; light, so that a wrong word is told at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bsufs.cli._options import Reading, check_targets


@dataclass(frozen=True)
class Request:
    """What to select from, and how."""

    table: str
    reading: Reading
    memory: str | None
    numbers: Sequence[int | float | str]
    method: str | None
    settings: Mapping[str, Any]
    must_keep: Sequence[str]
    never_keep: Sequence[str]
    tune: bool
    criterion: str | None
    others: Sequence[str] | None
    seed: int
    jobs: int | None


@dataclass(frozen=True)
class Targets:
    """Where results go: files, "-" for standard output, None for what is not wanted."""

    output: str | None
    names: str | None
    json: str | None
    report: str | None
    order: Any
    force: bool

    @property
    def is_empty(self) -> bool:
        """Whether no result has a place to go."""
        return all(target is None for target in self._by_option().values())

    def check(self) -> None:
        """Raise an error where a file could not be written, before work is done for it."""
        if self.output is not None:
            from bsufs.tables import check_output

            check_output(self.output, force=self.force)
        check_targets(self.force, **self._by_option())

    def _by_option(self) -> dict[str, str | None]:
        return {
            "output": self.output,
            "names": self.names,
            "json": self.json,
            "report": self.report,
        }
