"""Where files lie: what ships with the package, and what people make with it.

In a clone all of it is beside the package. An installed package has its assets and one trained model inside, and what
people make goes into the folder for data of the user, as platformdirs names it.
"""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_data_path

_PACKAGE = Path(__file__).resolve().parent
CLONE = None if (_PACKAGE / "assets").is_dir() else _PACKAGE.parent
"""The clone, or Space, that the program runs from; None where the package is installed."""
_DATA = CLONE or user_data_path("condviz", appauthor=False)

ASSETS = Path(os.environ.get("CONDVIZ_ASSETS") or (CLONE / "assets" if CLONE else _PACKAGE / "assets"))
"""Texts, styles and scripts."""
CHECKPOINTS = Path(os.environ.get("CONDVIZ_CHECKPOINTS") or _DATA / "checkpoints")
"""Where trained models are written, one per subfolder."""
MODEL_FOLDERS = tuple(dict.fromkeys((CHECKPOINTS, _DATA / "checkpoints", _PACKAGE / "checkpoints")))
"""Where trained models are looked for, the first folder first."""
JOBS = Path(os.environ.get("CONDVIZ_JOBS") or _DATA / "runs")
"""Trainings, one per subfolder, and uploaded tables."""
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
