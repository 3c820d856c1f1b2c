"""A knowledge graph: entities, relations, triples, the texts that encoders read, and its questions in English.

Texts follow SimKGC (Wang et al. 2022; preprocess.py, doc.py and triplet.py of intfloat/SimKGC): `name: definition`, and
behind a short definition the names of neighbours. Files are read by `condviz.data.kg_formats`.

Questions: (bee, produces, ?) becomes "What does a bee produce?". The two forms of each relation are in
assets/graph/questions.tsv, names without an article ("honey") in assets/graph/without_article.txt. A relation that is
in neither graph of ours, whatever its language, becomes a sentence with a gap: "aspirin treats …?".
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache, cached_property

import numpy as np

from condviz.data.texts import Names, fold
from condviz.errors import DataError, suggest
from condviz.paths import ASSETS

SPLITS = ("train", "valid", "test")
SHORT_DESCRIPTION = 20
"""A definition with fewer words than this gets the names of neighbours behind it."""
MAX_NEIGHBOURS = 10
INVERSE = "inverse "
"""In front of the text of a relation that is asked backwards."""
FOLDER = ASSETS / "graph"
SINGULAR_IN_S = ("ss", "us", "lens", "gas")
"""Ends of names in -s that are no plural: compass, octopus, lens."""
_PLURALS = (("s", ""), ("es", ""), ("ies", "y"), ("ves", "f"), ("ves", "fe"))
"""End of a plural -> that of its singular, the commonest first."""
DETERMINERS = (
    "a", "an", "the", "my", "your", "his", "her", "its", "our", "their", "this", "that", "these", "those", "some",
    "any", "each", "every", "no",
)  # fmt: skip
"""First words after which there is no article."""
SOUNDS_LIKE_Y = ("uni", "use", "eu")
"""Starts of names that take "a" before a written vowel."""

ARTICLE = re.compile(r"^(an?|the)\s+(?=\S)", re.IGNORECASE)
_HAVE = re.compile(r"^(which|what|who)( \w+)? (has|have) ")
"""Which animals have, who has: asks as "what has" does."""
_MARKS = re.compile(r"[“”\"?…]")
_ASKS = re.compile(
    r"(what|which|who|whom|whose|where|when|why|how|does|do|did|is|are|can|tell|name|list|show)\b", re.IGNORECASE
)
_FILLERS = frozenset({
    "a", "an", "and", "are", "be", "can", "could", "did", "do", "does", "find", "how", "i", "is", "it", "me", "name",
    "of", "tell", "that", "the", "thing", "things", "to", "was", "were", "what", "when", "where", "which", "who",
    "whom", "whose", "why", "would", "you",
})  # fmt: skip
"""Words of a question that name neither a thing nor, alone, a relation."""
_ENDS = ("in", "at", "of", "for", "by", "on")
"""Last words of a relation, "lives in", that a question may leave out."""


@dataclass(frozen=True, slots=True)
class Entity:
    """A node of the graph: a unique label ("land_reform_NN_1"), and what encoders read: a name, and a definition or "".

    Several entities may share a name ("land reform").
    """

    id: str
    label: str
    name: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Relation:
    """A kind of edge: its id in the files ("_has_part") and what encoders read ("has part")."""

    id: str
    text: str


@dataclass(frozen=True)
class Graph:
    """Entities, relations and triples of one data set; everything is known by its number from 0.

    Relations count from 0 to N - 1, and the inverse of relation r is r + N, as in `condviz.evaluation.kgc`.

    Attributes:
        splits: "train", "valid" and "test" -> (t, 3) int64: head, relation, tail. May be empty.
        hops: Steps to the candidates that re-ranking prefers; SimKGC takes 5 for WN18RR and 2 for FB15k-237.
        notice: Who has to be named where anything made from the graph is shown, and the licence.
        notes: What was taken where its tables leave a doubt, and how to change it; a sentence each.
    """

    name: str
    entities: tuple[Entity, ...]
    relations: tuple[Relation, ...]
    splits: Mapping[str, np.ndarray]
    hops: int = 5
    notice: str = ""
    notes: tuple[str, ...] = ()

    @property
    def num_entities(self) -> int:
        """E."""
        return len(self.entities)

    @property
    def num_relations(self) -> int:
        """N, without inverses."""
        return len(self.relations)

    @cached_property
    def triples(self) -> np.ndarray:
        """All triples of all splits, (t, 3) int64."""
        return np.concatenate([self.splits[name] for name in SPLITS])

    def directed(self, split: str = "") -> np.ndarray:
        """Return the triples of a split, or of all, forward, then backwards: (2 t, 3) int64, relations in [0, 2N)."""
        forward = self.splits[split] if split else self.triples
        shift = np.array([0, self.num_relations, 0])
        return np.concatenate([forward, (forward + shift)[:, [2, 1, 0]]])

    # Texts

    def relation_text(self, relation: int) -> str:
        """Return the text of a relation in [0, 2N): "hypernym", or "inverse hypernym" for N and above."""
        inverse, number = divmod(relation, self.num_relations)
        return (INVERSE if inverse else "") + self.relations[number].text

    def text(self, entity: int, *, neighbours: bool = True, without: int | None = None) -> str:
        """Return the text of an entity, with the names of `neighbours` in the train graph behind a short definition.

        The entity `without` is not named among them: in training the answer, which the text would give away.
        """
        item = self.entities[entity]
        description = item.description
        if neighbours and len(description.split()) < SHORT_DESCRIPTION:
            names = [self.entities[other].name for other in self._neighbours.get(entity, ()) if other != without]
            description = " ".join([description, *names]).strip()
        description = description.removeprefix(item.name).strip()
        return f"{item.name}: {description}" if description else item.name

    def texts(self, *, neighbours: bool = True) -> list[str]:
        """Return the texts of all entities, in their order."""
        return [self.text(entity, neighbours=neighbours) for entity in range(self.num_entities)]

    @cached_property
    def _neighbours(self) -> dict[int, list[int]]:
        """The first ten neighbours of each entity that has some in the train graph, in the order of their ids."""
        found: dict[int, set[int]] = defaultdict(set)
        for head, _, tail in self.splits["train"].tolist():
            found[head].add(tail)
            found[tail].add(head)
        ids = [item.id for item in self.entities]
        return {entity: sorted(others, key=ids.__getitem__)[:MAX_NEIGHBOURS] for entity, others in found.items()}

    # Search

    def named(self, text: str) -> list[int]:
        """Return the numbers of all entities that a name means, also one in the plural, "bees" for "bee".

        Where nothing has it to the letter, an article in front of it, or of a name of the graph, is left out.
        """
        asked = (self.names, text.strip()), (self._bare, ARTICLE.sub("", text.strip()))
        found = (names.find(one) for names, name in asked for one in _singulars(name))
        return next(filter(None, found), [])

    def find_entity(self, text: str) -> int:
        """Find one entity by id, label or name; a DataError lists similar names, or all entities of that name."""
        named = self.named(text)
        if len(named) == 1:
            return named[0]
        if named:
            named.sort(key=lambda i: -self._degrees[i])
            choice = "; ".join(f"{self.entities[i].label}: {self.entities[i].description[:50]}" for i in named[:8])
            raise DataError(f"There are {len(named)} entities named {text[:80]!r}. Name one of: {choice}.")
        near = [self.entities[i].label for i in self.search(text, limit=5)]
        hint = f" Similar: {', '.join(near)}." if near else " Search for a part of the name."
        raise DataError(f"There is no entity {text[:80]!r} in {self.name}.{hint}")

    def search(self, text: str, *, limit: int = 20) -> list[int]:
        """Find at most `limit` entities by a part of their name, of equals the best connected first; "" finds those.

        The same name comes first, then names that begin with the text, that hold it, and that are spelled alike.
        """
        wanted = fold(text).replace("_", " ")
        meant = set(self.named(text))
        ranked = [(-1, -self._degrees[i], i) for i in meant]
        for i, name in enumerate(self._folded):
            place = name.find(wanted)
            if place >= 0 and i not in meant:
                whole = 0 if name == wanted else 1 if place == 0 else 2 if name[place - 1] == " " else 3
                ranked.append((whole, -self._degrees[i], i))
        if not ranked:
            near = {name: n for n, name in enumerate(get_close_matches(wanted, {*self._folded}, n=limit, cutoff=0.6))}
            ranked = [(near[name], -self._degrees[i], i) for i, name in enumerate(self._folded) if name in near]
        return [i for *_, i in sorted(ranked)[:limit]]

    def find_relation(self, text: str) -> int:
        """Find a relation by its id or text, as `Names.find`: a number in [0, 2N); a DataError lists what there is.

        Only what is no relation itself is read with "inverse " as the other direction of one.
        """
        inverse, wanted = 0, text.strip()
        found = self._kinds.find(wanted)
        if not found and fold(wanted).startswith(INVERSE):
            inverse, wanted = self.num_relations, wanted[len(INVERSE) :].strip()
            found = self._kinds.find(wanted)
        if len(found) == 1:
            return found[0] + inverse
        if found:
            choice = ", ".join(self.relations[i].id for i in found)
            raise DataError(f"There are {len(found)} relations called {wanted[:80]!r}. Name one by its id: {choice}.")
        known = [relation.text for relation in self.relations]
        listed = ", ".join(known[:30]) + (" ..." if len(known) > 30 else "")
        raise DataError(
            f"There is no relation {text[:80]!r}.{suggest(wanted, known)} Relations, each also with "
            f'"inverse ": {listed}.'
        )

    @cached_property
    def names(self) -> Names:
        """What finds entities by their ids, labels and names."""
        return Names(*([getattr(item, part) for item in self.entities] for part in ("id", "label", "name")))

    @cached_property
    def _bare(self) -> Names:
        return Names([ARTICLE.sub("", item.name) for item in self.entities])

    @cached_property
    def _kinds(self) -> Names:
        ids = [item.id for item in self.relations]
        return Names(ids, [item.text for item in self.relations], [name.strip("_") for name in ids])

    @cached_property
    def _folded(self) -> list[str]:
        return [fold(item.name) for item in self.entities]

    @cached_property
    def _degrees(self) -> list[int]:
        return np.bincount(self.splits["train"][:, [0, 2]].ravel(), minlength=self.num_entities).tolist()


def build_graph(
    name: str,
    entities: Sequence[Entity],
    relations: Sequence[Relation],
    splits: Mapping[str, Sequence[tuple[str, ...]]],
    *,
    hops: int = 5,
    notice: str = "",
    place: Callable[[str, int], str] | None = None,
) -> Graph:
    """Number entities and relations, and check the triples of ids; a missing split counts as empty.

    A label that is the id of another entity gets its own id behind it. `place` says for messages where a triple is,
    given its split and its number from 0.

    Raises:
        DataError: If something is there twice or not at all, an entity has no text, or a triple names what is missing.
    """
    if not entities or not relations:
        raise DataError(f"{name} has {len(entities)} entities and {len(relations)} relations. Give at least one each.")
    numbers = _numbered(name, "entity", [item.id for item in entities])
    entities = [
        replace(item, label=f"{item.label} ({item.id})") if numbers.get(item.label, i) != i else item
        for i, item in enumerate(entities)
    ]
    _numbered(name, "label", [item.label for item in entities])
    kinds = _numbered(name, "relation", [item.id for item in relations])
    if blank := next((item.id for item in entities if not item.name.strip()), None):
        raise DataError(f"{name}: entity {blank!r} has no name, so there is no text to encode. Give it one.")
    if blank := next((item.id for item in relations if not item.text.strip()), None):
        raise DataError(f"{name}: relation {blank!r} has no text. Give it one.")
    arrays = {}
    for split in SPLITS:
        found = []
        for index, (head, relation, tail) in enumerate(splits.get(split, ())):
            unknown = [f"entity {end!r}" for end in (head, tail) if end not in numbers]
            unknown += [f"relation {relation!r}"] if relation not in kinds else []
            if unknown:
                where = place(split, index) if place else f"{name} {split}, row {index + 1}"
                raise DataError(
                    f"{where}: {unknown[0]} is not listed in the graph. Add it to its table, or fix the row."
                )
            found.append((numbers[head], kinds[relation], numbers[tail]))
        arrays[split] = np.array(found, dtype=np.int64).reshape(-1, 3)
    return Graph(name, tuple(entities), tuple(relations), arrays, hops, notice)


def _singulars(text: str) -> list[str]:
    """Return a name, and what it may be the plural of."""
    ends = () if text.lower().endswith(SINGULAR_IN_S) else _PLURALS
    return [text, *(text[: -len(end)] + instead for end, instead in ends if text.lower().endswith(end))]


def _numbered(name: str, kind: str, values: Sequence[str]) -> dict[str, int]:
    """Return value -> its number from 0; refuse values that are there twice."""
    numbers: dict[str, int] = {}
    for number, value in enumerate(values):
        if (first := numbers.setdefault(value, number)) != number:
            rows = f"{first + 1} and {number + 1}"
            raise DataError(f"{name}: {kind} {value!r} is in rows {rows}. Remove one of them.")
    return numbers


def phrase(name: str, relation: str, text: str, *, inverse: bool = False) -> str:
    """Return a question in words, about heads if `inverse`; where the id has none, with what encoders read for it."""
    if (forms := _forms().get(relation)) is None:
        return f"… {text} {name}?" if inverse else f"{name} {text} …?"
    return forms[inverse].format(name=name.strip("“”"), the=_with_the(name), a=with_article(name))


def parse_question(graph: Graph, text: str) -> tuple[str, int] | None:
    """Read a question about a graph: "What does a cow eat?" is about the cow, and what it eats.

    A name of the graph is no question. Questions in the words of `phrase` are read first, then any that hold the words
    of a relation: what stands in front of them is asked for its tails, what stands behind for its heads.

    Returns:
        The thing and the relation in [0, 2N); None for a text that is no question.

    Raises:
        DataError: If a question names no relation of the graph, or no thing.
    """
    if graph.named(text) or not (text.rstrip().endswith("?") or (_ASKS.match(text) and len(text.split()) > 2)):
        return None
    asked = _HAVE.sub("what has ", _MARKS.sub("", fold(text)).strip(" .!"))
    found = [*_read_forms(graph, asked), *_read_relations(graph, asked)]
    if not found:
        relations = ", ".join(relation.text for relation in graph.relations[:12])
        head, first, _ = graph.triples[0].tolist()
        example = phrase(graph.entities[head].name, graph.relations[first].id, graph.relations[first].text)
        raise DataError(
            f"“{text.strip()[:80]}” cannot be answered from this graph. Name a thing, or ask by one of its relations, "
            f"as in “{example}”: {relations}."
        )
    return max(found, key=lambda one: bool(graph.named(one[0])))  # the first, if none or all are known


def _read_forms(graph: Graph, asked: str) -> list[tuple[str, int]]:
    found = []
    for number in range(2 * graph.num_relations):
        inverse, place = divmod(number, graph.num_relations)
        relation = graph.relations[place]
        form = fold(phrase("\0", relation.id, relation.text, inverse=bool(inverse)))
        form = re.escape(_MARKS.sub("", form).strip())
        form = re.sub(r"(an?\\ |the\\ )?\x00|\\\x00", "(?:(?:an?|the) )?(.+)", form.replace("\\\x00", "\x00"))
        if match := re.fullmatch(form, asked):
            found.append((match[1], number))
    return found


def _read_relations(graph: Graph, asked: str) -> list[tuple[str, int]]:
    """Find the words of a relation in a question, in any of their simple forms, the longest first."""
    words, found = asked.split(), []
    for number in sorted(range(graph.num_relations), key=lambda number: -len(graph.relations[number].text)):
        stems = [_stem(word) for word in fold(graph.relations[number].text).split()]
        if words[-1:] != stems[-1:] and len(stems) > 1 and stems[-1] in _ENDS:  # "Where does a bee live?"
            stems = stems[:-1]
        for start in range(len(words) - len(stems) + 1):
            if [_stem(word) for word in words[start : start + len(stems)]] != stems:
                continue
            sides = [*enumerate((words[:start], words[start + len(stems) :]))]
            for inverse, side in reversed(sides) if words[0] in ("which", "what", "who") else sides:
                named = [word for word in side if word not in _FILLERS and word not in _ENDS]
                names = [" ".join(named[place:]) for place in range(len(named))]
                known = [name for name in names if graph.named(name)]
                found += [(name, number + inverse * graph.num_relations) for name in known or names[:1]]
    return found


def _stem(word: str) -> str:
    if word in _FILLERS or word.endswith("ss"):
        return word
    return f"{word[:-3]}y" if word.endswith("ies") and len(word) > 4 else word.removesuffix("s")


def clause(answers: Sequence[str], relation: str, *, inverse: bool = False) -> str:
    """Return an answer as the rest of a sentence, "eats grass or leaves"; "" for a relation without such a form."""
    form, told = _forms().get(relation, ("",) * 4)[2 + inverse], {}
    for key, way in {"x": str, "ax": with_article, "thex": _with_the}.items():
        *first, last = map(way, answers)
        told[key] = f"{', '.join(first)} or {last}" if first else last
    return form.format(**told)


def _with_the(name: str) -> str:
    return name if _is_bare(name) else f"the {name}"


def _is_bare(name: str) -> bool:
    """Tell a name that takes no article: a proper or quoted one, one with a determiner, or a mass noun of the list."""
    return (
        name[:1].isupper() or name[:1] == "“" or name.lower().split(" ")[0] in DETERMINERS or name in _without_article()
    )


def with_article(name: str) -> str:
    """Return a name with "a" or "an" where it takes one."""
    plural = name.endswith("s") and not name.endswith(SINGULAR_IN_S)
    if plural or _is_bare(name):
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
