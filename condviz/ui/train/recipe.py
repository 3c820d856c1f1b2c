"""The recipe behind the form: one TOML text that the fields show and edit, and that is checked, trained and copied."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from condviz.encoder import DEFAULT_BACKBONE
from condviz.errors import CheckpointError, ConfigError
from condviz.evaluation.metrics import Metric
from condviz.evaluation.scoreboard import fast_encoder, pair_accuracies
from condviz.methods.catalog import CATALOG
from condviz.models import registry
from condviz.models.manifest import read_manifest
from condviz.paths import ASSETS
from condviz.types import ModelInfo

RECIPES = ASSETS / "recipes"
QUALITIES = {"quick": "Quick: a small part learns", "better": "Better: the whole model learns"}
NAME = "my-model"
EXAMPLE = {"train": [{"name": "scenes"}], "validation": [{"name": "scenes", "split": "dev"}]}
EXAMPLE_SETTINGS = {"start": "identity", "batching": "blocks", "batch_size": 80, "lr": 5e-4, "epochs": 1,
                    "evaluations": 8}  # fmt: skip
"""The shipped models have learned from the example already: here the head is trained from the beginning."""
AWAITED = {key: {"name": "csv", "path": f"my-table-{key}.csv"} for key in EXAMPLE}
"""How a recipe names the parts of a table that has not come, or is not stored."""
WAITING = {"table": None, "batching": "pairs", "rows": 10**6}
"""A table that has not come."""
FIELDS: dict[str, tuple[tuple[str, ...], str, Any]] = {
    "method": (("method",), "Method", [(entry.title, name) for name, entry in CATALOG.items() if entry.conditional]),
    "backbone": (("backbone",), "Encoder (hub id)", ""),
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
PRETRAINED = ""
"""Where a training starts that starts from no trained model."""
TUNED = {"quick": {"tuning": "lora", "lora": {"rank": 16, "alpha": 32.0}, "frozen_layers": 2, "lr": 5e-4},
         "better": {"tuning": "layers", "frozen_layers": 2, "lr": 5e-5}}  # fmt: skip
"""How a method learns whose head alone would be too little, or nothing."""
LINK_KEYS = ("data", "quality", "preset", "from", "name", "recipe", *FIELDS)
"""What a link keeps of the form."""


def parse(text: object) -> dict[str, Any]:
    """Read the text of a recipe; raises ConfigError if it is not TOML."""
    try:
        return tomllib.loads(str(text or ""))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"The recipe is not valid TOML: {error}. Correct that line.") from error


def starts(infos: Sequence[ModelInfo]) -> list[tuple[str, str]]:
    """Return those models that a training may start from, as choices: which agree best with people first."""
    found, none = pair_accuracies(), Metric(0.0)
    infos = [info for info in infos if info.trained and info.conditional and not (info.graph or info.missing)]
    rated = {info.name: found.get(info.name, {}).get("csts", none).value or 0.0 for info in infos}
    choices = [
        (f"{info.title}: {rated[info.name]:.0f} % right" if rated[info.name] else info.title, info.name)
        for info in sorted(infos, key=lambda info: -rated[info.name])
    ]  # fmt: skip
    return [*choices, ("The pretrained encoder alone", PRETRAINED)]


def best_start() -> str:
    """Return the model that a training starts from unless another is chosen: the best that two cores train."""
    return fast_encoder(_infos())


def _infos() -> Iterator[ModelInfo]:
    for name in registry.list_models():
        with suppress(CheckpointError):  # a damaged one, which Models tells
            yield registry.describe(name)


def compose(preset: str, name: str, table: Mapping[str, Any] | None, start: str | None = None) -> str:
    """Compose the recipe for a thoroughness (a key of `QUALITIES`) and the model to start from, by default the best.

    The table is {"table": paths, "batching", "rows"}; None takes the example, which all have learnt from.
    """
    document: Any = tomlkit.parse(read_preset(preset))
    document["name"] = hyphenate(name)
    if table is not None:
        _start_from(document, preset, best_start() if start is None else start)
    sources = EXAMPLE
    if table is None:
        document.pop("init", None)
        document.update(EXAMPLE_SETTINGS)
    else:
        paths = table["table"] or [part["path"] for part in AWAITED.values()]
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


def hyphenate(name: object) -> str:
    """Return a name as folders have it: a visitor writes blanks."""
    return "-".join(str(name or "").split())


def _start_from(document: tomlkit.TOMLDocument, preset: str, start: str) -> None:
    if start == PRETRAINED:
        document.pop("init", None)
        document["start"] = "identity"
        return
    made = read_manifest(registry.find_folder(start))
    if made["method"] != document["method"]:
        document.pop("head_lr", None)
        document.update(TUNED[preset])
    document.update({"init": start, "method": made["method"], "config": _inline(made["config"])})
    if made["backbone"]["name"] != DEFAULT_BACKBONE:
        document.update({"backbone": made["backbone"]["name"], "revision": made["backbone"]["revision"]})


def _inline(values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - an item of tomlkit
    table = tomlkit.inline_table()
    table.update({key: value for key, value in values.items() if value is not None})
    return table


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
    elif isinstance(value, float) and value.is_integer() and last not in ("lr", "temperature"):
        place[last] = int(value)
    else:
        place[last] = value
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
            base = write_field(base, ("name",), "-".join(text.split()))
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
