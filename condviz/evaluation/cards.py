"""Model cards of trained models: what they are, what they learnt from, how to make them again, how good they are.

Everything is taken from what training and benchmark have stored, so that a card cannot say anything else. The cards
themselves are templates: Markdown with the front matter of the hub.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from condviz.data.corpora import CORPORA
from condviz.evaluation.scoreboard import LINK_FIGURES, PARTS, Board, format_figure, markdown_table
from condviz.methods import METHODS
from condviz.models.manifest import calibration_of
from condviz.paths import ASSETS
from condviz.types import ModelInfo

TUNING = {
    "full": "the whole encoder and the head",
    "layers": "the layers of the encoder, without embeddings and the lowest {frozen} layers, and the head",
    "lora": "low-rank adapters in the linear layers of the encoder{above}, and the head",
    "frozen": "the head alone",
}
LINK_TUNING = {"full": "encoder and head", "frozen": "the head alone, on vectors of a frozen encoder"}


def format_card(name: str, manifest: Mapping[str, Any], board: Board) -> str:
    """Format the card of a model of sentences, from a condviz.json and the stored scores."""
    training, calibration = manifest["training"], calibration_of(manifest)
    sources = [part["source"] for part in training.get("data", ()) if part["source"] in CORPORA]
    rows = [
        (PARTS[part].title, f"{scores.rows:,}", format_figure(scores.pair_accuracy), format_figure(scores.spearman))
        for part in PARTS
        if (scores := board.find(name, part))
    ]
    return _render(
        "card.md",
        name=name,
        method=METHODS[manifest["method"]],
        encoder=manifest["backbone"]["name"],
        training=training,
        **_training(name, training),
        validation=manifest["metrics"].get("validation"),
        calibration=calibration,
        sources=[f"{source} {count:,}" for source, count in calibration.rows.items()] if calibration else (),
        scores=markdown_table(("part", "rows", "pair accuracy, %", "Spearman × 100"), rows) if rows else "",
        attributions=dict.fromkeys(CORPORA[source].attribution for source in sources),
    )


def link_card(
    name: str, info: ModelInfo, training: Mapping[str, Any], metrics: Mapping[str, Mapping[str, float]], notice: str
) -> str:
    """Format the card of a model that predicts links; the notice says who made the graph, and its licence.

    The figures of each split are those of `summarise_ranks`: mean of both directions, filtered.
    """
    rows = [
        (split, *(f"{100 * found[key]:.1f}" for key in LINK_FIGURES), f"{found['MR']:.0f}")
        for split, found in metrics.items()
    ]
    recipe = {"init": "", **training["recipe"]}  # the oldest models were trained before there was a start
    return _render(
        "link_card.md",
        name=name,
        info=info,
        training=training,
        recipe=recipe,
        trained=LINK_TUNING[recipe["tuning"]],
        commands=_commands(name, recipe),
        data=training["data"][0],
        scores=markdown_table(("part", "MRR", "Hits@1", "Hits@3", "Hits@10", "MR"), rows),
        notice=notice,
    )


def _render(template: str, **values: Any) -> str:  # noqa: ANN401 - what the template takes
    environment = Environment(  # Markdown: nothing is escaped
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters |= {
        "number": "{:,}".format,
        "fixed": lambda value, digits: f"{value:.{digits}f}",
        "minutes": lambda seconds: (
            f"{(number := round(seconds / 60))} minute{'s' * (number != 1)}"
            if seconds >= 90
            else f"{seconds:.0f} seconds"
        ),
    }
    return environment.get_template(template).render(**values)


def _training(name: str, training: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a card says of a training: its recipe, what was trained, its data, and how to do it again."""
    if "recipe" not in training:
        return {"recipe": None}
    recipe = training["recipe"]
    rows = [
        (
            CORPORA[part["source"]].title if part["source"] in CORPORA else part["path"],
            part["split"] or "–",
            f"{part['rows']:,}",
            f"{recipe['train'][index]['weight']:g}" if index < len(recipe["train"]) else "validation",
        )
        for index, part in enumerate(training["data"])
    ]
    return {
        "recipe": recipe,
        "trained": TUNING[recipe["tuning"]].format(
            frozen=(frozen := recipe["frozen_layers"]), above=f" above the lowest {frozen}" if frozen else ""
        ),
        # There is no best step where nothing was validated, or where a head is fitted in closed form.
        "kept": training["best_step"] or training["steps"],
        "data": markdown_table(("data", "part", "rows", "share of an epoch"), rows),
        "commands": _commands(name, recipe),
    }


def _commands(name: str, recipe: Mapping[str, Any]) -> list[str]:
    """Return what trains a model by the shipped recipes, first to last; nothing where its own does not ship."""
    names: list[str] = []
    begun = set()

    def add(name: str, recipe: Mapping[str, Any]) -> None:
        begun.add(name)
        start = recipe.get("init")
        if start and start not in begun:
            path = ASSETS / "recipes" / f"{start}.toml"
            add(start, tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {})
        names.append(name)

    if (ASSETS / "recipes" / f"{name}.toml").is_file():
        add(name, recipe)
    return [f"python -m condviz train assets/recipes/{part}.toml" for part in names]
