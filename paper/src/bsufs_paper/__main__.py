"""The command line as ``python -m bsufs_paper``."""

from bsufs_paper.cli import main

if __name__ == "__main__":
    main()
