"""Serve the page with some shipped models and its jobs in FOLDER: python -m tests.e2e.serve PORT FOLDER."""

from __future__ import annotations

import os
import sys

NAMES = ("minilm", "bi-encoder", "case", "csr-bi", "csr-prefix", "hyper-cl", "cross-encoder")


def main() -> None:
    """Serve until killed."""
    port, folder = sys.argv[1:]
    os.environ |= {"CONDVIZ_JOBS": folder, "GRADIO_TEMP_DIR": f"{folder}/uploads"}
    from condviz.ui.app import Settings, build_app, launch_options
    from condviz.ui.pool import ModelPool

    build_app(Settings(pool=lambda: ModelPool(NAMES), preload=False)).launch(**launch_options(port=int(port)))


if __name__ == "__main__":
    main()
