"""The corpus of scenes: families of sentences whose facts are tagged, and the wordings of the conditions.

A family is one base sentence, a paraphrase with the same facts, and three edits that change a fact or two each. Every
sentence of a family tells the same aspects, so any two of them can be compared under each aspect.

Source: written for this project by a language model (assets/scenes/README.md), CC BY 4.0; ratings follow by rule.

Its parts are fixed: for training, for choosing, and tests of what was seen and of what was not. After the protocol of
Hyper-CL (Yoo et al. 2024, arXiv:2403.09490, section 5.3), where "unseen" are rows whose condition does not occur in
training. What can be new about a condition is taken apart:

    part                families            aspects asked                 wordings
    train               train               seen, and each family's own   seen
    dev                 dev                 seen, and each family's own   seen
    test                test                seen                          seen
    unseen_phrasings    test                seen                          held out; the same pairs as in test
    unseen_aspects      test                held out                      all
    own_aspects         test                each family's own             all
    unseen_domains      held-out domains    seen                          seen

Nothing but what is named differs from `test`, in which only the sentences are new. An aspect of a family's own is asked
of no other family. In dev it stands for unseen conditions, so that held-out aspects need not be looked at when settings
are chosen. No family is in two of train, dev, test and held-out domains, and no wording of the three unseen parts
(phrasings, aspects, own aspects) occurs in training.

Which families and wordings go where depends on a hash of their names alone: a family added later moves no other.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from condviz.data import corpus
from condviz.data.corpus import RELEASE, Corpus, Material, Password, RatedPair, fraction
from condviz.data.families import LOCAL, Aspect, Family, build_blocks, build_pairs, without_repeats
from condviz.data.files import read_utf8
from condviz.paths import ASSETS

SCENES = ASSETS / "scenes"
"""Folder of the corpus."""
_ASPECTS, _ASPECT, _FAMILY = TypeAdapter(dict[str, dict[str, Any]]), TypeAdapter(Aspect), TypeAdapter(Family)
PARTS = ("train", "dev", "test", "unseen_phrasings", "unseen_aspects", "own_aspects", "unseen_domains")
DEV_SHARE, TEST_SHARE = 0.08, 0.17
"""Shares of the families outside of the held-out domains. The rest is for training."""
HELD_OUT_PHRASINGS = 4
"""Of the 16 wordings of each seen aspect."""
UNSEEN_ASPECTS = frozenset({
    "attention", "body_part", "clothing_item", "direction", "duration", "furniture", "held_object",
    "knowledge_source", "material", "mood", "opinion_service", "permanence", "posture", "relationship", "safety_gear",
    "size", "temperature",
})  # fmt: skip
"""Chosen for variety (ordinal, categorical, nominal), so that no seen aspect asks nearly the same, and so that many
sentences tell two of them."""
UNSEEN_DOMAINS = frozenset({
    "album", "art museum", "ballet", "cave museum", "classical concert", "concert", "dancing", "farm", "farm animals",
    "job ad", "job_ad", "museum label", "museum rules", "music", "music festival", "music shop", "naval museum",
    "night train", "railway", "railway history", "school museum", "stations", "theatre", "theatre diary",
    "toy museum", "train incident", "trains", "tram line",
})  # fmt: skip
"""Music and stage, farms, railways, museums, job advertisements."""
_UNSEEN = {"unseen_phrasings", "unseen_aspects", "own_aspects"}
_GROUPS = {"train": "train", "dev": "dev", "unseen_domains": "unseen_domains"}


def load_aspects(folder: str | Path = SCENES) -> dict[str, Aspect]:
    """Read the shared aspects; raises DataError if aspects.json is missing or not of the documented form."""
    path = Path(folder) / "aspects.json"
    content = corpus.check_form(_ASPECTS.validate_json, read_utf8(path, "Restore its folder."), str(path))
    return {
        name: corpus.check_form(_ASPECT.validate_python, {"name": name, **entry}, str(path))
        for name, entry in content.items()
    }


@cache
def load_families(folder: str | Path = SCENES) -> tuple[Family, ...]:
    """Read all families, file by file in alphabetical order, once per process; a DataError names the line."""
    return corpus.read_entries(folder, _FAMILY)


def build_part(
    families: Sequence[Family], aspects: Mapping[str, Aspect], part: str, *, seed: int = 0
) -> list[RatedPair]:
    """Build the rated rows of one part of all families and shared aspects; the seed does not move the division."""
    # Few sentences tell two held-out aspects, so more partners are tried for them.
    return build_pairs(*select(families, aspects, part), seed=seed, cross=8 if part == "unseen_aspects" else 1)


def group_of(family: Family) -> str:
    """Return the group of a family: "train", "dev", "test" or "unseen_domains"."""
    if family.domain in UNSEEN_DOMAINS:
        return "unseen_domains"
    place = fraction(family.id)
    if place < TEST_SHARE:
        return "test"
    return "dev" if place < TEST_SHARE + DEV_SHARE else "train"


def seen_phrasings(aspect: Aspect) -> tuple[str, ...]:
    """Return the wordings of an aspect that training may use, in the order of aspects.json."""
    ranked = sorted(aspect.phrasings, key=lambda wording: fraction(f"{aspect.name}:{wording}"))
    held_out = set(ranked[:HELD_OUT_PHRASINGS])
    return tuple(wording for wording in aspect.phrasings if wording not in held_out)


def training_conditions(families: Sequence[Family], aspects: Mapping[str, Aspect]) -> frozenset[str]:
    """Collect the wordings that training may use, without building its pairs."""
    shared = (seen_phrasings(aspect) for name, aspect in aspects.items() if name not in UNSEEN_ASPECTS)
    trained = (family for family in families if group_of(family) == "train")
    return frozenset().union(*shared, *(wordings for family in trained for wordings in family.local_phrasings.values()))


def select(
    families: Sequence[Family], aspects: Mapping[str, Aspect], part: str
) -> tuple[list[Family], dict[str, Aspect]]:
    """Return the families of a part, with the local aspects that are asked in it, and its shared aspects."""
    # A held-out wording of one aspect may be that of another, too.
    used = {*map(_folded, training_conditions(families, aspects))} if part in _UNSEEN else set()

    def fresh(wordings: Sequence[str]) -> tuple[str, ...]:
        return tuple(wording for wording in wordings if _folded(wording) not in used)

    chosen = []
    for family in families:
        if group_of(family) != _GROUPS.get(part, "test"):
            continue
        own: dict[str, tuple[str, ...]] = {}
        if part in {"train", "dev", "own_aspects"}:
            own = {name: fresh(wordings) for name, wordings in family.local_phrasings.items()}
            family = replace(family, local_phrasings=own)
        scenes = []
        for scene in family.scenes:
            told = scene.aspects.items()
            kept = {name: value for name, value in told if own.get(name) or not name.startswith(LOCAL)}
            scenes.append(replace(scene, aspects=kept))
        chosen.append(replace(family, scenes=tuple(scenes)))
    asked = {}
    for name, aspect in aspects.items() if part != "own_aspects" else ():
        wordings = fresh(aspect.phrasings if part in _UNSEEN else seen_phrasings(aspect))
        if wordings and (name in UNSEEN_ASPECTS) == (part == "unseen_aspects"):
            asked[name] = replace(aspect, phrasings=wordings)
    return chosen, asked


def _folded(wording: str) -> str:
    return wording.casefold().strip(" .?")


def build_plain_pairs(families: Sequence[Family], *, seed: int) -> list[RatedPair]:
    """Pair each sentence with its paraphrase (5), and with another family's sentence (1); the condition is blank."""
    rows = []
    for number, family in enumerate(families if len(families) > 1 else ()):
        base, paraphrase = family.scenes[:2]
        place = random.Random(f"{seed} {family.id}").choice(range(len(families) - 1))
        other = families[place + (place >= number)]  # any but the family itself
        for label, text, partner in ((5, paraphrase.text, family), (1, other.scenes[0].text, other)):
            rows.append(RatedPair(number, base.text, text, "", label, "", family.id, partner.id))
    return rows


def _load(folder: Path, part: str, _: Password) -> Material:
    families, aspects = load_families(folder), load_aspects(folder)
    return Material(
        rows=lambda seed: without_repeats(build_part(families, aspects, part, seed=seed)),
        blocks=partial(build_blocks, *select(families, aspects, part)) if part == "train" else None,
        conditions=training_conditions(families, aspects) if part == "train" else None,
    )


def _load_plain(folder: Path, part: str, _: Password) -> Material:
    families = [family for family in load_families(folder) if group_of(family) == part]
    return Material(rows=lambda seed: without_repeats(build_plain_pairs(families, seed=seed)))


_ours = partial(
    Corpus,
    licence="CC BY 4.0",
    source="assets/scenes, written for this project by a language model; ratings by rule from stated values",
    attribution="CondViz scenes, CC BY 4.0",
    home=SCENES,
)
_edits, _plain = "scenes of this project, with edits", "scenes without a condition: a paraphrase, and something else"
SCENES_CORPUS = _ours(name="scenes", title=_edits, files=("aspects.json", "*.jsonl"), load=_load, parts=PARTS)
PLAIN_CORPUS = _ours(name="scenes-plain", title=_plain, files=("*.jsonl",), load=_load_plain, parts=RELEASE)
