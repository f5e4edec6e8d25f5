"""``bsufs app``: a page on this computer, for those who do not type commands."""

import os
from pathlib import Path
from typing import Annotated

import typer

# The program had this module's name, and scripts that call it import it from here.
from bsufs.cli._program import run as run

_LIMIT = "2GB"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("app", epilog=_EXAMPLES)(run_app)


_EXAMPLES = """
bsufs app             # drop a table on the page
bsufs app genes.csv   # begin with this one
"""


def run_app(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="TABLE", help="A table to begin with.", show_default=False),
    ] = None,
    port: Annotated[
        int, typer.Option(metavar="NUMBER", help="The port; 0: any that is free.", min=0, max=65535)
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Only print the address.")
    ] = False,
    limit_size: Annotated[
        str, typer.Option(metavar="SIZE", help="The largest table that the page takes.")
    ] = _LIMIT,
) -> None:
    """Open a page on this computer instead: drop a table, look at its columns, select.

    All stays on this computer: nobody else can open the page, and what it holds is removed when
    Ctrl-C ends it.
    """
    from bsufs._memory import parse_size
    from bsufs.app._server import serve

    if file is not None:
        if file.exists() and not file.is_file() and file.suffix != ".zarr":
            raise ValueError(f"{file}: this must be a file.")
        # Where it cannot be opened, this says so before there is a page.
        os.close(os.open(file, os.O_RDONLY))
        file = file.resolve()
    serve(file, port, parse_size(limit_size), not no_browser, _say)


def _say(address: str) -> None:
    print(f"bsufs app: {address}\nCtrl-C ends it.", flush=True)
