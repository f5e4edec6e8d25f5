"""``bsufs-paper datasets``: what is registered, what is at hand, and how to get the rest."""

from __future__ import annotations

import contextlib
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from bsufs.cli._console import dump, print_table
from bsufs.cli._options import one_of

DataHome = Annotated[
    Path | None,
    typer.Option("--data-home", metavar="DIR", help="The folder to look into first."),
]
_EPILOG = """
[bold]Examples[/bold]

[cyan]bsufs-paper datasets --json[/cyan]

[cyan]bsufs-paper datasets show COIL20[/cyan]

[cyan]bsufs-paper datasets fetch COIL20 --data-home data[/cyan]
"""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(rich_markup_mode="rich")
    group.callback(invoke_without_command=True, epilog=_EPILOG)(datasets)
    group.command("fetch")(fetch)
    group.command("show")(show)
    app.add_typer(group, name="datasets")


def datasets(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print as JSON.")] = False,
    data_home: DataHome = None,
) -> None:
    """List the registered datasets, show one, or fetch it."""
    context.obj = data_home
    if context.invoked_subcommand is not None:
        return
    from bsufs_paper.datasets import list_datasets

    rows = [_known(info, data_home) for info in list_datasets()]
    if as_json:
        print(dump(rows), end="")
        return
    columns = ("name", "samples", "features", "classes", "state", "license")
    print_table("Datasets", columns, [[str(row[key]) for key in columns] for row in rows])


def fetch(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A registered name.", show_default=False)],
    data_home: DataHome = None,
) -> None:
    """Download a dataset, check it, and say where it is."""
    from bsufs_paper.datasets import find_dataset, load_dataset

    home = data_home or context.obj
    known = _registered(name)
    _silence_downloads()
    load_dataset(known, home)
    print(find_dataset(known, home))


def show(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A registered name.", show_default=False)],
    data_home: DataHome = None,
) -> None:
    """Tell everything that is known of a dataset."""
    from bsufs_paper.datasets import dataset_info

    known = _known(dataset_info(_registered(name)), data_home or context.obj)
    for key, value in known.items():
        print(f"{key + ':':<13} {value}")


def _silence_downloads() -> None:
    # Where pooch is missing, the loader says what to install.
    with contextlib.suppress(ImportError):
        import_module("pooch").get_logger().setLevel("WARNING")


def _registered(name: str) -> str:
    from bsufs_paper.datasets import list_datasets

    return one_of(name, [info.name for info in list_datasets()], "dataset")


def _known(info: Any, data_home: Path | None) -> dict[str, Any]:
    from bsufs_paper.datasets import data_folders, find_dataset

    path = find_dataset(info.name, data_home)
    folder = data_folders(data_home)[0]
    if path is not None:
        state = "present"
    elif info.file.sha256 is not None and info.file.url is not None:
        state = "can be downloaded"
    else:
        state = f"put {info.file.name} into {folder} by hand"
    return {
        "name": info.name,
        "samples": info.shape[0],
        "features": info.shape[1],
        "classes": info.n_classes,
        "state": state,
        "license": info.file.license or "none stated",
        "license_note": info.file.license_note,
        "location": str(path or folder / info.file.name),
        "source": info.file.url or "a file of your own",
        "sha256": info.file.sha256 or "not known",
        "description": info.description,
        "citation": info.citation,
    }
