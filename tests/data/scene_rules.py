"""The rules of the corpus of scenes (assets/scenes/README.md)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from condviz.data.families import LOCAL, Aspect, Family, Scene

ROLES = ("base", "paraphrase", "edit", "edit", "edit")
PHRASINGS = 16
"""Wordings of each shared aspect."""
_NAME = re.compile(r"[a-z0-9_]+")
_FAMILY_ID = re.compile(r"[a-z]+-\d{3,}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffd]")


def validate(families: Sequence[Family], aspects: Mapping[str, Aspect]) -> list[str]:
    """Look for breaches of the rules of the corpus (README.md beside it).

    Returns:
        One sentence for each problem, naming aspect or family; empty if there is none.
    """
    problems = [problem for aspect in aspects.values() for problem in _aspect_problems(aspect)]
    problems += [f"{name}: the id is used twice" for name in _repeated(family.id for family in families)]
    texts = _repeated(scene.text.casefold() for family in families for scene in family.scenes)
    problems += [f"this sentence occurs twice: {text}" for text in texts]
    for family in families:
        problems += [f"{family.id}: {problem}" for problem in _family_problems(family, aspects)]
    return problems


def _repeated(values: Iterator[str] | Sequence[str]) -> list[str]:
    return [value for value, count in Counter(values).items() if count > 1]


def _is_clean(text: str) -> bool:
    return bool(text) and text == " ".join(text.split()) and not _CONTROL.search(text)


def _phrasing_problems(name: str, phrasings: Sequence[str]) -> Iterator[str]:
    for phrasing in phrasings:
        if not _is_clean(phrasing):
            yield f"{name}: a phrasing is empty, or has blanks or control characters: {phrasing!r}"
    for phrasing in _repeated([phrasing.casefold().strip(" .?") for phrasing in phrasings]):
        yield f"{name}: the phrasing {phrasing!r} occurs twice"


def _aspect_problems(aspect: Aspect) -> Iterator[str]:
    if aspect.name.startswith(LOCAL) or not _NAME.fullmatch(aspect.name):
        yield f"{aspect.name}: not a name for a shared aspect"
    if len(aspect.phrasings) != PHRASINGS:
        yield f"{aspect.name}: {len(aspect.phrasings)} phrasings instead of {PHRASINGS}"
    yield from _phrasing_problems(aspect.name, aspect.phrasings)
    if aspect.kind not in {"ordinal", "categorical", "nominal"}:
        yield f"{aspect.name}: the kind {aspect.kind!r} does not exist"
    if bool(aspect.groups) != (aspect.kind == "nominal") or bool(aspect.values) == (aspect.kind == "nominal"):
        yield f"{aspect.name}: a nominal aspect has groups, any other has values"
    members = [*aspect.values, *(value for group in aspect.groups.values() for value in group)]
    for value in _repeated(members):
        yield f"{aspect.name}: the value {value!r} is listed twice"
    for value in members:
        if not _NAME.fullmatch(value):
            yield f"{aspect.name}: {value!r} is not a name for a value"


def _family_problems(family: Family, aspects: Mapping[str, Aspect]) -> Iterator[str]:
    if not _FAMILY_ID.fullmatch(family.id):
        yield "the id is not file-number"
    if tuple(scene.role for scene in family.scenes) != ROLES:
        yield f"the roles are {[scene.role for scene in family.scenes]} instead of {list(ROLES)}"
        return
    for name, phrasings in family.local_phrasings.items():
        if len(phrasings) < 3:
            yield f"{name}: {len(phrasings)} phrasings, at least 3 are needed"
        yield from _phrasing_problems(name, phrasings)
    base = family.scenes[0]
    local = {name for name in base.aspects if name.startswith(LOCAL)}
    for name in sorted(local ^ set(family.local_phrasings)):
        yield f"{name}: a local aspect needs phrasings, and phrasings need the aspect"
    for name in sorted(set(base.aspects) - local - set(aspects)):
        yield f"{name}: there is no such aspect in aspects.json"
    for scene in family.scenes:
        yield from _scene_problems(scene, base)
        for name, value in scene.aspects.items():
            if not _is_known(aspects.get(name), value):
                yield f"{name}: the value {value!r} is not in aspects.json"


def _is_known(aspect: Aspect | None, value: str) -> bool:
    if aspect is None:  # a local aspect takes any value
        return bool(_NAME.fullmatch(value))
    return value in aspect.values or aspect.group_of(value) is not None


def _scene_problems(scene: Scene, base: Scene) -> Iterator[str]:
    if not _is_clean(scene.text):
        yield f"the text is empty, or has blanks or control characters: {scene.text!r}"
    if set(scene.aspects) != set(base.aspects):
        yield f"the {scene.role} tells other aspects than the base: {sorted(set(scene.aspects) ^ set(base.aspects))}"
        return
    differs = {name for name, value in scene.aspects.items() if value != base.aspects[name]}
    if differs != set(scene.changed):
        yield f"the {scene.role} lists {sorted(scene.changed)} as changed, but differs in {sorted(differs)}"
    if (scene.role == "edit") != bool(differs):
        yield f"the {scene.role} {'changes' if differs else 'does not change'} any tagged fact"
