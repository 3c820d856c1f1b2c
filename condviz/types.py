"""Results that travel between the parts of the package: small, frozen, free of torch.

Letters for shapes, used in every docstring: n sentences, m conditions, p pairs, b batch, L tokens, d dimensions,
k low rank, w words, R routed layers, T layers, M models, E entities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from reprlib import Repr
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar, cast

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

Kind = Literal["cross", "bi", "tri"]
"""How a model reads its input: all three texts at once, sentence with condition, or each text apart."""

Progress = Callable[[int, int], None]
"""Called with (done, total); may raise to stop."""

T = TypeVar("T")
TOLD, SILENT = 0.5, 0.25
"""What a model's `applies` has to reach for a sentence to count as telling what a condition asks for, and below what it
counts as silent. Between them nothing is said: an alarm takes a clear case."""


def reporting(items: Sequence[T], progress: Progress | None) -> Iterator[T]:
    """Yield items, and tell how many are done behind each."""
    for done, item in enumerate(items, start=1):
        yield item
        if progress:
            progress(done, len(items))


def plain(value: object) -> Any:  # noqa: ANN401 - any JSON
    """Return JSON: records as they say, other dataclasses as dicts, arrays as lists, paths as texts, NaN as None."""
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(_unfold(value), inf_nan_mode="null", fallback=np.ndarray.tolist)


def table(rows: Any, columns: list[str] | None = None) -> pd.DataFrame:  # noqa: ANN401 - what pandas takes
    """Return rows as a frame. Importing pandas takes half a second, for which only those wait who ask for a table."""
    import pandas as pd

    return pd.DataFrame(rows, columns=columns)


class _Short(Repr):
    """Values in one short line: a notebook keeps what is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = self.maxtuple = self.maxlist = self.maxdict = 2
        self.maxstring = self.maxother = 60

    def repr_ndarray(self, values: np.ndarray, level: int) -> str:
        return f"array of shape {values.shape}"

    def repr_DataFrame(self, frame: pd.DataFrame, level: int) -> str:
        return f"table of shape {frame.shape}"


_SHORT = _Short()


class Record:
    """A frozen dataclass that leaves the process as plain JSON."""

    computed: ClassVar[tuple[str, ...]] = ()
    """Properties that leave with the fields."""
    left_out: ClassVar[tuple[str, ...]] = ()
    """Fields that do not: one entry for each row or point, which nobody reads."""

    def __init_subclass__(cls, **options: Any) -> None:  # noqa: ANN401 (as Python passes it)
        super().__init_subclass__(**options)
        cls.__repr__ = Record.__repr__  # before the decorator of the dataclass would write every row out

    def __repr__(self) -> str:
        shown = [f"{item.name}={_SHORT.repr(getattr(self, item.name))}" for item in fields(cast("Any", self))]
        return f"{type(self).__name__}({', '.join(shown)})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: dicts, lists, texts, finite numbers, None; a model by name and revision."""
        names = [item.name for item in fields(cast("Any", self)) if item.name not in self.left_out]
        content = {name: getattr(self, name) for name in (*names, *self.computed)}
        if isinstance(model := content.get("model"), ModelInfo):
            content |= {"model": model.name, "revision": model.revision}
        return plain(content)


def _unfold(value: object) -> Any:  # noqa: ANN401 - any JSON
    """Replace records at any depth by what they say of themselves."""
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: _unfold(item) for key, item in value.items()}
    return [_unfold(item) for item in value] if isinstance(value, tuple | list) else value


class Result(Record):
    """What a public function returns: plain data, a table, and a picture for notebooks."""

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


class Texts(Protocol):
    """Any row with two sentences and a condition."""

    @property
    def sentence1(self) -> str: ...  # noqa: D102
    @property
    def sentence2(self) -> str: ...  # noqa: D102
    @property
    def condition(self) -> str: ...  # noqa: D102


def columns(rows: Sequence[Texts]) -> tuple[list[str], list[str], list[str]]:
    """Return sentences 1, sentences 2 and conditions of rows, as models score them."""
    return [row.sentence1 for row in rows], [row.sentence2 for row in rows], [row.condition for row in rows]


@dataclass(frozen=True)
class Calibration:
    """From the scores of a model to ratings between 1 (different) and 5 (same): isotonic, so that orders stay."""

    scores: tuple[float, ...]
    """Knots, ascending."""
    ratings: tuple[float, ...]
    """The mean rating of rows with about that score; ascending, within (1, 5)."""
    error: float
    """Mean distance, in ratings, of reading and mean label in tenths of rows that were not fitted."""
    rows: Mapping[str, int]
    """Rows fitted to, from each source."""

    def __post_init__(self) -> None:
        knots, ratings = np.array(self.scores), np.array(self.ratings)
        rising = all(np.isfinite(row).all() and (np.diff(row) > 0).all() for row in (knots, ratings))
        if not len(knots) or knots.shape != ratings.shape or not rising or ratings[0] <= 1 or ratings[-1] >= 5:
            raise ValueError("its scores and ratings must be equally many ascending numbers, ratings between 1 and 5")

    def rate(self, scores: ArrayLike) -> np.ndarray:
        """Return ratings, float64, of the shape of the scores; a higher score always has a higher rating."""
        scores = np.asarray(scores, dtype=np.float64)
        inside = np.interp(scores, self.scores, self.ratings)
        # Beyond the knots the ratings approach 1 and 5 without reaching them: a flat end would make ties.
        below, above = np.maximum(self.scores[0] - scores, 0), np.maximum(scores - self.scores[-1], 0)
        return inside - (inside - 1) * below / (1 + below) + (5 - inside) * above / (1 + above)


@dataclass(frozen=True)
class ModelInfo:
    """What can be said about a model without loading its weights."""

    name: str
    """The name that `condviz.load` takes."""
    method: str
    """Key in `condviz.METHODS`."""
    title: str
    """Name for people, for instance "Hyper-CL"."""
    kind: Kind
    trained: bool
    """False for models that use the pretrained encoder as it is. Shown wherever the model appears."""
    source: str
    """Either "zero-shot", "checkpoint", "folder", "hub", or "memory" for a model made by hand."""
    revision: str
    """Fingerprint of the weights that decide the scores (first 12 hex digits), or "" before loading."""
    score_range: tuple[float, float]
    """Lowest and highest score the method can give; infinite for the cross-encoder."""
    added_parameters: int
    """Parameters on top of the shared encoder."""
    reference: str
    summary: str
    path: str = ""
    """Folder of the checkpoint, or "" for zero-shot models."""
    graph: str = ""
    """Name of the knowledge graph whose links it was trained to predict; "" for models of sentences."""
    conditional: bool = True
    """The condition changes the score."""
    encodes: bool = True
    """It has vectors: maps, search."""
    answers_links: bool = True
    """Its vectors of (head, relation) can be compared with those of entities."""
    has_router: bool = False
    """It weighs the words of a sentence by the condition."""
    calibration: Calibration | None = None
    """From its scores to ratings; None where nobody has fitted it."""
    encoder: str = ""
    """Hub id or folder of the pretrained encoder under it, "" for a model made by hand."""
    missing: str = ""
    """What to do where that encoder is not on this machine; "" where it is."""

    @property
    def full_title(self) -> str:
        """Its title where it stands among others: an untrained one shares that of its trained twin."""
        return self.title if self.trained else f"{self.title} (not trained)"

    def rate(self, scores: ArrayLike) -> np.ndarray:
        """Return ratings from 1 to 5, of the shape of the scores; NaN without a calibration."""
        return np.full(np.shape(scores), np.nan) if self.calibration is None else self.calibration.rate(scores)


@dataclass(frozen=True)
class Comparison(Result):
    """One sentence pair under several conditions, scored by several models."""

    sentence1: str
    sentence2: str
    """The texts as they were scored."""
    conditions: tuple[str, ...]
    """The m conditions, in the order given."""
    models: tuple[ModelInfo, ...]
    """The M descriptions, in the order given."""
    scores: np.ndarray
    """(M, m) float32, higher is more similar; the range is that of each model."""
    unconditional: np.ndarray
    """(M,) float32, the score of the same model without any condition."""
    percentiles: np.ndarray
    """(M, m) float32 in [0, 100]: share of the stored reference pairs that this model scores lower."""
    unconditional_percentiles: np.ndarray
    """(M,) float32 in [0, 100], the same for the score without a condition."""
    applies: np.ndarray
    """(2, m) float32 in [0, 1]: does each sentence tell what the condition asks for? See `TOLD`."""
    notes: tuple[str, ...] = ()
    """Things the reader has to know, for instance that a text was cut."""
    words: tuple[Attribution, ...] = ()
    """What each word does to the score of the first model: one per condition, or empty."""
    unknown: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """Words of each sentence that the tokenizer of the first model has no token for, such as emoji."""
    computed = "ratings", "untold"

    @property
    def untold(self) -> np.ndarray:
        """Conditions that one of the sentences, or both, may say nothing about, (m,) bool: their scores mean little."""
        return np.any(self.applies < SILENT, axis=0)

    @property
    def ratings(self) -> np.ndarray:
        """The scores as ratings from 1 (different) to 5 (same), (M, m) float64; NaN where a model is not calibrated."""
        return np.stack([info.rate(row) for info, row in zip(self.models, self.scores, strict=True)])

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: the answer of the `/compare` endpoint. Numbers that are not finite become None."""
        names = {"models": [info.name for info in self.models], "revisions": [info.revision for info in self.models]}
        return super().to_dict() | names

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
class Word:
    """A word of a text: the text itself and where it stands (characters, half open)."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class TokenWeights:
    """How much weight a router gives to each word of one sentence under several conditions."""

    sentence: str
    conditions: tuple[str, ...]
    words: tuple[Word, ...]
    """The w words with their offsets; their tokens' weights are added up."""
    weights: np.ndarray
    """(R, m, w) float32, each row >= 0; sums to 1 - hidden_mass."""
    layers: tuple[int, ...]
    """Index of each routed layer, counted from 0, lowest first; length R."""
    hidden_mass: np.ndarray
    """(R, m) float32: weight on special tokens (of CSR-prefix also on the condition), not shown."""
    tokens: tuple[Word, ...]
    """The sub-tokens with their offsets; special tokens have an empty span."""
    token_weights: np.ndarray
    """(R, m, number of tokens) float32, sums to 1."""
    truncated: bool = False
    """True if the end of the sentence was cut off."""

    @property
    def ranks(self) -> np.ndarray:
        """Rank of each word by the size of its weight, (R, m, w) int from 1, the largest; equal ones share a rank."""
        sizes = np.abs(self.weights)
        return 1 + (sizes[..., None, :] > sizes[..., :, None]).sum(axis=-1)

    @property
    def shares(self) -> np.ndarray:
        """Share of each word in the sizes of all words, (R, m, w) in [0, 1]."""
        sizes = np.abs(self.weights)
        return sizes / np.maximum(sizes.sum(axis=-1, keepdims=True), np.finfo(np.float32).tiny)


@dataclass(frozen=True)
class Attribution(Result):
    """What each word does to the score of one pair under one condition, by leaving it out."""

    model: str
    condition: str | None
    """The condition, or None for the score without a condition."""
    score: float
    words1: tuple[Word, ...]
    words2: tuple[Word, ...]
    effects1: np.ndarray
    effects2: np.ndarray
    """(w,) float32 each: score of the whole pair minus the score without the word. Positive: the word makes the
    sentences more alike under this condition. Not additive."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: the answer of the `/attribution` endpoint."""
        words: dict[str, list] = {"words1": [], "words2": []}
        for number, *row in self._rows():
            words[f"words{number}"].append(dict(zip(("text", "start", "end", "effect"), row, strict=True)))
        return {"model": self.model, "condition": self.condition, "score": self.score, **words}

    def to_frame(self) -> pd.DataFrame:
        """Return one row per word: sentence (1 or 2), word, start, end, effect."""
        return table(self._rows(), columns=["sentence", "word", "start", "end", "effect"])

    def _rows(self) -> list[tuple[int, str, int, int, float]]:
        return [
            (number, word.text, word.start, word.end, float(effect))
            for number, words, effects in ((1, self.words1, self.effects1), (2, self.words2, self.effects2))
            for word, effect in zip(words, effects, strict=True)
        ]


@dataclass(frozen=True)
class Trained(Result):
    """A finished training."""

    folder: Path
    name: str
    metrics: Mapping[str, Any]
    """Figures on the validation rows. Sentences: spearman, pearson, pair_accuracy, times 100, and rows; links: MRR,
    hits@1 ... in [0, 1]."""
    curve: tuple[Mapping[str, Any], ...] = ()
    """Records of the log in their order: "event", "step", and what was measured; empty if it is gone."""

    def to_frame(self) -> pd.DataFrame:
        """Return the curve: one row per logged step or evaluation, one column per figure."""
        rows = [record for record in self.curve if record["event"] != "end"]
        return table(rows).drop(columns=["steps", "probes", "seconds"], errors="ignore")
