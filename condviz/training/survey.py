"""What a recipe's data look like before anything is trained on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from condviz.data.tables import read_pairs
from condviz.errors import CondvizError
from condviz.training.batching import Unit, make_units
from condviz.training.recipes import Source, TrainRecipe
from condviz.training.sources import TABLE, Example, find_table, load_blocks, load_source

MIN_ROWS = 16
"""Fewer rows than this teach nothing that holds for others."""
FEW_ROWS = 200


@dataclass(frozen=True)
class Survey:
    """What was found.

    Attributes:
        rows: Rows that are trained on, once each.
        validation_rows: Rows that decide which weights are kept.
        dropped: Rows of the files that are not used: repeated, without a label, or without a partner in batches of
            pairs.
        units: What is shuffled, of each source: rows, pairs of rows, or blocks.
        validation: The rows that decide.
        problems: Why a training cannot begin, in words.
        advice: What to think about.
    """

    rows: int = 0
    validation_rows: int = 0
    dropped: int = 0
    units: tuple[tuple[Unit, ...], ...] = ()
    validation: tuple[Example, ...] = ()
    problems: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()


def survey(recipe: TrainRecipe) -> Survey:
    """Look at the data of a recipe; what is wrong is said, not raised."""
    try:
        parts = [load_rows(source, recipe) for source in recipe.train]
        units = [make_units(part, recipe.batching) for part in parts]
        validation = [row for source in recipe.validation for row in load_source(source)]
        raw = sum(_count(source, part) for source, part in zip(recipe.train, parts, strict=True))
    except CondvizError as error:
        return Survey(problems=(str(error),))
    rows = [row for part in units for unit in part for row in unit]
    return Survey(
        rows=len(rows),
        validation_rows=len(validation),
        dropped=raw - len(rows),
        units=tuple(map(tuple, units)),
        validation=tuple(validation),
        problems=tuple(_problems(recipe, rows, validation)),
        advice=tuple(_advice(recipe, rows, validation)),
    )


def load_rows(source: Source, recipe: TrainRecipe) -> list[Example]:
    """Give the rows of a source as the recipe batches them.

    Raises:
        ConfigError, DataError: As `condviz.training.sources`.
    """
    return load_blocks(source, recipe.batch_size) if recipe.batching == "blocks" else load_source(source)


def _count(source: Source, rows: Sequence[Example]) -> int:
    return len(read_pairs(find_table(source.path)).pairs) if source.name == TABLE else len(rows)


def _problems(recipe: TrainRecipe, rows: Sequence[Example], validation: Sequence[Example]) -> list[str]:
    found = []
    if len(rows) < MIN_ROWS:
        found.append(
            f"There are only {len(rows)} rows to train on; at least {MIN_ROWS} are needed, hundreds are better."
        )
    elif recipe.batching != "blocks" and recipe.batch_size > len(rows):
        fitting = 2 ** (len(rows).bit_length() - 1)
        found.append(f"batch_size is {recipe.batch_size}, but there are only {len(rows)} rows. Set it to {fitting}.")
    labels = {row.label for row in rows}
    if len(labels) == 1 and not recipe.loss.teacher:
        found.append(
            f"Every row has the label {labels.pop():g}, so there is nothing to tell apart. Add rows with other labels, "
            "from 1 (different) to 5 (same)."
        )
    ranked = {row.label for row in validation}
    if recipe.keep == "best" and len(ranked) == 1:
        found.append(
            f"Every validation row has the label {ranked.pop():g}: no model ranks them better than another. Add other "
            'labels, or set keep = "last".'
        )
    return found


def _advice(recipe: TrainRecipe, rows: Sequence[Example], validation: Sequence[Example]) -> list[str]:
    found = []
    if MIN_ROWS <= len(rows) < FEW_ROWS:
        found.append(f"{len(rows)} rows are few: expect a model that knows these conditions and no others.")
    labels: dict[tuple[str, str, str], set[float]] = defaultdict(set)
    for row in rows:
        labels[row.sentence1, row.sentence2, row.condition].add(row.label)
    if disputed := sum(len(given) > 1 for given in labels.values()):
        found.append(f"{disputed} triples of texts have several labels; the model learns their mean.")
    if shared := sum((row.sentence1, row.sentence2, row.condition) in labels for row in validation):
        found.append(
            f"{shared} of {len(validation)} validation rows are also trained on: their scores will look better than "
            "those on new rows."
        )
    if not validation:
        found.append("Without validation rows there is no curve of scores, and the last weights are kept.")
    return found
