"""Start the page over the stand-in core of tests/ui/fakes.py: python -m tests.e2e.serve PORT."""

from __future__ import annotations

import sys
import time
from dataclasses import replace

from condviz.ui.app import Settings, build_app, launch_options
from condviz.ui.first_screen import compute
from condviz.ui.form_state import FormState
from tests.ui import fakes
from tests.ui.errors_fakes import make_errors_engine
from tests.ui.links_fakes import make_links_engine
from tests.ui.map_fakes import make_map, make_map_engine

NAMES = ("minilm", "bi-encoder", "tri-hadamard", "tri-concat", "hyper-cl", "csr", "csr-bi", "case", "cross-encoder")
FORM = FormState(
    "A man in a blue jacket skis down a slope.",
    "A woman in a blue jacket surfs a wave.",
    ("the sport", "the colour of the jacket"),
    ("minilm", "bi-encoder", "hyper-cl", "csr", "cross-encoder"),
)


def slow_load(name: str) -> fakes.FakeModel:
    """Take as long as the test of the Stop button needs for one model only."""
    if name == "slow":
        time.sleep(4)
    return fakes.FakeModel(name)


def main() -> None:
    """Serve until killed."""
    engine = fakes.make_engine((*NAMES, "slow", "broken"), broken=("broken",), load=slow_load)
    engine = replace(
        engine,
        errors=make_errors_engine(),
        links=make_links_engine(),
        map=make_map_engine(),
    )
    screen = compute(fakes.make_engine(NAMES), FORM)
    settings = Settings(
        engine=engine,
        first_screen=lambda: screen,
        map_scene=lambda: make_map().to_dict(),
        links_scene=lambda: None,
    )
    demo = build_app(settings)
    demo.launch(**{**launch_options(), "server_port": int(sys.argv[1])})


if __name__ == "__main__":
    main()
