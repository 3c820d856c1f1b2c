"""The two kinds of gr.HTML that the page uses: plain markup, and checkboxes for the models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradio as gr

from condviz.types import ModelInfo
from condviz.ui.html import esc, model_badges, tag, text

# `html` and `attr` are escaped in Python; `raw` never enters the markup. No user text may come into a gr.HTML template.
_TEMPLATE = """<div class="cv-picker" role="group" aria-labelledby="cv-picker-title">
<div class="cv-picker-head"><span id="cv-picker-title">Models</span>
<button type="button" class="cv-link" data-all="1">all</button>
<button type="button" class="cv-link" data-all="0">none</button></div>
<div class="cv-picker-list">${choices.map((c, i) => `<label data-model="${c.attr}" title="${c.help}">
<input type="checkbox" data-index="${i}" data-testid="model-${c.attr}"
${(value || []).includes(c.raw) ? "checked" : ""}>
<span class="cv-dot" aria-hidden="true"></span>${c.html}</label>`).join("")}</div></div>"""

_SCRIPT = "condviz.picker(element, props, watch, () => trigger('input'));"


def markup(value: str, *, elem_id: str, script: str | None = None, **kwargs: Any) -> gr.HTML:  # noqa: ANN401 - as gr.HTML
    """Give a component that shows safe markup under the styles of this package alone.

    Args:
        value: Markup written by `condviz.ui.html`.
        elem_id: Its id in the page.
        script: JavaScript to run once it is in the page; names in quotes become events.
        kwargs: As gr.HTML.
    """
    return gr.HTML(value, elem_id=elem_id, js_on_load=script, apply_default_css=False, **kwargs)


class ModelPicker(gr.HTML):
    """A group of checkboxes whose value is the list of chosen model names; made by `model_picker`.

    The constructor stays that of gr.HTML: gradio builds the component again from it after every update.
    """

    def get_block_name(self) -> str:
        """Give the name of the component in the browser: that of the parent."""
        return "html"

    def preprocess(self, payload: Any) -> list[str]:  # noqa: ANN401 - whatever the browser sends
        """Give the chosen names; anything that is not a list of texts counts as none."""
        return [name for name in payload if isinstance(name, str)] if isinstance(payload, list) else []


def model_picker(infos: Sequence[ModelInfo], value: Sequence[str], *, elem_id: str) -> ModelPicker:
    """Lay out one checkbox per model.

    Args:
        infos: The models, in order.
        value: Names chosen at the start.
        elem_id: Its id in the page.
    """
    return ModelPicker(
        list(value),
        html_template=_TEMPLATE,
        js_on_load=_SCRIPT,
        apply_default_css=False,
        elem_id=elem_id,
        choices=[_choice(info) for info in infos],
    )


def _choice(info: ModelInfo) -> dict[str, str]:
    name = text("span", info.title, class_="cv-model-title")
    return {
        "raw": info.name,
        "attr": esc(info.name),
        "help": esc(info.summary),
        "html": name + tag("span", model_badges(info), class_="cv-badges"),
    }
