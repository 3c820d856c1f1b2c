"""Whether methods that read sentence and condition apart learn from those that read them together.

Teachers, the bi-encoder and CASE, score every pair of a block of sentences under each of its conditions: contrasts
without end, of which the students need only one encoding a text. Students go on from their shipped heads, on a frozen
encoder, by equally many steps, each with the same rated rows:

    rated      the rated rows alone, the control
    teachers   squared error of the differences between two conditions, no rated rows
    both       the two together
    sure       rated rows, and in which order two conditions come where both teachers are sure of it
    sure, slow the same at a quarter of the rate

python -m benchmarks.distill [--seeds N] [--docs]
"""

from __future__ import annotations

import copy
import itertools
import random
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, mse_loss, softplus

from benchmarks.common import fill, options
from condviz.encoder.applies import applies
from condviz.evaluation import benchmark
from condviz.evaluation.metrics import condition_pairs
from condviz.evaluation.scoreboard import markdown_table
from condviz.methods.encoders import SeparableEncoder
from condviz.models.registry import load
from condviz.training.data import Example, load_source
from condviz.training.recipes import Source
from condviz.types import TOLD

TEACHERS, STUDENTS = ("bi-encoder", "case"), {"tri-concat": 1e-3, "tri-hadamard": 1e-3, "hyper-cl": 2e-4}
"""The students with their rates."""
PARTS = ("tables", "tables_unseen_domains", "test", "cebab")
BLOCKS, SENTENCES, CONDITIONS, TRIED = 160, 8, 6, 40
ROWS = {"tables": 12_000, "scenes": 12_000, "cebab": 2_000}
STEPS, CONTRASTS, TEMPERATURE, SURE = 400, 48, 0.2, 0.15
"""Steps of a training; contrasts of each kind in a step; what differences are divided by, and how large they have to be
for a teacher to be sure."""


@dataclass(frozen=True)
class Block:
    """Sentences and conditions, all pairs of which the teachers have scored: (teachers, conditions, pairs) cosines."""

    sentences: tuple[str, ...]
    conditions: tuple[str, ...]
    scores: Tensor

    @property
    def pairs(self) -> Tensor:
        """Positions of the two sentences of each pair: (pairs, 2)."""
        return torch.combinations(torch.arange(len(self.sentences)))


@cache
def rated_rows() -> dict[str, list[Example]]:
    """Load what models are trained on, by source."""
    return {name: load_source(Source(name=name, rows=count)) for name, count in ROWS.items()}


def draw_texts(rng: random.Random) -> tuple[list[str], list[str]]:
    """Draw sentences of one source, and of some of its conditions those that most of the sentences tell."""
    rows = rated_rows()[rng.choice(list(ROWS))]
    sentences = [row.sentence1 for row in rng.sample(rows, SENTENCES)]
    tried = list(dict.fromkeys(row.condition for row in rng.sample(rows, TRIED)))
    told = (applies(sentences, tried) >= TOLD).mean(axis=0)
    return sentences, [tried[place] for place in (-told).argsort(kind="stable")[:CONDITIONS]]


def make_blocks(count: int = BLOCKS) -> list[Block]:
    """Draw blocks and have the teachers score them: sentences times conditions encodings each."""
    rng, teachers, blocks = random.Random(0), [load(name) for name in TEACHERS], []
    for _ in range(count):
        sentences, conditions = draw_texts(rng)
        grids = [torch.as_tensor(teacher.encode_grid(sentences, conditions)) for teacher in teachers]
        one, other = torch.combinations(torch.arange(len(sentences))).T
        scores = torch.stack([cosine_similarity(grid[:, one], grid[:, other], dim=-1) for grid in grids])
        blocks.append(Block(tuple(sentences), tuple(conditions), scores))
    return blocks


class Heads:
    """A student's head on vectors that its encoder has computed once.

    Args:
        name: Of the student.
        texts: All that will be asked for.
    """

    def __init__(self, name: str, texts: Sequence[str]) -> None:
        self.model: SeparableEncoder = load(name, device="cpu", precision="float32")
        different = list(dict.fromkeys(texts))
        pooling = self.model.method_config.pooling
        self.vectors = self.model.backbone.encode([(text,) for text in different], pooling=pooling)
        self.places = {text: place for place, text in enumerate(different)}

    def fresh(self) -> SeparableEncoder:
        """Return a copy whose head can be trained, with the encoder of the original."""
        known = {id(self.model.backbone): self.model.backbone}
        model = copy.deepcopy(self.model, known)
        model.requires_grad_(True)
        model.backbone.requires_grad_(False)
        return model

    def embed(self, model: SeparableEncoder, sentences: Sequence[str], conditions: Sequence[str]) -> Tensor:
        """Encode sentences, each with its condition: (n, d), with gradient."""
        used = list(dict.fromkeys(conditions))
        index = torch.tensor([used.index(condition) for condition in conditions])
        pooled, asked = (self.vectors[[self.places[text] for text in texts]] for texts in (sentences, used))
        return model.embed_by_condition(model.project_sentences(pooled), model.project_conditions(asked), index)


def rated_loss(heads: Heads, model: SeparableEncoder, rows: Sequence[tuple[Example, Example]]) -> Tensor:
    """Compare rated rows of one sentence pair, the higher one first."""
    flat = [row for pair in rows for row in pair]
    conditions = [row.condition for row in flat]
    one, other = (
        heads.embed(model, [getattr(row, side) for row in flat], conditions) for side in ("sentence1", "sentence2")
    )
    high, low = cosine_similarity(one, other).unflatten(0, (-1, 2)).T
    return softplus((low - high) / TEMPERATURE).mean()


def teacher_loss(heads: Heads, model: SeparableEncoder, block: Block, *, sure: bool) -> Tensor:
    """Compare all pairs of a block under two conditions with what the teachers say.

    Args:
        heads, model: The student.
        block: Scored by the teachers.
        sure: Only the order, and only where all teachers are sure of it; else the size of the mean difference.
    """
    every = list(itertools.product(block.conditions, block.sentences))
    vectors = heads.embed(model, [text for _, text in every], [condition for condition, _ in every])
    vectors, (one, other) = vectors.unflatten(0, (len(block.conditions), -1)), block.pairs.T
    scores = cosine_similarity(vectors[:, one], vectors[:, other], dim=-1)
    first, second = torch.combinations(torch.arange(len(block.conditions))).T
    found, wanted = scores[first] - scores[second], block.scores[:, first] - block.scores[:, second]
    if not sure:
        return mse_loss(found, wanted.mean(dim=0))
    agreed = (wanted.sign() == wanted[0].sign()).all(dim=0) & (wanted.abs() > SURE).all(dim=0)
    if not agreed.any():
        return 0.0 * found.sum()
    return softplus(-(found * wanted[0].sign())[agreed] / TEMPERATURE).mean()


Part = Callable[[SeparableEncoder, random.Random], Tensor]


def fit(model: SeparableEncoder, parts: Sequence[Part], rate: float, seed: int) -> SeparableEncoder:
    """Train a head by the sum of some losses."""
    torch.manual_seed(seed)
    rng = random.Random(seed)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=STEPS, pct_start=0.05)
    for _ in range(STEPS):
        optimizer.zero_grad()
        torch.stack([part(model, rng) for part in parts]).sum().backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        schedule.step()
    return model.eval()


def contrasts() -> list[tuple[Example, Example]]:
    """Return rated rows of one sentence pair under two conditions, the higher first."""
    rows = [row for found in rated_rows().values() for row in found]
    pairs = [(rows[one], rows[other]) for one, other in condition_pairs(rows)]
    return [tuple(sorted(pair, key=lambda row: -row.label)) for pair in pairs if pair[0].label != pair[1].label]


def measure(model: SeparableEncoder) -> dict[str, float]:
    """Return pair accuracy and Spearman of each part, times 100."""
    found = {}
    for name in PARTS:
        figures = benchmark.measure(model, _part(name), resamples=0)
        found[f"{name}, pairs"], found[f"{name}, Spearman"] = figures.pair_accuracy.value, figures.spearman.value
    return found


@cache
def _part(name: str) -> benchmark.Chosen:
    return benchmark.choose(name)


def run(name: str, blocks: Sequence[Block], pairs: Sequence[tuple[Example, Example]], seeds: int) -> list[list[str]]:
    """Train and measure one student in every form: rows of the table."""
    texts = [text for block in blocks for text in (*block.sentences, *block.conditions)]
    texts += [text for pair in pairs for row in pair for text in (row.sentence1, row.sentence2, row.condition)]
    heads, rate = Heads(name, texts), STUDENTS[name]

    def rated(model: SeparableEncoder, rng: random.Random) -> Tensor:
        return rated_loss(heads, model, rng.sample(pairs, CONTRASTS))

    def taught(model: SeparableEncoder, rng: random.Random, *, sure: bool) -> Tensor:
        return teacher_loss(heads, model, rng.choice(blocks), sure=sure)

    forms: dict[str, tuple[list[Part], float]] = {
        "rated": ([rated], rate),
        "teachers": ([partial(taught, sure=False)], rate),
        "both": ([rated, partial(taught, sure=False)], rate),
        "sure": ([rated, partial(taught, sure=True)], rate),
        "sure, slow": ([rated, partial(taught, sure=True)], rate / 4),
    }
    rows = [[name, "as shipped", *_cells([measure(heads.model)])]]
    for form, (parts, own) in forms.items():
        rows.append([name, form, *_cells([measure(fit(heads.fresh(), parts, own, seed)) for seed in range(seeds)])])
        sys.stderr.write(" | ".join(rows[-1]) + "\n")
    return rows


def _cells(found: Sequence[dict[str, float]]) -> list[str]:
    return [f"{statistics.mean(one[key] for one in found):.1f}" for key in found[0]]


def main() -> None:
    """Train all students in all forms, and print the table."""
    parser = options(__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="trainings of each form (default: %(default)s)")
    chosen = parser.parse_args()
    blocks, pairs = make_blocks(), contrasts()
    rows = [row for name in STUDENTS for row in run(name, blocks, pairs, chosen.seeds)]
    head = (
        "student",
        "form",
        *(f"{part.replace('_', ' ')}, {what}" for part in PARTS for what in ("pairs", "Spearman")),
    )
    text = markdown_table(head, rows)
    print(text)
    if chosen.docs:
        fill("distill", text)


if __name__ == "__main__":
    main()
