"""The command line: thin commands over the library."""

import os
import sys

from bsufs._extras import MissingExtraError, needs


def main() -> None:
    """Run the command line, or say what to install."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        # Where a stream is closed, the next file that is opened would take its place.
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - open to the end
    try:
        with needs("the command line", "cli"):
            from bsufs.cli._program import run
    except MissingExtraError as error:
        print(f"bsufs: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        # Before the program has begun there is nothing to clear away.
        sys.exit(130)
    run()
