"""Serve apps over the shipped models and their jobs in FOLDER: python -m tests.e2e.serve FOLDER PORT[=APP] ...

Each port gets an app of its own: that which ships; `failing`, of which every handler is made to fail; `panels`, linked
figures and nothing else. All of them share the models, and the folder FOLDER/checkpoints, where trainings find a tiny
encoder and leave their models.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

if TYPE_CHECKING:
    import gradio as gr

    from condviz.ui.pool import ModelPool

NAMES = (
    "minilm", "bi-encoder", "bi-encoder-csts", "case", "csr-bi", "csr-prefix", "hyper-cl",
    "cross-encoder", "csr", "tri-concat", "tri-hadamard", "case-zero-shot",
)  # fmt: skip
"""What tests and lessons ask for; others are added once a page is opened."""
SHIPPED = Path(__file__).resolve().parents[2] / "checkpoints"


def main() -> None:
    """Serve until killed; a line says that all are there."""
    folder, *places = sys.argv[1:]
    prepare(Path(folder))
    from condviz.ui.app import launch_options
    from condviz.ui.pool import ModelPool

    # A check starts its process itself: one that waits for it would import torch once more, at each visit of Train.
    patch("condviz.ui.train.tab.prepare_probe").start()
    pool = ModelPool(NAMES)
    apps = {int(port): build(name, pool) for port, _, name in (place.partition("=") for place in places)}
    pool.preload().join()  # while a model is missing, every page asks for news several times a second
    gc.freeze()  # the million objects of pages and models stay, as in the app
    for port, app in apps.items():
        app.launch(**launch_options(port=port), prevent_thread_lock=True, quiet=True)
    sys.stdout.write(f"Running on {[*apps]}\n")
    sys.stdout.flush()
    app.block_thread()


def prepare(folder: Path) -> None:
    """Fill the folder; call before anything of the package is imported, which reads where it lies."""
    checkpoints = folder / "checkpoints"
    os.environ["CONDVIZ_CHECKPOINTS"], os.environ["CONDVIZ_JOBS"] = str(checkpoints), str(folder / "jobs")
    os.environ["GRADIO_TEMP_DIR"] = str(folder / "uploads")
    os.environ["CONDVIZ_DATA"] = str(folder / "corpora")  # none: to read them all takes Errors ten seconds
    os.environ.pop("SPACE_ID", None)  # else nobody could train
    checkpoints.mkdir()
    for model in SHIPPED.iterdir():
        (checkpoints / model.name).symlink_to(model)
    from tests.tiny import tiny_folder

    tiny_folder(checkpoints / "encoder")  # among the folders that a recipe may name


def build(name: str, pool: ModelPool) -> gr.Blocks:
    """Return the app of that name."""
    from condviz.ui import events
    from condviz.ui.app import Settings, build_app
    from tests.e2e import panels
    from tests.pages import plant

    if name == "panels":
        return panels.build()
    settings = Settings(pool=lambda: pool, preload=False)
    if name != "failing":
        return build_app(settings)
    guard = events._guard
    with patch.object(events, "_guard", lambda handler, *told, **options: guard(plant(handler), *told, **options)):
        return build_app(settings)


if __name__ == "__main__":
    main()
