"""Run the command line: python -m condviz."""

from __future__ import annotations

import sys

from condviz.cli.main import main

sys.exit(main())
