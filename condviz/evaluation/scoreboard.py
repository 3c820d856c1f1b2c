"""Stored scores of models on the corpora that this project can test on, as the page and the cards show them.

Needs neither torch nor scipy. `python -m benchmarks models` measures and writes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from pydantic import TypeAdapter, ValidationError

from condviz.errors import DataError, explain
from condviz.evaluation.metrics import Metric
from condviz.paths import ASSETS

BENCHMARK = ASSETS / "benchmark.json"
FORMAT = 1
"""Version of the file; raised when older code could not read it."""
PLAIN = "plain"
NONE = "–"
FIGURES = ("spearman", "pearson", "pair_accuracy")
_ADVICE = "Remove it, and run: python -m benchmarks models"


@dataclass(frozen=True)
class Part:
    """What models are tested on."""

    name: str
    """What the command takes and the file holds."""
    title: str
    """Heading of its column."""
    about: str
    """What is new in it, or what it is."""
    corpus: str
    split: str
    """What `condviz.data.corpora.build` takes."""
    whole: bool = False
    """Every row is scored, however many are asked for: the figures stand beside those of papers."""


PARTS: Mapping[str, Part] = MappingProxyType({part.name: part for part in (
    Part("csts", "C-STS", "captions rated by people: validation of C-STS, re-annotated, every row that can be judged",
         "csts-reannotated", "validation", whole=True),
    Part("csts_unshared", "C-STS, new sentences", "the rows of it without a sentence of C-STS train",
         "csts-reannotated", "validation-unshared", whole=True),
    Part("test", "test", "scenes; only the sentences are new", "scenes", "test"),
    Part("unseen_phrasings", "unseen wordings", "the pairs of test, each condition in words never trained on",
         "scenes", "unseen_phrasings"),
    Part("unseen_aspects", "new aspects", "scenes; aspects new to the scenes: other texts of a training may have them",
         "scenes", "unseen_aspects"),
    Part("own_aspects", "own aspects", "scenes; each condition fits a handful of sentences only",
         "scenes", "own_aspects"),
    Part("unseen_domains", "unseen domains", "scenes; stage, farms, railways, museums, job advertisements: in no scene "
         "of training", "scenes", "unseen_domains"),
    Part("tables", "tables", "natural tables; different texts under conditions of their own", "tables", "test"),
    Part("tables_unseen_domains", "tables, unseen domains", "natural tables of law and history: left out of training",
         "tables", "unseen_domains"),
    Part("tables_hard", "hard tables", "tables that always tell the same value by other words", "tables-hard", "test"),
    Part("cebab", "CEBaB", "restaurant reviews, ratings derived from labels of people", "cebab", "test"),
    Part("mams", "MAMS", "sentences of restaurant reviews", "mams", "test"),
    Part("e2e", "E2E", "descriptions of invented restaurants", "e2e", "test"),
    Part(PLAIN, "plain similarity", "scenes; no condition: a paraphrase against a sentence on something else; two "
         "ratings only, so Spearman cannot exceed 86.6", "scenes-plain", "test"),
)})  # fmt: skip


@dataclass(frozen=True)
class Sample:
    """Which rows of a part are scored."""

    digest: str
    """SHA-256 of the rows, first 16 hex digits; figures with different digests cannot be compared."""
    rows: int
    """Rated rows."""
    pairs: int
    """Sentence pairs under two conditions."""
    available: int
    """Sentence pairs that the part has."""
    seed: int
    """Decides which are built and chosen."""


@dataclass(frozen=True)
class Group:
    """Metrics, times 100, of the rows that ask for one aspect, or whose sentences come from one domain."""

    rows: int
    """How many there are."""
    pairs: int
    """Sentence pairs that have such a row."""
    spearman: float | None
    """Over the rows; None where it is not defined."""
    pair_accuracy: float | None
    """Over the pairs."""


@dataclass(frozen=True)
class PartScores:
    """What one model reaches on one part."""

    digest: str
    """The rows, as in `Sample`."""
    rows: int
    pairs: int
    """As in `Sample`."""
    resamples: int
    """Of the intervals."""
    spearman: Metric
    pearson: Metric
    """Agreement of scores and ratings."""
    pair_accuracy: Metric
    """Share of the pairs whose higher rating has the strictly higher score. Pairs with equal ratings, which only
    C-STS has, are left out."""
    equal_scores: int
    """Pairs with two equal scores; they count as wrong."""
    groups: Mapping[str, Mapping[str, Group]] = field(default_factory=dict)
    """For "aspect" and "domain": name -> figures."""

    @property
    def blind(self) -> bool:
        """True if the two conditions of a pair never make a difference."""
        return self.equal_scores == self.pairs


@dataclass(frozen=True)
class ModelScores:
    """What one model reaches."""

    weights: str
    """`weights_hash` of the model: weights and settings, the same in every precision."""
    precision: str
    """What it computed in, for instance "float32"."""
    trained: bool
    """As in `ModelInfo`."""
    versions: Mapping[str, str]
    """Library -> version."""
    parts: Mapping[str, PartScores] = field(default_factory=dict)
    """Part -> figures."""


@dataclass(frozen=True)
class Board:
    """All that is stored."""

    samples: Mapping[str, Sample] = field(default_factory=dict)
    """Part -> the rows that count now."""
    models: Mapping[str, ModelScores] = field(default_factory=dict)
    """Name -> what was measured."""

    def find(self, model: str, part: str) -> PartScores | None:
        """Return the figures of a model on the rows of a part that count now, or None."""
        scores = self.models[model].parts.get(part) if model in self.models else None
        sample = self.samples.get(part)
        return scores if scores is not None and sample is not None and scores.digest == sample.digest else None

    def outdated(self, model: str) -> list[str]:
        """Return the parts that a model was measured on with other rows."""
        return [part for part in self.models[model].parts if self.find(model, part) is None]

    def with_scores(self, name: str, scores: ModelScores, samples: Mapping[str, Sample]) -> Board:
        """Add what was measured; parts that were not measured stay if they belong to the same model and versions."""
        old = self.models.get(name)
        if old is not None and replace(old, parts={}) == replace(scores, parts={}):
            scores = replace(scores, parts={**old.parts, **scores.parts})
        return Board({**self.samples, **samples}, {**self.models, name: scores})


_BOARD = TypeAdapter(Board)


def read_board(path: str | Path = BENCHMARK) -> Board:
    """Read stored scores; an absent file gives an empty board.

    Raises:
        DataError: If the file cannot be read or was written by another version.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Board()
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}. {_ADVICE}") from error
    found = content.get("format") if isinstance(content, dict) else None
    if found != FORMAT:
        raise DataError(f"{path} has format {found!r}, this version reads {FORMAT}. {_ADVICE}")
    try:
        return _BOARD.validate_python(content)
    except ValidationError as error:
        raise DataError(f"{path} has not the form that this package writes ({explain(error)}). {_ADVICE}") from error


def format_figure(figure: Metric) -> str:
    """Format "73.2 [70.1, 76.0]", without brackets where there is no interval, and a dash where there is no figure."""
    if figure.value is None or figure.low is None or figure.high is None:
        return format_number(figure.value)
    return f"{figure.value:.1f} [{figure.low:.1f}, {figure.high:.1f}]"


def format_number(value: float | None) -> str:
    """Format a figure with one digit, a dash where there is none."""
    return NONE if value is None else f"{value:.1f}"


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table as Markdown; all columns but the first are aligned to the right."""
    rules = ("---", *("---:" for _ in head[1:]))
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rules, *rows))
