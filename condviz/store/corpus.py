"""Texts with their columns and the vectors of one model: in memory here, on disk in `condviz.store.disk`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from condviz.data.tables import Kind
from condviz.data.texts import check_sentence
from condviz.errors import DataError
from condviz.models.registry import load
from condviz.store.sources import Cell, check_columns, to_cell
from condviz.types import Progress

if TYPE_CHECKING:
    from condviz.methods import ConditionalScorer

DEFAULT_MODEL = "hyper-cl"
"""What encodes a corpus where no other model is asked for."""
BLOCK_ROWS = 2_048
"""Rows of one product: in float32 they take 3 MB at 384 dimensions, and stay in the cache of a processor."""
Block = tuple[int, np.ndarray, np.ndarray]
"""First row, vectors of length one (b, d) float16, their lengths before (b,) float32."""


@dataclass(frozen=True)
class Identity:
    """A model, and what its vectors depend on."""

    model: str
    """Name or folder that `condviz.load` takes."""
    weights: str
    """Its `weights_hash`."""
    precision: str
    """Either "float32", "bfloat16", "float16" or "int8"."""
    dimension: int
    """Numbers of a vector."""

    @classmethod
    def of(cls, model: ConditionalScorer) -> Identity:
        """Read the identity of a loaded model."""
        name = model.info.path if model.info.source == "folder" else model.info.name
        return cls(name, model.weights_hash, model.backbone.precision, model.backbone.hidden_size)

    def load(self) -> ConditionalScorer:
        """Load the model in the precision of the vectors.

        Raises:
            DataError: If the model of that name has other weights by now.
        """
        model = load(self.model, precision=self.precision)
        self.check(model)
        return model

    def check(self, model: ConditionalScorer, *, exactly: bool = False) -> None:
        """Refuse a model with other weights or, where vectors are to be added, in another precision (`exactly`).

        Raises:
            DataError: If its vectors are not those of this corpus.
        """
        new = Identity.of(model)
        if new.weights != self.weights or (exactly and new.precision != self.precision):
            raise DataError(
                f"The vectors of this corpus are those of {self.model} ({self.weights[:12]}, {self.precision}); "
                f"{new.model} ({new.weights[:12]}, {new.precision}) makes others. Take {self.model}, or build a store "
                "with the other model in another folder."
            )


class Corpus:
    """Texts, columns and vectors in memory.

    Args:
        texts: n texts.
        vectors: (n, d) float16 of length one.
        norms: (n,) float32, the lengths that the vectors had.
        identity: The model.
        columns: Name -> kind and n cells.
        numbers: Row of each text in its source, from 1; None counts them.
        name: For messages and pictures.
    """

    _model: ConditionalScorer | None = None

    def __init__(
        self,
        texts: Sequence[str],
        vectors: np.ndarray,
        norms: np.ndarray,
        identity: Identity,
        columns: Mapping[str, tuple[Kind, Sequence[Cell]]] | None = None,
        numbers: Sequence[int] | None = None,
        name: str = "in memory",
    ) -> None:
        self.name, self.identity = name, identity
        self._texts, self._vectors, self._norms = list(texts), vectors, norms
        self._columns = dict(columns or {})
        self._numbers = np.arange(1, len(texts) + 1) if numbers is None else np.array(numbers)

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def model(self) -> ConditionalScorer:
        """The model whose vectors these are, loaded when it is first asked for.

        Raises:
            DataError: If the model of that name has other weights by now.
        """
        if self._model is None:
            self._model = self.identity.load()
        return self._model

    @property
    def columns(self) -> dict[str, Kind]:
        """Name -> what it holds, without the texts."""
        return {name: kind for name, (kind, _) in self._columns.items()}

    def blocks(self) -> Iterator[Block]:
        """Yield all vectors in order, `BLOCK_ROWS` at a time."""
        for start in range(0, len(self), BLOCK_ROWS):
            stop = start + BLOCK_ROWS
            yield start, self._vectors[start:stop], self._norms[start:stop]

    def vectors(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the vectors of some rows, (b, d) float16, and their lengths, (b,)."""
        return self._vectors[places], self._norms[places]

    def rows(self, places: Iterable[int]) -> list[dict[str, Any]]:
        """Return rows as "row" (its number in the source), "text" and the columns; `places` count from 0."""
        return [
            {"row": int(self._numbers[place]), "text": self._texts[place]}
            | {name: to_cell(cells[place], kind) for name, (kind, cells) in self._columns.items()}
            for place in places
        ]

    def column(self, name: str) -> np.ndarray:
        """Return one column for filters, (n,): numbers as float64 with NaN for blanks, texts as objects."""
        if name == "row":
            return self._numbers.astype(np.float64)
        kind, cells = ("text", self._texts) if name == "text" else self._columns[name]
        return as_column(cells, kind)


class FilterColumns(Mapping[str, np.ndarray]):
    """The columns of a corpus as a filter wants them: each is read when it is asked for."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus

    def __getitem__(self, name: str) -> np.ndarray:
        return self._corpus.column(name)

    def __iter__(self) -> Iterator[str]:
        return iter(("row", "text", *self._corpus.columns))

    def __len__(self) -> int:
        return 2 + len(self._corpus.columns)

    def __contains__(self, name: object) -> bool:
        return name in tuple(self)


def as_column(cells: Iterable[Cell], kind: Kind) -> np.ndarray:
    """Return cells as a filter wants them, blanks as NaN or ""."""
    if kind == "number":
        return np.array([np.nan if cell is None else float(cell) for cell in cells], dtype=np.float64)
    values = ["" if cell is None else cell for cell in cells]
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def encode_corpus(
    model: ConditionalScorer,
    texts: Sequence[str],
    columns: Mapping[str, Iterable[Any]] | None = None,
    *,
    name: str = "in memory",
    progress: Progress | None = None,
) -> Corpus:
    """Encode texts into a corpus in memory.

    Args:
        model: A model with vectors.
        texts: At least one.
        columns: Name -> one cell for each text.
        name: For messages and pictures.
        progress: Told (texts done, n); may raise to stop.

    Raises:
        ConfigError: If the model has no vectors.
        DataError: If a text cannot be used, or columns differ in length.
    """
    model.check_able("encodes")
    checked = [check_sentence(text, f"text {number}") for number, text in enumerate(texts, start=1)]
    if not checked:
        raise DataError("There is no text. Pass at least one.")
    found = check_columns(columns or {})
    for column, (_, cells) in found.items():
        if len(cells) != len(checked):
            raise DataError(
                f"There are {len(checked):,} texts and {len(cells):,} cells of {column}. Pass one for each."
            )
    vectors, norms = to_stored(model.encode_sentences(checked, progress=progress))
    corpus = Corpus(checked, vectors, norms, Identity.of(model), found, name=name)
    corpus._model = model
    return corpus


def to_stored(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split vectors into those of length one, float16, and their lengths, float32."""
    norms = np.linalg.norm(vectors, axis=1).astype(np.float32)
    return (vectors / np.maximum(norms, 1e-12)[:, None]).astype(np.float16), norms
