"""The calls that the Errors tab makes into the core; heavy modules are imported inside the functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from condviz.analysis.errors.rewrites import Neighbour
    from condviz.evaluation.dataset import Dataset
    from condviz.types import Pair


def _corpora() -> list[tuple[str, str]]:
    from condviz.data.corpora import CORPORA, data_folder

    folder = data_folder()
    return [
        (f"{name}: {part.replace('_', ' ')}", f"{name}:{part}")
        for name, corpus in CORPORA.items()
        if name == "scenes" or any(any((folder / corpus.folder).glob(file)) for file in corpus.files)
        for part in corpus.parts
        if part != "train"
    ]


def _dataset(corpus: str, part: str) -> Dataset:
    from condviz.evaluation.dataset import corpus_dataset

    return corpus_dataset(corpus, part)


def _stored(dataset: Dataset) -> dict[str, Any]:
    from condviz.analysis.errors.stored import read_stored

    return read_stored(dataset)


def _score(model: Any, texts: Sequence[Sequence[str]]) -> np.ndarray:  # noqa: ANN401 - a ConditionalScorer
    return model.score(*map(list, texts))


def _neighbours(model: Any, pair: Pair) -> list[Neighbour]:  # noqa: ANN401
    from condviz.analysis.errors.rewrites import nearest_rows, scene_training_rows

    return nearest_rows(model, pair, scene_training_rows())


@dataclass(frozen=True)
class ErrorsEngine:
    """What the tab needs from the core. Tests put a small stand-in here.

    Attributes:
        corpora: (title, key) of the parts of corpora whose files are there.
        dataset: Corpus and part to a Dataset.
        stored: Dataset to stored scores by model.
        score: Model and three columns of texts to scores.
        neighbours: Model and pair to training rows.
    """

    corpora: Callable[[], list[tuple[str, str]]] = _corpora
    dataset: Callable[[str, str], Dataset] = _dataset
    stored: Callable[[Dataset], dict[str, Any]] = _stored
    score: Callable[..., Any] = _score
    neighbours: Callable[..., list[Neighbour]] = _neighbours
