"""The two kinds of gr.HTML that the page uses: plain markup, and checkboxes for the models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradio as gr

from condviz.types import ModelInfo
from condviz.ui.assets import page_scripts
from condviz.ui.html import attributes, inert, model_badges, script_text, tag, text

_SCRIPT = "condviz.picker(element, props, watch, () => trigger('input'));"


def markup(value: str, *, elem_id: str, script: str | None = None, **kwargs: Any) -> gr.HTML:  # noqa: ANN401 - as gr.HTML
    """Give a component that shows safe markup under the styles of this package alone.

    Args:
        value: Markup written by `condviz.ui.html`.
        elem_id: Its id in the page.
        script: JavaScript to run once it is in the page; names in quotes become events.
        kwargs: As gr.HTML.
    """
    head = page_scripts() if script else None
    return gr.HTML(value, elem_id=elem_id, js_on_load=script, head=head, apply_default_css=False, **kwargs)


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
        **picker_models(infos),
        js_on_load=_SCRIPT,
        head=page_scripts(),
        apply_default_css=False,
        elem_id=elem_id,
    )


def picker_models(infos: Sequence[ModelInfo]) -> dict[str, Any]:
    """Give what a picker shows, for its constructor or for `gr.update`.

    The browser lays out the template anew only where a property has changed, so the number of models goes along.
    """
    return {"html_template": _template(infos), "models": len(infos)}


def _template(infos: Sequence[ModelInfo]) -> str:
    """Write the template: all but the check marks is constant.

    The models stand in it, not in a property: an update that comes before the tab is opened replaces all properties.
    """
    buttons = [
        tag("button", name, type="button", class_="cv-link", data_all=value)
        for name, value in (("all", 1), ("none", 0))
    ]
    head = tag("div", tag("span", "Models"), *buttons, class_="cv-picker-head")
    rows = [tag("div", *map(_choice, infos), class_="cv-picker-list")]
    return tag("div", inert(head), *rows, class_="cv-picker", role="group", aria_label="Models")


def _choice(info: ModelInfo) -> str:
    box = inert(f'<input type="checkbox"{attributes(data_name=info.name, data_testid=f"model-{info.name}")}')
    checked = f'${{(value || []).includes({script_text(info.name)}) ? "checked" : ""}}>'
    name = text("span", info.title, class_="cv-model-title") + tag("span", model_badges(info), class_="cv-badges")
    label = inert(tag("span", class_="cv-dot", aria_hidden="true") + name)
    return f"<label{inert(attributes(data_model=info.name, title=info.summary))}>{box} {checked}{label}</label>"
