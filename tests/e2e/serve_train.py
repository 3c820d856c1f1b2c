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
from condviz.ui.app import Settings, build_app, launch_options
from condviz.ui.engine import Engine
from condviz.ui.first_screen import compute
from condviz.ui.form_state import FormState
from tests.tiny import tiny_folder

SHIPPED = "shipped"
FORM = FormState("a man rides a bike", "two dogs run over the wet grass", ("the sport", "the mood"), (SHIPPED,))


def main() -> None:
    """Serve until killed."""
    folder, port = Path(sys.argv[1]), int(sys.argv[2])
    if not CHECKPOINTS.is_relative_to(folder):
        raise SystemExit(f"CONDVIZ_CHECKPOINTS is {CHECKPOINTS}, expected a folder in {folder}.")
    method = METHODS["bi-encoder"]
    backbone = load_backbone(str(tiny_folder(folder / "encoder")), precision="float32")
    checkpoints.save(method(backbone, method.config_cls(pooling="mean")), CHECKPOINTS / SHIPPED)
    screen = compute(Engine(), FORM)
    demo = build_app(Settings(models=(SHIPPED,), first_screen=lambda: screen, map_scene=lambda: None))
    demo.launch(**{**launch_options(), "server_port": port})


if __name__ == "__main__":
    main()
