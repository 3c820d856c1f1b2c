"""Model cards of models that predict links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from condviz.types import ModelInfo

FIGURES = ("MRR", "hits@1", "hits@3", "hits@10")


def link_card(
    name: str,
    info: ModelInfo,
    training: Mapping[str, Any],
    metrics: Mapping[str, Mapping[str, float]],
    *,
    notice: str = "",
) -> str:
    """Write a model card as Markdown with the front matter of the hub.

    Args:
        name: Name of the model.
        info: Of the model.
        training: As the trainer stores it.
        metrics: Split -> figures, as `RankingMetrics.to_dict` gives them: mean of both directions, filtered.
        notice: Who made the graph, and its licence.
    """
    recipe, data = training["recipe"], training["data"][0]
    trained = "the head alone, on vectors of a frozen encoder" if recipe["tuning"] == "frozen" else "encoder and head"
    rows = [
        f"| {split} | " + " | ".join(f"{100 * figures[key]:.1f}" for key in FIGURES) + f" | {figures['MR']:.0f} |"
        for split, figures in metrics.items()
    ]
    return "\n\n".join([
        f"---\nlicense: apache-2.0\nlanguage: en\nbase_model: {recipe['backbone']}\nlibrary_name: condviz\n---",
        f"# {name}",
        f"{info.title}, trained to predict the links of {data['graph']}. {info.summary} The head entity is the "
        "sentence, the relation the condition; the answer is the entity whose own vector is nearest.",
        f"Method: {info.reference}. Encoder: {recipe['backbone']}.",
        f'## Use\n\n```sh\npython -m condviz links "land reform" hypernym --model {name}\n```',
        f"## Training\n\nTrained: {trained}. {data['train']:,} triples in both directions, {training['steps']:,} steps "
        f"of {recipe['batch_size']:,}, rate {recipe['lr']:g}, seed {training['seed']}, "
        f"{training['seconds'] / 60:.0f} minutes on one {training['device']} device; the weights of step "
        f"{training['best_step']:,} are kept.\n\n```sh\npython -m condviz train assets/recipes/{name}.toml\n```",
        "## Scores\n\nFiltered ranking over all entities, mean of both directions, without re-ranking, in %. The "
        "validation part chose the weights"
        + (" (a part of it)" if recipe["validation_triples"] else "")
        + ".\n\n| part | MRR | Hits@1 | Hits@3 | Hits@10 | MR |\n| --- | ---: | ---: | ---: | ---: | ---: |\n"
        + "\n".join(rows),
        "## Limits\n\n- Not made for the similarity of sentences: its conditions are the relations of one graph, and "
        "their inverses.\n- Scores order the entities of one question. They are not probabilities.",
        f"## Licence\n\nApache-2.0. Learnt from: {notice or data['graph']} No text of the graph is part of this model.",
    ]) + "\n"  # fmt: skip
