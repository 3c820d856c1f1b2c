"""Does a model order the conditions of the gallery as a careful reader does?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, get_args

from condviz.data.examples import Example, Level

if TYPE_CHECKING:
    from condviz.encoder.backbone import Progress
    from condviz.methods.base import ConditionalScorer

LEVELS: tuple[str, ...] = get_args(Level)


@dataclass(frozen=True)
class Contrast:
    """Two conditions of one example, under the first of which its sentences are more alike.

    Attributes:
        example: id of the example.
        higher, lower: The conditions.
        higher_score, lower_score: What the model says; equal scores are not in order.
    """

    example: str
    higher: str
    lower: str
    higher_score: float
    lower_score: float

    @property
    def in_order(self) -> bool:
        """Whether the model agrees."""
        return self.higher_score > self.lower_score


def contrast(
    model: ConditionalScorer, examples: Sequence[Example], *, progress: Progress | None = None
) -> list[Contrast]:
    """Score the gallery and give all pairs of conditions of which one is expected to be higher.

    Args:
        model: Scores all sentences under all their conditions in one call.
        examples: The gallery.
        progress: Told (done, total) of the encodings that are not in the cache.
    """
    rows = [(example, condition) for example in examples for condition in example.conditions]
    scores = model.score(
        [example.sentence1 for example, _ in rows],
        [example.sentence2 for example, _ in rows],
        [condition for _, condition in rows],
        progress=progress,
    )
    known = {(example.id, condition): float(score) for (example, condition), score in zip(rows, scores, strict=True)}
    return [
        Contrast(example.id, higher, lower, known[example.id, higher], known[example.id, lower])
        for example in examples
        for (higher, high), (lower, low) in permutations(zip(example.conditions, example.expected, strict=True), 2)
        if LEVELS.index(high) > LEVELS.index(low)
    ]
