"""Which tables and figures there are: one small file each in `items`, read in their order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import yaml

_REQUIRED = ("id", "title", "caption", "run", "view")
_OPTIONAL = ("printed", "options")


@dataclass(frozen=True)
class Item:
    """A table or figure of the report."""

    id: str
    title: str
    caption: str
    run: str
    view: str
    printed: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def is_figure(self) -> bool:
        """Whether the drawing is the message, and the numbers are beside it."""
        return self.id.startswith("fig-")


def parse_item(source: str, text: str) -> Item:
    """Return the item that a file describes."""
    fields = yaml.safe_load(text)
    if not isinstance(fields, dict):
        raise ValueError(
            f"{source} must hold a mapping with {', '.join(_REQUIRED)}; got {fields!r}."
        )
    missing = [name for name in _REQUIRED if name not in fields]
    unknown = [name for name in fields if name not in _REQUIRED + _OPTIONAL]
    if missing or unknown:
        raise ValueError(
            f"{source} must have {', '.join(_REQUIRED)} and may have {', '.join(_OPTIONAL)}; "
            f"missing: {', '.join(missing) or 'none'}; unknown: {', '.join(unknown) or 'none'}."
        )
    printed = fields.pop("printed", [])
    return Item(
        **{**fields, "caption": " ".join(fields["caption"].split())}
        | {
            "printed": (printed,) if isinstance(printed, str) else tuple(printed),
            "options": MappingProxyType(fields.get("options") or {}),
        }
    )


@cache
def _items() -> tuple[Item, ...]:
    folder = files("bsufs_paper.reporting") / "items"
    found = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".yaml")), key=_name)
    return tuple(parse_item(entry.name, entry.read_text(encoding="utf-8")) for entry in found)


def _name(entry: Any) -> str:
    return str(entry.name)


def list_items() -> list[Item]:
    """Return every table and figure of the report, in its order."""
    return list(_items())
