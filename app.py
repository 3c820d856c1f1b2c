"""Entry point of the Space, of Docker and of a laptop; takes the options of `python -m condviz serve`."""

from __future__ import annotations

import sys

from condviz.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["serve", *sys.argv[1:]]))
