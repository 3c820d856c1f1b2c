"""An error analysis in steps, on stored scores: slice, reading, rival explanation, rewriting, second half, report."""

# Choices of menus are the keys of tables, which are no literals to pyright.
# pyright: reportInvalidTypeForm=false
from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from condviz.types import columns
from condviz.ui.learn.figures.base import Figure, Sentence
from condviz.ui.state import write_link

SLICES = {
    "all pairs": "",
    "a negation in one sentence only": "negation",
    "different numbers": "numerals_differ",
    "hardly any shared words": "overlap <= 0.125",
    "many shared words": "overlap >= 0.4",
    "lengths 3 words or more apart": "length_gap >= 3",
    "long sentences, 22 words or more": "length >= 22",
}
SliceName = Literal[*SLICES]
WITHIN = {
    "all pairs": "",
    "many shared words": "overlap >= 0.4",
    "some shared words": "overlap > 0.125 and overlap < 0.4",
    "hardly any shared words": "overlap <= 0.125",
}
Within = Literal[*WITHIN]
_COUNTED = 'gold >= 4 and numerals and aspect == "number_of_people"'
TESTS = {
    "raise a number, asked how many people": (_COUNTED, "number", "should fall"),
    "raise a number, asked something else": (
        'gold >= 4 and numerals and aspect != "number_of_people"', "number", "should stay"
    ),
    "swap the two sentences": ("negation", "swap_sentences", "should stay"),
    "negate the second sentence": ("gold >= 4 and not negation", "negate", "should mostly stay"),
}  # fmt: skip
TestName = Literal[*TESTS]
REWRITTEN, SHOWN, RESAMPLES, READ = 20, 4, 300, 12
MOVED = 0.1


class _Errors(Figure):
    """A figure on the stored scores of a model, by default the one that leads the page."""

    model: str = ""

    def study(self, models: list[Any]) -> Any:  # noqa: ANN401 - a Study; its module is heavy
        """Return its scores on the test part of the scenes."""
        from condviz.analysis.errors.findings import stored_study

        return stored_study(models[0].info.name)

    def link(self) -> str:
        chosen = SLICES.get(getattr(self, "slice", ""), "")
        return write_link("errors", [("ed", "scenes:test"), ("ef", chosen)])


def _select(study: Any, *filters: str) -> np.ndarray:  # noqa: ANN401
    from condviz.analysis.errors.filters import select

    return np.logical_and.reduce([select(one, study.columns) for one in filters])


def _wrong(study: Any, mask: np.ndarray) -> dict[str, Any]:  # noqa: ANN401
    """Return how many pairs there are, the share in the wrong order in percent, and its 95 % interval."""
    from condviz.analysis.errors.measures import measure

    figures = measure(study, mask, resamples=RESAMPLES).figures[0]
    right = figures.ties_wrong
    if right.value is None:
        return {"pairs": figures.items, "wrong": None, "low": None, "high": None}
    low, high = (None if one is None else 100 - one for one in (right.high, right.low))
    return {"pairs": figures.items, "wrong": 100 - right.value, "low": low, "high": high}


class ErrorSlices(_Errors):
    """A slice against the rest, if wanted among pairs that share as many words."""

    slice: SliceName = Field("all pairs", title="Slice")
    within: Within = Field("all pairs", title="Only among pairs with")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        study = self.study(models)
        pool, inside = (_select(study, one) for one in (WITHIN[self.within], SLICES[self.slice]))
        rows = {"all": pool, "slice": pool & inside, "rest": pool & ~inside}
        found = {name: _wrong(study, mask) if mask.any() else None for name, mask in rows.items()}
        return found | {"model": models[0].info.title}


class ErrorShare(ErrorSlices):
    """The whole number, to be bet on first."""

    slice: SliceName = "all pairs"
    within: Within = "all pairs"


class ErrorRows(_Errors):
    """Pairs in the wrong order, one at a time, the clearest first."""

    slice: SliceName = Field("a negation in one sentence only", title="Slice")
    place: Annotated[int, Field(ge=1, le=READ)] = Field(1, title="Pair")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        study = self.study(models)
        items = study.dataset.items
        wrong = (_select(study, SLICES[self.slice]) & (study.first.right == 0))[items].any(axis=1)
        order = items[wrong][np.argsort(study.first.margin[items[wrong][:, 0]])][:READ]
        rows = order[min(self.place, len(order)) - 1]
        pairs = [study.dataset.pairs[row] for row in rows]
        fitted = study.first.fitted[rows].tolist()
        asked = [[pair.condition, pair.label, one] for pair, one in zip(pairs, fitted, strict=True)]
        sentences = [pairs[0].sentence1, pairs[0].sentence2]
        return {"sentences": sentences, "count": int(wrong.sum()), "conditions": asked}


class ErrorRewrite(_Errors):
    """Pairs changed by a rule and scored again."""

    test: TestName = Field("raise a number, asked how many people", title="Test")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        from condviz.analysis.errors.rewrites import rewrite

        study = self.study(models)
        chosen, rule, expected = TESTS[self.test]
        changed = rewrite(study, _select(study, chosen), rule, max_rows=REWRITTEN)
        before, after = study.first.scores[changed.rows], models[0].score(*columns(changed.pairs)).astype(np.float64)
        shown = [
            [pair.condition, pair.sentence1, study.dataset.pairs[row].sentence2, pair.sentence2, *map(float, scores)]
            for row, pair, *scores in zip(changed.rows, changed.pairs, before, after, strict=True)
        ]
        moved = np.abs(after - before) > MOVED
        return {
            "expected": expected, "rows": shown[:SHOWN], "count": len(shown), "moved": int(moved.sum()),
            "before": float(before.mean()), "after": float(after.mean()),
            "points": [row[-2:] for row in shown],
        }  # fmt: skip


class ErrorHalves(_Errors):
    """The worst slices of one half, looked up in the other."""

    draw: Annotated[int, Field(ge=0, le=9)] = Field(0, title="Another way to halve the pairs")
    revealed: bool = Field(False, title="Show the other half")

    @property
    def key(self) -> str:
        """What is shown does not change what is computed."""
        return f"{self.name} {self.draw}"

    def compute(self, models: list[Any]) -> dict[str, Any]:
        from condviz.analysis.errors.slices import find_slices

        study = self.study(models)
        numbers, cluster = np.unique(study.dataset.clusters, return_inverse=True)
        half = (np.random.default_rng(self.draw).permutation(len(numbers)) < len(numbers) // 2)[cluster]
        found, wrong = find_slices(study, "order", mask=half, limit=6), 1 - study.first.right
        rows = []
        for one in found.slices:
            other = _select(study, one.filter) & ~half
            share = float(np.nanmean(wrong[other])) if np.isfinite(wrong[other]).any() else None
            rows.append([one.filter, one.n, 100 * one.inside, int(other.sum()), share and 100 * share])
        every = [100 * float(np.nanmean(wrong[side])) for side in (half, ~half)]
        return {"rows": rows, "tried": found.tried, "every": every}

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Put the slices into words, and count those that are worse than all rows in the other half, too."""
        from condviz.plots.errors import in_words

        rows = [[in_words(name), *found] for name, *found in data["rows"]]
        stay = sum(share is not None and share > data["every"][1] for *_, share in rows)
        return data | {"rows": rows, "stay": stay}


class ErrorReport(_Errors):
    """What was found, as a text to hand in."""

    button: ClassVar[str] = "Write the report"
    slice: SliceName = Field("a negation in one sentence only", title="Slice")
    test: TestName = Field("negate the second sentence", title="Test")
    hypothesis: Sentence = Field("", title="Your hypothesis, in one sentence")
    verdict: Sentence = Field("", title="What speaks against it")

    @property
    def key(self) -> str:
        """What is typed does not change what is computed."""
        return f"{self.name} {self.slice} {self.test}"

    def compute(self, models: list[Any]) -> dict[str, Any]:
        slices = {name: ErrorSlices(slice=self.slice, within=name).compute(models) for name in WITHIN}
        rows, test = len(self.study(models).dataset.pairs), ErrorRewrite(test=self.test).compute(models)
        return {"model": models[0].info.title, "slices": slices, "test": test, "rows": rows}
