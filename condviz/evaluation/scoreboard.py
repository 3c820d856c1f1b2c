"""Stored scores of models, as page and cards show them, and which model they speak for. Loads no model.

`python -m benchmarks models` and `links` measure and write them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from pydantic import TypeAdapter, ValidationError

from condviz.encoder import DEFAULT_BACKBONE
from condviz.errors import DataError, explain
from condviz.evaluation.metrics import Metric, judge_gap
from condviz.paths import ASSETS
from condviz.types import ModelInfo

T = TypeVar("T")
BENCHMARK = ASSETS / "benchmark.json"
FORMAT = 1
"""Version of the file; raised when older code could not read it."""
PLAIN = "plain"
NONE = "–"
FIGURES = ("spearman", "pearson", "pair_accuracy")
LINK_SCORES = ASSETS / "kgc.json"
LINK_FORMAT = 1
LINK_FIGURES = ("MRR", "hits@1", "hits@3", "hits@10")


@dataclass(frozen=True)
class Part:
    """What models are tested on."""

    name: str
    """What the command takes and the file holds."""
    title: str
    about: str
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
    Part("test", "scenes", "scenes; only the sentences are new", "scenes", "test"),
    Part("unseen_phrasings", "unseen wordings", "the pairs of scenes, each condition in words never trained on",
         "scenes", "unseen_phrasings"),
    Part("unseen_aspects", "new aspects", "scenes; aspects new to the scenes: other texts of a training may have them",
         "scenes", "unseen_aspects"),
    Part("own_aspects", "own aspects", "scenes; each condition fits a handful of sentences only",
         "scenes", "own_aspects"),
    Part("unseen_domains", "unseen domains", "scenes; stage, farms, railways, museums, job advertisements: in no scene "
         "of training", "scenes", "unseen_domains"),
    Part("tables", "free conditions", "natural tables; different texts under conditions of their own", "tables",
         "test"),
    Part("tables_unseen_domains", "free conditions, unseen domains", "natural tables of law and history: left out of "
         "training", "tables", "unseen_domains"),
    Part("tables_hard", "hard tables", "tables that always tell the same value by other words", "tables-hard", "test"),
    Part("cebab", "reviews (CEBaB)", "restaurant reviews, ratings derived from labels of people", "cebab", "test"),
    Part("mams", "reviews (MAMS)", "sentences of restaurant reviews", "mams", "test"),
    Part("e2e", "E2E", "descriptions of invented restaurants", "e2e", "test"),
    Part(PLAIN, "plain similarity", "scenes; no condition: a paraphrase against a sentence on something else; two "
         "ratings only, so Spearman cannot exceed 86.6", "scenes-plain", "test"),
)})  # fmt: skip


@dataclass(frozen=True)
class BoardSample:
    """Which rows of a part are scored."""

    digest: str
    """SHA-256 of the rows, first 16 hex digits; figures with different digests cannot be compared."""
    rows: int
    pairs: int
    """Sentence pairs under two conditions."""
    available: int
    """Sentence pairs that the part has."""
    seed: int


@dataclass(frozen=True)
class GroupScores:
    """Metrics, times 100, of the rows that ask for one aspect, or whose sentences come from one domain."""

    rows: int
    pairs: int
    """Sentence pairs that have such a row."""
    spearman: float | None
    pair_accuracy: float | None


@dataclass(frozen=True)
class PartScores:
    """What one model reaches on one part."""

    digest: str
    """The rows, as in `BoardSample`."""
    rows: int
    pairs: int
    resamples: int
    spearman: Metric
    pearson: Metric
    pair_accuracy: Metric
    """Share of the pairs whose higher rating has the strictly higher score. Pairs with equal ratings, which only
    C-STS has, are left out."""
    equal_scores: int
    """Pairs with two equal scores; they count as wrong."""
    groups: Mapping[str, Mapping[str, GroupScores]] = field(default_factory=dict)
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
    trained: bool
    versions: Mapping[str, str]
    parts: Mapping[str, PartScores] = field(default_factory=dict)


@dataclass(frozen=True)
class Board:
    """All that is stored."""

    samples: Mapping[str, BoardSample] = field(default_factory=dict)
    """Part -> the rows that count now."""
    models: Mapping[str, ModelScores] = field(default_factory=dict)

    def find(self, model: str, part: str) -> PartScores | None:
        """Return the figures of a model on the rows of a part that count now, or None."""
        scores = self.models[model].parts.get(part) if model in self.models else None
        sample = self.samples.get(part)
        return scores if scores is not None and sample is not None and scores.digest == sample.digest else None


def read_board(path: str | Path = BENCHMARK) -> Board:
    """Read stored scores; an absent file gives an empty board, one of another version raises DataError."""
    return _read(path, FORMAT, Board, "Remove it, and run: python -m benchmarks models") or Board()


def _read(path: str | Path, version: int, kind: type[T], advice: str) -> T | None:
    """Read a file with a format as a kind of content; None where it is absent."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}. {advice}") from error
    found = content.get("format") if isinstance(content, dict) else None
    if found != version:
        raise DataError(f"{path} has format {found!r}, this version reads {version}. {advice}")
    try:
        return TypeAdapter(kind).validate_python(content)
    except ValidationError as error:
        raise DataError(f"{path} has not the form that this package writes ({explain(error)}). {advice}") from error


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


# ---- which model to use for what -------------------------------------------------------------------------------------

OVERALL = (
    "test", "unseen_phrasings", "unseen_aspects", "own_aspects", "unseen_domains", "tables", "tables_unseen_domains",
)  # fmt: skip
"""Parts of the benchmark whose mean decides which model is best."""


@cache
def pair_accuracies() -> dict[str, dict[str, Metric]]:
    """Read the pair accuracy (%) of each model on each part; empty where no benchmark is stored."""
    try:
        models = read_board().models
    except DataError:
        return {}
    return {name: {part: one.pair_accuracy for part, one in found.parts.items()} for name, found in models.items()}


@cache
def efforts() -> dict[str, dict[str, float]]:
    """Read how much work each model is, in times of the plain encoder: name -> "pair" or "many" -> factor.

    Empty where that is not stored; `python -m benchmarks.effort --store` measures it.
    """
    try:
        return json.loads((ASSETS / "effort.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def overall() -> dict[str, Metric]:
    """Return the mean pair accuracy (%) over `OVERALL` of each model that was measured on all of these parts."""
    whole = {name: parts for name, parts in pair_accuracies().items() if {*OVERALL} <= {*parts}}
    return {name: mean_of([parts[part] for part in OVERALL]) for name, parts in whole.items()}


def mean_of(figures: Sequence[Metric]) -> Metric:
    """Return the mean of figures on different rows, with the interval that theirs imply."""
    value = float(np.mean(np.array([one.value for one in figures], dtype=float)))
    reaches = [(one.high - one.low) / 2 for one in figures if one.low is not None and one.high is not None]
    if len(reaches) < len(figures):
        return Metric(value)
    reach = float(np.linalg.norm(reaches)) / len(figures)
    return Metric(value, value - reach, value + reach)


def leading(figures: Mapping[str, Metric]) -> list[str]:
    """Return the name with the highest figure, and behind it those of which it is not sure that they are lower."""
    values = {name: one.value for name, one in figures.items() if one.value is not None}
    ranked = sorted(values, key=lambda name: -values[name])
    best = ranked[:1]
    tries = len(ranked) - 1
    return best + [one for one in ranked[1:] if not judge_gap(figures[best[0]], figures[one], tries=tries).sure]


def best_encoder(infos: Iterable[ModelInfo]) -> str:
    """Return the name of the trained encoder with the highest mean accuracy; "" where none is measured.

    A cross-encoder does not count: it has no vectors, so the map and the search could not follow.
    """
    means = overall()
    usable = [one.name for one in infos if one.trained and one.kind != "cross" and not (one.graph or one.missing)]
    return max((name for name in usable if name in means), key=lambda name: means[name].value or 0.0, default="")


def fast_encoder(infos: Iterable[ModelInfo]) -> str:
    """Return the best model on the small encoder, with which two cores answer in time; "" where none is measured."""
    return best_encoder(info for info in infos if info.encoder == DEFAULT_BACKBONE)


def strengths(infos: Iterable[ModelInfo]) -> dict[str, str]:
    """Return what each model is good for, in a few words; models without a distinction are left out.

    The best is called so only where no other may be as good.
    """
    infos = [info for info in infos if info.trained]
    found = pair_accuracies()
    texts: dict[str, list[str]] = {}

    def crown(scored: Mapping[str, Metric | None], alone: str, among: str = "") -> None:
        names = leading({name: one for name, one in scored.items() if one is not None})
        if names and (text := alone if len(names) == 1 else among):
            texts.setdefault(names[0], []).append(text)

    encoders = [info.name for info in infos if info.kind != "cross" and not info.graph]
    means = {name: one for name, one in overall().items() if name in encoders}
    crown(means, "best encoder overall", "among the best encoders overall")
    for part, text in (
        ("csts", "best by people’s ratings"), ("tables", "best on free conditions"), ("cebab", "best on reviews"),
    ):  # fmt: skip
        crown({info.name: found.get(info.name, {}).get(part) for info in infos}, text)
    if fastest := best_encoder(info for info in infos if info.kind == "tri"):
        texts.setdefault(fastest, []).append("one pass for any number of conditions")
    return {name: ", ".join(found_for) for name, found_for in texts.items()}


# ---- link prediction -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LinkRow:
    """A row of the table: ours or a paper's, plain or re-ranked; MRR and hits in %, None where not reported."""

    model: str
    source: str
    encoder: str
    ranking: str
    figures: tuple[float | None, ...]
    ours: bool


BERT, PLAINLY, RERANKED, UNSAID = "BERT-base", "plain", "re-ranked", "not stated, probably re-ranked"
RERANKED_NOTE = (
    "Figures of the papers with re-ranking include a bonus of 0.05 for entities within 5 hops: SimKGC says so in "
    "section 3.4, and the evaluation script of Hyper-CL’s code applies it (sim-kgc/scripts/eval.sh). CSR "
    "builds on that code."
)
PUBLISHED = (
    LinkRow("SimKGC", "SimKGC; Hyper-CL, table 2", f"{BERT}, two", RERANKED, (66.6, 58.7, 71.7, 80.0), False),
    LinkRow("CSR", "CSR, table 2", BERT, UNSAID, (66.1, 58.1, 71.1, None), False),
    LinkRow("Hyper-CL", "Hyper-CL, table 2", BERT, RERANKED, (61.6, 50.6, 69.0, 81.0), False),
    LinkRow("Hyper-CL, rank 64", "Hyper-CL, table 2", BERT, RERANKED, (54.8, 42.7, 62.6, 77.0), False),
    LinkRow("tri-encoder, concatenation", "Hyper-CL, table 2", BERT, RERANKED, (33.5, 22.6, 38.2, 55.0), False),
    LinkRow("tri-encoder, Hadamard", "Hyper-CL, table 2", BERT, RERANKED, (16.4, 0.4, 24.3, 48.1), False),
)


@dataclass(frozen=True)
class LinkScores:
    """What one of our models reaches."""

    model: str
    title: str
    weights: str
    """`weights_hash` of the model."""
    encoder: str
    how: str
    """What was trained: "not trained for links", "head on a frozen encoder" or "encoder and head"."""
    hardware: str
    """Of the training, or of the measurement where nothing was trained."""
    seed: int | None
    """Of the training, or None."""
    report: Mapping[str, Any]
    """As `LinkReport.to_dict` gives it."""

    def figures(self, *, reranked: bool = False) -> tuple[float | None, ...]:
        """Return MRR and hits in %, the mean of both directions; None where they were not measured."""
        found = self.report["reranked" if reranked else "plain"]
        return tuple(100 * found["mean"][name] if found else None for name in LINK_FIGURES)


@dataclass(frozen=True)
class LinkBoard:
    """What assets/kgc.json holds."""

    models: list[LinkScores]


def read_link_scores(path: str | Path = LINK_SCORES) -> list[LinkScores]:
    """Read stored results; an absent file gives none. DataError as of `read_board`."""
    found = _read(path, LINK_FORMAT, LinkBoard, "Run: python -m benchmarks links")
    return found.models if found else []


def link_rows(scores: Sequence[LinkScores]) -> list[LinkRow]:
    """Return our results, plain and re-ranked, and the papers' as rows of one table, the best first."""
    rows = [*PUBLISHED]
    for item in scores:
        encoder = f"{item.encoder.rpartition('/')[2]}, {item.hardware}"
        for ranking in (PLAINLY, RERANKED):
            figures = item.figures(reranked=ranking == RERANKED)
            if figures[0] is not None:
                rows.append(LinkRow(item.model, item.how, encoder, ranking, figures, True))
    return sorted(rows, key=lambda row: -(row.figures[0] or 0))
