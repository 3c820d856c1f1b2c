"""Serve pages with some shipped models and their jobs in FOLDER: python -m tests.e2e.serve FOLDER PORT[=TAB+TAB] ...

Each port gets a page of its own, with all tabs or with those named: the fewer tabs, the sooner a browser has read it.
"""

from __future__ import annotations

import os
import sys

NAMES = (
    "minilm", "bi-encoder", "case", "csr-bi", "csr-prefix", "hyper-cl", "cross-encoder",
    "csr", "tri-concat", "tri-hadamard", "case-zero-shot",
)  # fmt: skip
"""What tests and lessons ask for. A page with the Train tab adds all others once it is opened."""


def main() -> None:
    """Serve until killed; the line of the last page says that all are there."""
    folder, *places = sys.argv[1:]
    os.environ |= {"CONDVIZ_JOBS": folder, "GRADIO_TEMP_DIR": f"{folder}/uploads"}
    from condviz.ui.app import TABS, Settings, build_app, launch_options
    from condviz.ui.pool import ModelPool

    pool = ModelPool(NAMES)
    pool.preload().join()  # while a model is missing, every page asks for news several times a second
    for place in places:
        port, _, names = place.partition("=")
        tabs = tuple(tab for tab in TABS if tab.id in names.split("+")) or TABS
        demo = build_app(Settings(pool=lambda: pool, tabs=tabs, preload=False))
        last = place == places[-1]
        demo.launch(**launch_options(port=int(port)), prevent_thread_lock=not last, quiet=not last)


if __name__ == "__main__":
    main()
