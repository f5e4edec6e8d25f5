"""Which tables and figures there are: one small file each in `items`, read in their order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import yaml


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


@cache
def _items() -> tuple[Item, ...]:
    folder = files("bsufs_paper.reporting") / "items"
    texts = {entry.name: entry.read_text(encoding="utf-8") for entry in folder.iterdir()}
    return tuple(_item(yaml.safe_load(texts[name])) for name in sorted(texts))


def _item(fields: dict[str, Any]) -> Item:
    printed = fields.pop("printed", ())
    return Item(
        **fields
        | {
            "caption": " ".join(fields["caption"].split()),
            "printed": (printed,) if isinstance(printed, str) else tuple(printed),
            "options": MappingProxyType(fields.get("options") or {}),
        }
    )


def list_items() -> list[Item]:
    """Return every table and figure of the report, in its order."""
    return list(_items())
