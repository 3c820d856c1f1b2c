"""Markup of the page: Jinja2 templates with autoescape, and the gr.HTML components that show them."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

import gradio as gr
from jinja2 import Environment
from markupsafe import Markup

from condviz.paths import ASSETS
from condviz.plots.html import TEMPLATES as PICTURES
from condviz.plots.html import make_environment

TEMPLATES = Path(__file__).parent / "templates"
TERMS = tomllib.loads((Path(__file__).parent / "glossary.toml").read_text(encoding="utf-8"))
"""Key of a term of the page -> its title and its explanation in the glossary."""
SCRIPTS = ("frames", "page", "compare", "words", "errors", "figure", "plotly_panel", "map", "train", "links", "models",
           "learn", "learn_figures", "learn_class")  # fmt: skip
"""Under assets/js, in the order in which they run: `page` makes the object that those behind it add to."""
STATIC = "cv-static"
"""First part of the addresses of assets, see `condviz.ui.server.routes`; not what people serve the page under."""

_MARKED = re.compile(r'<dfn data-term="([a-z_-]+)">(.*?)</dfn>')
"""A term as pictures mark it, see `condviz.plots.html.term`."""
_PUNCTUATED = re.compile(r'[(“]?<button type="button" class="cv-term"[^<]*</button>[.,;:)”?!]+')
"""A term with its marks: browsers may break a line around a button."""
_OPENERS = {ord(character): f"&#{ord(character)};" for character in "${}`\\"}


@cache
def _environment() -> Environment:
    environment = make_environment(TEMPLATES, PICTURES)
    environment.globals |= {"term": term}
    return environment


def render(template: str, **values: Any) -> Markup:  # noqa: ANN401 - what the template takes
    """Render a template of `condviz/ui/templates` or `condviz/plots/templates`; whatever is put in gets escaped.

    Templates can call `term(key, text)` for a word that opens its entry in the glossary; terms in pictures open theirs.
    """
    return explained(_environment().get_template(template).render(**values))


def explained(picture: str) -> Markup:
    """Return a picture whose terms open their entries in the glossary."""
    shown = _MARKED.sub(lambda found: term(found[1], Markup(found[2])), picture)
    return Markup(_PUNCTUATED.sub(r'<span class="cv-kept">\g<0></span>', shown))


def term(key: str, text: str = "") -> Markup:
    """Render a term, one of `TERMS`, as it stands in a sentence; it opens its explanation."""
    shown = text or TERMS[key]["title"]
    return Markup('<button type="button" class="cv-term" popovertarget="cv-term-{}">{}</button>').format(key, shown)


def html(value: str = "", *, elem_id: str, script: str = "", **options: Any) -> gr.HTML:  # noqa: ANN401 - as gr.HTML
    """Lay out a component that shows rendered markup under the styles of this package alone.

    `script` runs once it is in the page; `trigger("name", data)` in it fires an event of the component.
    """
    scripted = page_script(script) if script else None
    return gr.HTML(str(value), elem_id=elem_id, apply_default_css=False, js_on_load=scripted, **options)


def page_script(script: str) -> str:
    """Return a script of a component in which `trigger` loses nothing that is fired while an answer is on its way."""
    return f"trigger = condviz.latest(trigger); {script}"


def notice(
    title: str, message: str, *, tone: Literal["error", "info", "busy"] = "error", hint: str = "", share: float = 0.0
) -> Markup:
    """Render a message that screen readers announce, an error at once; `share` of busy work, in [0, 1], is done."""
    return render("notice.html", title=title, message=message, tone=tone, hint=hint, share=share)


def busy(message: str, done: int = 0, total: int = 0) -> Markup:
    """Render the progress of work that goes on."""
    share = done / total if total else 0.0
    shown = f"{message} {100 * share:.0f}\N{NO-BREAK SPACE}%" if total else message
    return notice("", shown, tone="busy", share=share)


def dimmed(picture: str) -> Markup:
    """Render a result that does not hold any more while the next one is computed."""
    return Markup('<div class="cv-dimmed" data-ready="false" aria-busy="true">{}</div>').format(picture)


def noted(markup: str, **chosen: str | int | Sequence[str]) -> Markup:
    """Wrap the content of a section so that the page keeps in its address what was chosen there; "" takes a key out."""
    return Markup('<div data-noted="{}">{}</div>').format(urlencode(chosen, doseq=True), markup)


def inert(markup: str) -> str:
    """Return markup that may stand in a template, which gradio reads as Handlebars and then as JavaScript."""
    return markup.translate(_OPENERS)


def static_url(path: str) -> str:
    """Return the address of an asset relative to the page, so that it holds behind any proxy prefix."""
    return f"{STATIC}/{path}?v={int((ASSETS / path).stat().st_mtime)}"


def page_scripts() -> str:
    """Return the script tags of the page.

    They stand before gradio's, which are modules: these run once the page is parsed, in the order in which they stand.
    In the head of a component they came after it, and what was clicked until then was lost.
    """
    return "".join(f'<script defer src="{static_url(f"js/{name}.js")}"></script>' for name in SCRIPTS)


def read_asset(name: str | Path) -> Any:  # noqa: ANN401 - any JSON
    """Read a JSON file of the assets; None where it is absent or damaged, so that the page starts all the same."""
    try:
        return json.loads((ASSETS / name).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
