"""The program: finds the commands, and turns what goes wrong into one line.

A command is a file of the program's package whose name has no underscore in front. It has a
function ``register(app: typer.Typer) -> None`` that adds its commands, and imports at its top
nothing but the standard library, typer, rich and modules that keep to the same (`_console`,
`_options`): all else inside its functions, so that ``--help`` stays fast.
"""

import os
import pkgutil
import shlex
import signal
import sys
import textwrap
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from typing import Any, NoReturn

import typer

from bsufs._extras import MissingExtraError, install_hint
from bsufs.cli._console import Console, complain

EXPECTED = (ValueError, OSError, ImportError, MemoryError)
USAGE_STATUS = 2
INTERRUPTED_STATUS = 130
TERMINATED_STATUS = 143
# What typer ends with when it notices first.
BROKEN_PIPE_STATUS = 1


@dataclass(frozen=True)
class Program:
    """A command line: its name, the package of its commands, and what it says of itself."""

    name: str
    package: str
    help: str
    examples: str


BSUFS = Program(
    "bsufs",
    "bsufs.cli",
    "Keep the most informative columns of a table, without labels.",
    """
    bsufs select table.csv -k 50 -o reduced.csv       # keep 50 columns
    bsufs select table.csv -k 50 --report page.html   # and say why
    bsufs compare table.csv -k 50                     # several methods side by side
    bsufs app                                         # a page instead of commands
    """,
)


def build_command(program: Program = BSUFS) -> Any:
    """Return the program with every command that is found."""
    app = typer.Typer(
        name=program.name,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback(help=program.help, epilog=program.examples)(_options_everywhere)
    for module_info in pkgutil.iter_modules(import_module(program.package).__path__):
        if not module_info.name.startswith("_"):
            import_module(f"{program.package}.{module_info.name}").register(app)
    command = typer.main.get_command(app)
    _write_own_help(command)
    return command


def _write_own_help(command: Any) -> None:
    """Let a command and those in it say of themselves what `_write_help` writes."""
    command.format_help = partial(_write_help, command)
    for one in getattr(command, "commands", {}).values():
        _write_own_help(one)


def _write_help(command: Any, context: Any, formatter: Any) -> None:
    """Write what a command does, its options in their groups, and examples."""
    formatter.write_usage(context.command_path, usage(command))
    for paragraph in (command.help or "").split("\n\n"):
        formatter.write_paragraph()
        formatter.write_text(" ".join(paragraph.split()))
    commands = getattr(command, "commands", {})
    shown = {"Commands": [(name, one.help.partition("\n\n")[0]) for name, one in commands.items()]}
    for group, rows in (help_rows(command, context) | shown).items():
        if rows:
            with formatter.section(typer.style(group, bold=True)):
                formatter.write_dl(rows, col_max=34)
    if command.epilog:
        with formatter.section(typer.style("Examples", bold=True)):
            formatter.write(textwrap.indent(textwrap.dedent(command.epilog).strip(), "  ") + "\n")


def usage(command: Any) -> str:
    """Return what follows the name of a command: its options and arguments."""
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    shown = [one.metavar if one.required else f"[{one.metavar}]" for one in arguments]
    return " ".join(["[OPTIONS]", *shown, *(["COMMAND"] if hasattr(command, "commands") else [])])


def help_rows(command: Any, context: Any) -> dict[str, list[tuple[str, str]]]:
    """Return the names of options with what they mean, in groups; arguments come first."""
    groups: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
    for parameter in command.get_params(context):
        is_argument = parameter.param_type_name == "argument"
        names = [] if is_argument else sorted(parameter.opts, key=lambda name: name[:2] == "--")
        is_flag = getattr(parameter, "is_flag", False)
        value = [parameter.metavar] if parameter.metavar and not is_flag else []
        shown = " ".join([", ".join(names), *value]).strip()
        words, default = parameter.help or "", parameter.default
        if getattr(parameter, "show_default", False) and default and not callable(default):
            words += f" Default: {getattr(default, 'value', default)}."
        group = getattr(parameter, "rich_help_panel", None)
        group = group or ("Arguments" if is_argument else "Options")
        groups.setdefault(group, []).append((shown, words))
    return groups


def _print_version(context: typer.Context, asked: bool) -> None:
    if asked:
        name = str(context.info_name)
        print(f"{name} {import_module(name.replace('-', '_')).__version__}")
        raise typer.Exit


def _options_everywhere(
    version: bool = typer.Option(
        False, "--version", help="Show the version.", callback=_print_version, is_eager=True
    ),
    debug: bool = typer.Option(
        False, "--debug", help="Show where an error came from; goes anywhere."
    ),
) -> None:
    pass


def run(arguments: Sequence[str] | None = None, program: Program = BSUFS) -> NoReturn:
    """Run the command line and exit.

    Status 0 is success, 2 an error that the user can mend (one line on standard error), 130 an
    interruption by Ctrl-C.
    """
    words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    debug, status = "--debug" in words, None
    words = [word for word in words if word != "--debug"]
    terminated: list[int] = []
    # Each warning once, however often numbers overflow.
    warn = cache(partial(complain, kind="warning: ", program=program.name))

    def end(*_: object) -> NoReturn:
        terminated.append(TERMINATED_STATUS)
        # A module that is being loaded may swallow this; then the next step of the work ends it.
        Console.listeners.append(end)
        sys.exit(TERMINATED_STATUS)

    # Ended by another process, what is half-written is cleared away as for Ctrl-C.
    former = signal.signal(signal.SIGTERM, end), list(Console.listeners), sys.unraisablehook
    sys.unraisablehook = lambda lost: None if lost.exc_type is SystemExit else former[2](lost)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: warn(str(message))
            command = build_command(program)
            typed = shlex.join([program.name, *words])
            status = command(args=words, prog_name=program.name, standalone_mode=False, obj=typed)
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = INTERRUPTED_STATUS
    except BrokenPipeError:
        # Nobody reads on, and the flush at exit must not complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = BROKEN_PIPE_STATUS
    except Exception as error:
        if _is_interruption(error):
            status = INTERRUPTED_STATUS
        elif not terminated:
            status = report_error(error, debug, program.name)
    finally:
        signal.signal(signal.SIGTERM, former[0])
        Console.listeners[:], sys.unraisablehook = former[1:]
    if status == INTERRUPTED_STATUS:
        complain("interrupted", kind="", program=program.name)
    sys.exit(terminated[0] if terminated else status if isinstance(status, int) else 0)


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
    message = _in_words(error) if describe is None else describe().replace("Value error, ", "")
    context = getattr(error, "ctx", None)
    if context is not None:
        message = f"{message.rstrip('.')}. See {context.command_path} --help."
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
