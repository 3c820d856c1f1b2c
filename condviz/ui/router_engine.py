"""The calls that the Router tab makes into the core; heavy modules are imported inside the functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from condviz.types import DeletionTest, HeadMap, ModelInfo, RouterPictures, WordReading


def _list_readers(infos: Sequence[ModelInfo]) -> list[ModelInfo]:
    from condviz.analysis.router import list_readers

    return list_readers(infos)


def _make_variant(model: Any, name: str) -> Any:  # noqa: ANN401 - a ConditionalScorer; its module imports torch
    from condviz.analysis.router import make_variant

    return make_variant(model, name)


def _check(sentences: Sequence[str], conditions: Sequence[str]) -> tuple[list[str], list[str]]:
    from condviz.analysis.router import check_texts

    return check_texts(sentences, conditions)


def _read(model: Any, sentences: Sequence[str], conditions: Sequence[str]) -> WordReading:  # noqa: ANN401
    from condviz.analysis.router import read_words

    return read_words(model, sentences, conditions)


def _pictures(model: Any, sentence: str, conditions: Sequence[str]) -> RouterPictures:  # noqa: ANN401
    from condviz.analysis.attention import read_pictures

    return read_pictures(model, sentence, conditions)


def _heads(model: Any, sentence: str, condition: str) -> HeadMap:  # noqa: ANN401
    from condviz.analysis.attention import read_heads

    return read_heads(model, sentence, condition)


def _delete(model: Any, reading: WordReading, num_words: int) -> DeletionTest:  # noqa: ANN401
    from condviz.analysis.deletion import delete_words

    return delete_words(model, reading, num_words)


@dataclass(frozen=True)
class RouterEngine:
    """What the tab needs from the core. Tests put a small stand-in here.

    Attributes:
        list_readers: Descriptions of models to those of models and variants, in the order of the page.
        make_variant: Model and name of a variant to a model.
        check: Sentences and conditions to the same, cleaned; may raise DataError.
        read: Model, sentences, conditions to a WordReading.
        pictures: Model, sentence, conditions to RouterPictures.
        heads: Model, sentence, condition to a HeadMap.
        delete: Model, its reading, number of words to a DeletionTest.
    """

    list_readers: Callable[..., list[ModelInfo]] = _list_readers
    make_variant: Callable[..., Any] = _make_variant
    check: Callable[..., tuple[list[str], list[str]]] = _check
    read: Callable[..., WordReading] = _read
    pictures: Callable[..., RouterPictures] = _pictures
    heads: Callable[..., HeadMap] = _heads
    delete: Callable[..., DeletionTest] = _delete
