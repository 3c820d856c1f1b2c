"""Start the page over one tiny real model, with trainings: python -m tests.e2e.serve_train FOLDER PORT.

CONDVIZ_CHECKPOINTS and CONDVIZ_JOBS have to name folders of the test.
"""

from __future__ import annotations

import sys
from pathlib import Path

from condviz.encoder.pretrained import load_backbone
from condviz.methods import METHODS
from condviz.models import checkpoints
from condviz.paths import CHECKPOINTS
from condviz.ui import compare
from condviz.ui.app import Settings, build_app, launch_options
from condviz.ui.pool import ModelPool
from condviz.ui.train import tab as train
from tests.tiny import tiny_folder

SHIPPED = "shipped"


def main() -> None:
    """Serve until killed."""
    folder, port = Path(sys.argv[1]), int(sys.argv[2])
    if not CHECKPOINTS.is_relative_to(folder):
        raise SystemExit(f"CONDVIZ_CHECKPOINTS is {CHECKPOINTS}, expected a folder in {folder}.")
    method = METHODS["bi-encoder"]
    encoder = tiny_folder(CHECKPOINTS / "encoder")  # among the folders that a recipe may name
    backbone = load_backbone(str(encoder), precision="float32")
    checkpoints.save(method(backbone, method.config_cls(pooling="mean")), CHECKPOINTS / SHIPPED)
    demo = build_app(Settings(pool=lambda: ModelPool((SHIPPED,)), tabs=(compare.TAB, train.TAB)))
    demo.launch(**{**launch_options(), "server_port": port})


if __name__ == "__main__":
    main()
