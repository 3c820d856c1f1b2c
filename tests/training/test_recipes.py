"""Recipes: what is accepted, what is refused and how, and that all that are shipped can be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from condviz.errors import ConfigError
from condviz.training.recipes import SentenceRecipe, from_dict, load_recipe

ALL = sorted((Path(__file__).parents[2] / "assets" / "recipes").glob("*.toml"))
SMALL = {"name": "x", "method": "hyper-cl", "train": [{"name": "scenes"}], "keep": "last"}


def small(**changes: Any) -> SentenceRecipe:
    return from_dict(SMALL | changes)


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_shipped_recipes_can_be_read(path: Path) -> None:
    recipe = load_recipe(path)
    assert recipe.name == path.stem
    assert from_dict(json.loads(json.dumps(recipe.to_dict()))) == from_dict(recipe.to_dict())


def test_there_is_a_recipe_for_every_shipped_model_and_paper() -> None:
    names = {path.stem for path in ALL}
    shipped = {"bi-encoder", "cross-encoder", "tri-hadamard", "tri-concat", "hyper-cl", "csr"}
    assert shipped | {"csr-prefix", "csr-bi", "case"} <= names
    assert {"wn18rr-hyper-cl", "wn18rr-csr", "wn18rr-simkgc"} <= names
    table = {f"csts-hyper-cl-{name}" for name in ("diffcse-base", "simcse-base", "simcse-large")}
    assert table | {"csts-hyper-cl-simcse-base-64", "csts-csr-simcse-large", "csts-case-simcse-base"} <= names


def test_defaults_and_types() -> None:
    recipe = small(lr=1e-3, config={"rank": "none"}, head_lr="none", loss={"mse": 1})
    assert recipe.method_config().rank is None
    assert recipe.head_lr is None
    assert recipe.loss.mse == 1.0
    assert recipe.to_dict()["config"]["rank"] == "none"
    assert from_dict(recipe.to_dict()).method_config() == recipe.method_config()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epoch": 3}, r"Unknown key epoch. Did you mean epochs"),
        ({"loss": {"tempreature": 1}}, r"Unknown key loss.tempreature. Did you mean temperature"),
        ({"train": [{"name": "scenes", "slit": "x"}]}, r"Unknown key train.0.slit. Did you mean split"),
        ({"config": {"rnak": 3}}, r"Unknown key config.rnak. Did you mean rank"),
        ({"method": "hyperCL"}, r"method is 'hyperCL'. Did you mean hyper-cl"),
        ({"config": {"rank": -1}}, "rank is -1, allowed is 1 or more"),
        ({"config": {"rank": "many"}}, "rank is .many., expected integer"),
        ({"config": {"pooling": "max"}}, "pooling"),
        ({"epochs": 0}, "epochs is 0, allowed is 1 or more"),
        ({"epochs": 2.5}, "epochs is 2.5, expected integer"),
        ({"epochs": True}, "epochs is True, expected integer"),
        ({"lr": "fast"}, "lr is 'fast', expected number"),
        ({"lr": 0.0}, "lr is 0.0, allowed is above 0"),
        ({"lr": float("nan")}, "lr is nan, expected a finite number"),
        ({"head_lr": -1.0}, "head_lr is -1.0"),
        ({"warmup": 1.0}, "warmup is 1.0"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"precision": "int8"}, "precision is 'int8', allowed is one of auto, float32"),
        ({"tuning": "half"}, "tuning is 'half', allowed is one of full, layers, lora or frozen"),
        ({"name": "../x"}, "Use letters a to z, digits and hyphens"),
        ({"name": "a\nb"}, "Use letters a to z, digits and hyphens"),
        ({"name": "x" * 300}, "up to 64"),
        ({"seed": 2**32}, "seed is 4294967296, allowed is"),
        ({"train": []}, r"at least one source"),
        ({"train": {"name": "scenes"}}, "expected a list"),
        ({"train": ["scenes"]}, "train.0 is 'scenes', expected a table"),
        ({"train": [{}]}, "Key train.0.name is missing"),
        ({"train": [{"name": "csv"}]}, "needs a path"),
        ({"train": [{"name": "scenes", "path": "x"}]}, "others take none"),
        ({"train": [{"name": "scenes", "weight": 0.0}]}, "train.0.weight is 0.0"),
        ({"loss": {"mse": 0.0}}, "Every term of the loss has weight 0"),
        ({"loss": {"infonce": 1.0}}, 'Set batching = "pairs"'),
        ({"batching": "pairs", "batch_size": 7}, "need an even number"),
        ({"teacher": ["bi-encoder"]}, "loss.teacher is 0"),
        ({"lora": {"init": "bi-encoder"}}, r"Unknown key lora\.init"),
        ({"keep": "best"}, r"Add \[\[validation\]\]"),
        ({"patience": 2}, r"Add \[\[validation\]\]"),
        ({"patience": 2, "validation": [{"name": "scenes"}]}, 'patience needs keep = "best"'),
        ({"lora": {"rank": 0}}, "lora.rank is 0"),
    ],
)
def test_what_is_wrong_is_named(changes: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        small(**changes)


def test_stored_recipes_of_earlier_versions_mean_the_same() -> None:
    plain = {"name": "toy", "method": "csr", "keep": "last", "train": [{"name": "scenes"}]}
    assert from_dict(plain | {"lora": {"rank": 16, "init": ""}, "frozen_layers": 0}) == from_dict(plain)
    links = {"name": "toy", "method": "hyper-cl", "graph": "everyday"}
    assert from_dict(links | {"frozen_layers": 0}) == from_dict(links)


def test_missing_keys_are_named() -> None:
    with pytest.raises(ConfigError, match="Key method is missing"):
        from_dict({"name": "x", "train": [{"name": "scenes"}]})


def test_keys_can_be_set() -> None:
    changes = ["epochs=7", "loss.mse=0.5", "train.0.weight=2", "config.rank=none", "tuning=frozen", "backbone=a/b"]
    recipe = from_dict(SMALL, changes)
    assert (recipe.epochs, recipe.loss.mse, recipe.train[0].weight) == (7, 0.5, 2.0)
    assert (recipe.method_config().rank, recipe.tuning, recipe.backbone) == (None, "frozen", "a/b")
    assert "loss" not in SMALL


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epochs", "expected key=value"),
        ("=3", "expected key=value"),
        ("train.1.weight=2", "'1' is not a valid index into a list of 1"),
        ("train.first=2", "'first' is not a valid index"),
        ("name.more.x=2", "name"),
        ("colour=red", "Unknown key colour"),
    ],
)
def test_settings_that_cannot_be_set(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_dict(SMALL, [text])


def test_files_of_windows_editors_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_bytes(b"\xef\xbb\xbf" + ALL[0].read_bytes())
    assert load_recipe(tmp_path / "x.toml") == load_recipe(ALL[0])


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere.toml cannot be read.*assets/recipes"):
        load_recipe(tmp_path / "nowhere.toml")
    for content in (b"name = ", b"\xff"):
        (tmp_path / "bad.toml").write_bytes(content)
        with pytest.raises(ConfigError, match=r"bad\.toml is not valid TOML"):
            load_recipe(tmp_path / "bad.toml")
    (tmp_path / "bad.toml").write_text('name = "x"\nmethod = "csr"\ntrain = []\n')
    with pytest.raises(ConfigError, match=r"bad\.toml: train is"):
        load_recipe(tmp_path / "bad.toml")
