"""How good is a search under a condition? Precision and nDCG at 10 of texts with the same value.

python -m benchmarks.search_quality [--corpus cebab] [--queries 8] [--model NAME ...] [--json FILE] [--docs]

The corpus is the first sentence of each test family of the scenes, or each original review of the test part of CEBaB
(in the folder CONDVIZ_DATA); a query is one of them under an aspect that it tells, in a wording of that aspect; right
are the other families' sentences with the same value. Beside every method: plain search
with its own vectors, and plain search for the query with the condition typed behind it. Where fewer than 10 texts are
right, only as many hits are looked at.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.common import command, fill, options
from condviz.analysis.search import embed_rows
from condviz.data import cebab
from condviz.data.families import LOCAL, Aspect, Scene
from condviz.data.scenes import UNSEEN_ASPECTS, group_of, load_aspects, load_families, seen_phrasings
from condviz.errors import CondvizError
from condviz.evaluation.scoreboard import markdown_table
from condviz.models.registry import describe, list_models, load
from condviz.store.corpus import encode_corpus

AT = 10
FEWEST = 4
"""Other texts with the value that a query needs to count."""
FEW = 6
"""Aspects that have a column each."""
WAYS = ("under the condition", "plain search", "condition typed into the query")


@dataclass(frozen=True)
class Question:
    """A query with what it should find.

    Attributes:
        place: Which text of the corpus it is.
        condition: The wording.
        aspect: Its name.
        right: Texts with the same value.
        told: Texts that tell the aspect at all.
    """

    place: int
    condition: str
    aspect: str
    right: frozenset[int]
    told: frozenset[int]


def read_scenes(corpus: str) -> tuple[list[Scene], Mapping[str, Aspect]]:
    """Return the texts of a corpus and the aspects that they tell.

    Raises:
        DataError: If the files of the corpus are not there.
    """
    if corpus == "scenes":
        return [family.scenes[0] for family in load_families() if group_of(family) == "test"], load_aspects()
    families = cebab.load(cebab.CORPUS.place, "test", copies=False)
    originals = [scene for family in families for scene in family.scenes if scene.role == "base"]
    return originals, cebab.aspects()


def make_questions(corpus: str, queries: int, most: int) -> tuple[list[str], list[Question]]:
    """Return the texts and the questions, `queries` for each of `most` aspects; one wording an aspect."""
    scenes, aspects = read_scenes(corpus)
    values: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place, scene in enumerate(scenes):
        for name, value in scene.aspects.items():
            if not name.startswith(LOCAL):
                values[name][value].append(place)
    draw, questions = np.random.default_rng(0), []
    for name in draw.permutation(sorted(aspects)).tolist():
        if len(questions) == queries * most:
            break
        asked = [(place, members) for members in values[name].values() if len(members) > FEWEST for place in members]
        told = frozenset(place for members in values[name].values() for place in members)
        if len(asked) < queries or max(len(members) for _, members in asked) > 0.7 * len(told):
            continue  # too rare, or nearly always the same value
        condition = _wording(aspects[name])
        for index in draw.choice(len(asked), queries, replace=False):
            place, members = asked[index]
            questions.append(Question(place, condition, name, frozenset(members) - {place}, told))
    return [scene.text for scene in scenes], questions


def _wording(aspect: Aspect) -> str:
    return (aspect.phrasings if aspect.name in UNSEEN_ASPECTS else seen_phrasings(aspect))[0]


def measure(name: str, texts: list[str], questions: list[Question]) -> dict[str, list[list[float]]]:
    """Return the grades of every question (see `_grade`) for each of `WAYS` that the model has."""
    model = load(name)
    corpus = encode_corpus(model, texts)
    plain = _units(corpus.vectors(np.arange(len(texts)))[0].astype(np.float32))
    typed = _units(model.encode_sentences([f"{texts[item.place]} {item.condition}" for item in questions]))
    found: dict[str, list[list[float]]] = {way: [] for way in WAYS}
    under: dict[str, np.ndarray] = {}
    for question, query in zip(questions, typed, strict=True):
        if model.conditional:
            if question.condition not in under:
                under = {question.condition: embed_rows(model, corpus, question.condition)}
            rows = under[question.condition]
            found[WAYS[0]].append(_grade(rows @ rows[question.place], question))
        found[WAYS[1]].append(_grade(plain @ plain[question.place], question))
        found[WAYS[2]].append(_grade(plain @ query, question))
    return found


def _units(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _grade(scores: np.ndarray, question: Question) -> list[float]:
    """Return precision and nDCG among all texts, then among those that tell the aspect."""
    gains, grades = 1 / np.log2(np.arange(2, AT + 2)), []
    told = np.isin(np.arange(len(scores)), list(question.told))
    for allowed in (np.ones(len(scores), dtype=bool), told):
        found = np.where(allowed, scores, -np.inf)
        found[question.place] = -np.inf
        most = min(AT, len(question.right))
        hits = np.isin(np.argsort(-found, kind="stable")[:most], list(question.right))
        grades += [float(hits.mean()), float((hits * gains[:most]).sum() / gains[:most].sum())]
    return grades


def table(found: Mapping[str, dict[str, list[list[float]]]], questions: list[Question]) -> str:
    """Return the means in markdown; for few aspects also each of them, else those that no model was trained on."""
    aspects = np.array([question.aspect for question in questions])
    names = list(dict.fromkeys(aspects.tolist()))
    parts = {name: aspects == name for name in names} if len(names) <= FEW else {}
    unseen = np.isin(aspects, sorted(UNSEEN_ASPECTS))
    if unseen.any():
        parts["unseen aspects"] = unseen
    head = ["model", "search", "all texts: P@10", "nDCG@10", "texts that tell it: P@10", "nDCG@10"]
    head += [f"{name}: P@10" for name in parts]
    lines = []
    for name, ways in found.items():
        for way, grades in ways.items():
            if grades:
                values = np.array(grades)
                cells = [*values.mean(axis=0), *(values[chosen, 2].mean() for chosen in parts.values())]
                lines.append((name, way, *(f"{cell:.3f}" for cell in cells)))
    return markdown_table(head, lines)


def main() -> None:
    """Measure the models, print a table in markdown."""
    parser = options(__doc__)
    parser.add_argument("--corpus", choices=("scenes", "cebab"), default="scenes")
    parser.add_argument("--queries", type=int, default=8, help="for each aspect")
    parser.add_argument("--aspects", type=int, default=24)
    parser.add_argument("--model", action="append", default=[], help="(default: all that are trained)")
    chosen = parser.parse_args()
    texts, questions = make_questions(chosen.corpus, chosen.queries, chosen.aspects)
    found = {}
    for name in chosen.model or [name for name in list_models() if describe(name).trained]:
        try:
            found[name] = measure(name, texts, questions)
        except CondvizError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    among_all = np.mean([len(question.right) / len(texts) for question in questions])
    among_told = np.mean([len(question.right) / len(question.told) for question in questions])
    text = (
        f"`{command()}`: {len(texts):,} texts, {len(questions)} queries on "
        f"{len({question.aspect for question in questions})} aspects; right by chance: {among_all:.3f} of all texts, "
        f"{among_told:.3f} of those that tell the aspect.\n\n{table(found, questions)}"
    )
    print(text)
    if chosen.docs:
        fill(f"search-{chosen.corpus}", text)
    if chosen.json:
        chosen.json.write_text(json.dumps(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
