"""Check a built site: every link within it leads somewhere, and nothing is fetched from elsewhere.

Run as ``python docs/check_site.py FOLDER``; prints what is wrong, and fails if anything is.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches by itself when it shows a page; other links wait for a reader.
_FETCHED = {
    "script": ("src",),
    "link": ("href",),
    "img": ("src", "srcset"),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "object": ("data",),
    "embed": ("src",),
}
# Kinds of <link> that name a page and fetch nothing.
_NAMING = {"canonical", "next", "prev", "search", "index", "genindex", "author", "license"}
_IN_STYLES = re.compile(r"(?:url\(|@import\s+)[\"']?\s*((?:https?:)?//[^\"')\s]+)")


class _Page(HTMLParser):
    """The anchors of a page, the places that it links to, and what it fetches."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors.update(values[name] for name in ("id", "name") if values.get(name))
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "link" and set(values.get("rel", "").split()) <= _NAMING:
            self.links.append(values.get("href", ""))
            return
        for name in _FETCHED.get(tag, ()):
            if values.get(name):
                # A set of images is a list of addresses, each with a size behind it.
                parts = values[name].split(",") if name == "srcset" else [values[name]]
                self.fetched.extend(part.split()[0] for part in parts if part.strip())


def problems(site: Path) -> list[str]:
    """Return what is wrong with the site in a folder, one line per problem."""
    pages: dict[Path, _Page] = {}
    for path in sorted(site.rglob("*.html")):
        if "_static" in path.parts:  # a piece of the theme, not a page
            continue
        page = pages[path.resolve()] = _Page()
        page.feed(path.read_text(encoding="utf-8"))
    found = [] if pages else [f"{site} holds no pages"]
    for path, page in pages.items():
        where = path.relative_to(site.resolve())
        found.extend(
            f"{where}: fetches {address}" for address in page.fetched if urlsplit(address).netloc
        )
        for address in {*page.links, *page.fetched}:
            reason = _dead(address, path, pages)
            if reason:
                found.append(f"{where}: {reason}")
    for path in sorted(site.rglob("*.css")):
        fetched = _IN_STYLES.findall(path.read_text(encoding="utf-8"))
        found.extend(f"{path.relative_to(site)}: fetches {address}" for address in fetched)
    return found


def _dead(address: str, path: Path, pages: dict[Path, _Page]) -> str | None:
    """Say why a link within the site leads nowhere, None if it leads somewhere or out of it."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return None
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target = target / "index.html"
    if not target.exists():
        return f"links to {address}, which does not exist"
    anchor = unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].anchors:
        return f"links to {address}, which has no such anchor"
    return None


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]))
    print("\n".join(wrong) if wrong else "every link leads somewhere; nothing is fetched")
    sys.exit(bool(wrong))
