"""The command line: thin commands over the library."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say what to install."""
    try:
        from bsufs.cli.app import run
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.split(".")[0] == "bsufs":
            raise
        print(
            f'bsufs: the command line needs {error.name}: pip install "bsufs[cli]"', file=sys.stderr
        )
        sys.exit(2)
    except KeyboardInterrupt:
        # Before the program has begun there is nothing to clear away.
        sys.exit(130)
    run()
