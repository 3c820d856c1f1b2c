"""The page builds and the command line starts: what has to hold before anything else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BUILD = """import sys; from condviz.ui.app import build_app
build_app()
loaded = {"torch", "umap", "plotly", "scipy.stats", "py3langid"} & set(sys.modules)
sys.exit(f"Building the page has imported {loaded}, which takes seconds." if loaded else 0)"""


@pytest.mark.parametrize("command", [["-c", BUILD], ["-m", "condviz", "--help"]], ids=["page", "help"])
def test_the_program_runs(command: list[str]) -> None:
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
