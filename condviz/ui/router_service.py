"""What the Router tab, its endpoint and its events ask of the core: readers by name, results as the core's types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from condviz.errors import DataError
from condviz.types import DeletionTest, HeadMap, ModelInfo, RouterPictures, WordReading
from condviz.ui.router_engine import RouterEngine
from condviz.ui.service import Service, on_gpu

MAX_MODELS = 8
"""Strips side by side that can be compared by eye."""


@dataclass(frozen=True)
class RouterRequest:
    """A checked request: cleaned texts, and names of models or variants that exist."""

    sentences: tuple[str, ...]
    conditions: tuple[str, ...]
    names: tuple[str, ...]


class RouterService:
    """Reads words through the pool of the page."""

    def __init__(self, service: Service, engine: RouterEngine) -> None:
        """Join the service of the page and the core.

        Args:
            service: The models.
            engine: The calls into the core.
        """
        self.service, self.engine = service, engine
        # Names and texts go in, not models: see Service.
        self.read = on_gpu(self._read)
        self.pictures = on_gpu(self._pictures)
        self.heads = on_gpu(self._heads)
        self.delete = on_gpu(self._delete)

    def infos(self) -> list[ModelInfo]:
        """Describe models and variants, those with a router first."""
        return self.engine.list_readers(self.service.infos())

    def info(self, name: str) -> ModelInfo:
        """Describe one of them.

        Raises:
            DataError: If there is none of this name.
        """
        found = {info.name: info for info in self.infos()}
        if name not in found:
            raise DataError(f"No model is called {name[:60]!r}. There are: {', '.join(found)}.")
        return found[name]

    def ready(self, name: str) -> bool:
        """Say whether the weights behind a name are loaded."""
        return self.service.pool.state(self._split(name)[0]).phase == "ready"

    def check(
        self, sentence1: str, sentence2: str, *, conditions: Sequence[str], models: Sequence[str]
    ) -> RouterRequest:
        """Check all inputs before anything is read; a blank second sentence means a single one.

        Raises:
            DataError: If a text cannot be used, or models are missing, unknown or too many.
        """
        second = [sentence2] if isinstance(sentence2, str) and sentence2.strip() else []
        sentences, checked = self.engine.check([sentence1, *second], conditions)
        names = tuple(dict.fromkeys(map(str, models))) if isinstance(models, list | tuple) else ()
        if not 1 <= len(names) <= MAX_MODELS:
            raise DataError(f"Choose 1 to {MAX_MODELS} models, got {len(names)}, for instance csr.")
        for name in names:
            self.info(name)
        return RouterRequest(tuple(sentences), tuple(checked), names)

    def _model(self, name: str) -> Any:  # noqa: ANN401
        base, variant = self._split(name)
        model = self.service.pool.get(base)
        return self.engine.make_variant(model, variant) if variant else model

    def _split(self, name: str) -> tuple[str, str]:
        """Give model and variant of a name such as "csr@hidden"; see condviz.analysis.router.MARK."""
        base, _, variant = (name, "", "") if name in self.service.pool.names else name.partition("@")
        return base, variant

    def _read(self, name: str, sentences: Sequence[str], conditions: Sequence[str]) -> WordReading:
        return self.engine.read(self._model(name), list(sentences), list(conditions))

    def _pictures(self, name: str, sentence: str, conditions: Sequence[str]) -> RouterPictures:
        return self.engine.pictures(self._model(name), sentence, list(conditions))

    def _heads(self, name: str, sentence: str, condition: str) -> HeadMap:
        return self.engine.heads(self._model(name), sentence, condition)

    def _delete(self, reading: WordReading, num_words: int) -> DeletionTest:
        return self.engine.delete(self._model(reading.model.name), reading, num_words)
