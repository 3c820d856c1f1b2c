"""Results that travel between the parts of the package: small, frozen, free of torch.

Letters for shapes, used in every docstring: n sentences, m conditions, p pairs, b batch, L tokens, d dimensions,
k low rank, w words, R routed layers, T layers, M models, E entities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["cross", "bi", "tri"]
"""How a model reads its input: all three texts at once, sentence with condition, or each text apart."""

TOLD = 0.5
"""What a model's `applies` has to reach for a sentence to count as telling what a condition asks for."""


def plain(value: object) -> Any:  # noqa: ANN401 - any JSON
    """Return JSON: dataclasses as dicts, arrays as lists, paths as texts, numbers that JSON cannot hold as None."""
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value, inf_nan_mode="null", fallback=np.ndarray.tolist)


def table(rows: object, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return rows as a frame. Importing pandas takes half a second, for which only those wait who ask for a table."""
    import pandas as pd

    return pd.DataFrame(rows, columns=columns)


class Result:
    """What a public function returns: a frozen dataclass with plain data, a table, and a picture for notebooks."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: dicts, lists, texts, finite numbers, None; a model by name and revision."""
        content = {item.name: getattr(self, item.name) for item in fields(self)}
        if isinstance(model := content.get("model"), ModelInfo):
            content |= {"model": model.name, "revision": model.revision}
        return plain(content)

    def to_frame(self) -> pd.DataFrame:
        """Return the result as a table."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        from condviz.plots import to_html

        return to_html(self)


@dataclass(frozen=True)
class Pair:
    """Two sentences, a condition and, where it is known, its rating from 1 (different) to 5 (same)."""

    sentence1: str
    sentence2: str
    condition: str
    label: float | None = None


@dataclass(frozen=True)
class Calibration:
    """From the scores of a model to ratings between 1 (different) and 5 (same): isotonic, so that orders stay.

    Attributes:
        scores: Knots, ascending.
        ratings: The mean rating of rows with about that score; ascending, within (1, 5).
        error: Mean distance, in ratings, of reading and mean label in tenths of rows that were not fitted.
        rows: Rows fitted to, from each source.
    """

    scores: tuple[float, ...]
    ratings: tuple[float, ...]
    error: float
    rows: Mapping[str, int]

    def __post_init__(self) -> None:
        knots, ratings = np.array(self.scores), np.array(self.ratings)
        rising = all(np.isfinite(row).all() and (np.diff(row) > 0).all() for row in (knots, ratings))
        if not len(knots) or knots.shape != ratings.shape or not rising or ratings[0] <= 1 or ratings[-1] >= 5:
            raise ValueError("its scores and ratings must be equally many ascending numbers, ratings between 1 and 5")

    def rate(self, scores: np.ndarray) -> np.ndarray:
        """Return ratings, float64, of the shape of the scores; a higher score always has a higher rating."""
        scores = np.asarray(scores, dtype=np.float64)
        inside = np.interp(scores, self.scores, self.ratings)
        # Beyond the knots the ratings approach 1 and 5 without reaching them: a flat end would make ties.
        below, above = np.maximum(self.scores[0] - scores, 0), np.maximum(scores - self.scores[-1], 0)
        return inside - (inside - 1) * below / (1 + below) + (5 - inside) * above / (1 + above)


@dataclass(frozen=True)
class ModelInfo:
    """What can be said about a model without loading its weights.

    Attributes:
        name: The name that `condviz.load` takes.
        method: Key in `condviz.METHODS`.
        title: Name for people, for instance "Hyper-CL".
        kind: "cross", "bi" or "tri".
        trained: False for models that use the pretrained encoder as it is. Shown wherever the model appears.
        source: "zero-shot", "checkpoint", "folder", "hub", or "memory" for a model made by hand.
        revision: Fingerprint of the weights that decide the scores (first 12 hex digits), or "" before loading.
        score_range: Lowest and highest score the method can give; infinite for the cross-encoder.
        added_parameters: Parameters on top of the shared encoder.
        reference: Paper.
        summary: One sentence on how it works.
        path: Folder of the checkpoint, or "" for zero-shot models.
        graph: Name of the knowledge graph whose links it was trained to predict; "" for models of sentences.
        conditional: The condition changes the score.
        encodes: It has vectors: maps, search.
        answers_links: Its vectors of (head, relation) can be compared with those of entities.
        has_router: It weighs the words of a sentence by the condition.
        calibration: From its scores to ratings; None where nobody has fitted it.
    """

    name: str
    method: str
    title: str
    kind: Kind
    trained: bool
    source: str
    revision: str
    score_range: tuple[float, float]
    added_parameters: int
    reference: str
    summary: str
    path: str = ""
    graph: str = ""
    conditional: bool = True
    encodes: bool = True
    answers_links: bool = True
    has_router: bool = False
    calibration: Calibration | None = None

    def rate(self, scores: np.ndarray) -> np.ndarray:
        """Return ratings from 1 to 5, of the shape of the scores; NaN without a calibration."""
        return np.full(np.shape(scores), np.nan) if self.calibration is None else self.calibration.rate(scores)


@dataclass(frozen=True)
class Comparison(Result):
    """One sentence pair under several conditions, scored by several models.

    Attributes:
        sentence1, sentence2: The texts as they were scored.
        conditions: m conditions, in the order given.
        models: M descriptions, in the order given.
        scores: (M, m) float32, higher is more similar; the range is that of each model.
        unconditional: (M,) float32, the score of the same model without any condition.
        percentiles: (M, m) float32 in [0, 100]: share of the stored reference pairs that this model scores lower.
        unconditional_percentiles: (M,) float32 in [0, 100], the same for the score without a condition.
        applies: (2, m) float32 in [0, 1]: does each sentence tell what the condition asks for? See `TOLD`.
        notes: Things the reader has to know, for instance that a text was cut.
        words: What each word does to the score of the first model: one per condition, or empty.
    """

    sentence1: str
    sentence2: str
    conditions: tuple[str, ...]
    models: tuple[ModelInfo, ...]
    scores: np.ndarray
    unconditional: np.ndarray
    percentiles: np.ndarray
    unconditional_percentiles: np.ndarray
    applies: np.ndarray
    notes: tuple[str, ...] = ()
    words: tuple[Attribution, ...] = ()

    @property
    def untold(self) -> np.ndarray:
        """Conditions that one of the sentences, or both, may say nothing about, (m,) bool: their scores mean little."""
        return (self.applies < TOLD).any(axis=0)

    @property
    def ratings(self) -> np.ndarray:
        """The scores as ratings from 1 (different) to 5 (same), (M, m) float64; NaN where a model is not calibrated."""
        return np.stack([info.rate(row) for info, row in zip(self.models, self.scores, strict=True)])

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: the answer of the `/compare` endpoint. Numbers that are not finite become None."""
        names = {"models": [info.name for info in self.models], "revisions": [info.revision for info in self.models]}
        names |= {"ratings": plain(self.ratings), "untold": self.untold.tolist()}
        return super().to_dict() | names | {"words": [attribution.to_dict() for attribution in self.words]}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], models: Sequence[ModelInfo]) -> Comparison:
        """Read what `to_dict` returned.

        Args:
            content: The dictionary.
            models: Descriptions of its models.
        """
        arrays = {
            name: np.array(content[name], dtype=np.float32)
            for name in ("scores", "unconditional", "percentiles", "unconditional_percentiles", "applies")
        }
        return cls(
            sentence1=content["sentence1"],
            sentence2=content["sentence2"],
            conditions=tuple(content["conditions"]),
            models=tuple(models),
            notes=tuple(content["notes"]),
            words=tuple(Attribution.from_dict(item) for item in content["words"]),
            **arrays,
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row per model and condition, first the one without a condition (None)."""
        rows, ratings = [], self.ratings
        for row, info in enumerate(self.models):
            base = float(self.unconditional[row])
            start = {"model": info.name, "revision": info.revision, "trained": info.trained}
            start |= {"sentence1": self.sentence1, "sentence2": self.sentence2}
            alone = float(self.unconditional_percentiles[row])
            rows.append(start | {"condition": None, "score": base, "change": 0.0, "percentile": alone})
            for column, condition in enumerate(self.conditions):
                score, place = float(self.scores[row, column]), float(self.percentiles[row, column])
                known = {"condition": condition, "score": score, "change": score - base, "percentile": place}
                known |= {"rating": ratings[row, column], "applies": float(self.applies[:, column].min())}
                rows.append(start | known)
        return table(rows)


@dataclass(frozen=True)
class LinkAnswer:
    """An entity as an answer to a question.

    Attributes:
        id, label, name, description: As in `condviz.data.kg.Entity`.
        score: Cosine with the question in [-1, 1], and the bonus where there is re-ranking.
        unconditional: Cosine with the entity asked about, without the relation.
        rank: Place among all entities of the graph, from 1; ties get the mean of their ranks.
        split: "train", "valid" or "test" if the graph knows this answer, else "".
        filtered_rank: The rank without the other known answers; None where the graph does not know this answer.
    """

    id: str
    label: str
    name: str
    description: str
    score: float
    unconditional: float
    rank: float
    split: str = ""
    filtered_rank: float | None = None


@dataclass(frozen=True)
class LinkAnswers(Result):
    """The entities of a knowledge graph, ranked as answers to one question.

    Attributes:
        graph: Name of the graph.
        model: What answered.
        entity: The entity asked about: its label in the graph, or the text as it was typed.
        entity_id: Its id in the graph; "" for a text that is not in it.
        relation: Id of the relation.
        direction: "tail" for (entity, relation, ?), "head" for (?, relation, entity).
        question: The same in words.
        answers: The k best, best first, without the entity itself.
        known: All answers that the graph holds, best first.
        fit: Share in [0, 1] of the entities most like this one for which the graph holds an answer to this question.
        nearest: Label of the entity most like this one.
        familiar: False for a text that is less like any entity of the graph than its own entities are.
        median: Median score of all entities: what an unrelated one gets.
        num_entities: E.
        reranked: Whether entities close by in the train graph got a bonus.
    """

    graph: str
    model: ModelInfo
    entity: str
    entity_id: str
    relation: str
    direction: Literal["tail", "head"]
    question: str
    answers: tuple[LinkAnswer, ...]
    known: tuple[LinkAnswer, ...]
    fit: float
    nearest: str
    familiar: bool
    median: float
    num_entities: int
    reranked: bool = False

    @property
    def leading(self) -> tuple[LinkAnswer, ...]:
        """The best answer, and those that the model can hardly tell from it: at most `CLOSE` below."""
        best = max((item.score for item in self.answers), default=0.0)
        return tuple(item for item in self.answers if item.score > best - CLOSE)

    @property
    def sensible(self) -> bool:
        """Whether the question can be asked of such an entity at all."""
        return bool(self.known) or self.fit >= FITS

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON, and whether the question is sensible."""
        return super().to_dict() | {"sensible": self.sensible}

    def to_frame(self) -> pd.DataFrame:
        """Return the answers as a table, best first, and behind them the known answers that are not among them."""
        shown = {item.id for item in self.answers}
        rows = [*self.answers, *(item for item in self.known if item.id not in shown)]
        return table([asdict(item) for item in rows], columns=[field.name for field in fields(LinkAnswer)])


@dataclass(frozen=True)
class LinkReliability:
    """How often a model is right about entities that it was not trained on: forward questions of the test part.

    Attributes:
        questions: Number of questions.
        first: Questions whose first answer is right.
        three: Questions with a right one among the first three.
        clear: Questions where one answer stands out by `CLOSE`.
        clear_first: Of those, how many are right.
        by_relation: Id of the relation -> (questions, first, three).
    """

    questions: int
    first: int
    three: int
    clear: int
    clear_first: int
    by_relation: dict[str, tuple[int, int, int]]


@dataclass(frozen=True)
class LinkProfile(Result):
    """One entity under several relations.

    Attributes:
        answers: The answers to each question, the best fitting question first.
        others: Questions that were not asked and fit some similar entity: (id of the relation, direction, question).
        nearest: Labels of the entities most like this one without any relation.
        reliability: How often the model is right; None where that was not measured.
    """

    answers: tuple[LinkAnswers, ...]
    others: tuple[tuple[str, str, str], ...]
    nearest: tuple[str, ...]
    reliability: LinkReliability | None

    @property
    def entity(self) -> str:
        """The entity asked about."""
        return self.answers[0].entity

    @property
    def model(self) -> ModelInfo:
        """What answered."""
        return self.answers[0].model

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return super().to_dict() | {"answers": [item.to_dict() for item in self.answers]}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], model: ModelInfo) -> LinkProfile:
        """Read what `to_dict` returned; `model` describes its model."""
        kept = {field.name for field in fields(LinkAnswers)}
        answers = []
        for item in content["answers"]:
            rows = {key: tuple(LinkAnswer(**row) for row in item[key]) for key in ("answers", "known")}
            answers.append(LinkAnswers(**{key: item[key] for key in kept & item.keys()} | rows | {"model": model}))
        others = tuple(map(tuple, content["others"]))
        reliability = content["reliability"] and LinkReliability(**content["reliability"])
        return cls(tuple(answers), others, tuple(content["nearest"]), reliability)

    def to_frame(self) -> pd.DataFrame:
        """Return the answers to all questions as one table."""
        import pandas as pd

        return pd.concat([item.to_frame().assign(question=item.question) for item in self.answers], ignore_index=True)


CLOSE = 0.05
"""Answers whose scores differ by less are shown as equally likely."""
FITS = 0.5
"""A question that fewer of the most similar entities have an answer to is marked as one that may not apply."""


@dataclass(frozen=True)
class Word:
    """A word of a text: the text itself and where it stands (characters, half open)."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class TokenWeights:
    """How much weight a router gives to each word of one sentence under several conditions.

    Attributes:
        sentence: The text.
        conditions: m conditions.
        words: w words with their offsets; their tokens' weights are added up.
        weights: (R, m, w) float32, each row >= 0; sums to 1 - hidden_mass.
        layers: Index of each routed layer, counted from 0, lowest first; length R.
        hidden_mass: (R, m) float32: weight on special tokens (of CSR-prefix also on the condition), not shown.
        tokens: The sub-tokens with their offsets; special tokens have an empty span.
        token_weights: (R, m, number of tokens) float32, sums to 1.
        truncated: True if the end of the sentence was cut off.
    """

    sentence: str
    conditions: tuple[str, ...]
    words: tuple[Word, ...]
    weights: np.ndarray
    layers: tuple[int, ...]
    hidden_mass: np.ndarray
    tokens: tuple[Word, ...]
    token_weights: np.ndarray
    truncated: bool = False

    @property
    def ranks(self) -> np.ndarray:
        """Rank of each word by the size of its weight, (R, m, w) int from 1, the largest; equal ones share a rank."""
        from scipy.stats import rankdata  # importing it takes half a second

        if not self.words:
            return np.zeros(self.weights.shape, dtype=int)
        return rankdata(-np.abs(self.weights), method="min", axis=-1).astype(int)

    @property
    def shares(self) -> np.ndarray:
        """Share of each word in the sizes of all words, (R, m, w) in [0, 1]."""
        sizes = np.abs(self.weights)
        return sizes / np.maximum(sizes.sum(axis=-1, keepdims=True), np.finfo(np.float32).tiny)


@dataclass(frozen=True)
class Attribution(Result):
    """What each word does to the score of one pair under one condition, by leaving it out.

    Attributes:
        model: Name of the model.
        condition: The condition, or None for the score without a condition.
        score: Score of the whole pair.
        words1, words2: Words of the two sentences.
        effects1, effects2: (w,) float32 each: score of the whole pair minus the score without the word. Positive: the
            word makes the sentences more alike under this condition. Not additive.
    """

    model: str
    condition: str | None
    score: float
    words1: tuple[Word, ...]
    words2: tuple[Word, ...]
    effects1: np.ndarray
    effects2: np.ndarray

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: the answer of the `/attribution` endpoint."""
        texts = zip((self.words1, self.words2), (self.effects1, self.effects2), strict=True)
        return {
            "model": self.model,
            "condition": self.condition,
            "score": self.score,
            **{
                f"words{number}": [
                    {"text": word.text, "start": word.start, "end": word.end, "effect": float(effect)}
                    for word, effect in zip(words, effects, strict=True)
                ]
                for number, (words, effects) in enumerate(texts, start=1)
            },
        }

    def to_frame(self) -> pd.DataFrame:
        """Return one row per word: sentence (1 or 2), word, start, end, effect."""
        rows = [
            (number, word.text, word.start, word.end, float(effect))
            for number, words, effects in ((1, self.words1, self.effects1), (2, self.words2, self.effects2))
            for word, effect in zip(words, effects, strict=True)
        ]
        return table(rows, columns=["sentence", "word", "start", "end", "effect"])

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Attribution:
        """Read what `to_dict` returned."""
        texts = {}
        for number in (1, 2):
            rows = content[f"words{number}"]
            texts[f"words{number}"] = tuple(Word(row["text"], row["start"], row["end"]) for row in rows)
            texts[f"effects{number}"] = np.array([row["effect"] for row in rows], dtype=np.float32)
        return cls(content["model"], content["condition"], content["score"], **texts)

    def strongest(self, count: int = 3) -> list[str]:
        """Return the words, in lower case, that raise the score most, strongest first; leave out negligible effects."""
        effects = [*zip(self.words1, self.effects1, strict=True), *zip(self.words2, self.effects2, strict=True)]
        largest = max((float(effect) for _, effect in effects), default=0.0)
        ordered = sorted(effects, key=lambda item: -item[1])
        words = [word.text.lower() for word, effect in ordered if effect > max(0.01, 0.25 * largest)]
        return list(dict.fromkeys(words))[:count]


@dataclass(frozen=True)
class WordReading(Result):
    """How much the words of one or two sentences count for one model under m conditions.

    Attributes:
        model: The model; a variant made from it has a name such as "csr@hidden".
        source: "router", or "leave-one-out" for models without one. Then `weights` (1, m, w) holds what each word does
            to the score, signed, as in `Attribution`; there are no layers, no sub-tokens and no hidden mass.
        texts: The sentences, one or two.
        scores: (m,) float32, scores of the pair; of a single sentence, None.
        unconditional: Score of the pair without any condition, or None.
        untold: Positions of conditions that the sentences may say nothing about: what is read under them is a guess.
    """

    model: ModelInfo
    source: Literal["router", "leave-one-out"]
    texts: tuple[TokenWeights, ...]
    scores: np.ndarray | None = None
    unconditional: float | None = None
    untold: tuple[int, ...] = ()

    @property
    def conditions(self) -> tuple[str, ...]:
        """The m conditions."""
        return self.texts[0].conditions

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON. Weights, ranks and shares have the shape (layers, conditions, words)."""
        return {
            "model": self.model.name,
            "revision": self.model.revision,
            "trained": self.model.trained,
            "source": self.source,
            "scores": None if self.scores is None else [float(score) for score in self.scores],
            "unconditional": self.unconditional,
            "untold": [self.conditions[place] for place in self.untold],
            "sentences": [
                {
                    "sentence": text.sentence,
                    "words": [[word.text, word.start, word.end] for word in text.words],
                    "layers": [layer + 1 for layer in text.layers],
                    "weights": text.weights.tolist(),
                    "ranks": text.ranks.tolist(),
                    "shares": text.shares.tolist(),
                    "special_tokens": text.hidden_mass.tolist(),
                    "truncated": text.truncated,
                }
                for text in self.texts
            ],
        }

    def to_frame(self) -> pd.DataFrame:
        """Return one row per sentence, routed layer, condition and word. Layers count from 1; None without a router."""
        rows = []
        for number, text in enumerate(self.texts, start=1):
            ranks, shares = text.ranks, text.shares
            for cell in np.ndindex(text.weights.shape):
                layer, condition, place = cell
                word = text.words[place]
                rows.append({
                    "model": self.model.name, "revision": self.model.revision, "source": self.source,
                    "sentence": number, "condition": text.conditions[condition],
                    "layer": text.layers[layer] + 1 if text.layers else None, "position": place + 1,
                    "start": word.start, "end": word.end, "word": word.text, "value": float(text.weights[cell]),
                    "rank": int(ranks[cell]), "share": float(shares[cell]),
                })  # fmt: skip
        return table(rows).astype({"layer": "Int64"}) if rows else table([])


@dataclass(frozen=True)
class AttentionRow:
    """Where one first token looks under one condition: the mean of all heads of the last layer.

    Attributes:
        condition: The condition.
        words: w words of the sentence.
        weights: (w,) float32 >= 0.
        condition_words: Words of the condition.
        condition_weights: float32, one for each of them; 0 where the sentence cannot see the condition.
        hidden_mass: Weight on special tokens. All weights and this sum to 1.
    """

    condition: str
    words: tuple[Word, ...]
    weights: np.ndarray
    condition_words: tuple[Word, ...]
    condition_weights: np.ndarray
    hidden_mass: float


@dataclass(frozen=True)
class RouterPictures(Result):
    """The three pictures of the CSR paper (Figures 5 to 7) for one sentence; m rows each.

    Attributes:
        model: Name of the model.
        without_router: The sentence's first token, the router switched off.
        router: The condition's first token over the words of the sentence; none where the model does not compute it.
        with_router: The sentence's first token in the model as it is.
        varies: False if `with_router` is the same under every condition by construction.
    """

    model: str
    without_router: tuple[AttentionRow, ...]
    router: tuple[AttentionRow, ...]
    with_router: tuple[AttentionRow, ...]
    varies: bool

    @property
    def figures(self) -> dict[int, tuple[AttentionRow, ...]]:
        """The rows by the number of their figure in the paper."""
        return {5: self.without_router, 6: self.router, 7: self.with_router}

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: per figure, a row for each condition."""
        return {
            "model": self.model,
            "varies": self.varies,
            "figures": {
                str(number): [
                    {
                        "condition": row.condition,
                        "words": [word.text for word in row.words],
                        "weights": row.weights.tolist(),
                        "condition_words": [word.text for word in row.condition_words],
                        "condition_weights": row.condition_weights.tolist(),
                        "special_tokens": row.hidden_mass,
                    }
                    for row in rows
                ]
                for number, rows in self.figures.items()
            },
        }

    def to_frame(self) -> pd.DataFrame:
        """Return one row per figure, condition and word of the sentence."""
        return table(
            [
                {"figure": number, "condition": row.condition, "word": word.text, "weight": float(weight)}
                for number, rows in self.figures.items()
                for row in rows
                for word, weight in zip(row.words, row.weights, strict=True)
            ]
        )


@dataclass(frozen=True)
class HeadMap(Result):
    """Attention over the words of a sentence in every layer and head, the router switched off.

    Attributes:
        model: Name of the model.
        condition: The condition.
        words: w words of the sentence.
        sentence: (T, heads, w) float32: from the sentence's first token.
        from_condition: The same from the condition's first token; None where the model does not compute it.
    """

    model: str
    condition: str
    words: tuple[Word, ...]
    sentence: np.ndarray
    from_condition: np.ndarray | None

    @property
    def sources(self) -> dict[str, np.ndarray]:
        """Attention by whose first token looks: "condition" where it is computed, and "sentence"."""
        found = {} if self.from_condition is None else {"condition": self.from_condition}
        return {**found, "sentence": self.sentence}

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON; attention has the shape (layers, heads, words)."""
        return {
            "model": self.model,
            "condition": self.condition,
            "words": [word.text for word in self.words],
            "attention": {source: values.tolist() for source, values in self.sources.items()},
        }

    def to_frame(self) -> pd.DataFrame:
        """Return one row per source, layer, head and word; layers and heads count from 1."""
        return table([
            {"from": source, "layer": layer + 1, "head": head + 1, "word": self.words[w].text,
             "attention": float(values[layer, head, w])}
            for source, values in self.sources.items()
            for layer, head, w in np.ndindex(values.shape)
        ])  # fmt: skip


@dataclass(frozen=True)
class DeletionTest(Result):
    """Does the score depend on the words that a model points at? Top words against random ones.

    Attributes:
        model: Name of the model.
        num_words: Words deleted at once.
        top: (m, s) float32: change of the score without the top words, signed, in s pairs.
        random: (draws, m, s) float32: the same without as many random words.
        held_out: Sentences that the shortened ones were compared with in place of the pair, because the words were
            chosen by the score of the pair. Empty where they were chosen by a router.
    """

    model: str
    num_words: int
    top: np.ndarray
    random: np.ndarray
    held_out: tuple[str, ...] = ()

    @property
    def top_move(self) -> float:
        """Mean absolute change without the top words."""
        return float(np.abs(self.top).mean())

    @property
    def random_moves(self) -> np.ndarray:
        """Mean absolute change in each draw, (draws,)."""
        return np.abs(self.random).mean(axis=(1, 2))

    @property
    def interval(self) -> tuple[float, float]:
        """The middle 95 % of the draws."""
        low, high = np.quantile(self.random_moves, (0.025, 0.975))
        return float(low), float(high)

    @property
    def as_far(self) -> int:
        """How many draws moved the score at least as far as the top words."""
        return int((self.random_moves >= self.top_move).sum())

    def to_frame(self) -> pd.DataFrame:
        """Return the figures of the test as one row."""
        return table([{"model": self.model, **self.to_dict()}])

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: the figures of the test."""
        return {
            "words": self.num_words,
            "top": self.top_move,
            "random": float(self.random_moves.mean()),
            "interval": list(self.interval),
            "draws": len(self.random_moves),
            "as_far": self.as_far,
            "held_out": list(self.held_out),
        }


@dataclass(frozen=True)
class Trained(Result):
    """A finished training.

    Attributes:
        folder: The checkpoint.
        name: Name of the model.
        metrics: Figures on the validation rows. Sentences: spearman, pearson, pair_accuracy, times 100, and rows;
            links: MRR, hits@1 ... in [0, 1].
        curve: Records of the log in their order: "event", "step", and what was measured; empty if it is gone.
    """

    folder: Path
    name: str
    metrics: Mapping[str, Any]
    curve: tuple[Mapping[str, Any], ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return the curve: one row per logged step or evaluation, one column per figure."""
        rows = [record for record in self.curve if record["event"] != "end"]
        return table(rows).drop(columns=["steps", "probes", "seconds"], errors="ignore")


@dataclass(frozen=True)
class Hit:
    """A text that a search found.

    Attributes:
        row: Its row in the source, from 1.
        text: The text.
        score: Similarity with the query under the condition; without one, the plain similarity.
        percentile: Share in [0, 100] of the stored reference pairs that the model scores lower.
        unconditional: Similarity without the condition.
        plain_rank: Its place without the condition, from 1, among the rows searched.
        good: Whether it is similar enough to count as a match.
        applies: Does the text tell what the condition asks for? In [0, 1], see `TOLD`; None without a condition, and
            for hits far down a long list.
        cells: The other columns of the corpus.
    """

    row: int
    text: str
    score: float
    percentile: float
    unconditional: float
    plain_rank: int
    good: bool
    applies: float | None
    cells: Mapping[str, Any]


@dataclass(frozen=True)
class Hits(Result):
    """The texts of a corpus that are most like a query under a condition.

    Attributes:
        query: The query.
        condition: The condition; None for a plain search.
        model: What scored the hits.
        corpus: Name of the corpus.
        hits: Best first.
        total: Texts of the corpus.
        searched: Texts that the filters let through.
        read: Texts that were scored under the condition: all that were searched, or the nearest ones without the
            condition where the model has to read each text again.
        where: The filter.
        contains: The text that each hit has to contain.
        applies: Does the query tell what the condition asks for? As in `Hit`.
        notes: Things the reader has to know.
    """

    query: str
    condition: str | None
    model: ModelInfo
    corpus: str
    hits: tuple[Hit, ...]
    total: int
    searched: int
    read: int
    where: str = ""
    contains: str = ""
    applies: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def untold(self) -> bool:
        """Whether the query may say nothing about the condition: the order of the hits means little then."""
        return self.applies is not None and self.applies < TOLD

    @property
    def matches(self) -> int:
        """How many hits are similar enough to count."""
        return sum(hit.good for hit in self.hits)

    @property
    def exact(self) -> bool:
        """Whether every text that was searched was also scored under the condition."""
        return self.read == self.searched

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: the answer of the `/search` endpoint."""
        hits = [plain(hit) | {"rank": rank} for rank, hit in enumerate(self.hits, start=1)]
        return super().to_dict() | {"hits": hits, "matches": self.matches}

    def to_frame(self) -> pd.DataFrame:
        """Return one row per hit, best first, with the columns of the corpus behind the figures."""
        names = ["rank", *(item.name for item in fields(Hit) if item.name != "cells")]
        rows = []
        for rank, hit in enumerate(self.hits, start=1):
            found = asdict(hit)
            cells = found.pop("cells")
            rows.append({"rank": rank, **found} | {name: cells[name] for name in cells if name not in names})
        return table(rows, columns=names if not rows else None)
