"""Folders beside the package: what is shipped with it and is not code."""

from __future__ import annotations

import os
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent

ASSETS = Path(os.environ.get("CONDVIZ_ASSETS") or _ROOT / "assets")
"""Texts, styles and scripts: beside the package in a checkout; CONDVIZ_ASSETS moves it."""
CHECKPOINTS = Path(os.environ.get("CONDVIZ_CHECKPOINTS") or _ROOT / "checkpoints")
"""Trained models, one per subfolder: beside the package in a checkout; CONDVIZ_CHECKPOINTS moves it."""
JOBS = Path(os.environ.get("CONDVIZ_JOBS") or _ROOT / "runs")
"""Trainings, one per subfolder: beside the package in a checkout; CONDVIZ_JOBS moves it."""
CACHE = "CONDVIZ_CACHE"
"""The variable that moves `cache_folder`."""


def cache_folder() -> Path:
    """Return the folder for what can be computed again, such as vectors: CONDVIZ_CACHE, else ~/.cache/condviz."""
    return Path(os.environ.get(CACHE) or Path.home() / ".cache" / "condviz")


def is_folder(name: str) -> bool:
    """Return whether a text is the path of a folder; one that cannot be a path is not."""
    try:
        return Path(name).is_dir()
    except (OSError, ValueError):  # for instance a name that is too long
        return False
