"""Jinja2 templates of pictures, with autoescape: what a visitor typed can never become markup."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from condviz import __version__
from condviz.paths import ASSETS

_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
TEMPLATES = Path(__file__).parent / "templates"
STYLES = ("tokens.css", "pictures.css")
"""The stylesheets of pictures, under assets/css: colours and sizes, then the pictures themselves."""


def make_environment(*folders: Path) -> Environment:
    """Build a Jinja2 environment over folders of templates.

    The filters `signed(digits)` and `plain(digits)` format numbers with a real minus sign, `term(key, text)` marks a
    term of the glossary. Characters that HTML cannot hold (control characters, halves of surrogate pairs) are replaced
    wherever a text is put in.
    """
    environment = Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )
    environment.filters |= {"signed": signed, "plain": plain}
    environment.globals |= {"term": term}
    return environment


def _printable(value: Any) -> Any:  # noqa: ANN401 - whatever a template prints
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", value) if type(value) is str else value


@cache
def _environment() -> Environment:
    return make_environment(TEMPLATES)


def render(template: str, **values: Any) -> Markup:  # noqa: ANN401 - what the template takes
    """Render a template of `condviz/plots/templates`; the result is safe to put into other templates."""
    return Markup(_environment().get_template(template).render(**values))


def with_styles(markup: str, *names: str) -> str:
    """Prepend `STYLES`, and others of assets/css by name, to a picture, so that it looks the same outside the page."""
    files = [ASSETS / "css" / name for name in (*STYLES, *names)]
    css = "\n".join(file.read_text(encoding="utf-8") for file in files if file.is_file())
    return f'<style>{css}</style><div class="cv-picture">{markup}</div>'


def to_page(title: str, body: Markup, *names: str) -> str:
    """Render a picture, with other stylesheets by name, as a file: no script, light and dark, fit for printing."""
    whole = Markup(with_styles(body, "evaluation.css", *names))
    return str(render("page.html", title=title, body=whole, version=__version__))


def term(key: str, text: str) -> Markup:
    """Mark a term that the page explains; elsewhere it is plain text."""
    return Markup('<dfn data-term="{}">{}</dfn>').format(key, text)


def cut(text: str, length: int) -> str:
    """Return a text of at most so many characters, with an ellipsis where it goes on."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def signed(value: float, digits: int = 2) -> str:
    """Format a number with its sign and a real minus: +0.12, −0.12."""
    return f"{value:+.{digits}f}".replace("-", "\N{MINUS SIGN}")


def plain(value: float, digits: int = 2) -> str:
    """Format a number with a real minus; -0.00 becomes 0.00."""
    text = f"{value:.{digits}f}"
    return (text.lstrip("-") if float(text) == 0 else text).replace("-", "\N{MINUS SIGN}")
