"""What a page says of itself to sites that show a preview of a link."""

from __future__ import annotations

import re
from pathlib import Path

from gradio import routes
from starlette.requests import Request

from condviz.paths import ASSETS
from condviz.ui.markup import STATIC
from condviz.ui.theme import fill_template


def test_the_preview_of_a_link_tells_of_this_page_alone() -> None:
    environment = routes.templates.env
    fill_template()
    fill_template()  # for a second app of the process
    scope = {
        "type": "http",
        "scheme": "http",
        "path": "/",
        "headers": [(b"host", b"class.example")],
        "query_string": b"near=30&q=%3Cb%3E",
    }
    page = environment.get_template("frontend/index.html").render(
        request=Request(scope),
        config={"title": "CondViz", "pages": [("", "Home", True), ("map", "Map", False)], "current_page": "map"},
    )
    tags = dict(re.findall(r'<meta\s+property="og:([\w:]+)"\s+content="([^"]*)"', page))
    assert tags["title"] == "Map · CondViz"
    assert tags["url"] == "http://class.example/map?near=30&amp;q=%3Cb%3E"
    assert tags["image:alt"]
    assert "sentences" in tags["description"]
    assert tags["image"].startswith(f"http://class.example/{STATIC}/images/preview.png")
    assert "Gradio" not in page.split("</head>")[0].split("<script")[0]
    assert page.count("js/page.js") == 1
    assert "js/frames.js" in page.split("<script")[1], "before gradio takes what it draws with"


def test_the_frames_that_are_spared_are_those_that_this_gradio_asks_for() -> None:
    clock, motions = re.findall(r"= /(.+)/;", (ASSETS / "js" / "frames.js").read_text())
    programs = Path(routes.STATIC_TEMPLATE_LIB, "frontend", "assets")
    for name, pattern in (("statustracker", clock), ("index", motions)):
        (program,) = programs.glob(f"{name}-*.js")
        assert re.search(pattern, program.read_text()), name
