"""The command line ``bsufs-paper``."""

from bsufs.cli._program import Program, run

_EXAMPLES = """
[bold]Examples[/bold]

[cyan]bsufs-paper reproduce --quick[/cyan]   a sample of the paper's tables and figures

[cyan]bsufs-paper run mine.yaml[/cyan]   a comparison of your own

[cyan]bsufs-paper datasets[/cyan]   the datasets, and which of them are here
"""
PROGRAM = Program(
    "bsufs-paper",
    "bsufs_paper.cli",
    "Reproduce the paper's tables and figures, or run comparisons of your own.",
    _EXAMPLES,
)


def main() -> None:
    """Run the command line."""
    run(program=PROGRAM)
