"""Relations as questions: (bee, produces, ?) becomes "What does a bee produce?".

The two forms of each relation are in assets/graph/questions.tsv; names without an article ("honey") are listed in
assets/graph/without_article.txt. A relation that is in neither graph of ours gets a plain form.
"""

from __future__ import annotations

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
    proper = name[:1].isupper()
    the = name if proper or name in _without_article() else f"the {name}"
    return form.format(name=name, the=the, a=with_article(name))


def with_article(name: str) -> str:
    """Return a name with "a" or "an" where it takes one."""
    last = name.split()[-1] if name.strip() else ""
    plural = last.endswith("s") and not last.endswith(SINGULAR_IN_S)
    if name[:1].isupper() or plural or name in _without_article():
        return name
    vowel = name[:1].lower() in "aeiou" and not name.lower().startswith(SOUNDS_LIKE_Y)
    return f"{'an' if vowel else 'a'} {name}"


@cache
def _forms() -> dict[str, tuple[str, str]]:
    rows = (FOLDER / "questions.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return {relation: (tail, head) for relation, tail, head in (row.split("\t") for row in rows)}


@cache
def _without_article() -> frozenset[str]:
    return frozenset((FOLDER / "without_article.txt").read_text(encoding="utf-8").split("\n"))
