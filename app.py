"""Entry point of the Space, of Docker and of a laptop."""

from __future__ import annotations

import sys

from condviz.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["serve"]))
