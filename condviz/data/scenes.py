"""The corpus of scenes: families of sentences whose facts are tagged, and the wordings of the conditions.

A family is one base sentence, a paraphrase with the same facts, and three edits that change a fact or two each. Every
sentence of a family tells the same aspects, so any two of them can be compared under each aspect.

Source: written for this project (assets/scenes/README.md), CC BY 4.0.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from condviz.errors import DataError
from condviz.paths import ASSETS

SCENES = ASSETS / "scenes"
"""Folder of the corpus."""
ROLES = ("base", "paraphrase", "edit", "edit", "edit")
LOCAL = "x_"
"""Names of aspects that only one family uses begin with this; they mean different things in different families."""
PHRASINGS = 16
"""Wordings of each shared aspect."""

_NAME = re.compile(r"[a-z0-9_]+")
_FAMILY_ID = re.compile(r"[a-z]+-\d{3,}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffd]")


@dataclass(frozen=True)
class Aspect:
    """A question that can be asked of many scenes.

    Attributes:
        name: For instance "time_of_day".
        kind: "ordinal" (values have an order), "categorical" (a closed set), or "nominal" (values lie in groups).
        values: The values of an ordinal or categorical aspect, in order; empty for a nominal one.
        groups: Group -> values of a nominal aspect; empty for the others. A group called "none" holds values that say
            that there is nothing, so its members are not alike.
        phrasings: Wordings of the condition.
    """

    name: str
    kind: Literal["ordinal", "categorical", "nominal"]
    phrasings: tuple[str, ...]
    values: tuple[str, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def group_of(self, value: str) -> str | None:
        """Give the group of a nominal value, or None if it is in none."""
        return next((group for group, members in self.groups.items() if value in members), None)


@dataclass(frozen=True)
class Scene:
    """One sentence of a family.

    Attributes:
        role: "base", "paraphrase" or "edit".
        text: The sentence.
        aspects: Aspect -> value, as told by the sentence.
        changed: Aspects of an edit that differ from the base; empty for the other roles.
    """

    role: str
    text: str
    aspects: Mapping[str, str]
    changed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Family:
    """Sentences about one scene.

    Attributes:
        id: File and number, for instance "sport-001".
        domain: For instance "hospitals".
        scenes: In the order of `ROLES`.
        local_phrasings: Local aspect -> wordings of the condition.
    """

    id: str
    domain: str
    scenes: tuple[Scene, ...]
    local_phrasings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def load_aspects(folder: str | Path = SCENES) -> dict[str, Aspect]:
    """Read the shared aspects.

    Raises:
        DataError: If aspects.json is missing or has not the form that this package writes.
    """
    path = Path(folder) / "aspects.json"
    content = _parse(_read(path), str(path))
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
        DataError: If there is no .jsonl file, or a line has not the form that this package writes; names the line.
    """
    paths = sorted(Path(folder).glob("*.jsonl"))
    if not paths:
        raise DataError(
            f"There is no .jsonl file in {folder}. Restore the folder assets/scenes, or set CONDVIZ_ASSETS."
        )
    return tuple(
        _family(line, f"{path}, line {number}")
        for path in paths
        for number, line in enumerate(_read(path).split("\n"), start=1)
        if line.strip()
    )


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


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. Restore the folder assets/scenes.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 (byte {error.start:,}). Restore the file.") from error


def _parse(text: str, place: str) -> Any:  # noqa: ANN401 - any JSON
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"{place} is not JSON: {error.msg} (column {error.colno:,}). Restore the file.") from error


def _form_error(place: str, error: Exception) -> DataError:
    missing = f"the key {error} is missing" if isinstance(error, KeyError) else str(error)
    return DataError(f"{place} has not the form of the corpus: {missing}. See README.md in the folder of the scenes.")


def _family(line: str, place: str) -> Family:
    entry = _parse(line, place)
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
