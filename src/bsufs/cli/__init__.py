"""The command line: thin commands over the library."""

from __future__ import annotations

import sys

from bsufs._extras import MissingExtraError, needs


def main() -> None:
    """Run the command line, or say what to install."""
    try:
        with needs("the command line", "cli"):
            from bsufs.cli.app import run
    except MissingExtraError as error:
        print(f"bsufs: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        # Before the program has begun there is nothing to clear away.
        sys.exit(130)
    run()
