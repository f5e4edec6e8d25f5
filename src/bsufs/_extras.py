"""Packages that only some parts of the library need: what is missing, and how to get it."""

import contextlib
from collections.abc import Iterator


class MissingExtraError(ModuleNotFoundError):
    """A package is not installed, and the message says what to install."""


def install_hint(what: str, package: str | None, extra: str) -> str:
    """Return what to install for a part of the library."""
    return f'{what} needs {package}: pip install "bsufs[{extra}]"'


@contextlib.contextmanager
def needs(what: str, extra: str) -> Iterator[None]:
    """Say what to install where an import of another package fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        # A module of our own that is missing is a defect, and no extra would bring it.
        if error.name is None or error.name.split(".")[0] == "bsufs":
            raise
        hint = install_hint(what, error.name.split(".")[0], extra)
        raise MissingExtraError(hint, name=error.name) from error
