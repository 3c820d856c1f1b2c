"""What a page says of itself to sites that show a preview of a link."""

from __future__ import annotations

import re

from gradio import routes
from jinja2 import FileSystemLoader
from starlette.requests import Request

from condviz.ui.markup import STATIC
from condviz.ui.theme import show_preview


def test_the_preview_of_a_link_tells_of_this_page_alone() -> None:
    environment = routes.templates.env
    environment.loader = FileSystemLoader(routes.STATIC_TEMPLATE_LIB)
    show_preview()
    scope = {
        "type": "http",
        "scheme": "http",
        "path": "/",
        "headers": [(b"host", b"class.example")],
        "query_string": b"",
    }
    page = environment.get_template("frontend/index.html").render(request=Request(scope), config={"title": "CondViz"})
    tags = dict(re.findall(r'<meta\s+property="og:(\w+)"\s+content="([^"]*)"', page))
    assert tags["title"] == "CondViz"
    assert "sentences" in tags["description"]
    assert tags["image"].startswith(f"http://class.example/{STATIC}/images/preview.png")
    assert "Gradio" not in page.split("</head>")[0].split("<script")[0]
