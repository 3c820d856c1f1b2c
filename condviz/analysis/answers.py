"""What `condviz.search` and `condviz.predict_links` return: texts of a corpus, entities of a graph. Free of torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from condviz.types import SILENT, Attribution, ModelInfo, Result, plain, table

if TYPE_CHECKING:
    import pandas as pd

CLOSE = 0.05
"""Answers whose scores differ by less are shown as equally likely."""
FITS = 0.5
"""A question that fewer of the most similar entities have an answer to is marked as one that may not apply."""


@dataclass(frozen=True)
class Hit:
    """A text that a search found."""

    row: int
    """Its row in the source, from 1."""
    text: str
    score: float
    """Similarity with the query under the condition; without one, the plain similarity."""
    percentile: float
    """Share in [0, 100] of the stored reference pairs that the model scores lower."""
    unconditional: float
    plain_rank: int
    """Its place without the condition, from 1, among the rows searched."""
    good: bool
    """Whether it is similar enough to count as a match."""
    applies: float | None
    """Does the text tell what the condition asks for? In [0, 1], see `SILENT`; None without a condition, and for hits
    far down a long list."""
    cells: Mapping[str, Any]
    """The other columns of the corpus."""
    words: Attribution | None = None
    """What each word of the query and of the text does to the score; None where nobody has looked, see
    `condviz.analysis.search.add_words`."""
    copies: tuple[int, ...] = ()
    """Other rows of the source with the same text, but for case and blanks."""

    @property
    def untold(self) -> bool:
        """Whether the text may say nothing about the condition."""
        return self.applies is not None and self.applies < SILENT

    @property
    def carried_by(self) -> list[str]:
        """Six words of the text, in lower case, that raise the score most, strongest first; no negligible effects."""
        if self.words is None:
            return []
        pairs = zip(self.words.words2, self.words.effects2.tolist(), strict=True)
        known = [(effect, word.text.lower()) for word, effect in pairs if math.isfinite(effect)]
        least = max(0.01, 0.25 * max((effect for effect, _ in known), default=0.0))
        words = [word for effect, word in sorted(known, key=lambda item: -item[0]) if effect > least]
        return list(dict.fromkeys(words))[:6]


@dataclass(frozen=True)
class Hits(Result):
    """The texts of a corpus that are most like a query under a condition."""

    query: str
    condition: str | None
    """The condition; None for a plain search."""
    model: ModelInfo
    corpus: str
    hits: tuple[Hit, ...]
    """Best first."""
    total: int
    searched: int
    """Texts that the filters let through."""
    read: int
    """Texts that were scored under the condition: all that were searched, or the nearest ones without the condition
    where the model has to read each text again."""
    where: str = ""
    contains: str = ""
    """The text that each hit has to contain."""
    applies: float | None = None
    """Does the query tell what the condition asks for? As in `Hit`."""
    notes: tuple[str, ...] = ()
    computed = ("matches",)

    @property
    def untold(self) -> bool:
        """Whether the query may say nothing about the condition: the order of the hits means little then."""
        return self.applies is not None and self.applies < SILENT

    @property
    def matches(self) -> int:
        """How many hits are similar enough to count."""
        return sum(hit.good for hit in self.hits)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: the answer of the `/search` endpoint."""
        hits = [
            plain(replace(hit, words=None)) | {"rank": rank, "words": hit.words and hit.words.to_dict()["words2"]}
            for rank, hit in enumerate(self.hits, start=1)
        ]
        return super().to_dict() | {"hits": hits}

    def to_frame(self) -> pd.DataFrame:
        """Return one row per hit, best first, with the columns of the corpus behind the figures.

        A column whose name is taken gets " (column)" behind it; so does "condition", which tables of several searches
        need.
        """
        names = ["rank", *(item.name for item in fields(Hit) if item.name != "cells")]
        rows = []
        for rank, hit in enumerate(self.hits, start=1):
            found = asdict(replace(hit, words=None)) | {"words": ", ".join(hit.carried_by)}
            found["copies"] = ", ".join(map(str, hit.copies))
            del found["cells"]
            taken = {*names, "condition"}
            named = {f"{name} (column)" if name in taken else name: cell for name, cell in hit.cells.items()}
            rows.append({"rank": rank, **found} | named)
        return table(rows, columns=names if not rows else None)


@dataclass(frozen=True)
class LinkAnswer:
    """An entity as an answer to a question."""

    id: str
    label: str
    name: str
    description: str
    """As in `condviz.data.kg.Entity`."""
    score: float
    """Cosine with the question in [-1, 1], and the bonus where there is re-ranking."""
    unconditional: float
    """Cosine with the entity asked about, without the relation."""
    rank: float
    """Place among all entities of the graph, from 1; ties get the mean of their ranks."""
    split: str = ""
    """Either "train", "valid" or "test" if the graph knows this answer, else ""."""
    filtered_rank: float | None = None
    """The rank without the other known answers; None where the graph does not know this answer."""


@dataclass(frozen=True)
class LinkAnswers(Result):
    """The entities of a knowledge graph, ranked as answers to one question."""

    graph: str
    model: ModelInfo
    entity: str
    """The entity asked about: its label in the graph, or the text as it was typed."""
    entity_id: str
    """Its id in the graph; "" for a text that is not in it."""
    relation: str
    direction: Literal["tail", "head"]
    """Either "tail" for (entity, relation, ?), "head" for (?, relation, entity)."""
    question: str
    answers: tuple[LinkAnswer, ...]
    """The k best, best first, without the entity itself."""
    known: tuple[LinkAnswer, ...]
    """All answers that the graph holds, best first."""
    fit: float
    """Share in [0, 1] of the entities most like this one for which the graph holds an answer to this question."""
    nearest: str
    """Label of the entity most like this one."""
    familiar: bool
    """False for a text that is less like the entities of the graph than these are like one another."""
    median: float
    """Median score of all entities: what an unrelated one gets."""
    num_entities: int
    reranked: bool = False
    """Whether entities close by in the train graph got a bonus."""
    strong: bool = True
    """False for a text that is not in the graph, where the best answer scores less than it takes for answers about
    such names to be right more often than wrong."""
    computed = ("sensible", "guess", "told")

    @property
    def leading(self) -> tuple[LinkAnswer, ...]:
        """The best answer, and those that the model can hardly tell from it: at most `CLOSE` below."""
        best = max((item.score for item in self.answers), default=0.0)
        return tuple(item for item in self.answers if item.score > best - CLOSE)

    @property
    def sensible(self) -> bool:
        """Whether the question can be asked of such an entity at all."""
        return bool(self.known) or self.fit >= FITS

    @property
    def guess(self) -> bool:
        """Whether the thing is not in the graph: all that is known of it is what it is called."""
        return not self.entity_id

    @property
    def told(self) -> bool:
        """Whether there is an answer at all; else the model does not know."""
        return not self.guess or (self.familiar and self.strong and self.sensible)

    def to_frame(self) -> pd.DataFrame:
        """Return the answers as a table, best first, and behind them the known answers that are not among them."""
        shown = {item.id for item in self.answers}
        rows = [*self.answers, *(item for item in self.known if item.id not in shown)]
        return table(rows, columns=[field.name for field in fields(LinkAnswer)])


@dataclass(frozen=True)
class LinkReliability:
    """How often a model is right about entities that it was not trained on: forward questions of the test part."""

    questions: int
    first: int
    """Questions whose first answer is right."""
    three: int
    """Questions with a right one among the first three."""
    clear: int
    """Questions where one answer stands out by `CLOSE`."""
    clear_first: int
    """Of those, how many are right."""
    by_relation: dict[str, tuple[int, int, int]]
    """Id of the relation -> (questions, first, three)."""


@dataclass(frozen=True)
class LinkProfile(Result):
    """One entity under several relations."""

    answers: tuple[LinkAnswers, ...]
    """The answers to each question, the best fitting question first."""
    others: tuple[tuple[str, str, str], ...]
    """Questions that were not asked and fit some similar entity: (id of the relation, direction, question)."""
    nearest: tuple[str, ...]
    """Labels of the entities most like this one without any relation."""
    reliability: LinkReliability | None
    asked: bool = False
    """Whether the first question was asked, and not chosen for the entity."""

    @property
    def entity(self) -> str:
        """The entity asked about."""
        return self.answers[0].entity

    @property
    def model(self) -> ModelInfo:
        """What answered."""
        return self.answers[0].model

    def to_frame(self) -> pd.DataFrame:
        """Return the answers to all questions as one table."""
        import pandas as pd

        return pd.concat([item.to_frame().assign(question=item.question) for item in self.answers], ignore_index=True)
