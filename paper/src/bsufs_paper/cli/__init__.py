"""The command line ``bsufs-paper``."""

from bsufs.cli._program import Program, run

_EXAMPLES = """
bsufs-paper reproduce --quick   # a sample of the paper's tables and figures
bsufs-paper run mine.yaml       # a comparison of your own
bsufs-paper datasets            # the datasets, and which of them are here
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
