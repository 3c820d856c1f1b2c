"""Entry point of the Space, of Docker and of a laptop."""

from __future__ import annotations

import os

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

from condviz.ui.app import build_app, launch_options

demo = build_app()

if __name__ == "__main__":
    demo.launch(**launch_options())
