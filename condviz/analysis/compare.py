"""Score one sentence pair under several conditions, each number with what it means; and find the telling conditions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated

import numpy as np
from annotated_doc import Doc

from condviz.analysis.reference import percentile, reference_pairs, reference_scores
from condviz.analysis.words import MAX_WORDS, check_words, count_words, leave_one_word_out, tell_pair
from condviz.data.texts import check_conditions, check_sentence
from condviz.errors import DataError
from condviz.evaluation.csts import listed
from condviz.models.registry import load
from condviz.paths import ASSETS
from condviz.spec import checked
from condviz.types import Comparison, Progress, reporting

if TYPE_CHECKING:
    from condviz.methods import ConditionalScorer

FITTING = 6
"""Conditions of the library that are tried for a pair, at most: those that it tells most clearly."""
ANY_TEXT = ("the topic", "the tone", "the activity")
"""Conditions of the library that nearly every text tells: tried where others are fewer."""
SURE, BEYOND = 0.7, 1.2
"""What `applies` has to reach for a condition that nobody asked for, and by how many logits it has to exceed what other
texts get: the estimate is high for some conditions whatever the text."""
CLEAREST = 0.55
"""Of how clearly the clearest condition is told, others have to reach so much."""
OTHERS = 80
"""Sentences that tell what other texts get."""
SAME_WORDING = 0.6
"""Cosine of two conditions, without training, above which one is enough."""
LIBRARY = ASSETS / "conditions.json"


@checked
def compare(
    models: str | ConditionalScorer | Sequence[str | ConditionalScorer],
    sentence1: str,
    sentence2: str,
    conditions: str | Sequence[str],
    *,
    words: Annotated[
        bool, Doc("Also find what each word does to the score of the first model, by leaving it out")
    ] = False,
    progress: Progress | None = None,
) -> Comparison:
    """Score a pair under m conditions with M models.

    Args:
        models: Names or loaded models, one or several.
        sentence1, sentence2: The two texts.
        conditions: One condition, or up to 20 different ones.
        words: As the signature says; costs one score per word and condition.
        progress: Told (models done, M) and, with `words`, then (conditions done, m); may raise to stop.

    Raises:
        DataError: If a text is not usable, has too many words for `words`, or there is no model or no condition.
        UnknownModelError: If there is no model of a given name.

    Example:
        >>> import condviz
        >>> condviz.compare("bi-encoder", "A man surfs.", "A woman skis.", ["the sport", "the mood"]).to_frame()
    """
    sentence1, sentence2 = check_sentence(sentence1, "sentence 1"), check_sentence(sentence2, "sentence 2")
    conditions = check_conditions([conditions] if isinstance(conditions, str) else conditions)
    if words:
        check_words(sentence1, sentence2)
    loaded = [load(model) for model in listed(models)]
    if not loaded:
        raise DataError("No model is chosen. Choose at least one.")
    applies = tell_pair(loaded[0], [sentence1, sentence2], conditions)  # first: its pass gives models that pool theirs
    scores, unconditional, percentiles, plain = [], [], [], []
    for model in reporting(loaded, progress):
        reference = reference_scores(model)
        scores.append(model.score([sentence1] * len(conditions), [sentence2] * len(conditions), conditions))
        unconditional.append(model.score_unconditional([sentence1], [sentence2]))
        percentiles.append(percentile(scores[-1], reference))
        plain.append(percentile(unconditional[-1], reference))
    comparison = Comparison(
        sentence1=sentence1,
        sentence2=sentence2,
        conditions=tuple(conditions),
        models=tuple(model.info for model in loaded),
        scores=np.stack(scores),
        unconditional=np.concatenate(unconditional),
        percentiles=np.stack(percentiles),
        unconditional_percentiles=np.concatenate(plain),
        applies=applies,
        notes=_notes(loaded, sentence1, sentence2, conditions),
        unknown=(loaded[0].backbone.unknown_words(sentence1), loaded[0].backbone.unknown_words(sentence2)),
    )
    return add_words(loaded[0], comparison, progress=progress) if words else comparison


def add_words(model: ConditionalScorer, comparison: Comparison, *, progress: Progress | None = None) -> Comparison:
    """Add to a comparison what each word does to the score of its first model, by leaving it out."""
    pair = comparison.sentence1, comparison.sentence2
    found = (leave_one_word_out(model, *pair, condition) for condition in reporting(comparison.conditions, progress))
    return replace(comparison, words=tuple(found))


def word_cost(comparison: Comparison) -> int:
    """Return how many scores `add_words` takes; 0 where the sentences have too many words for it."""
    count = count_words(comparison.sentence1, comparison.sentence2)
    return count * len(comparison.conditions) if count <= MAX_WORDS else 0


def _notes(
    models: Sequence[ConditionalScorer], sentence1: str, sentence2: str, conditions: Sequence[str]
) -> tuple[str, ...]:
    notes = []
    longest = max(conditions, key=len)
    for model in models:
        if model.kind == "cross" and not model.reads_all(sentence1, sentence2, longest):
            notes.append(
                f"{model.info.title} reads both sentences and the condition together, at most "
                f"{model.backbone.max_length} tokens: the end, which is the condition, was not read."
            )
    for model in {model.backbone.name: model for model in reversed(models)}.values():
        cut = [bool(model.backbone.truncated([(sentence, longest)])) for sentence in (sentence1, sentence2)]
        if any(cut):
            who = "Each sentence" if all(cut) else f"Sentence {1 + cut.index(True)}"
            notes.append(
                f"{who} with its condition is longer than the {model.backbone.max_length} tokens that "
                f"{model.info.title} reads: its end was not read."
            )
    return tuple(notes)


@dataclass(frozen=True)
class RankedCondition:
    """A condition with what it does to a pair."""

    condition: str
    score: float
    change: float
    """Score minus the score without a condition."""


@cache
def library_conditions() -> tuple[str, ...]:
    """Read the conditions written for this project."""
    return tuple(row["condition"] for row in json.loads(LIBRARY.read_text(encoding="utf-8")))


@cache
def _usual() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what texts of the reference pairs get under the conditions of the library, (m,) each.

    The mean of the logits; mean and standard deviation of how near they lie to them, as cosines without training.
    """
    from condviz.encoder.applies import logits

    texts = list(dict.fromkeys(pair.sentence1 for pair in reference_pairs()))
    others = texts[:: max(1, len(texts) // OTHERS)]
    near = _units(others) @ _library_units().T
    return logits(others, library_conditions()).mean(dim=1).numpy(), near.mean(axis=0), near.std(axis=0)


@cache
def _library_units() -> np.ndarray:
    return _units(library_conditions())


def _units(texts: Sequence[str]) -> np.ndarray:
    vectors = load("minilm").encode_sentences(list(texts))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def tell_library(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Estimate which conditions of the library texts tell.

    Returns:
        (n, m) bool: those that each text may tell; and (n, m) float32, how clearly: by how many logits more than other
        texts, plus by how many standard deviations it lies nearer to the condition than they do.
    """
    from condviz.encoder.applies import logits

    usual, near, spread = _usual()
    found = logits(texts, library_conditions()).T.numpy()
    clear = found - usual + (_units(texts) @ _library_units().T - near) / spread
    return (found >= np.log(SURE / (1 - SURE))) & (found - usual >= BEYOND), clear


def clearest(told: np.ndarray, clear: np.ndarray) -> list[int]:
    """Return the conditions of the library that are told, (m,) bool, the clearest first, each meaning once.

    Left out are those that are told far less clearly, (m,), than the first.
    """
    order = [place for place in np.argsort(-clear, kind="stable").tolist() if told[place]]
    return distinct([place for place in order if clear[place] >= CLEAREST * clear[order[0]]])


def distinct(places: Sequence[int]) -> list[int]:
    """Leave out conditions of the library that mean about the same as one before them."""
    vectors, kept = _library_units()[list(places)], []
    for row in range(len(places)):
        if not kept or (vectors[kept] @ vectors[row]).max() < SAME_WORDING:
            kept.append(row)
    return [places[row] for row in kept]


def fitting(sentence1: str, sentence2: str) -> tuple[str, ...]:
    """Return the conditions of the library that both sentences tell, most clearly first, each meaning once.

    They are `FITTING` at most. Others, such as the number of animals where there are none, get scores that mean
    nothing. Where both tell less than that of `ANY_TEXT`, these are added.
    """
    told, clear = tell_library([sentence1, sentence2])
    places = clearest(np.asarray(told.all(axis=0)), clear.mean(axis=0))
    if len(places) < len(ANY_TEXT):
        places = distinct([*places, *map(library_conditions().index, ANY_TEXT)])
    return tuple(library_conditions()[place] for place in places[:FITTING])


def rank_conditions(
    model: ConditionalScorer,
    sentence1: str,
    sentence2: str,
    conditions: Sequence[str] | None = None,
    *,
    progress: Progress | None = None,
) -> list[RankedCondition]:
    """Rank conditions, by default those of the library that fit, by the similarity of a pair, highest first.

    Raises DataError if a text is not usable.
    """
    sentence1, sentence2 = check_sentence(sentence1, "sentence 1"), check_sentence(sentence2, "sentence 2")
    chosen = fitting(sentence1, sentence2) if conditions is None else conditions
    chosen = check_conditions(chosen, max_conditions=len(chosen))
    scores = model.score([sentence1] * len(chosen), [sentence2] * len(chosen), chosen, progress=progress)
    plain = float(model.score_unconditional([sentence1], [sentence2])[0])
    ranked = [RankedCondition(text, float(s), float(s) - plain) for text, s in zip(chosen, scores, strict=True)]
    return sorted(ranked, key=lambda row: -row.score)
