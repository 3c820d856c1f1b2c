"""A dataset with faults that are known: two models, each wrong in a place that the analysis has to find."""

from __future__ import annotations

import numpy as np

from condviz.analysis.errors.study import Study, judge, make_study
from condviz.evaluation.dataset import Dataset, make_dataset
from condviz.types import Pair

ITEMS = 120
THINGS = ("umbrella", "bicycle", "lantern", "suitcase")
WORDINGS = {"sport": "the sport", "number": "the number of people", "mood": "the mood"}


def toy_rows(items: int = ITEMS, *, seed: int = 0) -> tuple[list[Pair], list[str]]:
    """Give rows, two for each sentence pair, and the aspect of each."""
    rng = np.random.default_rng(seed)
    rows, aspects = [], []
    names = list(WORDINGS)
    for number in range(items):
        thing = THINGS[number % len(THINGS)]
        first = f"Runner {number} carries a {thing} past house {number * 7}."
        second = f"Swimmer {number} leaves a {thing} at gate {number * 3}."
        labels = rng.choice([1.0, 2.0, 3.0, 4.0, 5.0], size=2, replace=False)
        for place, label in zip(rng.choice(3, size=2, replace=False), labels, strict=True):
            rows.append(Pair(first, second, WORDINGS[names[place]], float(label)))
            aspects.append(names[place])
    return rows, aspects


def toy_dataset(items: int = ITEMS, *, seed: int = 0) -> Dataset:
    """Give the rows as a dataset with the column "aspect"; two of the three wordings are seen."""
    rows, aspects = toy_rows(items, seed=seed)
    dataset = make_dataset("toy test", rows, extra={"aspect": aspects})
    return dataset.with_training(["The Sport", WORDINGS["number"]])


def toy_scores(dataset: Dataset) -> dict[str, np.ndarray]:
    """Give scores: hyper-cl finds pairs with umbrellas too similar, csr guesses under the number of people."""
    rng = np.random.default_rng(1)
    size = len(dataset.pairs)
    umbrella = np.array(["umbrella" in pair.sentence1 for pair in dataset.pairs])
    number = np.array([pair.condition == WORDINGS["number"] for pair in dataset.pairs])
    good = dataset.gold / 5 + rng.normal(scale=0.1, size=size)
    return {
        "hyper-cl": good + 0.3 * umbrella,
        "csr": np.where(number, rng.uniform(0.2, 1.0, size=size), 40 * good) / np.where(number, 0.025, 1.0),
    }


def toy_study(*, second: bool = True, items: int = ITEMS) -> Study:
    """Judge one model, or both."""
    dataset = toy_dataset(items)
    judged = [judge(dataset, name, scores) for name, scores in toy_scores(dataset).items()]
    return make_study(dataset, *judged[: 2 if second else 1])
