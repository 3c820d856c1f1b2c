"""The corpus of scenes: families of sentences whose facts are tagged, and the wordings of the conditions.

A family is one base sentence, a paraphrase with the same facts, and three edits that change a fact or two each. Every
sentence of a family tells the same aspects, so any two of them can be compared under each aspect.

Source: written for this project by a language model (assets/scenes/README.md), CC BY 4.0; ratings follow by rule.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

from pydantic import TypeAdapter

from condviz.data import splits
from condviz.data.corpus import (
    RELEASE,
    Corpus,
    Material,
    Password,
    RatedPair,
    form_error,
    parse_json,
    read_entries,
    read_text,
)
from condviz.data.families import Aspect, Family
from condviz.data.pairs import build_blocks, without_repeats
from condviz.paths import ASSETS

SCENES = ASSETS / "scenes"
"""Folder of the corpus."""
_ASPECT, _FAMILY = TypeAdapter(Aspect), TypeAdapter(Family)


def load_aspects(folder: str | Path = SCENES) -> dict[str, Aspect]:
    """Read the shared aspects; raises DataError if aspects.json is missing or not of the documented form."""
    path = Path(folder) / "aspects.json"
    content = parse_json(read_text(path), str(path))
    try:
        return {name: _ASPECT.validate_python({"name": name, **entry}) for name, entry in content.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise form_error(str(path), error) from error


@cache
def load_families(folder: str | Path = SCENES) -> tuple[Family, ...]:
    """Read all families, file by file in alphabetical order; once per process.

    Raises:
        DataError: If there is no .jsonl file, or a line is not of the documented form; names the line.
    """
    return read_entries(folder, _FAMILY)


def build_plain_pairs(families: Sequence[Family], *, seed: int) -> list[RatedPair]:
    """Pair each sentence with its paraphrase (5), and with another family's sentence (1); the condition is blank.

    Args:
        families: At least two; of fewer there are no pairs.
        seed: Decides the other sentences.
    """
    rows = []
    for number, family in enumerate(families if len(families) > 1 else ()):
        base, paraphrase = family.scenes[:2]
        other = random.Random(f"{seed} {family.id}").choice([one for one in families if one.id != family.id])
        for label, text, partner in ((5, paraphrase.text, family), (1, other.scenes[0].text, other)):
            rows.append(RatedPair(number, base.text, text, "", label, "", family.id, partner.id))
    return rows


def _load(folder: Path, part: str, _: Password) -> Material:
    families, aspects = load_families(folder), load_aspects(folder)
    return Material(
        rows=lambda seed: without_repeats(splits.build_part(families, aspects, part, seed=seed)),
        blocks=partial(build_blocks, *splits.select(families, aspects, part)) if part == "train" else None,
        conditions=splits.training_conditions(families, aspects) if part == "train" else None,
    )


def _load_plain(folder: Path, part: str, _: Password) -> Material:
    families = [family for family in load_families(folder) if splits.group_of(family) == part]
    return Material(rows=lambda seed: without_repeats(build_plain_pairs(families, seed=seed)))


_ours = partial(
    Corpus,
    licence="CC BY 4.0",
    source="assets/scenes, written for this project by a language model; ratings by rule from stated values",
    attribution="CondViz scenes, CC BY 4.0",
    home=SCENES,
)
SCENES_CORPUS = _ours(
    name="scenes",
    title="scenes of this project, with edits",
    files=("aspects.json", "*.jsonl"),
    load=_load,
    parts=splits.PARTS,
)
PLAIN_CORPUS = _ours(
    name="scenes-plain",
    title="scenes without a condition: a paraphrase, and something else",
    files=("*.jsonl",),
    load=_load_plain,
    parts=RELEASE,
)
