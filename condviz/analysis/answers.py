"""What `condviz.predict_links` returns: answers of a knowledge graph. Free of torch, as all results are."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

from condviz.types import ModelInfo, Result, table

if TYPE_CHECKING:
    import pandas as pd

CLOSE = 0.05
"""Answers whose scores differ by less are shown as equally likely."""
FITS = 0.5
"""A question that fewer of the most similar entities have an answer to is marked as one that may not apply."""


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
    """Name of the graph."""
    model: ModelInfo
    """What answered."""
    entity: str
    """The entity asked about: its label in the graph, or the text as it was typed."""
    entity_id: str
    """Its id in the graph; "" for a text that is not in it."""
    relation: str
    """Id of the relation."""
    direction: Literal["tail", "head"]
    """Either "tail" for (entity, relation, ?), "head" for (?, relation, entity)."""
    question: str
    """The same in words."""
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
    """E."""
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
    """Number of questions."""
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
    """How often the model is right; None where that was not measured."""

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
