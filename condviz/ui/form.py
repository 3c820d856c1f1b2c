"""The fields of a form for the options of a public function, as its signature declares them (`condviz.spec`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gradio as gr
from gradio.components.textbox import InputHTMLAttributes

from condviz.spec import Option, Values, check_options, options_of, read_options, write_options

_PLAIN = InputHTMLAttributes(spellcheck=False, autocapitalize="off", autocorrect="off")


class Fields:
    """Fields for the options of a function, all or those named, in its order; lay them out inside gr.Blocks."""

    def __init__(self, function: Callable[..., Any], names: Sequence[str] = (), *, prefix: str) -> None:
        self.function = function
        options = options_of(function)
        self.components = {name: make_field(options[name], f"{prefix}-{name}") for name in names or options}

    def check(self, values: Sequence[Any]) -> dict[str, Any]:
        """Return what the fields hold, in their order, by name; raises ConfigError where one is not allowed."""
        return check_options(self.function, dict(zip(self.components, values, strict=True)))

    def write(self, given: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return what a link says of them: (key, text)."""
        return write_options(self.function, {name: given[name] for name in self.components if name in given})

    def note(self, given: Mapping[str, Any]) -> dict[str, str]:
        """Return what a link says of them by key, "" for defaults: as `noted` takes it."""
        keys = [options_of(self.function)[name].key.name for name in self.components]
        return dict.fromkeys(keys, "") | dict(self.write(given))

    def read(self, values: Values) -> dict[str, Any]:
        found = read_options(self.function, values)
        return {name: found[name] for name in self.components}

    def updates(self, given: Mapping[str, Any]) -> dict[Any, Any]:
        return {component: given[name] for name, component in self.components.items()}


def make_field(option: Option, elem_id: str) -> gr.components.Component:
    """Lay out one field, by the type of the option; call inside gr.Blocks."""
    low, high = (option.bounds.get(kind, option.bounds.get(beyond)) for kind, beyond in (("ge", "gt"), ("le", "lt")))
    shown: dict[str, Any] = {"value": option.default, "label": option.label, "info": option.help, "elem_id": elem_id}
    if option.choices:
        titles = option.field.titles or {}
        choices = [(titles.get(name, name), name) for name in option.choices]
        return (gr.Radio if len(choices) <= 3 else gr.Dropdown)(choices, **shown)
    if option.type is bool:
        return gr.Checkbox(**shown)
    if option.type not in (int, float):
        return gr.Textbox(html_attributes=_PLAIN, **shown)
    if low is not None and high is not None and high - low <= 1_000:
        step = 1 if option.type is int else 0.01
        return gr.Slider(low, high if "le" in option.bounds else high - step, step=step, **shown)
    return gr.Number(minimum=low, maximum=high, precision=0 if option.type is int else None, **shown)
