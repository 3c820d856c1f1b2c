"""The page builds without what takes seconds to import: what has to hold before anything else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUILD = """import sys; from condviz.ui.app import build_app
build_app()
loaded = {"torch", "umap", "plotly", "scipy.stats", "py3langid"} & set(sys.modules)
sys.exit(f"Building the page has imported {loaded}, which takes seconds." if loaded else 0)"""


def test_the_page_builds() -> None:
    done = subprocess.run([sys.executable, "-c", BUILD], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
