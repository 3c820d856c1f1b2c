"""The recipe behind the form: one TOML text that the fields show and edit, and that is checked, trained and copied."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from condviz.errors import ConfigError
from condviz.methods.catalog import CATALOG
from condviz.paths import ASSETS

RECIPES = ASSETS / "recipes"
QUALITIES = {"quick": "Quick: a small part learns", "better": "Better: the whole model learns"}
NAME = "my-model"
EXAMPLE = {"train": [{"name": "scenes"}], "validation": [{"name": "scenes", "split": "dev"}]}
EXAMPLE_SETTINGS = {"start": "identity", "batching": "blocks", "batch_size": 80, "lr": 5e-4, "epochs": 1,
                    "evaluations": 8}  # fmt: skip
"""The shipped models have learned from the example already: here the head is trained from the beginning."""
FIELDS: dict[str, tuple[tuple[str, ...], str, Any]] = {
    "method": (("method",), "Method", [(entry.title, name) for name, entry in CATALOG.items() if entry.conditional]),
    "backbone": (("backbone",), "Encoder (hub id)", ""),
    "init": (("init",), "Start from the weights of", ""),
    "tuning": (("tuning",), "Trained parameters", ["full", "layers", "lora", "frozen"]),
    "frozen_layers": (("frozen_layers",), "Frozen lower layers", 0),
    "epochs": (("epochs",), "Epochs", 3),
    "batch_size": (("batch_size",), "Batch size", 32),
    "lr": (("lr",), "Learning rate", 3e-5),
    "head_lr": (("head_lr",), "Head learning rate", None),
    "temperature": (("loss", "temperature"), "Temperature of InfoNCE", 1.5),
    "seed": (("seed",), "Seed", 42),
}
"""Name -> place in the recipe, label, and choices of a menu, or what is meant where the recipe does not say."""
LINK_KEYS = ("data", "quality", "preset", "name", "recipe", *FIELDS)
"""What a link keeps of the form."""


def parse(text: object) -> dict[str, Any]:
    """Read the text of a recipe; raises ConfigError if it is not TOML."""
    try:
        return tomllib.loads(str(text or ""))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"The recipe is not valid TOML: {error}. Correct that line.") from error


def compose(preset: str, name: str, table: Mapping[str, Any] | None) -> str:
    """Compose the recipe for a thoroughness.

    Args:
        preset: Key of `QUALITIES`.
        name: Of the model.
        table: {"table": [train, validation] paths, "batching", "rows"}; None takes the example.
    """
    document = tomlkit.parse(read_preset(preset))
    document["name"] = str(name or "").strip()
    sources = EXAMPLE
    if table is None:
        document.pop("init", None)
        document.update(EXAMPLE_SETTINGS)
    else:
        paths = table["table"] or ["my-table-train.csv", "my-table-validation.csv"]
        sources = {key: [{"name": "csv", "path": p}] for key, p in zip(EXAMPLE, paths, strict=True)}
        if table["batching"] == "rows":  # InfoNCE compares the two conditions of a pair
            document["batching"] = "rows"
            document["loss"] = {"mse": 1.0}
        while document["batch_size"] > max(8, table["rows"] // 8):
            document["batch_size"] //= 2
    for key, rows in sources.items():
        document.pop(key, None)
        document[key] = rows
    return tomlkit.dumps(document)


def read_fields(text: str) -> dict[str, Any]:
    """Return the values of `FIELDS` in a recipe; defaults where it does not say, or cannot be read."""
    values, content = {}, {}
    with suppress(ConfigError):
        content = parse(text)
    for key, (path, _, kind) in FIELDS.items():
        value: Any = content
        for part in path:
            value = value.get(part) if isinstance(value, Mapping) else None
        missing = (kind[0] if isinstance(kind[0], str) else None) if isinstance(kind, list) else kind
        values[key] = missing if value is None or isinstance(value, Mapping | list) or value == "none" else value
    return values


def write_field(text: str, path: tuple[str, ...], value: object) -> str:
    """Set one key of a recipe, or remove it with an empty value; raises ConfigError if the recipe is no TOML."""
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise ConfigError(f"The recipe is not valid TOML: {error}. Correct that line first.") from error
    *parents, last = path
    place: Any = document
    for key in parents:
        if not isinstance(place.get(key), Mapping):
            place[key] = tomlkit.inline_table()
        place = place[key]
    if value in ("", None):
        place.pop(last, None)
    else:
        whole = isinstance(value, float) and value.is_integer() and last not in ("lr", "temperature")
        place[last] = int(value) if whole else value
    return tomlkit.dumps(document)


def read_changes(text: str, base: str) -> dict[str, str]:
    """Return what a link needs to make `text` of `base`: the fields that differ, or "recipe" where these do not do."""
    try:
        wanted, given = parse(text), parse(base)
    except ConfigError:
        return {"recipe": text}
    old, new = {"name": given.get("name"), **read_fields(base)}, {"name": wanted.get("name"), **read_fields(text)}
    changed = {key: value for key, value in new.items() if value != old[key]}
    changes = {key: str(value) for key, value in changed.items()}
    emptied = any(value in ("", None) for value in changed.values())  # a link has no empty values
    if not emptied and parse(apply_changes(base, changes)) == wanted:
        return changes
    document = tomlkit.parse(text)
    for part in EXAMPLE:  # a link must not tell where an upload lies
        if wanted.get(part) == given.get(part):
            document.pop(part, None)
    return {"recipe": tomlkit.dumps(document)}


def apply_changes(base: str, changes: Mapping[str, str]) -> str:
    """Return a recipe with what a link changes, see `read_changes`; raises ConfigError if a number is none."""
    if changes.get("recipe"):
        try:
            document, given = tomlkit.parse(changes["recipe"]), tomlkit.parse(base)
        except TOMLKitError:  # shown as it is, with a message
            return changes["recipe"]
        for part in EXAMPLE if "graph" not in document else ():
            if part not in document and part in given:
                document[part] = given[part]
        return tomlkit.dumps(document)
    for key, text in changes.items():
        if key == "name":
            base = write_field(base, ("name",), text)
        elif key in FIELDS:
            path, label, kind = FIELDS[key]
            base = write_field(base, path, text if isinstance(kind, list | str) else _number(label, text))
    return base


def _number(label: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"{label} is {text[:40]!r} in this link, expected a number. Correct the link.") from None


def read_preset(name: str) -> str:
    """Return the text of a shipped recipe; raises ConfigError if there is none of this name."""
    path = RECIPES / f"{name}.toml"
    if path not in RECIPES.glob("*.toml"):
        raise ConfigError(f"There is no recipe {str(name)[:80]!r}. Reload the page.")
    return path.read_text(encoding="utf-8")
