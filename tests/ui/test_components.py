"""The components of the page: what an update of the browser's state cannot take from them."""

from __future__ import annotations

from dataclasses import replace

from condviz.ui.components import ModelPicker, model_picker
from tests.ui import fakes

HOSTILE = "${1+1} {{7*7}} `<b>` \\u"


def test_the_models_stand_in_the_template_where_no_update_replaces_them() -> None:
    picker = model_picker([fakes.FakeModel(name).info for name in ("csr", "minilm")], ["csr"], elem_id="x")
    assert picker.props == {"models": 2}
    assert [picker.html_template.count(f'data-testid="model-{name}"') for name in ("csr", "minilm")] == [1, 1]
    again = ModelPicker(**ModelPicker.recover_kwargs(picker.get_config()))
    assert again.html_template == picker.html_template


def test_a_name_opens_no_template() -> None:
    info = replace(fakes.FakeModel("csr").info, name=HOSTILE, title=HOSTILE, summary=HOSTILE)
    template = model_picker([info], [], elem_id="x").html_template
    assert template.count("${") == 1
    assert not any(opener in template for opener in ("{{", "`", "<b>"))


def test_a_choice_is_a_list_of_names() -> None:
    picker = model_picker([], [], elem_id="x")
    assert picker.preprocess(["csr", 3, None]) == ["csr"]
    assert picker.preprocess("csr") == []
