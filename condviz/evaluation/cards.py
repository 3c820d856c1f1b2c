"""Model cards of trained models: what they are, what they learnt from, how to make them again, how good they are.

Everything is taken from what training and benchmark have stored, so that a card cannot say anything else.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from condviz.data.corpora import CORPORA
from condviz.data.files import write_text
from condviz.evaluation.scoreboard import PARTS, Board, format_figure, markdown_table
from condviz.methods import METHODS
from condviz.models.manifest import CARD, calibration_of, read_manifest
from condviz.paths import ASSETS
from condviz.types import ModelInfo

LINK_FIGURES = ("MRR", "hits@1", "hits@3", "hits@10")
TUNING = {
    "full": "the whole encoder and the head",
    "layers": "the layers of the encoder, without embeddings and the lowest {frozen} layers, and the head",
    "lora": "low-rank adapters in all linear layers of the encoder, and the head",
    "frozen": "the head alone",
}
LIMITS = """- English, one or two sentences of everyday language; longer texts were not tried.
- The scenes were written by a language model for this project: conditions that they never ask about are harder, see the
  column of unseen aspects.
- A score orders conditions and pairs: 0.8 does not mean four fifths alike. `rate` gives a rating from 1 to 5.
- Texts of real people can be unlike the training data. Look at examples of your own before you rely on it."""


def write_card(folder: str | Path, board: Board) -> Path:
    """Write the card of a checkpoint into its folder, and return the file."""
    folder = Path(folder)
    manifest = read_manifest(folder)
    write_text(folder / CARD, format_card(folder.name, manifest, board))
    return folder / CARD


def format_card(name: str, manifest: Mapping[str, Any], board: Board) -> str:
    """Format a model card as Markdown with the front matter of the hub, from a condviz.json and the stored scores."""
    method = METHODS[manifest["method"]]
    sections = [
        _front_matter(manifest),
        f"# {name}",
        f"{method.title}. {method.summary}",
        f"Method: {method.reference}. Encoder: {manifest['backbone']['name']}.",
        _use(name),
        _training(name, manifest["training"]),
        _scores(name, manifest, board),
        f"## Limits\n\n{LIMITS}",
        _licence(manifest["training"]),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def link_card(
    name: str,
    info: ModelInfo,
    training: Mapping[str, Any],
    metrics: Mapping[str, Mapping[str, float]],
    *,
    notice: str = "",
) -> str:
    """Format the card of a model that predicts links as Markdown with the front matter of the hub.

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
        f"| {split} | " + " | ".join(f"{100 * figures[key]:.1f}" for key in LINK_FIGURES) + f" | {figures['MR']:.0f} |"
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


def _front_matter(manifest: Mapping[str, Any]) -> str:
    lines = ["license: apache-2.0", "language: en", f"base_model: {manifest['backbone']['name']}"]
    lines += ["library_name: condviz", "pipeline_tag: sentence-similarity"]
    return "\n".join(["---", *lines, "---"])


def _use(name: str) -> str:
    code = f"""import condviz

model = condviz.load("{name}")
print(model.score(["A man surfs."], ["A woman skis."], ["the sport"]))"""
    return f"## Use\n\n```python\n{code}\n```"


def _training(name: str, training: Mapping[str, Any]) -> str:
    if "recipe" not in training:
        return "## Training\n\nNot recorded."
    recipe = training["recipe"]
    rows = [
        (_title(part), part["split"] or "–", f"{part['rows']:,}", _weight(recipe, index))
        for index, part in enumerate(training["data"])
    ]
    trained = TUNING[recipe["tuning"]].format(frozen=recipe["frozen_layers"])
    start = f"the weights of `{recipe['init']}` (recipe of that name)" if recipe["init"] else "the pretrained encoder"
    # There is no best step where nothing was validated, or where a head is fitted in closed form.
    kept = training["best_step"] or training["steps"]
    facts = [
        f"Trained: {trained}. Start: {start}.",
        f"{training['steps']:,} steps, rate {recipe['lr']:g}, seed {recipe['seed']}, {training['seconds'] / 60:.0f} "
        f"minutes on one {training['device']} device; the weights of step {kept:,} are kept.",
    ]
    table = markdown_table(("data", "part", "rows", "share of an epoch"), rows)
    return "\n\n".join(["## Training", *facts, table, _again(name, recipe)])


def _again(name: str, recipe: Mapping[str, Any]) -> str:
    """Describe how to train it again: by its shipped recipe, else by the one that its checkpoint holds."""
    if not (ASSETS / "recipes" / f"{name}.toml").is_file():
        return "The recipe and the SHA-256 of the data are in `condviz.json`, under `training`."
    commands = [f"python -m condviz train assets/recipes/{part}.toml" for part in (*_before(recipe["init"]), name)]
    return "```sh\n" + "\n".join(commands) + "\n```"


def _before(init: str) -> list[str]:
    """Return the models that have to be trained before one that begins from `init`, first to last."""
    names = [init] if init else []
    while names:
        path = ASSETS / "recipes" / f"{names[0]}.toml"
        start = tomllib.loads(path.read_text(encoding="utf-8")).get("init") if path.is_file() else None
        if not start or start in names:
            break
        names.insert(0, start)
    return names


def _title(part: Mapping[str, Any]) -> str:
    return CORPORA[part["source"]].title if part["source"] in CORPORA else part["path"]


def _weight(recipe: Mapping[str, Any], index: int) -> str:
    return f"{recipe['train'][index]['weight']:g}" if index < len(recipe["train"]) else "validation"


def _scores(name: str, manifest: Mapping[str, Any], board: Board) -> str:
    lines = ["## Scores"]
    found = manifest["metrics"].get("validation")
    if found:
        lines.append(
            f"Validation ({found['rows']:,} rows, used to choose the weights): Spearman × 100 {found['spearman']}, "
            f"pair accuracy {found['pair_accuracy']} %."
        )
    if calibration := calibration_of(manifest):
        sources = ", ".join(f"{source} {count:,}" for source, count in calibration.rows.items())
        lines.append(
            f"Ratings (`model.rate`, from {calibration.ratings[0]:.1f} to {calibration.ratings[-1]:.1f}) are fitted to "
            f"{sum(calibration.rows.values()):,} rows ({sources}), those of each source counting alike. Calibration "
            "error, the mean distance of reading and label in tenths of rows left out of the fit: "
            f"{calibration.error:.2f} of a rating (`python -m condviz calibrate`)."
        )
    measured = [(part, board.find(name, part)) for part in PARTS]
    rows = [
        (PARTS[part].title, f"{scores.rows:,}", format_figure(scores.pair_accuracy), format_figure(scores.spearman))
        for part, scores in measured
        if scores is not None
    ]
    if not rows:
        return "\n\n".join([*lines, "Not measured on test parts yet: `python -m condviz benchmark models`."])
    about = (
        "Test parts, with 95 % intervals (`python -m condviz benchmark models`); docs/results.md of the program "
        "describes them. They cannot be compared with figures on C-STS."
    )
    return "\n\n".join([*lines, about, markdown_table(("part", "rows", "pair accuracy, %", "Spearman × 100"), rows)])


def _licence(training: Mapping[str, Any]) -> str:
    sources: Sequence[str] = [part["source"] for part in training.get("data", [])]
    used = dict.fromkeys(CORPORA[source].attribution for source in sources if source in CORPORA)
    notes = "\n".join(f"- {attribution}." for attribution in used)
    return "## Licence\n\nApache-2.0. Learnt from:\n\n" + notes if notes else "## Licence\n\nApache-2.0."
