"""What people see: one-line messages, tables for terminals, plain lines for pipes."""

import contextlib
import csv
import io
import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TextIO

from bsufs._atomic import STANDARD, checked_write
from bsufs._names import one_line, shortened

# A message may hold what a file holds, which may be a line of many thousand characters.
_WIDEST = 500
_NUMBER = re.compile(r"[-+]?[\d.]+(e[-+]?\d+)?%?")


def complain(message: str, kind: str = "error: ", program: str = "bsufs") -> None:
    """Print one line on standard error, not too long and with nothing that steers a terminal."""
    print(f"{program}: {kind}{shortened(' '.join(message.split()), _WIDEST)}", file=sys.stderr)


class Console:
    """Says on standard error what is done, unless told to be quiet."""

    # Who else is told what is done, and how far that is: whatever runs the command.
    listeners: ClassVar[list[Callable[[str, str], None]]] = []

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        # The line that moves, where there is one, and what it says is done.
        self._status: Any = None
        self._doing = ""

    def say(self, message: str) -> None:
        """Print a line."""
        if not self.quiet:
            print(one_line(message), file=sys.stderr)

    def show(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table."""
        if not self.quiet:
            print_table(title, columns, rows, sys.stderr)

    def write(
        self, texts: Mapping[str | None, str | None], force: bool, before: str | None = None
    ) -> None:
        """Write texts to the files that were asked for, and say so, also of one written before."""
        written = [before]
        for path, text in texts.items():
            if path is not None and text is not None:
                with checked_write(path, force=force) as stream:
                    stream.write(text.encode("utf-8"))
                written.append(path)
        files = [path for path in written if path not in (None, STANDARD)]
        if files:
            self.say(f"wrote {', '.join(map(str, files))}")

    @contextlib.contextmanager
    def busy(self, message: str) -> Iterator[None]:
        """Show on a terminal that work goes on; within other work, until that goes on itself."""
        is_shown = not self.quiet and sys.stderr.isatty()
        if not is_shown and not self.listeners:
            yield
            return
        from rich.console import Console as Screen

        former, self._doing = self._doing, message
        is_outermost = self._status is None
        if is_outermost:
            self._status = Screen(stderr=True, quiet=not is_shown).status("")
        self.progress("")
        try:
            with self._status if is_outermost else contextlib.nullcontext():
                yield
        finally:
            self._doing = former
            if is_outermost:
                self._status = None
            self.progress("")

    def progress(self, detail: str) -> None:
        """Add to the line that shows what is done how far that is, such as "1,000 rows"."""
        for tell in self.listeners:
            tell(self._doing, detail)
        if self._status is not None:
            from rich.text import Text

            line = one_line(f"{self._doing}: {detail}" if detail else self._doing)
            self._status.update(Text(line, no_wrap=True, overflow="ellipsis"))


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], stream: TextIO | None = None
) -> None:
    """Print a table: set out on a terminal, tab-separated lines elsewhere."""
    stream = sys.stdout if stream is None else stream
    if not stream.isatty():
        for row in (columns, *rows):
            print("\t".join(one_line(cell) for cell in row), file=stream)
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console as Screen
    from rich.table import Table
    from rich.text import Text

    # A heading of several words is no wider than it must be, and breaks between them alone.
    cells_of = [[row[number] for row in rows] for number in range(len(columns))]
    widths = [
        max(map(len, [*column.split(), *cells]))
        for column, cells in zip(columns, cells_of, strict=True)
    ]
    screen = Screen(file=stream)
    is_tight = sum(widths) + 2 * len(widths) > screen.width
    # Without frames, two more columns fit into the 80 characters of a plain terminal.
    table = Table(
        box=SIMPLE_HEAD, padding=(0, 0 if is_tight else 1), collapse_padding=True, pad_edge=False
    )
    for number, (column, width) in enumerate(zip(columns, widths, strict=True)):
        right = any(map(_NUMBER.fullmatch, cells_of[number]))
        heading = textwrap.wrap(column, width, break_long_words=False)
        table.add_column(
            Text("\n".join(heading)),
            justify="right" if right else "left",
            overflow="fold",
            no_wrap=number == 0 and not right,
        )
    for row in rows:
        # Text, not markup: a name such as [red] is shown as it is.
        table.add_row(*(Text(one_line(cell)) for cell in row))
    screen.print(Text(one_line(title), "bold"), table, sep="\n")


def jsonable(value: Any) -> Any:
    """Return a value as JSON can hold it: NaN is null, what has no counterpart its text."""
    if isinstance(value, dict):
        return {str(key): jsonable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(entry) for entry in value]
    if hasattr(value, "tolist"):
        return jsonable(value.tolist())
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    return value if isinstance(value, str | int | None) else str(value)


def dump(document: Any) -> str:
    """Return a document as JSON text."""
    return json.dumps(jsonable(document), indent=2, ensure_ascii=False) + "\n"


def as_csv(rows: Iterable[Mapping[str, Any]], heads: Sequence[str]) -> str:
    """Return rows as CSV text, of whose entries some are shown."""
    text = io.StringIO()
    writer = csv.DictWriter(text, heads, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
