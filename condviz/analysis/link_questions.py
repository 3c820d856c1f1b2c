"""Relations as questions: (bee, produces, ?) becomes "What does a bee produce?".

The two forms of each relation are in assets/graph/questions.tsv; names without an article ("honey") are listed in
assets/graph/without_article.txt. A relation that is in neither graph of ours gets a plain form.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from condviz.paths import ASSETS

FOLDER = ASSETS / "graph"
SINGULAR_IN_S = ("ss", "us", "lens", "gas")
"""Ends of names in -s that are no plural: compass, octopus, lens."""
SOUNDS_LIKE_Y = ("uni", "use", "eu")
"""Starts of names that take "a" before a written vowel."""


def phrase(name: str, relation: str, text: str, *, inverse: bool = False) -> str:
    """Return a question in words.

    Args:
        name: Of the entity.
        relation: Id of the relation.
        text: What encoders read for it, used where there is no question for the id.
        inverse: Whether heads are asked for.
    """
    plain = text.replace("{", "{{").replace("}", "}}")
    form = _forms().get(relation, (f"“{{name}}”: {plain} what?", f"What: {plain} “{{name}}”?"))[inverse]
    return form.format(name=name, the=_with_the(name), a=with_article(name))


def clause(answers: Sequence[str], relation: str, *, inverse: bool = False) -> str:
    """Return an answer as the rest of a sentence, "eats grass or leaves"; "" for a relation without such a form.

    Args:
        answers: Names of the answers, one at least.
        relation: Id of the relation.
        inverse: Whether the answers are heads.
    """
    form = _forms().get(relation, ("",) * 4)[2 + inverse]
    ways = {"x": str, "ax": with_article, "thex": _with_the}
    return form.format(**{key: _either([way(name) for name in answers]) for key, way in ways.items()})


def _either(names: Sequence[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _with_the(name: str) -> str:
    return name if name[:1].isupper() or name in _without_article() else f"the {name}"


def with_article(name: str) -> str:
    """Return a name with "a" or "an" where it takes one."""
    last = name.split()[-1] if name.strip() else ""
    plural = last.endswith("s") and not last.endswith(SINGULAR_IN_S)
    if name[:1].isupper() or plural or name in _without_article():
        return name
    vowel = name[:1].lower() in "aeiou" and not name.lower().startswith(SOUNDS_LIKE_Y)
    return f"{'an' if vowel else 'a'} {name}"


@cache
def _forms() -> dict[str, tuple[str, ...]]:
    """Relation -> question for tails, question for heads, clause with a tail, clause with a head."""
    rows = (FOLDER / "questions.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return {relation: tuple(forms) for relation, *forms in (row.split("\t") for row in rows)}


@cache
def _without_article() -> frozenset[str]:
    return frozenset((FOLDER / "without_article.txt").read_text(encoding="utf-8").split("\n"))
