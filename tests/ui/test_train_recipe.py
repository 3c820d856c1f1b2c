"""The recipe behind the form: a field changes its own key, and everything else survives."""

from __future__ import annotations

import pytest

from condviz.errors import ConfigError
from condviz.training.recipes import Loss, from_dict
from condviz.ui import train_recipe
from condviz.ui.train_recipe import (
    FIELDS,
    FIRST,
    belongs,
    data_kind,
    edit,
    parse,
    presets,
    read_fields,
    set_data,
    write,
)

SHIPPED = presets()
START = SHIPPED[FIRST].text


def test_presets_begin_with_a_quick_one_and_say_where_they_come_from() -> None:
    names = list(SHIPPED)
    assert names[0] == FIRST
    assert any(name.startswith("csts-") for name in names)
    assert not any(name.startswith("wn18rr") for name in names)
    assert all(preset.note for preset in SHIPPED.values())


@pytest.mark.parametrize("name", SHIPPED)
def test_showing_a_recipe_changes_nothing(name: str) -> None:
    text = SHIPPED[name].text
    assert edit(text, read_fields(parse(text))) == text


@pytest.mark.parametrize("name", SHIPPED)
def test_a_recipe_written_from_all_its_keys_means_the_same(name: str) -> None:
    recipe = from_dict(parse(SHIPPED[name].text))
    assert from_dict(parse(write(recipe.to_dict()))).to_dict() == recipe.to_dict()


def test_fields_show_what_the_recipe_means() -> None:
    values = read_fields(parse(START))
    recipe = from_dict(parse(START))
    assert values["epochs"] == recipe.epochs
    assert values["rank"] == recipe.method_config().rank
    assert values["head_lr"] == recipe.head_lr
    assert values["backbone"] == recipe.backbone
    assert values["quadruplet"] == recipe.loss.quadruplet
    assert values["projection"] is None


def test_a_field_changes_its_own_key_and_comments_stay() -> None:
    changed = edit(START, {"lr": 0.002, "head_lr": None, "epochs": 4.0, "mse": 2, "seed": 7.0})
    assert changed.splitlines()[0] == START.splitlines()[0]
    recipe = from_dict(parse(changed))
    assert (recipe.lr, recipe.head_lr, recipe.epochs, recipe.loss.mse, recipe.seed) == (0.002, None, 4, 2.0, 7)
    assert recipe.loss.temperature == from_dict(parse(START)).loss.temperature


def test_another_method_takes_the_settings_of_the_former_away() -> None:
    recipe = from_dict(parse(edit(START, {"method": "case"})))
    assert recipe.method == "case"
    assert recipe.start == "random"
    assert recipe.config == {"pooling": "mean"}
    text = edit(edit(START, {"method": "case"}), {"projection": "ica", "rank": 3})
    assert from_dict(parse(text)).config == {"pooling": "mean", "projection": "ica"}


def test_fields_belong_to_methods() -> None:
    assert belongs("rank", "hyper-cl")
    assert not belongs("rank", "csr")
    assert belongs("routed_layers", "csr-prefix")
    assert belongs("epochs", "cross-encoder")
    assert belongs("composition", "tri-encoder")


def test_other_data_replace_the_sources() -> None:
    changed = set_data(START, [{"name": "csv", "path": "a.csv"}], [{"name": "csv", "path": "b.csv"}])
    assert data_kind(parse(START)) == "scenes"
    assert data_kind(parse(changed)) == "table"
    recipe = from_dict(parse(edit(changed, {"batching": "pairs", "batch_size": 8})))
    assert [source.path for source in (*recipe.train, *recipe.validation)] == ["a.csv", "b.csv"]
    assert "\n\n\n" not in changed


@pytest.mark.parametrize("text", ["lr = ", "x" * (train_recipe.MAX_CHARACTERS + 1)])
def test_what_is_no_recipe_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"not valid TOML|characters"):
        parse(text)


def test_odd_shapes_do_not_break_the_form() -> None:
    values = read_fields(parse('method = 3\nloss = 1\ntrain = "x"'))
    assert values["mse"] == Loss().mse
    assert data_kind(parse("train = 3")) == "other"
    assert set(values) == set(FIELDS)
