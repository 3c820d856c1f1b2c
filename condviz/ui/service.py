"""What the handlers of the page and of the API call: models by name, results as the core's types."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TypeVar

from condviz.data.texts import check_conditions, check_sentence
from condviz.errors import DataError
from condviz.types import Attribution, ModelInfo
from condviz.ui.engine import Engine
from condviz.ui.pool import ModelPool

Function = TypeVar("Function", bound=Callable)
TELL_SECONDS = 0.4
"""How long a run stays silent; faster ones show only their end."""


def menu_title(info: ModelInfo) -> str:
    """Give the title of a model for a menu, where it may stand beside the same method without training."""
    return info.title if info.trained else f"{info.title} (not trained)"


def on_gpu(function: Function) -> Function:
    """Mark a function that needs the GPU of a ZeroGPU Space; does nothing anywhere else.

    Takes effect only where SPACE_ID is set and the `spaces` package is installed.
    """
    if os.environ.get("SPACE_ID") and find_spec("spaces"):
        import spaces

        return spaces.GPU(function)
    return function


@dataclass(frozen=True)
class Request:
    """A checked request: texts as they are scored, models that exist.

    Attributes:
        sentence1, sentence2, conditions: Cleaned texts.
        infos: Descriptions of the models asked for, in order, at least one.
    """

    sentence1: str
    sentence2: str
    conditions: tuple[str, ...]
    infos: tuple[ModelInfo, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the models."""
        return tuple(info.name for info in self.infos)


class Service:
    """Scores through the pool; a model that fails takes nothing else down."""

    def __init__(self, engine: Engine, pool: ModelPool) -> None:
        """Join the core and the pool.

        Args:
            engine: The calls into the core.
            pool: The models.
        """
        self.engine = engine
        self.pool = pool
        self._describe = functools.lru_cache(maxsize=256)(engine.describe)
        # Names and texts go in, not models: a ZeroGPU worker is forked and must not get the models through a pipe.
        self._attribute = on_gpu(self._attribute_here)
        self._rank = on_gpu(self._rank_here)

    def info(self, name: str) -> ModelInfo:
        """Describe a model; with the revision of the weights once it is loaded.

        Raises:
            UnknownModelError: If the pool does not have the name.
        """
        self.pool.state(name)
        model = self.pool.loaded(name)
        return model.info if model is not None else self._describe(name)

    def infos(self) -> list[ModelInfo]:
        """Describe every model, in the order of the page."""
        return [self.info(name) for name in self.pool.names]

    def check(self, sentence1: str, sentence2: str, *, conditions: Sequence[str], models: Sequence[str]) -> Request:
        """Check all inputs before anything is scored.

        Raises:
            DataError: If a text cannot be used or no model is chosen; names the field.
            UnknownModelError: If a model does not exist.
        """
        texts = check_sentence(sentence1, "sentence 1"), check_sentence(sentence2, "sentence 2")
        checked = tuple(check_conditions(conditions))
        if isinstance(models, str) or not models:
            raise DataError(f"No model is chosen. Choose at least one of: {', '.join(self.pool.names)}.")
        return Request(*texts, checked, tuple(self.info(str(name)) for name in dict.fromkeys(models)))

    def attribute(self, name: str, sentence1: str, *, sentence2: str, condition: str | None) -> Attribution:
        """Give the effect of every word on the score of one model.

        Raises:
            CondvizError: If the model or a text cannot be used.
        """
        return self._attribute(name, sentence1, sentence2, condition)

    def rank(
        self, name: str, sentence1: str, *, sentence2: str, conditions: Sequence[str]
    ) -> list[tuple[str, float, float]]:
        """Give (condition, score, change against no condition) for a library of conditions, highest score first."""
        texts = check_sentence(sentence1, "sentence 1"), check_sentence(sentence2, "sentence 2")
        return self._rank(name, *texts, tuple(conditions))

    def _attribute_here(self, name: str, sentence1: str, sentence2: str, condition: str | None) -> Attribution:
        return self.engine.attribute(self.pool.get(name), sentence1, sentence2, condition)

    def _rank_here(
        self, name: str, sentence1: str, sentence2: str, conditions: Sequence[str]
    ) -> list[tuple[str, float, float]]:
        return self.engine.rank(self.pool.get(name), sentence1, sentence2, list(conditions))
