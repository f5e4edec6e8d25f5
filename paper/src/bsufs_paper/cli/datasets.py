"""``bsufs-paper datasets``: what is registered, what is at hand, and how to get the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bsufs.cli._console import dump, print_table
from bsufs.cli._options import one_of

DataHome = Annotated[
    Path | None, typer.Option("--data-home", metavar="DIR", help="The folder to look into first.")
]
JsonOption = Annotated[bool, typer.Option("--json", metavar="", help="Print as JSON.")]
_EPILOG = """
bsufs-paper datasets --json
bsufs-paper datasets show COIL20
bsufs-paper datasets fetch COIL20 --data-home data
"""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(rich_markup_mode="rich")
    group.callback(invoke_without_command=True, epilog=_EPILOG)(datasets)
    group.command("list")(list_all)
    group.command("fetch")(fetch)
    group.command("show")(show)
    app.add_typer(group, name="datasets")


def datasets(
    context: typer.Context, as_json: JsonOption = False, data_home: DataHome = None
) -> None:
    """List the registered datasets, show one, or fetch it."""
    context.obj = data_home
    if context.invoked_subcommand is None:
        list_all(context, as_json, data_home)


def list_all(
    context: typer.Context, as_json: JsonOption = False, data_home: DataHome = None
) -> None:
    """List the registered datasets, and which of them are here."""
    from bsufs_paper.datasets import list_datasets

    home = data_home or context.obj
    rows = [_known(info, home) for info in list_datasets()]
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
    from bsufs_paper.datasets import fetch_dataset, load_dataset

    known, home = _registered(name), data_home or context.obj
    path = fetch_dataset(known, home)
    load_dataset(known, home)  # that it can be read is part of the check
    print(path)


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


def _registered(name: str) -> str:
    from bsufs_paper.datasets import list_datasets

    return one_of(name, [info.name for info in list_datasets()], "dataset")


def _known(info: Any, data_home: Path | None) -> dict[str, Any]:
    from bsufs_paper.datasets import data_folders, find_dataset

    path = find_dataset(info.name, data_home)
    folder = data_folders(data_home)[0]
    if path is not None:
        state = "present"
    elif info.generator is not None:
        state = "drawn by a generator"
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
