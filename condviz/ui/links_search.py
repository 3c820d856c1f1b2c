"""The field that searches entities: a combobox whose suggestions come from the server while one types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradio as gr

from condviz.ui.assets import page_scripts
from condviz.ui.html import tag

MAX_CHARACTERS = 200
_SCRIPT = "condviz.entitySearch(element, props, watch, server, () => trigger('input'));"


class EntitySearch(gr.HTML):
    """A search field whose value is {"id", "text"}; the id is "" while a name is only typed. Made by `entity_search`.

    The constructor stays that of gr.HTML: gradio builds the component again from it after every update.
    """

    def get_block_name(self) -> str:
        """Give the name of the component in the browser: that of the parent."""
        return "html"

    def preprocess(self, payload: Any) -> dict[str, str]:  # noqa: ANN401 - whatever the browser sends
        """Give id and text; anything else counts as an empty field."""
        value = payload if isinstance(payload, dict) else {}
        return {key: str(value.get(key) or "")[:MAX_CHARACTERS] for key in ("id", "text")}


def entity_search(find: Callable[[Any], list[dict[str, str]]], *, elem_id: str, label: str, info: str) -> EntitySearch:
    """Lay out the field.

    Args:
        find: Takes what the browser asks, {"graph", "text"}, and gives [{"id", "name", "label", "description"}].
        elem_id: Its id in the page.
        label: What stands over it.
        info: A line below.
    """

    def find_entities(asked: Any) -> list[dict[str, str]]:  # noqa: ANN401 - from the browser
        return find(asked)

    field = tag(
        "input", id=f"{elem_id}-field", type="text", role="combobox", autocomplete="off", spellcheck="false",
        aria_autocomplete="list", aria_expanded="false", aria_controls=f"{elem_id}-options", maxlength=MAX_CHARACTERS,
        data_testid="links-search",
    )  # fmt: skip
    options = tag("ul", id=f"{elem_id}-options", role="listbox", aria_label=label, hidden=True)
    title = tag("label", label, for_=f"{elem_id}-field")
    line = tag("p", info, class_="cv-muted")
    return EntitySearch(
        {"id": "", "text": ""},
        # Constant, so that no update writes the field anew while somebody types.
        html_template=tag("div", title, tag("div", field, options, class_="cv-combo-box"), line, class_="cv-combo"),
        js_on_load=_SCRIPT,
        head=page_scripts(),
        apply_default_css=False,
        elem_id=elem_id,
        server_functions=[find_entities],
        graph="",
    )
