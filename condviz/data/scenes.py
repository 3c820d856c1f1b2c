"""The corpus of scenes: families of sentences whose facts are tagged, and the wordings of the conditions.

A family is one base sentence, a paraphrase with the same facts, and three edits that change a fact or two each. Every
sentence of a family tells the same aspects, so any two of them can be compared under each aspect.

Source: written for this project by a language model (assets/scenes/README.md), CC BY 4.0; ratings follow by rule.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from condviz.data import splits
from condviz.data.corpus import RELEASE, Corpus, Material, Password, RatedPair, parse_json, read_jsonl, read_text
from condviz.data.families import Aspect, Family, Scene
from condviz.data.pairs import without_repeats
from condviz.errors import DataError
from condviz.paths import ASSETS

SCENES = ASSETS / "scenes"
"""Folder of the corpus."""


@dataclass(frozen=True)
class _Part(Material):
    """Rows of one part, as `splits` divides the families."""

    families: Sequence[Family]
    aspects: Mapping[str, Aspect]
    part: str

    @property
    def texts(self) -> None:
        """Counted in the rows."""

    def rows(self, seed: int) -> list[RatedPair]:
        """Build pairs, without repeats."""
        return without_repeats(splits.build_part(self.families, self.aspects, self.part, seed=seed))

    def blocks(self, seed: int, sentences: int) -> list[list[RatedPair]] | None:
        """Build blocks of the training part; the tests are single pairs."""
        if self.part != "train":
            return None
        return splits.build_training_blocks(self.families, self.aspects, seed=seed, sentences=sentences)


@dataclass(frozen=True)
class _Plain(Material):
    """Pairs without a condition."""

    families: Sequence[Family]

    @property
    def texts(self) -> None:
        """Counted in the rows."""

    def rows(self, seed: int) -> list[RatedPair]:
        """Build pairs, without repeats."""
        return without_repeats(build_plain_pairs(self.families, seed=seed))


def load_aspects(folder: str | Path = SCENES) -> dict[str, Aspect]:
    """Read the shared aspects.

    Raises:
        DataError: If aspects.json is missing or not of the documented form.
    """
    path = Path(folder) / "aspects.json"
    content = parse_json(read_text(path), str(path))
    try:
        return {
            name: Aspect(
                name=name,
                kind=entry["kind"],
                phrasings=tuple(entry["phrasings"]),
                values=tuple(entry.get("values", ())),
                groups={group: tuple(members) for group, members in entry.get("groups", {}).items()},
            )
            for name, entry in content.items()
        }
    except (AttributeError, KeyError, TypeError) as error:
        raise _form_error(str(path), error) from error


def load_families(folder: str | Path = SCENES) -> tuple[Family, ...]:
    """Read all families, file by file in alphabetical order.

    Raises:
        DataError: If there is no .jsonl file, or a line is not of the documented form; names the line.
    """
    return tuple(_family(entry, place) for place, entry in read_jsonl(folder))


def _form_error(place: str, error: Exception) -> DataError:
    missing = f"the key {error} is missing" if isinstance(error, KeyError) else str(error)
    return DataError(f"{place} is not of the form of the corpus: {missing}. See README.md in the folder of the scenes.")


def _family(entry: Any, place: str) -> Family:  # noqa: ANN401 (any JSON)
    try:
        return Family(
            id=entry["id"],
            domain=entry["domain"],
            scenes=tuple(
                Scene(
                    role=scene["role"],
                    text=scene["text"],
                    aspects=dict(scene["aspects"]),
                    changed=tuple(scene.get("changed", ())),
                )
                for scene in entry["sentences"]
            ),
            local_phrasings={name: tuple(wordings) for name, wordings in entry.get("local_phrasings", {}).items()},
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _form_error(place, error) from error


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


_families = cache(load_families)
"""Read once per process: a survey asks for ten parts of the same files."""


def _load(folder: Path, part: str, _: Password) -> Material:
    return _Part(_families(folder), load_aspects(folder), part)


def _load_plain(folder: Path, part: str, _: Password) -> Material:
    return _Plain([family for family in _families(folder) if splits.group_of(family) == part])


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
