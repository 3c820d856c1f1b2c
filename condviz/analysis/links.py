"""Predict links of a knowledge graph: which entities stand in a relation to an entity, ranked by any encoder.

The entity is the sentence and the relation the condition (Hyper-CL and CSR, sections on knowledge graphs): the answer
is the entity whose own vector is nearest to that of the entity under the relation.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Container
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any, Literal

import numpy as np
import torch
from cachetools import LRUCache
from torch import Tensor
from torch.nn import functional

from condviz.analysis.answers import CLOSE, FITS, LinkAnswer, LinkAnswers, LinkProfile, LinkReliability
from condviz.data.kg import ARTICLE, SPLITS, Graph, parse_question, phrase
from condviz.data.kg_formats import EVERYDAY, load_graph
from condviz.data.texts import check_condition
from condviz.errors import ConfigError, DataError, check_count
from condviz.evaluation import kgc, metrics
from condviz.methods import ConditionalScorer
from condviz.models.registry import load
from condviz.types import Progress

Direction = Literal["tail", "head"]
BONUS = 0.05
"""What re-ranking adds to entities close by in the train graph (SimKGC)."""
ALIKE = 8
"""Entities that decide whether a question fits."""
SAMPLE, UNLIKE = 500, 0.05
"""Entities that tell how similar others usually are, and the share that is less so than a text of their kind."""
FEWEST_OF_KIND, FEWEST_HELD_OUT = 2, 20
"""Answers that tell what kind a relation has, and held-out triples that tell how far a guess can be trusted."""
MAX_ANSWERS = 1000
MOST_ASKED = 5
"""Questions about one entity at once."""
MAX_RELIABILITY = 5_000
"""Largest graph whose test part is ranked on the spot; the figures of larger ones are stored in assets/kgc.json."""
_KEPT = 4
"""Predictors kept in memory; one of WN18RR takes 130 MB."""
_predictors: LRUCache[tuple[str, int], LinkPredictor] = LRUCache(_KEPT)
_lock = RLock()


def predict_links(
    model: ConditionalScorer | str,
    head: str,
    relation: str = "",
    *,
    direction: Direction = "tail",
    graph: Graph | str | Path | None = None,
    k: int = 10,
    rerank: bool = False,
    progress: Progress | None = None,
) -> LinkAnswers:
    """Rank the entities of a graph as answers to a question, for instance "What does a bee produce?".

    The first question encodes all entities of the graph: a second for the small graph, minutes for the 40,943 of
    WN18RR. Their vectors are kept on disk and in memory for each encoder and graph.

    Args:
        model: Any encoder, or its name.
        head: Id, label or name of an entity of the graph, or any other text, which is encoded as it is: answers about
            it are guesses. Or a question, "What does a bee produce?", without a relation.
        relation: Id or text of a relation; "inverse produces" is "produces" in the other direction.
        direction: "tail" asks for (head, relation, ?), "head" for (?, relation, head).
        graph: What `load_graph` returns, which has options for tables, or its name; default: the small graph here.
        k: Number of answers, from 1 to 1000.
        rerank: Add SimKGC's bonus to entities close by in the train graph.
        progress: Called with (done, total) entities while they are encoded; may raise to stop.

    Raises:
        DataError: If `head` is blank, names several entities, or is a question that cannot be answered, or the graph
            has no such relation.
        ConfigError: If the model has no vectors, or `k` or `direction` is not allowed.

    Example:
        >>> condviz.predict_links("everyday-concat", "bee", "produces").answers[0].name
        'honey'
    """
    if direction not in ("tail", "head"):
        raise ConfigError(f'direction is {direction!r}, allowed is "tail" or "head".')
    predictor = get_predictor(model, graph)
    asked = predictor.understand(head, relation, direction)
    return predictor.prepare(progress).ask(*asked, k=k, reranked=rerank)


def get_predictor(
    model: ConditionalScorer | str, graph: Graph | str | Path | None = None, *, folder: Path | None = None
) -> LinkPredictor:
    """Return the predictor of a model on a graph; the last few stay in memory. Arguments as in `predict_links`."""
    found = graph if isinstance(graph, Graph) else load_graph(graph or EVERYDAY)
    for note in found.notes if found is not graph else ():
        warnings.warn(f"{note} Options are those of condviz.load_graph; pass what it returns as graph.", stacklevel=3)
    encoder = load(model)
    key = (encoder.fingerprint, id(found))
    with _lock:
        if key not in _predictors:
            _predictors[key] = LinkPredictor(found, encoder, folder=folder)
        return _predictors[key]


def describe_entity(
    model: ConditionalScorer | str,
    head: str,
    *,
    asked: tuple[str, Direction] | None = None,
    graph: Graph | str | Path | None = None,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> LinkProfile:
    """Ask about one entity under the relations that fit it, `MOST_ASKED` at most.

    A question that was `asked`, as (relation, direction), comes first where `head` is none. Vectors of entities are
    kept in a folder on disk, by default that of the program. Else, and for errors, as `predict_links`.
    """
    predictor = get_predictor(model, graph, folder=folder)
    if question := parse_question(predictor.graph, head):
        head, first = question[0], [question[1]]
    else:
        first = [predictor.find_relation(*asked)] if asked else []
    predictor.prepare(progress)
    chosen = list(dict.fromkeys([*first, *predictor.relations_for(head)]))[:MOST_ASKED]
    names, size = predictor.graph.relations, predictor.graph.num_relations
    others = [number for number in predictor.relations_for(head, 2 * size, fit=0.01) if number not in chosen]
    return LinkProfile(
        answers=tuple(predictor.ask(head, number) for number in chosen),
        others=tuple(
            (names[number % size].id, "head" if number >= size else "tail", predictor.question(head, number))
            for number in others
        ),
        nearest=tuple(predictor.nearest(head)),
        reliability=predictor.reliability,
        asked=bool(first),
    )


@dataclass(frozen=True)
class _Asked:
    """The entity of a question: its number or None, its text for the model, and its unit vector, (d,)."""

    number: int | None
    text: str
    vector: Tensor


class LinkPredictor:
    """Answers questions about one graph with one model; safe to use from several threads.

    Raises ConfigError if the model has no vectors, and DataError for a graph of one entity, which leaves no answer.
    """

    def __init__(self, graph: Graph, model: ConditionalScorer, *, folder: Path | None = None) -> None:
        model.check_able("encodes")
        if graph.num_entities < 2:
            raise DataError(f"The graph {graph.name} has one entity, which leaves no answer. Add others.")
        self.graph, self.model, self.folder = graph, model, folder
        self._lock = RLock()
        self._texts: list[str] = []
        self._unit: Any = None  # (E, d), once `prepare` has run
        options = {"num_entities": graph.num_entities, "num_relations": graph.num_relations}
        self._of_split = {split: kgc.TrueAnswers(graph.splits[split], **options) for split in SPLITS}

    def prepare(self, progress: Progress | None = None) -> LinkPredictor:
        """Load the vectors of all entities from disk, or encode them; what is done stays where `progress` stops it."""
        with self._lock:
            if self._unit is None:
                texts = kgc.entity_texts(self.graph, self.model)
                vectors = kgc.entity_vectors(self.model, texts, folder=self.folder, progress=progress)
                self._texts, self._unit = texts, functional.normalize(vectors, dim=1)
        return self

    def understand(self, head: str, relation: str = "", direction: Direction = "tail") -> tuple[str, int]:
        """Return the thing and the relation in [0, 2N) that are asked about: given as such, or as a question."""
        question = parse_question(self.graph, plain_name(head))
        if relation.strip():
            if question:
                raise DataError(f"{head.strip()[:80]!r} is a question. Ask about {question[0]!r}, or give no relation.")
            return head, self.find_relation(relation, direction)
        if question is None:
            raise DataError(f"No relation is given. Ask a question, for instance {self.question(head, 0)!r}.")
        return question

    def ask(
        self, head: str, relation: int | str, *, direction: Direction = "tail", k: int = 10, reranked: bool = False
    ) -> LinkAnswers:
        """Rank all entities as answers; arguments as in `predict_links`, `relation` also as a number in [0, 2N)."""
        check_count("k", k, 1, MAX_ANSWERS)
        number = self.find_relation(relation, direction)
        asked = self._find(head)
        scores = self._scores(asked, number, reranked)
        known = {} if asked.number is None else self._known(asked.number, number)
        order = self._of_kind(scores, number, known)
        describe = _describer(self.graph, scores, self._unit @ asked.vector, known)
        forward = number < self.graph.num_relations
        return LinkAnswers(
            graph=self.graph.name,
            model=self.model.info,
            entity=asked.text if asked.number is None else self.graph.entities[asked.number].label,
            entity_id="" if asked.number is None else self.graph.entities[asked.number].id,
            relation=self.graph.relations[number % self.graph.num_relations].id,
            direction="tail" if forward else "head",
            question=self.question(head, number),
            answers=tuple(map(describe, [i for i in order if i != asked.number][:k])),
            known=tuple(sorted(map(describe, known), key=lambda answer: answer.rank)),
            fit=float(self._fits(asked)[number]),
            nearest=self.nearest(head, 1)[0],
            familiar=asked.number is not None or self._company(asked.vector) >= self._usual,
            median=float(scores.median()),
            num_entities=self.graph.num_entities,
            reranked=reranked,
            strong=asked.number is not None or (len(order) > 0 and float(scores[order[0]]) >= self.least_strong),
        )

    def relations_for(self, head: str, count: int = MOST_ASKED, *, fit: float = FITS) -> list[int]:
        """Return the relations in [0, 2N) worth asking about an entity, best first.

        Those that the graph knows an answer to come first, then those that fit entities like it: for a share `fit` of
        the most similar ones the graph knows an answer. At most `count`, one at least.
        """
        asked = self._find(head)
        fits = self._fits(asked)
        if asked.number is not None:
            directed = self.graph.directed()
            fits[directed[directed[:, 0] == asked.number, 1]] += 1
        order = np.argsort(-fits.round(3), kind="stable")
        return [int(number) for number in order[:count] if fits[number] >= fit] or [int(order[0])]

    def nearest(self, head: str, k: int = 5) -> list[str]:
        """Return the labels of the k entities most like an entity without any relation, itself left out."""
        asked = self._find(head)
        order = (self._unit @ asked.vector).argsort(descending=True).tolist()
        return [self.graph.entities[i].label for i in order if i != asked.number][:k]

    def find_relation(self, relation: int | str, direction: Direction = "tail") -> int:
        """Return the number of a relation in [0, 2N), turned round for direction "head"."""
        size = self.graph.num_relations
        number = self.graph.find_relation(relation) if isinstance(relation, str) else relation
        if not isinstance(number, int) or not 0 <= number < 2 * size:
            raise DataError(f"There is no relation {number!r}; relations are numbered 0 to {2 * size - 1}.")
        return (number + size) % (2 * size) if direction == "head" else int(number)

    def question(self, head: str, relation: int) -> str:
        """Return a question in words; `relation` in [0, 2N)."""
        inverse, number = divmod(relation, self.graph.num_relations)
        found = self._number(head)
        unknown = f"“{plain_name(head).partition(':')[0]}”"  # whether it takes an article is not known either
        name = unknown if found is None else self.graph.entities[found].name
        item = self.graph.relations[number]
        return phrase(name, item.id, item.text, inverse=bool(inverse))

    @cached_property
    def reliability(self) -> LinkReliability | None:
        """How often this model is right on the test part; None where the graph has none, or it is too large to rank.

        Answers that other parts of the graph hold are left out, as in filtered ranks.
        """
        if self.graph.num_entities > MAX_RELIABILITY:
            return None
        questions = np.unique(self.graph.splits["test"][:, :2], axis=0).tolist()
        asked = {tuple(pair): self._known(*pair) for pair in questions}
        pairs = [pair for pair, known in asked.items() if "test" in known.values()]
        if not pairs:
            return None
        texts = [self.prepare()._texts[head] for head, _ in pairs]
        names = [self.graph.relation_text(relation) for _, relation in pairs]
        scores = functional.normalize(torch.from_numpy(self.model.encode(texts, names)), dim=1) @ self._unit.T
        for row, pair in enumerate(pairs):
            scores[row, [pair[0], *(answer for answer, split in asked[pair].items() if split != "test")]] = -np.inf
        best, order = scores.topk(min(3, scores.shape[1]))
        right = np.array([
            [asked[pair].get(answer) == "test" for answer in answers]
            for answers, pair in zip(order.tolist(), pairs, strict=True)
        ])  # fmt: skip
        clear = (best[:, 0] - best[:, 1] >= CLOSE).numpy()
        first, three = right[:, 0], np.any(right, axis=1)
        relations = np.array(pairs)[:, 1]
        by_relation = {}
        for number in np.unique(relations).tolist():
            own = np.asarray(relations == number)
            by_relation[self.graph.relations[number].id] = tuple(int(part[own].sum()) for part in (own, first, three))
        one, any_of_three, sure, sure_and_right = (int(part.sum()) for part in (first, three, clear, right[clear, 0]))
        return LinkReliability(len(pairs), one, any_of_three, sure, sure_and_right, by_relation)

    def _number(self, head: str) -> int | None:
        """Return the number of an entity, or None for any other text; raises DataError for a name of several."""
        plain_name(head)  # raises for a blank one
        return self.graph.find_entity(head) if self.graph.named(head) else None

    def _find(self, head: str) -> _Asked:
        self.prepare()
        number = self._number(head)
        if number is not None:
            return _Asked(number, self._texts[number], self._unit[number])
        text = plain_name(head)
        vector = torch.from_numpy(self.model.encode_sentences([text]))
        return _Asked(None, text, functional.normalize(vector, dim=1)[0])

    def _scores(self, asked: _Asked, relation: int, reranked: bool) -> Tensor:
        with self._lock:
            query = torch.from_numpy(self.model.encode([asked.text], [self.graph.relation_text(relation)]))
        kgc.check_comparable(self.model, query, self._unit)
        scores = (functional.normalize(query, dim=1) @ self._unit.T)[0]
        if not reranked or asked.number is None:
            return scores
        return kgc.rerank(scores[None], [self._neighbourhoods.of(asked.number)], bonus=BONUS)[0]

    @cached_property
    def _neighbourhoods(self) -> kgc.Neighbourhoods:
        return kgc.neighbourhoods(self.graph)

    def _of_kind(self, scores: Tensor, relation: int, known: Container[int]) -> list[int]:
        """Return the entities that answer a relation anywhere in the graph, best first; all where there are few."""
        order = scores.argsort(descending=True, stable=True).tolist()
        kind = self._kinds[relation]
        return order if len(kind) < FEWEST_OF_KIND else [i for i in order if i in kind or i in known]

    @cached_property
    def _kinds(self) -> list[frozenset[int]]:
        """Return for each relation in [0, 2N) the entities that answer it."""
        directed = self.graph.directed()
        return [frozenset(directed[directed[:, 1] == r, 2].tolist()) for r in range(2 * self.graph.num_relations)]

    def _company(self, vector: Tensor) -> float:
        """Return the mean similarity of a vector to the `ALIKE` entities most like it."""
        return float((self._unit @ vector).topk(min(ALIKE, len(self._unit))).values.mean())

    @cached_property
    def _usual(self) -> float:
        """What `_company` is of 95 % of all entities, themselves left out; a text below it is unlike them."""
        sample = torch.linspace(0, len(self._unit) - 1, min(len(self._unit), SAMPLE)).long()
        near = (self._unit[sample] @ self._unit.T).topk(min(ALIKE + 1, len(self._unit))).values[:, 1:]
        return float(near.mean(dim=1).quantile(UNLIKE))

    @cached_property
    def least_strong(self) -> float:
        """The score above which answers about names that the graph does not have are right more often than wrong.

        Measured on the parts that are kept out of training, by the names of their entities alone; -1 without such parts
        and for a graph too large to rank.
        """
        rows = np.concatenate([self.graph.splits[split] for split in SPLITS[1:]])
        if self.graph.num_entities > MAX_RELIABILITY or len(rows) < FEWEST_HELD_OUT:
            return -1.0
        pairs = np.unique(rows[:, :2], axis=0).tolist()
        names = [self.graph.entities[head].name for head, _ in pairs]
        relations = [self.graph.relation_text(relation) for _, relation in pairs]
        scores = functional.normalize(torch.from_numpy(self.model.encode(names, relations)), dim=1) @ self._unit.T
        found = []
        for row, (head, relation) in zip(scores, pairs, strict=True):
            best = next(i for i in self._of_kind(row, relation, ()) if i != head)
            found.append((float(row[best]), best in self._known(head, relation)))
        found.sort(reverse=True)
        surplus = np.cumsum([1 if right else -1 for _, right in found])
        return found[int(surplus.argmax())][0] if surplus.max() > 0 else 1.0

    @cached_property
    def _answerable(self) -> np.ndarray:
        """(E, 2N) bool: whether the train graph knows an answer."""
        table = np.zeros((self.graph.num_entities, 2 * self.graph.num_relations), dtype=bool)
        heads, relations, _ = self.graph.directed("train").T
        table[heads, relations] = True
        return table

    def _fits(self, asked: _Asked) -> np.ndarray:
        """Return for each relation in [0, 2N) the share of the most similar entities that have an answer, (2N,)."""
        near = self._unit @ asked.vector
        others = len(near)
        if asked.number is not None:
            near[asked.number] = -np.inf
            others -= 1
        return self._answerable[near.topk(min(ALIKE, others)).indices.numpy()].mean(axis=0)

    def _known(self, entity: int, relation: int) -> dict[int, str]:
        """Return the answers that the graph knows, each with its split; of several splits the first."""
        asked = torch.tensor([entity]), torch.tensor([relation])
        return {int(answer): split for split in reversed(SPLITS) for answer in self._of_split[split].answers(*asked)[0]}


def _describer(graph: Graph, scores: Tensor, plain: Tensor, known: dict[int, str]) -> Callable[[int], LinkAnswer]:
    """Return what builds answers, from the scores (E,) with and without the relation, and the split of right ones."""
    values = scores.numpy()
    ranks, before = metrics.rank(-values), dict(zip(known, metrics.rank(-values[list(known)]) - 1, strict=True))

    def describe(entity: int) -> LinkAnswer:
        item, rank = graph.entities[entity], float(ranks[entity])
        return LinkAnswer(
            **asdict(item),
            score=float(values[entity]),
            unconditional=float(plain[entity]),
            rank=rank,
            split=known.get(entity, ""),
            filtered_rank=rank - float(before[entity]) if entity in known else None,
        )

    return describe


def plain_name(text: str) -> str:
    """Return the text of an entity as it is looked up and encoded, without an article; raises DataError if blank."""
    if isinstance(text, str) and not text.strip():
        raise DataError('No entity is given. Type one, for instance "bee".')
    checked = check_condition(text, "the entity")
    return ARTICLE.sub("", checked)
