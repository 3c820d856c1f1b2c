"""The recipe behind the Train tab: one TOML text, which the fields of the form show and edit.

The text is what is checked, trained, copied and downloaded. A field changes its own key and nothing else, so that
comments and keys without a field survive.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tomlkit
from tomlkit.exceptions import TOMLKitError

from condviz.encoder import DEFAULT_BACKBONE
from condviz.errors import ConfigError
from condviz.methods import CATALOG
from condviz.paths import ASSETS
from condviz.training.recipes import NONE, from_dict

RECIPES = ASSETS / "recipes"
FIRST = "hyper-cl-start"
"""The recipe in the form at the start: minutes on a CPU."""
FIRST_METHOD = "hyper-cl"
MAX_CHARACTERS = 20_000
DataKind = Literal["scenes", "table", "csts", "other"]

TRAINABLE = {name: method.title for name, method in CATALOG.items() if method.conditional}
_IDENTITY = {"hyper-cl", "tri-encoder"}
"""Methods with a head that can start as the identity."""


FIELDS: dict[str, tuple[str, ...]] = {
    "name": ("name",),
    "method": ("method",),
    "backbone": ("backbone",),
    "tuning": ("tuning",),
    "frozen_layers": ("frozen_layers",),
    "lora_rank": ("lora", "rank"),
    "rank": ("config", "rank"),
    "composition": ("config", "composition"),
    "routed_layers": ("config", "num_routed_layers"),
    "projection": ("config", "projection"),
    "projection_dim": ("config", "projection_dim"),
    "pooling": ("config", "pooling"),
    "mse": ("loss", "mse"),
    "infonce": ("loss", "infonce"),
    "quadruplet": ("loss", "quadruplet"),
    "temperature": ("loss", "temperature"),
    "batching": ("batching",),
    "epochs": ("epochs",),
    "batch_size": ("batch_size",),
    "lr": ("lr",),
    "head_lr": ("head_lr",),
    "accumulation": ("accumulation",),
    "weight_decay": ("weight_decay",),
    "warmup": ("warmup",),
    "clip": ("clip",),
    "dropout": ("dropout",),
    "precision": ("precision",),
    "seed": ("seed",),
    "evaluations": ("evaluations",),
    "patience": ("patience",),
    "keep": ("keep",),
    "disk": ("disk",),
}
"""Keys of the recipe that the form shows, by the name of the field."""
BLANK_IS_NONE = {"head_lr", "dropout", "rank"}
"""Number fields that may be empty."""


@dataclass(frozen=True)
class Preset:
    """A shipped recipe.

    Attributes:
        name: Stem of its file.
        title: For people.
        note: Its first comment: what it is, where its values come from.
        text: The TOML.
    """

    name: str
    title: str
    note: str
    text: str


def presets() -> dict[str, Preset]:
    """Read the shipped recipes for rated pairs: those of this project's models, then those of the papers."""
    found = [_preset(path) for path in sorted(RECIPES.glob("*.toml"))]
    found = [preset for preset in found if "graph" not in parse(preset.text)]  # knowledge graphs are trained elsewhere
    found.sort(key=lambda preset: (preset.name != FIRST, preset.name.startswith("csts-"), preset.name))
    return {preset.name: preset for preset in found}


def parse(text: str) -> dict[str, Any]:
    """Read a recipe as a table.

    Raises:
        ConfigError: If it is not valid TOML, or too long to be a recipe.
    """
    if len(text) > MAX_CHARACTERS:
        raise ConfigError(f"The recipe has {len(text):,} characters; at most {MAX_CHARACTERS:,} are allowed.")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"The recipe is not valid TOML: {error}. Mend that line, or choose a recipe above."
        ) from error


def read_fields(content: Mapping[str, Any]) -> dict[str, Any]:
    """Give the value of every field; None where it is empty, or its method has none.

    Keys that a recipe leaves out have their default.
    """
    defaults = _defaults(str(content.get("method")))
    values = {name: _look_up(content, path, _look_up(defaults, path, None)) for name, path in FIELDS.items()}
    return {name: None if name in BLANK_IS_NONE and value == NONE else value for name, value in values.items()}


def belongs(name: str, method: object) -> bool:
    """Tell whether a method has a field."""
    path = FIELDS[name]
    return path[0] != "config" or _look_up(_defaults(str(method)), path, None) is not None


def edit(text: str, values: Mapping[str, Any]) -> str:
    """Write the fields that differ from the recipe into it.

    Args:
        text: The recipe.
        values: Fields by name; None empties a field that may be empty, and is ignored elsewhere.

    Raises:
        ConfigError: If the recipe cannot be read.
    """
    content = parse(text)
    now = read_fields(content)
    changed = {
        name: value
        for name, value in values.items()
        if name in FIELDS and value != now[name] and (value is not None or name in BLANK_IS_NONE)
    }
    if not changed:
        return text
    document = _document(text)
    method = changed.get("method", now["method"])
    if "method" in changed:
        _forget_method(document, method)
    for name, value in changed.items():
        if belongs(name, method):
            _set(document, FIELDS[name], NONE if value is None else _plain(value, now[name]))
    return tomlkit.dumps(document)


def write(content: Mapping[str, Any]) -> str:
    """Write a recipe as text, without what goes without saying.

    Args:
        content: All keys, as `SentenceRecipe.to_dict` gives them.
    """
    defaults = _defaults(str(content["method"]))
    source = defaults["train"][0]
    document = tomlkit.document()
    sources = {}
    for key, value in content.items():
        if key in ("train", "validation"):
            sources[key] = [{k: v for k, v in row.items() if k == "name" or v != source[k]} for row in value]
        elif isinstance(value, Mapping):
            table = tomlkit.inline_table()
            table.update({k: v for k, v in value.items() if v != defaults[key].get(k)})
            if table:
                document[key] = table
        elif key in ("name", "method") or value != defaults.get(key):
            document[key] = value
    return set_data(tomlkit.dumps(document), sources.get("train", []), sources.get("validation", []))


def set_data(text: str, train: list[dict[str, Any]], validation: list[dict[str, Any]]) -> str:
    """Take other data.

    Args:
        text: The recipe.
        train: Tables of `condviz.training.recipes.Source`.
        validation: The same, for the rows that decide which weights are kept.

    Raises:
        ConfigError: If the recipe cannot be read.
    """
    document = _document(text)
    for key, sources in (("train", train), ("validation", validation)):
        document.pop(key, None)
        tables = tomlkit.aot()
        for source in sources:
            table = tomlkit.table()
            table.update(source)
            table.add(tomlkit.nl())
            tables.append(table)
        if sources:
            document[key] = tables
    return re.sub(r"\n{3,}", "\n\n", tomlkit.dumps(document)).strip() + "\n"


def data_kind(content: Mapping[str, Any]) -> DataKind:
    """Say what a recipe trains on."""
    sources = content.get("train")
    names = {source.get("name") for source in sources if isinstance(source, dict)} if isinstance(sources, list) else ()
    kinds: dict[str, DataKind] = {"scenes": "scenes", "csv": "table", "csts": "csts"}
    return kinds.get(next(iter(names)), "other") if len(names) == 1 else "other"


def backbones() -> list[str]:
    """Give the encoders of the shipped recipes, the default one first: those that the page trains."""
    named = {str(parse(preset.text).get("backbone", DEFAULT_BACKBONE)) for preset in presets().values()}
    return [DEFAULT_BACKBONE, *sorted(named - {DEFAULT_BACKBONE})]


def _preset(path: Path) -> Preset:
    text = path.read_text(encoding="utf-8")
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# "))
    paper = path.stem.startswith("csts-")
    title = f"Paper: {path.stem.removeprefix('csts-')}" if paper else f"Ours: {path.stem}"
    return Preset(path.stem, title, " ".join(lines), text)


def _document(text: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise _not_toml(error) from error


def _not_toml(error: Exception) -> ConfigError:
    return ConfigError(f"The recipe is not valid TOML: {error}. Mend that line, or choose a recipe above.")


def _look_up(content: Mapping[str, Any], path: tuple[str, ...], default: Any) -> Any:  # noqa: ANN401
    value: Any = content
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return default
        value = value[key]
    return value


def _set(document: Any, path: tuple[str, ...], value: Any) -> None:  # noqa: ANN401
    *parents, last = path
    table = document
    for key in parents:
        if not isinstance(table.get(key), Mapping):
            # On one line: a table of its own would have to stand below all other keys.
            table[key] = tomlkit.inline_table()
        table = table[key]
    table[last] = value


def _plain(value: Any, before: Any) -> Any:  # noqa: ANN401
    """Write whole numbers as such: the browser sends 3.0 for 3, and 1 for 1.0."""
    if isinstance(value, float) and value.is_integer() and (isinstance(before, int) or before is None):
        return int(value)
    return float(value) if isinstance(before, float) and isinstance(value, int) else value


@functools.cache
def _defaults(method: str) -> dict[str, Any]:
    """Give what the keys mean that a recipe of a method leaves out."""
    known = method in TRAINABLE
    sources = [{"name": "scenes"}]
    recipe = {"name": "x", "method": method if known else FIRST_METHOD, "train": sources, "validation": sources}
    full = from_dict(recipe).to_dict() | {"name": ""}
    return full if known else full | {"method": "", "config": {}}


def _forget_method(document: Any, method: object) -> None:  # noqa: ANN401
    """Leave out what belongs to the former method only."""
    config = document.get("config")
    if isinstance(config, Mapping):
        kept = tomlkit.inline_table()
        kept.update({key: value for key, value in config.items() if key == "pooling"})
        if kept:
            document["config"] = kept
        else:
            del document["config"]
    if method not in _IDENTITY:
        document.pop("start", None)
    if method == "cross-encoder" and isinstance(document.get("loss"), Mapping):
        document["loss"].pop("plain", None)
