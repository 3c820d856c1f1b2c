"""Which words a model reads under a condition: the weights of a router, or what leaving out each word does.

And whether they are the words that it uses: they are deleted, and as many random ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from annotated_doc import Doc
from annotated_types import Interval

from condviz.analysis.reference import reference_pairs
from condviz.data.texts import (
    check_condition,
    check_conditions,
    check_sentence,
    content_words,
    leave_out,
    plain_cell,
    split_words,
)
from condviz.errors import DataError
from condviz.models.registry import load
from condviz.spec import Field, Key, checked
from condviz.types import SILENT, TOLD, Attribution, ModelInfo, Progress, Record, Result, TokenWeights, Word, table

if TYPE_CHECKING:
    import pandas as pd

    from condviz.methods import ConditionalScorer

MAX_WORDS = 400
"""Words of both sentences together: each costs a score."""
MAX_CONDITIONS = 12
"""Strips that can be compared by eye."""
DRAWS = 20
MAX_DELETED = 10
DOUBT = 1.0
"""Logits by which a sentence has to miss what the other one of its pair tells, where they share a word."""
HELD_OUT = 5
"""Sentences that words chosen by leaving out are tested against."""


@dataclass(frozen=True)
class WordReading(Result):
    """How much the words of one or two sentences count for one model under m conditions."""

    model: ModelInfo
    """The model; a variant made from it has a name such as "csr@hidden"."""
    source: Literal["router", "leave-one-out"]
    """The "router", or "leave-one-out" without one. Then `weights` (1, m, w) holds what each word does to the
    score, signed, as in `Attribution`; there are no layers, no sub-tokens and no hidden mass."""
    texts: tuple[TokenWeights, ...]
    scores: np.ndarray | None = None
    """(m,) float32, scores of the pair; of a single sentence, None."""
    unconditional: float | None = None
    untold: tuple[int, ...] = ()
    """Positions of conditions that the first sentence may say nothing about: what is read under them is a guess."""

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
class DeletionTest(Record):
    """Does the score depend on the words that a model points at? Top words against random ones."""

    model: str
    num_words: int
    top: np.ndarray
    """(m, s) float32: change of the score without the top words, signed, in s pairs."""
    random: np.ndarray
    """(draws, m, s) float32: the same without as many random words."""
    held_out: tuple[str, ...] = ()
    """Sentences that the shortened ones were compared with in place of the pair, because the words were chosen by
    the score of the pair. Empty where they were chosen by a router."""

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


def leave_one_word_out(
    model: ConditionalScorer, sentence1: str, sentence2: str, condition: str | None, *, progress: Progress | None = None
) -> Attribution:
    """Score the pair, of `MAX_WORDS` words at most, again without each single word.

    Source:
        Occlusion: Zeiler and Fergus 2014; erasure: Li, Monroe and Jurafsky 2016, arXiv:1612.08220.
    """
    sentence1, sentence2 = check_sentence(sentence1, "sentence 1"), check_sentence(sentence2, "sentence 2")
    condition = None if condition is None else check_condition(condition, "condition")
    return score_without_words(model, sentence1, sentence2, [condition], progress=progress)[0]


def count_words(sentence1: str, sentence2: str) -> int:
    """Return how many words two sentences have together."""
    return len(split_words(sentence1)) + len(split_words(sentence2))


def check_words(sentence1: str, sentence2: str) -> None:
    """Raise DataError for more than `MAX_WORDS` words; also before other scores, which take long."""
    if (count := count_words(sentence1, sentence2)) > MAX_WORDS:
        raise DataError(
            f"The two sentences have {count} words, and at most {MAX_WORDS} can be left out one by one. Shorten them."
        )


def score_without_words(
    model: ConditionalScorer,
    sentence1: str,
    sentence2: str,
    conditions: Sequence[str | None],
    *,
    progress: Progress | None = None,
) -> list[Attribution]:
    """Compute what leaving out each word does under each condition, or without any for a single None.

    Texts are checked already; more than `MAX_WORDS` words raise DataError.
    """
    check_words(sentence1, sentence2)
    words = split_words(sentence1), split_words(sentence2)
    # A sentence of one word cannot be left without it: an empty text has no meaning to compare.
    shorter = [
        [leave_out(text, word) or text for word in found]
        for text, found in zip((sentence1, sentence2), words, strict=True)
    ]
    first = [sentence1, *shorter[0], *[sentence1] * len(words[1])]
    second = [sentence2, *[sentence2] * len(words[0]), *shorter[1]]
    if conditions[0] is None:
        scores = model.score_unconditional(first, second)
    else:
        under = [condition or "" for condition in conditions for _ in first]
        scores = model.score(first * len(conditions), second * len(conditions), under, progress=progress)
    cells = scores.reshape(len(conditions), -1)
    effects = (cells[:, :1] - cells[:, 1:]).astype(np.float32)
    one, two = effects[:, : len(words[0])], effects[:, len(words[0]) :]
    name, rows = model.info.name, zip(conditions, cells[:, 0], one, two, strict=True)
    return [Attribution(name, condition, float(score), *words, *found) for condition, score, *found in rows]


def read_words(
    model: str | ConditionalScorer,
    sentences: str | Sequence[str],
    conditions: str | Sequence[str],
    *,
    progress: Progress | None = None,
) -> WordReading:
    """Show how much each word of one or two sentences counts under each condition.

    Args:
        model: Any model, or its name. One without a router is asked by leaving out one word at a time; a single
            sentence is then compared with itself.
        sentences: One or two.
        conditions: m different conditions, at most `MAX_CONDITIONS`.
        progress: Called with (done, total) encodings; may raise to stop.

    Raises:
        DataError: If a text cannot be used.
        UnknownModelError: If there is no model of the name.

    Example:
        >>> import condviz
        >>> condviz.read_words("csr-bi", "A man surfs.", ["the sport", "the mood"]).to_frame()
    """
    texts, conditions = check_texts(sentences, conditions)
    model = load(model)
    scores = unconditional = None
    if len(texts) == 2:
        count = len(conditions)
        scores = model.score([texts[0]] * count, [texts[1]] * count, conditions, progress=progress)
        unconditional = float(model.score_unconditional([texts[0]], [texts[1]])[0])
    if model.has_router:
        weights = tuple(model.token_weights(text, conditions) for text in texts)
    else:
        weights = _effects(model, texts, conditions, progress)
    return WordReading(
        model=model.info,
        source="router" if model.has_router else "leave-one-out",
        texts=weights,
        scores=scores,
        unconditional=unconditional,
        untold=tuple(np.flatnonzero(tell_pair(model, texts, conditions)[0] < SILENT).tolist()),
    )


def tell_pair(model: ConditionalScorer, texts: Sequence[str], conditions: Sequence[str]) -> np.ndarray:
    """Estimate whether each of one or two sentences tells what conditions ask for, as `model.applies` does.

    Where one of two tells it and both hold the same word, as "phone" under the product, the other one counts as silent
    only if it misses by more than `DOUBT`. How much that leaves unmarked: docs/results.md.

    Returns:
        (1 or 2, m) float32 in [0, 1].
    """
    found = model.applies(texts, conditions)
    return _lift(found, texts[0], texts[1]) if len(texts) == 2 else found


def tell_rows(
    model: ConditionalScorer, sentences1: Sequence[str], sentences2: Sequence[str], conditions: Sequence[str]
) -> np.ndarray:
    """Estimate for the n rows of a table whether both sentences tell its condition, as `tell_pair` does.

    Returns:
        (n,) float32 in [0, 1]: that of the less telling sentence.
    """
    told = np.zeros((2, len(conditions)), np.float32)
    for condition in dict.fromkeys(conditions):
        rows = [row for row, one in enumerate(conditions) if one == condition]
        for side, texts in enumerate((sentences1, sentences2)):
            told[side, rows] = model.applies([texts[row] for row in rows], condition)[:, 0]
    pairs = zip(told.T, sentences1, sentences2, strict=True)
    return np.array([_lift(found, *texts).min() for found, *texts in pairs], np.float32)


def _lift(found: np.ndarray, sentence1: str, sentence2: str) -> np.ndarray:
    """Apply what the words of two sentences say to what each of them has, (2, ...)."""
    if not content_words(sentence1) & content_words(sentence2):
        return found
    lifted = found / (found + (1 - found) * np.float32(np.exp(-DOUBT)))
    return np.where(found[::-1] >= TOLD, lifted, found)


def check_texts(sentences: str | Sequence[str], conditions: str | Sequence[str]) -> tuple[list[str], list[str]]:
    """Return one or two sentences and up to `MAX_CONDITIONS` conditions as they are read."""
    sentences = [sentences] if isinstance(sentences, str) else list(sentences)
    if not 1 <= len(sentences) <= 2:
        raise DataError(f"One or two sentences can be read, got {len(sentences)}. Leave some out.")
    texts = [check_sentence(text, f"sentence {number}") for number, text in enumerate(sentences, start=1)]
    conditions = [conditions] if isinstance(conditions, str) else conditions
    return texts, check_conditions(conditions, max_conditions=MAX_CONDITIONS)


def _effects(
    model: ConditionalScorer, texts: list[str], conditions: list[str], progress: Progress | None
) -> tuple[TokenWeights, ...]:
    found = score_without_words(model, texts[0], texts[-1], conditions, progress=progress)
    sides = (found[0].words1, [one.effects1 for one in found]), (found[0].words2, [one.effects2 for one in found])
    return tuple(
        TokenWeights(
            sentence=text,
            conditions=tuple(conditions),
            words=words,
            weights=np.stack(effects)[None],
            layers=(),
            hidden_mass=np.zeros((1, len(conditions)), dtype=np.float32),
            tokens=(),
            token_weights=np.zeros((1, len(conditions), 0), dtype=np.float32),
            truncated=bool(model.backbone.truncated([(text,)])),
        )
        for text, (words, effects) in zip(texts, sides, strict=False)
    )


def to_record(readings: Sequence[WordReading], tests: Sequence[DeletionTest] = ()) -> dict[str, Any]:
    """Return readings of the same texts, and their deletion tests if there are any, as plain JSON.

    This is what `/router` answers and `condviz router --json` prints.
    """
    models = [reading.to_dict() for reading in readings]
    for record, test in zip(models, tests, strict=False):
        record["deletion"] = test.to_dict()
    return {"conditions": list(readings[0].conditions), "models": models}


def to_csv(readings: Sequence[WordReading]) -> str:
    """Return readings as CSV: one row per model, sentence, condition, layer and word."""
    import pandas as pd

    frame = pd.concat([reading.to_frame() for reading in readings])
    frame[["condition", "word"]] = frame[["condition", "word"]].map(plain_cell)
    return frame.to_csv(index=False, float_format="%.6f")


@checked
def delete_words(
    model: ConditionalScorer,
    reading: WordReading,
    num_words: Annotated[
        int,
        Interval(ge=1, le=MAX_DELETED),
        Doc("Heaviest words, against as many random ones"),
        Key("delete"),
        Field("Words deleted at once"),
    ] = 2,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    progress: Progress | None = None,
) -> DeletionTest:
    """Score again without the top words of a sentence, and without random words, under each condition.

    The weights of a router are tested on the pair itself: they were computed from one sentence and the condition, not
    from the score. Words of a model without a router were chosen because the score of this very pair falls without
    them, so testing them on it would confirm any choice. They are held against `HELD_OUT` other sentences instead,
    which had no part in choosing them.

    Marks without a letter or digit are deleted in neither case, and one word always stays. The random words of a draw
    are the same under every condition. A single sentence with router weights is compared with itself, shortened on one
    side. Raises DataError if no sentence has two words.

    Source:
        Comprehensiveness: DeYoung et al. 2020, ERASER, arXiv:1911.03429; here against random words of the same text.
    """
    generator = np.random.default_rng(seed)
    texts = [text.sentence for text in reading.texts]
    held_out = () if reading.source == "router" else held_out_sentences(texts)
    pairs: list[tuple[str, str, str]] = []
    sides = [side for side, text in enumerate(reading.texts) if len(_candidates(text)) > 1]
    if not sides:
        raise DataError("No sentence has two words, so none can be deleted. Write a longer sentence.")
    for side in sides:
        others = held_out or (texts[-1 - side],)
        chosen = _choose(reading.texts[side], num_words, draws=draws, generator=generator)
        for places in ([[]] * len(reading.conditions), *chosen):
            for condition, deleted in zip(reading.conditions, places, strict=True):
                words = [reading.texts[side].words[place] for place in deleted]
                shorter = without_words(texts[side], words)
                # The order of a pair matters to a cross-encoder: a sentence keeps its side.
                pairs += [(shorter, other, condition) if side == 0 else (other, shorter, condition) for other in others]
    scores = model.score(*map(list, zip(*pairs, strict=True)), progress=progress)
    cells = scores.reshape(len(sides), 2 + draws, len(reading.conditions), -1)
    change = np.moveaxis(cells[:, 1:] - cells[:, :1], 0, 2)  # (1 + draws, m, sides, others)
    change = change.reshape(*change.shape[:2], -1)
    return DeletionTest(
        model=reading.model.name, num_words=num_words, top=change[0], random=change[1:], held_out=held_out
    )


def held_out_sentences(texts: list[str]) -> tuple[str, ...]:
    """Return `HELD_OUT` sentences of the stored reference pairs, spread over all, none of them among `texts`."""
    known = dict.fromkeys(pair.sentence2 for pair in reference_pairs() if pair.sentence2 not in texts)
    return tuple(list(known)[:: max(1, len(known) // HELD_OUT)][:HELD_OUT])


def without_words(text: str, words: list[Word]) -> str:
    """Return a text without some of its words."""
    for word in sorted(words, key=lambda word: -word.start):  # from the end, so that offsets in front stay right
        text = leave_out(text, word)
    return text


def _choose(text: TokenWeights, num_words: int, *, draws: int, generator: np.random.Generator) -> list[list[list[int]]]:
    """Choose the words to delete under each of m conditions: the top ones of the last layer, then each random draw."""
    candidates = _candidates(text)
    count = min(num_words, len(candidates) - 1)
    sizes = np.abs(text.weights[-1][:, candidates])
    top = [[candidates[i] for i in np.argsort(-row, kind="stable")[:count]] for row in sizes]
    random = [generator.choice(candidates, size=count, replace=False).tolist() for _ in range(draws)]
    return [top, *([draw] * len(top) for draw in random)]


def _candidates(text: TokenWeights) -> list[int]:
    """Return the places of words that may be deleted: with a letter or digit, and not behind the cut of a long text."""
    read = np.abs(text.weights).sum(axis=(0, 1)) > 0 if text.truncated else np.ones(len(text.words), dtype=bool)
    return [i for i, word in enumerate(text.words) if read[i] and any(map(str.isalnum, word.text))]
