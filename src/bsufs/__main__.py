"""The command line as ``python -m bsufs``."""

from bsufs.cli import main

if __name__ == "__main__":
    main()
