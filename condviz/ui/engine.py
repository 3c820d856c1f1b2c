"""The calls that the page makes into the core, in one place.

The heavy modules are imported inside the functions: the server has to answer before torch and transformers are loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from condviz.types import Attribution, Comparison, ModelInfo


def _list_models() -> list[str]:
    from condviz.models.registry import list_models

    return list_models()


def _describe(name: str) -> ModelInfo:
    from condviz.models.registry import describe

    return describe(name)


def _load(name: str) -> Any:  # noqa: ANN401 - a ConditionalScorer; its module imports torch
    from condviz.analysis.reference import reference_scores
    from condviz.models.registry import load

    model = load(name)
    reference_scores(model)  # now, in the background, and not in the first comparison
    return model


def _compare(models: Sequence[Any], sentence1: str, sentence2: str, conditions: Sequence[str]) -> Comparison:
    from condviz.analysis.compare import compare

    return compare(models, sentence1, sentence2, conditions)


def _attribute(model: Any, sentence1: str, sentence2: str, condition: str | None) -> Attribution:  # noqa: ANN401
    from condviz.analysis.attribution import leave_one_word_out

    return leave_one_word_out(model, sentence1, sentence2, condition)


def _rank(model: Any, sentence1: str, sentence2: str, conditions: Sequence[str]) -> list[tuple[str, float, float]]:  # noqa: ANN401
    from condviz.analysis.finder import rank_conditions

    ranked = rank_conditions(model, sentence1, sentence2, conditions)
    return [(row.condition, row.score, row.change) for row in ranked]


@dataclass(frozen=True)
class Engine:
    """What the page needs from the core. Tests put a small stand-in here.

    Attributes:
        list_models: Names of all models that can be loaded.
        describe: Name to description, without loading weights.
        load: Name to model; may raise CondvizError.
        compare: Models, two sentences, conditions to a Comparison.
        attribute: Model, two sentences, condition or None to an Attribution.
        rank: Model, two sentences, conditions to (condition, score, change) in order of the score.
    """

    list_models: Callable[[], list[str]] = _list_models
    describe: Callable[[str], ModelInfo] = _describe
    load: Callable[[str], Any] = _load
    compare: Callable[..., Comparison] = _compare
    attribute: Callable[..., Attribution] = _attribute
    rank: Callable[..., list[tuple[str, float, float]]] = _rank
