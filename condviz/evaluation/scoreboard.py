"""Stored scores of models on the corpora that this project can test on: read, written and set as Markdown.

Needs neither torch nor scipy. The page and the documents show them; `condviz benchmark models` measures them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter, ValidationError

from condviz.data.files import write_text
from condviz.errors import ConfigError, DataError, explain
from condviz.evaluation.metrics import Metric
from condviz.paths import ASSETS

BENCHMARK = ASSETS / "benchmark.json"
FORMAT = 1
"""Version of the file; raised when older code could not read it."""
PLAIN = "plain"
_ROOT = Path(__file__).resolve().parents[2]
RESULTS, README = _ROOT / "docs" / "results.md", _ROOT / "README.md"
"""Documents of the clone that hold tables of scores: every figure, and the pair accuracies of trained models."""
START, END = "<!-- scores:start -->", "<!-- scores:end -->"
MARKS = (START, END)
NONE = "–"
FIGURES = ("spearman", "pearson", "pair_accuracy")
_ADVICE = "Remove it, and run: python -m condviz benchmark models"


@dataclass(frozen=True)
class Part:
    """What models are tested on.

    Attributes:
        name: What the command takes and the file holds.
        title: Heading of its column.
        about: What is new in it, or what it is.
        corpus, split: What `condviz.data.corpora.build` takes.
    """

    name: str
    title: str
    about: str
    corpus: str
    split: str


PARTS: Mapping[str, Part] = MappingProxyType({part.name: part for part in (
    Part("test", "test", "scenes; only the sentences are new", "scenes", "test"),
    Part("unseen_phrasings", "unseen wordings", "the pairs of test, each condition in words never trained on",
         "scenes", "unseen_phrasings"),
    Part("unseen_aspects", "unseen aspects", "scenes; conditions ask about what was never asked in training",
         "scenes", "unseen_aspects"),
    Part("own_aspects", "own aspects", "scenes; each condition fits a handful of sentences only",
         "scenes", "own_aspects"),
    Part("unseen_domains", "unseen domains", "scenes; stage, farms, railways, museums, job advertisements: left out of "
         "training", "scenes", "unseen_domains"),
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
    """Which rows of a part are scored.

    Attributes:
        digest: SHA-256 of the rows, first 16 hex digits; figures with different digests cannot be compared.
        rows: Rated rows.
        pairs: Sentence pairs, of two rows each.
        available: Sentence pairs that the part has.
        seed: Decides which are built and chosen.
    """

    digest: str
    rows: int
    pairs: int
    available: int
    seed: int


@dataclass(frozen=True)
class Group:
    """Metrics, times 100, of the rows that ask for one aspect, or whose sentences come from one domain.

    Attributes:
        rows: How many there are.
        pairs: Sentence pairs that have such a row.
        spearman: Over the rows; None where it is not defined.
        pair_accuracy: Over the pairs.
    """

    rows: int
    pairs: int
    spearman: float | None
    pair_accuracy: float | None


@dataclass(frozen=True)
class PartScores:
    """What one model reaches on one part.

    Attributes:
        digest: The rows, as in `Sample`.
        rows, pairs: As in `Sample`.
        resamples: Of the intervals.
        spearman, pearson: Agreement of scores and ratings.
        pair_accuracy: Share of the pairs whose higher rating has the strictly higher score. The two ratings of a pair
            always differ, so CASE's two rules for equal ratings give the same.
        equal_scores: Pairs with two equal scores; they count as wrong.
        baseline: Spearman of the encoder without a condition on the same rows; for plain similarity only.
        groups: "aspect" and "domain" -> name -> figures.
    """

    digest: str
    rows: int
    pairs: int
    resamples: int
    spearman: Metric
    pearson: Metric
    pair_accuracy: Metric
    equal_scores: int
    baseline: float | None = None
    groups: Mapping[str, Mapping[str, Group]] = field(default_factory=dict)

    @property
    def blind(self) -> bool:
        """True if the two conditions of a pair never make a difference."""
        return self.equal_scores == self.pairs


@dataclass(frozen=True)
class ModelScores:
    """What one model reaches.

    Attributes:
        weights: `weights_hash` of the model: weights and settings, the same in every precision.
        precision: What it computed in, for instance "float32".
        trained: As in `ModelInfo`.
        versions: Library -> version.
        parts: Part -> figures.
    """

    weights: str
    precision: str
    trained: bool
    versions: Mapping[str, str]
    parts: Mapping[str, PartScores] = field(default_factory=dict)


@dataclass(frozen=True)
class Board:
    """All that is stored.

    Attributes:
        samples: Part -> the rows that count now.
        models: Name -> what was measured.
    """

    samples: Mapping[str, Sample] = field(default_factory=dict)
    models: Mapping[str, ModelScores] = field(default_factory=dict)

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


def write_board(board: Board, path: str | Path = BENCHMARK) -> None:
    """Store scores, whole or not at all, a line for each model and part."""
    samples = ",\n".join(f"  {_entry(name, asdict(sample))}" for name, sample in board.samples.items())
    models = []
    for name, scores in board.models.items():
        facts = asdict(scores)
        for part in facts["parts"].values():
            part |= {name: {key: part[name][key] for key in ("value", "low", "high")} for name in FIGURES}
        parts = ",\n".join(f"   {_entry(part, found)}" for part, found in facts.pop("parts").items())
        head = json.dumps(facts, ensure_ascii=False)[1:-1]
        models.append(f'  {json.dumps(name)}: {{{head}, "parts": {{\n{parts}\n  }}}}')
    body = ",\n".join(models)
    write_text(path, f'{{"format": {FORMAT},\n "samples": {{\n{samples}\n }},\n "models": {{\n{body}\n }}\n}}\n')


def _entry(name: str, content: Mapping[str, Any]) -> str:
    return f"{json.dumps(name)}: {json.dumps(content, ensure_ascii=False)}"


def format_board(board: Board, models: Sequence[str], parts: Sequence[str]) -> str:
    """Format models x parts as Markdown: pair accuracy, Spearman, plain similarity, and what the parts are.

    Parts that nobody was measured on are left out.
    """
    measured = [part for part in parts if any(board.find(model, part) for model in models)]
    conditional = [part for part in measured if part != PLAIN]
    blocks = []
    if conditional:
        blocks = [
            "Pair accuracy in %: the condition with the higher rating scores higher (chance: 50; equal is wrong).",
            _conditional(board, models, conditional, "pair_accuracy"),
            "Spearman × 100 of scores and ratings (chance: 0).",
            _conditional(board, models, conditional, "spearman"),
        ]
    if PLAIN in measured:
        blocks += [
            "Plain similarity, without a condition: a paraphrase against a sentence about something else.",
            _plain(board, models),
        ]
    legend = []
    for part, sample in ((PARTS[name], board.samples[name]) for name in measured):
        of = "" if sample.pairs == sample.available else f" of {sample.available:,}"
        legend.append(f"- {part.title}: {part.about} ({sample.pairs:,}{of} pairs, seed {sample.seed})")
    notes = ["In brackets: 95 % interval."]
    if not all(board.models[model].trained for model in models):
        notes.append("\\* not trained.")
    for model in models:
        if outdated := [PARTS[part].title for part in board.outdated(model) if part in parts]:
            notes.append(f"{model} was measured on other rows of {', '.join(outdated)}: measure it again.")
    return "\n\n".join([*blocks, "\n".join(legend), " ".join(notes)])


def format_summary(board: Board, models: Sequence[str]) -> str:
    """Format the pair accuracies of trained models as Markdown, without intervals; the best of each part is bold."""
    trained = [model for model in models if board.models[model].trained]
    parts = [part for part in PARTS if part != PLAIN and any(board.find(model, part) for model in trained)]
    values = {
        part: {model: scores.pair_accuracy.value for model in trained if (scores := board.find(model, part))}
        for part in parts
    }

    def cell(model: str, part: str) -> str:
        value = values[part].get(model)
        best = max((found for found in values[part].values() if found is not None), default=None)
        return f"**{value:.1f}**" if value is not None and value == best else _number(value)

    rows = [(f"`{model}`", *(cell(model, part) for part in parts)) for model in trained]
    return markdown_table(("model", *(PARTS[part].title for part in parts)), rows)


def format_groups(board: Board, model: str, parts: Sequence[str], kind: str) -> str:
    """Format the aspects or domains of one model as Markdown, a table for each part, the weakest first."""
    blocks, head = [], (kind, "rows", "pairs", "pair accuracy", "Spearman")
    for part in parts:
        if (scores := board.find(model, part)) and kind in scores.groups:
            groups = sorted(scores.groups[kind].items(), key=lambda item: (item[1].pair_accuracy or 0, item[0]))
            rows = [
                (name, f"{group.rows:,}", f"{group.pairs:,}", _number(group.pair_accuracy), _number(group.spearman))
                for name, group in groups
            ]
            blocks += [f"{model}, {PARTS[part].title}, by {kind}:", markdown_table(head, rows)]
    return "\n\n".join(blocks) or f"{model}: no part that was measured has more than one {kind}."


def fill_document(text: str, path: str | Path | None = None, *, marks: tuple[str, str] = MARKS) -> None:
    """Replace what stands between the marks of a document; by default docs/results.md of the clone."""
    content, (start, end) = read_marked(path, marks=marks), marks
    before, _, rest = content.partition(f"{start}\n")
    write_text(path or RESULTS, f"{before}{start}\n{text}\n{end}{rest.rpartition(end)[2]}")


def read_marked(path: str | Path | None = None, *, marks: tuple[str, str] = MARKS) -> str:
    """Read a document that has the marks; raises ConfigError if it is missing or has none."""
    path = path or RESULTS
    try:
        content = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}. --docs works in a clone only.") from error
    if marks[1] not in content.partition(f"{marks[0]}\n")[2]:
        raise ConfigError(f"{path} has no lines {marks[0]} and {marks[1]}: put them where the table belongs.")
    return content


def format_figure(figure: Metric) -> str:
    """Format "73.2 [70.1, 76.0]", without brackets where there is no interval, and a dash where there is no figure."""
    if figure.value is None or figure.low is None or figure.high is None:
        return _number(figure.value)
    return f"{figure.value:.1f} [{figure.low:.1f}, {figure.high:.1f}]"


def _conditional(board: Board, models: Sequence[str], parts: Sequence[str], metric: str) -> str:
    def cell(scores: PartScores | None) -> str:
        if scores is None:
            return NONE
        return "all equal" if metric == "pair_accuracy" and scores.blind else format_figure(getattr(scores, metric))

    rows = [(_name(board, model), *(cell(board.find(model, part)) for part in parts)) for model in models]
    return markdown_table(("model", *(PARTS[part].title for part in parts)), rows)


def _plain(board: Board, models: Sequence[str]) -> str:
    rows = []
    for model in models:
        if scores := board.find(model, PLAIN):
            value, baseline = scores.spearman.value, scores.baseline
            change = NONE if value is None or baseline is None else f"{value - baseline:+.1f}"
            accuracy = format_figure(scores.pair_accuracy)
            rows.append((_name(board, model), format_figure(scores.spearman), change, accuracy))
    return markdown_table(("model", "Spearman × 100", "against the untrained encoder", "paraphrase is closer, %"), rows)


def _name(board: Board, model: str) -> str:
    return f"`{model}`" + ("" if board.models[model].trained else " \\*")


def _number(value: float | None) -> str:
    return NONE if value is None else f"{value:.1f}"


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table as Markdown; all columns but the first are aligned to the right."""
    rules = ("---", *("---:" for _ in head[1:]))
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rules, *rows))
