"""The program: finds the commands, and turns what goes wrong into one line.

A command is a file of the program's package whose name has no underscore in front. It has a
function ``register(app: typer.Typer) -> None`` that adds its commands, and imports at its top
nothing but the standard library, typer, rich and modules that keep to the same (`_console`,
`_options`): all else inside its functions, so that ``--help`` stays fast.
"""

from __future__ import annotations

import inspect
import os
import pkgutil
import shlex
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import NoReturn

import typer

from bsufs._extras import MissingExtraError, install_hint
from bsufs.cli._console import complain

EXPECTED = (ValueError, OSError, ImportError, MemoryError)
USAGE_STATUS = 2
INTERRUPTED_STATUS = 130
TERMINATED_STATUS = 143
# What typer ends with when it notices first.
BROKEN_PIPE_STATUS = 1

_EXAMPLES = """
[bold]Examples[/bold]

[cyan]bsufs select table.csv -k 50 -o reduced.csv[/cyan]   keep 50 columns

[cyan]bsufs select table.csv -k 50 --tune --report page.html[/cyan]   tuned, and explained

[cyan]bsufs compare table.csv -k 50[/cyan]   several methods side by side
"""


@dataclass(frozen=True)
class Program:
    """A command line: its name, the package of its commands, and what it says of itself."""

    name: str
    package: str
    help: str
    examples: str


BSUFS = Program(
    "bsufs", "bsufs.cli", "Keep the most informative columns of a table, without labels.", _EXAMPLES
)


def build_app(program: Program = BSUFS) -> typer.Typer:
    """Return the program with every command that is found."""
    app = typer.Typer(
        name=program.name,
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(help=program.help, epilog=program.examples)(_options_of(program))
    for module_info in pkgutil.iter_modules(import_module(program.package).__path__):
        if not module_info.name.startswith("_"):
            import_module(f"{program.package}.{module_info.name}").register(app)
    _unwrap_help(app)
    return app


def _unwrap_help(app: typer.Typer) -> None:
    """Take the line breaks of the source out of the help, which has the width of the terminal."""
    for command in app.registered_commands:
        paragraphs = inspect.cleandoc(getattr(command.callback, "__doc__", None) or "").split(
            "\n\n"
        )
        command.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            _unwrap_help(group.typer_instance)


def _options_of(program: Program) -> Callable[..., None]:
    def print_version(asked: bool) -> None:
        if asked:
            distribution = import_module(program.package.partition(".")[0])
            print(f"{program.name} {distribution.__version__}")
            raise typer.Exit

    # Not annotated: the names of a function cannot be looked up in its annotations.
    show_version = typer.Option(
        False,
        "--version",
        metavar="",
        help="Show the version.",
        callback=print_version,
        is_eager=True,
    )
    show_origin = typer.Option(
        False, "--debug", metavar="", help="Show where an error came from; goes anywhere."
    )

    def options(version: bool = show_version, debug: bool = show_origin) -> None:
        pass

    return options


def run(arguments: Sequence[str] | None = None, program: Program = BSUFS) -> NoReturn:
    """Run the command line and exit.

    Status 0 is success, 2 an error that the user can mend (one line on standard error), 130 an
    interruption by Ctrl-C.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    # Ended by another process, what is half-written is cleared away as for Ctrl-C.
    former = signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED_STATUS))
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: complain(
                str(message), kind="warning: ", program=program.name
            )
            app = build_app(program)
            command = shlex.join([program.name, *words])
            status = app(args=words, prog_name=program.name, standalone_mode=False, obj=command)
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = INTERRUPTED_STATUS
    except BrokenPipeError:
        # Nobody reads on, and the flush at exit must not complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = BROKEN_PIPE_STATUS
    except Exception as error:
        status = (
            INTERRUPTED_STATUS
            if _is_interruption(error)
            else report_error(error, debug, program.name)
        )
    finally:
        signal.signal(signal.SIGTERM, former)
    if status == INTERRUPTED_STATUS:
        complain("interrupted", kind="", program=program.name)
    sys.exit(status if isinstance(status, int) else 0)


def _is_interruption(error: BaseException | None) -> bool:
    """Tell whether Ctrl-C is behind an error: a compiled module that is being loaded hides it."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def report_error(error: Exception, debug: bool, program: str) -> int:
    """Say what went wrong; only an error that nobody expected comes with its traceback."""
    # Usage errors have their own classes, and where these live depends on the version of typer.
    describe = getattr(error, "format_message", None)
    expected = describe is not None or isinstance(error, EXPECTED)
    if debug or not expected:
        traceback.print_exc()
    if not expected:
        return 1
    message = describe() if describe is not None else _in_words(error)
    # Without any argument the help has been shown, and there is nothing to add.
    if message:
        complain(message, program=program)
    return USAGE_STATUS


def _in_words(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return f"out of memory: {error}" if str(error) else "out of memory"
    if isinstance(error, OSError) and error.strerror:
        where = f"{os.fsdecode(error.filename)}: " if error.filename is not None else ""
        return f"{where}{error.strerror}"
    if isinstance(error, ModuleNotFoundError) and not isinstance(error, MissingExtraError):
        return install_hint("this command", error.name, "cli")
    return str(error) or type(error).__name__
