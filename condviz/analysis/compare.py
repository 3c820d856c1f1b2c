"""Score one sentence pair under several conditions with several models, and say what each number means."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from condviz.analysis.reference import percentile, reference_scores
from condviz.data.texts import MAX_CONDITIONS, check_conditions, check_sentence
from condviz.errors import DataError
from condviz.methods import ConditionalScorer
from condviz.methods.cross_encoder import CrossEncoder
from condviz.types import Comparison


def compare(
    models: Sequence[ConditionalScorer],
    sentence1: str,
    sentence2: str,
    conditions: Sequence[str],
    *,
    max_conditions: int = MAX_CONDITIONS,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Score a pair under m conditions with M models.

    Args:
        models: Loaded models.
        sentence1, sentence2: The two texts.
        conditions: One or more different conditions.
        max_conditions: The most that are allowed.
        progress: Told (models done, M); may raise to stop.

    Raises:
        DataError: If a text is not usable, or there is no model or no condition.
    """
    sentence1, sentence2 = check_sentence(sentence1, "sentence 1"), check_sentence(sentence2, "sentence 2")
    conditions = check_conditions(conditions, max_conditions=max_conditions)
    if not models:
        raise DataError("No model is chosen. Choose at least one.")
    scores, unconditional, percentiles = [], [], []
    for done, model in enumerate(models, start=1):
        scores.append(model.score([sentence1] * len(conditions), [sentence2] * len(conditions), conditions))
        unconditional.append(model.score_unconditional([sentence1], [sentence2])[0])
        percentiles.append(percentile(scores[-1], reference_scores(model)))
        if progress:
            progress(done, len(models))
    return Comparison(
        sentence1=sentence1,
        sentence2=sentence2,
        conditions=tuple(conditions),
        models=tuple(model.info for model in models),
        scores=np.stack(scores),
        unconditional=np.array(unconditional, dtype=np.float32),
        percentiles=np.stack(percentiles),
        notes=_notes(models, sentence1, sentence2, conditions),
    )


def _notes(
    models: Sequence[ConditionalScorer], sentence1: str, sentence2: str, conditions: Sequence[str]
) -> tuple[str, ...]:
    notes = []
    longest = max(conditions, key=len)
    for model in models:
        if isinstance(model, CrossEncoder) and model.tokenize([(sentence1, sentence2, longest)])[0][0].truncated:
            notes.append(
                f"{model.info.title} reads both sentences and the condition together, at most "
                f"{model.backbone.max_length} tokens: the end, which is the condition, was not read."
            )
    for backbone in {model.backbone.name: model.backbone for model in models}.values():
        for number, sentence in enumerate((sentence1, sentence2), start=1):
            if backbone.truncated([(sentence, longest)]):
                notes.append(
                    f"Sentence {number} with its condition is longer than the {backbone.max_length} tokens that "
                    f"{backbone.name} reads: its end was not read."
                )
    return tuple(notes)
