"""The look of the page. Colours and sizes live in assets/css/tokens.css as custom properties; gradio's follow them."""

from __future__ import annotations

import os
import re
from typing import cast

from gradio import routes, themes
from jinja2 import BaseLoader, FunctionLoader

from condviz.ui.markup import page_scripts, static_url

PAPER, PAPER_DARK, INK, INK_DARK = "#f7f5f0", "#15181c", "#1c2126", "#e8e5de"
SANS = ("CondViz Sans", "Segoe UI", "system-ui", "sans-serif")
SHEETS = ("tokens", "page", "pictures", "figures", "evaluation", "words", "map", "errors", "links", "train", "models",
          "search", "learn", "lessons")  # fmt: skip
"""Under assets/css; a later sheet may refine an earlier one."""
_GRADIO = cast(BaseLoader, routes.templates.env.loader)
"""Reads gradio's own templates."""
DESCRIPTION = "How alike are two sentences? It depends on what you ask about: compare models of conditional similarity."
PICTURED = "Two sentences about an exam: bars show them very alike under the school subject, far apart under the mood."
_LABEL = (
    '{% for one in config.get("pages", []) if one[0] and one[0] == config.get("current_page") %}{{ one[1] }} · '
    "{% endfor %}"
)
"""In gradio's template: what the header calls a page, but for the first."""
_TAGS = re.compile(r'<meta\s+(?:property="og:|name="twitter:)[^>]*>')
MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace")

_BOTH = {
    "background_fill_primary": "var(--cv-panel)",
    "background_fill_secondary": "var(--cv-paper)",
    "border_color_primary": "var(--cv-rule)",
    "border_color_accent": "var(--cv-ink)",
    "body_text_color_subdued": "var(--cv-muted)",
    "color_accent_soft": "var(--cv-wash)",
    "link_text_color": "var(--cv-link)",
    "link_text_color_hover": "var(--cv-ink)",
    "link_text_color_active": "var(--cv-ink)",
    "link_text_color_visited": "var(--cv-link)",
    "code_background_fill": "var(--cv-wash)",
    "block_shadow": "none",
    "input_shadow": "none",
    "input_shadow_focus": "none",
    "block_border_width": "0px",
    "block_label_border_width": "0px",
    "block_background_fill": "transparent",
    "block_border_color": "var(--cv-rule)",
    "block_label_background_fill": "transparent",
    "block_label_text_color": "var(--cv-muted)",
    "block_title_text_color": "var(--cv-muted)",
    "block_info_text_color": "var(--cv-muted)",
    "panel_background_fill": "transparent",
    "input_background_fill": "var(--cv-panel)",
    "input_background_fill_focus": "var(--cv-panel)",
    "input_border_color": "var(--cv-rule-strong)",
    "input_border_color_focus": "var(--cv-ink)",
    "input_placeholder_color": "var(--cv-muted)",
    "button_primary_background_fill": "var(--cv-ink)",
    "button_primary_background_fill_hover": "var(--cv-ink-soft)",
    "button_primary_border_color": "var(--cv-ink)",
    "button_primary_text_color": "var(--cv-panel)",
    "button_secondary_background_fill": "transparent",
    "button_secondary_background_fill_hover": "var(--cv-wash)",
    "button_secondary_border_color": "var(--cv-rule-strong)",
    "button_secondary_text_color": "var(--cv-ink)",
}


def build_theme() -> themes.Base:
    """Return the gradio theme; light and dark take the same custom properties, which change with the mode."""
    hues = dict.fromkeys(("primary_hue", "secondary_hue", "neutral_hue"), themes.colors.stone)
    theme = themes.Base(**hues, radius_size=themes.sizes.radius_none, font=SANS, font_mono=MONO)
    both = {key: value for name, value in _BOTH.items() for key in (name, f"{name}_dark")}
    flat = [f"{part}_shadow{state}" for part in ("button_primary", "button_secondary") for state in ("", "_hover")]
    round_ = ["input_radius", *(f"button_{size}_radius" for size in ("large", "medium", "small"))]
    return theme.set(
        body_background_fill=PAPER,
        body_background_fill_dark=PAPER_DARK,
        body_text_color=INK,
        body_text_color_dark=INK_DARK,
        color_accent="var(--cv-ink)",
        block_padding="0px",
        block_title_text_size="var(--cv-small)",
        block_title_text_weight="600",
        button_transition="background-color 150ms, border-color 150ms",
        layout_gap="var(--cv-gap)",
        **dict.fromkeys(flat, "none"),
        **dict.fromkeys(round_, "var(--cv-radius)"),
        **both,
    )


def page_head() -> str:
    """Return the content of <head>: fonts and styles, all served by this app; nothing from other hosts."""
    faces = [
        ("CondViz Sans", "fonts/ibm-plex-sans-latin-wght-normal.woff2", "100 700"),
        ("CondViz Serif", "fonts/source-serif-4-latin-wght-normal.woff2", "200 900"),
    ]
    fonts = "".join(
        f'@font-face{{font-family:"{name}";src:url("{static_url(path)}") format("woff2");'
        f"font-weight:{weights};font-display:swap}}"
        for name, path, weights in faces
    )
    sheets = "".join(f'<link rel="stylesheet" href="{static_url(f"css/{name}.css")}">' for name in SHEETS)
    return f'<style>{fonts}</style>{sheets}<meta name="color-scheme" content="light dark">'


def fill_template() -> None:
    """Put title, description and picture of this page where other sites look for a preview of a link, and its scripts.

    Other sites run no script, and read the first tags of the page, which gradio's template fills in for itself. A
    process may serve several apps, each of which fills it in anew.
    """
    environment = routes.templates.env

    def preview(name: str) -> str:
        page = _TAGS.sub("", _GRADIO.get_source(environment, name)[0]).replace("<head>", f"<head>{_preview()}", 1)
        return page.replace("<script", f"{page_scripts()}<script", 1)

    environment.loader = FunctionLoader(preview)


def _preview() -> str:
    host = os.environ.get("SPACE_HOST", "")
    place = f"https://{host}/" if host else "{{ request.base_url }}"
    named = {"description": DESCRIPTION, "twitter:card": "summary_large_image"}
    page = '{{ config.get("current_page", "") }}{{ "?" ~ request.url.query if request.url.query }}'
    tags = {"title": f"{_LABEL}CondViz", "type": "website", "description": DESCRIPTION, "url": place + page}
    tags |= {"image": place + static_url("images/preview.png"), "image:alt": PICTURED}
    metas = [f'<meta name="{name}" content="{content}">' for name, content in named.items()]
    return "".join(metas + [f'<meta property="og:{name}" content="{content}">' for name, content in tags.items()])
